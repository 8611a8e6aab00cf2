"""The HTTP client that models are asked with, against real sockets."""

from __future__ import annotations

import asyncio
import gzip
import queue
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from hookline.agent.http_client import HttpClient, read_body

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that does as `handle` says; its port."""

    serving: set[asyncio.Task[None] | None] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*(task for task in serving if task))


def saying(*answers: bytes) -> tuple[Handle, list[bytes]]:
    """Gives these answers on one connection, then hangs up; and the heads of what was asked."""
    asked: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head = await reader.readuntil(b"\r\n\r\n")
            asked.append(head)
            if b"content-length: " in head:
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
            writer.write(answer)
            await writer.drain()

    return handle, asked


async def fetched(client: HttpClient, url: str, most: int = 1 << 20) -> tuple[int, bytes]:
    async with client.exchange("GET", url, {}) as answer:
        return answer.status_code, await read_body(answer, most)


BODIES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n",
    "until it hangs up": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "announced": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello"),
}


@pytest.mark.parametrize("answer", BODIES.values(), ids=BODIES)
async def test_a_body_is_read_however_its_end_is_told(answer: bytes) -> None:
    """By its length, in chunks, until the server hangs up; compressed or not."""
    handle, _ = saying(answer)
    async with listening(handle) as port, aclosing(HttpClient()) as client:
        assert await fetched(client, f"http://127.0.0.1:{port}/x?y=1") == (200, b"hello")


async def test_a_connection_is_used_again_and_another_one_made_when_it_was_closed() -> None:
    """Two requests on the first; the server hangs up after them, and the third has one of its own."""
    handle, asked = saying(BODIES["length"], BODIES["chunked"])
    opened = 0

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await handle(reader, writer)

    async with listening(counted) as port, aclosing(HttpClient()) as client:
        for _ in range(3):
            assert await fetched(client, f"http://127.0.0.1:{port}/") == (200, b"hello")

    assert (opened, len(asked)) == (2, 3)


GARBAGE = {
    "not http": b"SSH-2.0-OpenSSH\r\n\r\n",
    "nothing": b"",
    "cut": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
    "cut chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhello",
    "no chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "not gzip": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello",
    "endless line": b"HTTP/1.1 200 " + b"x" * 300_000,
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"a: " + b"x" * 1000 + b"\r\n" + b"b: c\r\n" * 100_000,
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE)
async def test_what_is_not_a_whole_answer_is_an_error(answer: bytes) -> None:
    """Half a body is never taken for a whole one."""
    handle, _ = saying(answer)
    async with listening(handle) as port, aclosing(HttpClient()) as client:
        with pytest.raises(OSError):
            await fetched(client, f"http://127.0.0.1:{port}/")


async def test_a_server_that_says_nothing_is_given_up() -> None:
    """So many seconds without a byte, and the error says so."""
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()

    async with listening(silent) as port, aclosing(HttpClient(to_read=0.05)) as client:
        with pytest.raises(ConnectionError, match=r"got no answer within 0\.05 s"):
            await fetched(client, f"http://127.0.0.1:{port}/")
        over.set()


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "http://127.0.0.1:1/a b", "http://127.0.0.1:1/ä"])
async def test_an_address_that_http_does_not_know_is_refused(url: str) -> None:
    """Before anybody is asked."""
    with pytest.raises(ValueError, match=r"(?i)http"):
        await fetched(HttpClient(), url)


async def test_a_header_cannot_smuggle_in_another() -> None:
    """A line break in a value is refused."""
    with pytest.raises(ValueError, match="line break"):
        async with HttpClient().exchange("GET", "http://127.0.0.1:1/", {"x-api-key": "k\r\nx: y"}):
            pass


# -- on the way ----------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for `localhost` with its key, in one file."""
    path = tmp_path / "pair.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(path),
            "-out", str(tmp_path / "cert.pem")]  # fmt: skip
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    path.write_text(path.read_text() + (tmp_path / "cert.pem").read_text())
    return path


async def test_https_goes_through_a_proxy_by_a_tunnel_and_certificates_count(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONNECT with the proxy's credentials, then TLS with the server itself; a stranger's certificate is refused."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    handle, _ = saying(BODIES["length"])
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        there, back = await asyncio.open_connection("127.0.0.1", int(asked[-1].split()[1].rpartition(b":")[2]))
        writer.write(b"HTTP/1.1 200 go on\r\n\r\n")
        await asyncio.gather(_copied(reader, back), _copied(there, writer))
        await back.wait_closed()

    async with listening(handle, tls) as port, listening(tunnel) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:pass@127.0.0.1:{proxy}")
        monkeypatch.setenv("no_proxy", "")
        async with aclosing(HttpClient()) as client:
            with pytest.raises(OSError, match="certificate"):
                await fetched(client, f"https://localhost:{port}/")
        monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(certificate))
        async with aclosing(HttpClient()) as client:
            assert await fetched(client, f"https://localhost:{port}/") == (200, b"hello")

    assert asked[-1].startswith(f"CONNECT localhost:{port} HTTP/1.1\r\n".encode())
    assert b"proxy-authorization: basic bwu6cgfzcw==" in asked[-1].lower()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
        writer.close()
    except ConnectionError:
        writer.close()


async def test_plain_http_is_asked_of_the_proxy_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the whole address; hosts of NO_PROXY are asked directly."""
    handle, asked = saying(BODIES["length"])
    async with listening(handle) as port, aclosing(HttpClient()) as client:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "direct.example")
        assert await fetched(client, "http://far.example/x?y") == (200, b"hello")
        with pytest.raises(OSError):
            await fetched(client, "http://direct.example:1/")

    assert asked[0].lower().startswith(b"get http://far.example/x?y http/1.1\r\nhost: far.example\r\n")


def test_a_model_is_asked_without_the_official_sdk() -> None:
    """They take longer to import than many an answer."""
    script = (
        "import asyncio, sys\nfrom hookline.agent.factory import make\nfrom hookline.agent.models import choose\n"
        "from hookline.agent.stream_json.host_session import PROBE\n"
        "model = choose('sonnet', {'ANTHROPIC_API_KEY': 'k', 'ANTHROPIC_BASE_URL': 'http://127.0.0.1:1',})\n"
        "model._retries = 0\n"
        "try: asyncio.run(model.respond(PROBE))\nexcept Exception as problem: print(problem)\n"
        "print(sorted({'anthropic', 'aiohttp', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    told, imported = done.stdout.splitlines()

    assert "http://127.0.0.1:1/v1/messages cannot be reached" in told
    assert imported == "[]"


def test_a_connection_is_not_used_in_another_event_loop() -> None:
    """A program that calls `asyncio.run` twice is answered twice."""
    ports: queue.Queue[int] = queue.Queue()
    over = threading.Event()
    handle, asked = saying(BODIES["length"], BODIES["length"])

    async def serve() -> None:
        async with listening(handle) as port:
            ports.put(port)
            await asyncio.to_thread(over.wait)

    client = HttpClient()
    server = threading.Thread(target=lambda: asyncio.run(serve()))
    server.start()
    url = f"http://127.0.0.1:{ports.get(timeout=60)}/"
    try:
        assert [asyncio.run(fetched(client, url)) for _ in range(2)] == [(200, b"hello")] * 2
    finally:
        over.set()
        server.join(60)

    assert len(asked) == 2
