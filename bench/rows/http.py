"""HTTP hooks on a kept connection, beside the barest exchange on a socket and the clients people use."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.harness import Candidate, Measured, Row, at_most, interleave
from hookline import Hooks, Http
from hookline.core.wire import claude
from hookline.events import PreToolUse

EVENT = PreToolUse(session_id="s", cwd="/", tool_name="Bash", tool_input={"command": "ls -la"})
BODY = claude.encode_event(EVENT)
HEADERS = {"Content-Type": "application/json"}


def rows() -> Iterator[Row]:
    yield Row("http.kept", "`Http` hook on a kept connection, fired", at_most(2, "× a raw socket exchange"), kept)


async def kept() -> Measured:
    with endpoint() as port:
        url = f"http://127.0.0.1:{port}/hook"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with Hooks() as hooks:
            hooks.add(PreToolUse, Http(url=url))

            async def ours() -> None:
                verdict = await hooks.fire(EVENT)
                assert verdict.suppress_output

            async def raw() -> None:
                await exchange(reader, writer)

            others, closers = await clients(url)
            times = await interleave({"ours": ours, "raw": raw, **others}, rounds=81)
            for close in closers:
                await close()
        writer.close()
    peers = {name: times.ratio(name, "raw") if name in others else "not installed" for name in ("aiohttp", "httpx")}
    return Measured(times.ratio("ours", "raw"), peers, f"{times.seconds('ours') * 1e6:.0f} µs")


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, one answer, nothing parsed but the length."""
    writer.write(b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
    head = await reader.readuntil(b"\r\n\r\n")
    json.loads(await reader.readexactly(length_in(head)))


def length_in(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])


async def clients(url: str) -> tuple[dict[str, Candidate], list[Any]]:
    """The libraries that are installed, each posting the same event and reading the answer as JSON."""
    found: dict[str, Candidate] = {}
    closers: list[Any] = []
    for name, made in {"aiohttp": _aiohttp, "httpx": _httpx}.items():
        try:
            found[name], close = made(url)
        except ImportError:
            continue
        closers.append(close)
    return found, closers


def _aiohttp(url: str) -> tuple[Candidate, Any]:
    import aiohttp

    session = aiohttp.ClientSession()

    async def post() -> None:
        async with session.post(url, data=BODY, headers=HEADERS) as response:
            json.loads(await response.read())

    return post, session.close


def _httpx(url: str) -> tuple[Candidate, Any]:
    import httpx

    client = httpx.AsyncClient()

    async def post() -> None:
        (await client.post(url, content=BODY, headers=HEADERS)).json()

    return post, client.aclose


@contextmanager
def endpoint() -> Iterator[int]:
    """Answers on loopback, in a process of its own, for as long as its stdin is open."""
    served = (sys.executable, "-c", f"from {__name__} import serve; serve()")
    with subprocess.Popen(served, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def serve() -> None:
    """A hook service as people write one: reads the event as JSON, answers JSON. Prints its port, ends with stdin."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        event = await request.json()
        return web.json_response({"suppressOutput": event["tool_name"] == "Bash"})

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/hook", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())
