"""The subprocess transport, and what the client makes of a CLI that misbehaves. Real processes throughout."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hookline.errors import CliDied, CliNotFound, CliProtocolError, CliSilent
from hookline.hosts.claude_code import ClaudeClient, client
from hookline.hosts.claude_code.process import PeerExit, Receiver, Subprocess

INITIALIZED = """
import json, sys, time
asked = json.loads(sys.stdin.readline())
info = {"hooks_applied": True, "hook_on_failure_supported": True}
answer = {"subtype": "success", "request_id": asked["request_id"], "response": info}
print(json.dumps({"type": "control_response", "response": answer}), flush=True)
sys.stderr.write("something is wrong\\n")
sys.stdin.readline()
"""


class Heard:
    """A receiver that keeps everything."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.exit: PeerExit | None = None
        self.news = asyncio.Event()

    def received(self, data: bytes) -> None:
        self.data += data
        self.news.set()

    def ended(self, exit: PeerExit) -> None:
        assert self.exit is None, "told twice"
        self.exit = exit
        self.news.set()

    async def until(self, size: int) -> None:
        async with asyncio.timeout(20):
            while len(self.data) < size:
                self.news.clear()
                await self.news.wait()


def python(tmp_path: Path, source: str) -> list[str]:
    script = tmp_path / "cli.py"
    script.write_text(source)
    return [sys.executable, str(script)]


async def started(argv: list[str], grace: float = 60) -> tuple[Subprocess, Heard]:
    heard = Heard()
    transport = Subprocess(argv, grace=grace)
    await transport.start(heard)
    return transport, heard


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_line_of_any_length_passes_both_ways() -> None:
    """Five megabytes in one line go in and come out whole."""
    transport, heard = await started(["cat"])
    line = b"x" * 5_000_000 + b"\n"

    transport.write(line)
    await heard.until(len(line))
    await transport.close()

    assert heard.data == line
    assert heard.exit == PeerExit(0, "")


async def test_writing_waits_for_a_peer_that_does_not_read() -> None:
    """`drain` holds a writer back until the peer has taken the bytes."""
    transport, heard = await started(["sh", "-c", "read go; cat >/dev/null; echo took it"])
    transport.write(b"x" * 1_000_000)  # `read` takes them one by one
    draining = asyncio.ensure_future(transport.drain())
    await asyncio.sleep(0)
    held = not draining.done()

    transport.write(b"\n")
    async with asyncio.timeout(60):
        await draining
    await transport.close()

    assert held
    assert bytes(heard.data) == b"took it\n"


async def test_what_a_peer_wrote_before_it_ended_is_not_lost() -> None:
    """The rest of the pipe is read once the process is gone."""
    transport, heard = await started(["sh", "-c", "head -c 3000000 /dev/zero"])
    async with asyncio.timeout(20):
        while heard.exit is None:
            heard.news.clear()
            await heard.news.wait()
    await transport.close()

    assert len(heard.data) == 3_000_000


# ── the end ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "source, code",
    [
        ("import sys; sys.stdin.read(); sys.exit(3)", 3),
        ("import sys, time; print('up', flush=True); time.sleep(60)", -15),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)", -9),
    ],
    ids=["ends by itself", "needs TERM", "needs KILL"],
)
async def test_a_cli_is_ended_as_gently_as_it_allows(tmp_path: Path, source: str, code: int) -> None:
    """Closed stdin first, then TERM, then KILL; no process is left."""
    transport, heard = await started(python(tmp_path, source), grace=0.3 if code < 0 else 60)
    if code < 0:
        await heard.until(3)
    pid = transport.pid
    assert pid is not None

    async with asyncio.timeout(90):
        await transport.close()
        await transport.close()

    assert heard.exit is not None
    assert heard.exit.code == code
    assert not alive(pid)


async def test_a_cancelled_close_still_ends_the_cli(tmp_path: Path) -> None:
    """Whoever is cancelled while closing leaves no process behind."""
    transport, heard = await started(
        python(tmp_path, "import time; print('up', flush=True); time.sleep(60)"), grace=0.2
    )
    await heard.until(3)
    closing = asyncio.ensure_future(transport.close())
    await asyncio.sleep(0)
    closing.cancel()

    async with asyncio.timeout(20):
        await transport.close()

    assert transport.pid is not None
    assert not alive(transport.pid)


async def test_a_grandchild_that_holds_the_pipe_is_not_waited_for() -> None:
    """The CLI is over when its process is, not when the last holder of its pipes lets go."""
    transport, heard = await started(["sh", "-c", "echo hi; sleep 30 & echo $!"])

    async with asyncio.timeout(15):
        while heard.exit is None:
            heard.news.clear()
            await heard.news.wait()

    grandchild = int(bytes(heard.data).split()[1])
    os.kill(grandchild, 9)
    await transport.close()
    assert heard.exit == PeerExit(0, "")


async def test_only_the_end_of_stderr_is_kept(tmp_path: Path) -> None:
    """A CLI that floods stderr costs a bounded amount of memory, and its last words are there."""
    flood = "import sys\nsys.stderr.write('x' * 3_000_000 + 'the end')"
    transport, heard = await started(python(tmp_path, flood))
    async with asyncio.timeout(20):
        while heard.exit is None:
            heard.news.clear()
            await heard.news.wait()
    await transport.close()

    assert heard.exit.stderr.endswith("the end")
    assert len(heard.exit.stderr) <= 8192


# ── a CLI that misbehaves ────────────────────────────────────────────────────────────────────────


async def conversation(argv: list[str], **options: float) -> None:
    async with ClaudeClient(cli=argv, **options) as claude:  # type: ignore[arg-type]
        await claude.send("go")
        async for _ in claude.messages():
            pass


async def test_a_cli_that_dies_in_the_middle_of_a_line(tmp_path: Path) -> None:
    """One error says that, with the exit code and the last words."""
    dies = INITIALIZED + """sys.stdout.write('{"type":"assistant","mess'); sys.stdout.flush(); sys.exit(9)"""

    with pytest.raises(CliDied, match="middle of a line") as error:
        await conversation(python(tmp_path, dies))

    assert (error.value.exit_code, error.value.stderr) == (9, "something is wrong\n")


async def test_a_cli_that_dies_at_once(tmp_path: Path) -> None:
    """Dying before `initialize` is answered ends the start, with what was printed."""
    dies = "import sys; print('no such flag'); sys.stderr.write('usage'); sys.exit(2)"

    with pytest.raises(CliDied, match=r"(?s)no such flag.*exit code 2.*usage") as error:
        await conversation(python(tmp_path, dies))

    assert error.value.exit_code == 2


async def test_a_cli_that_floods_garbage(tmp_path: Path) -> None:
    """A thousand lines that are no messages are too many; the CLI is ended."""
    floods = INITIALIZED + "\nwhile True: print('garbage ' * 10)"

    with pytest.raises(CliProtocolError, match=r"(?s)more than 1000 lines.*something is wrong"):
        async with asyncio.timeout(30):
            await conversation(python(tmp_path, floods))


async def test_a_cli_that_floods_one_endless_line(tmp_path: Path) -> None:
    """The line limit bounds memory, and the error names it."""
    floods = INITIALIZED + "\nwhile True: sys.stdout.write('x' * 65536)"

    with pytest.raises(CliProtocolError, match=r"limit of 1,000,000 bytes"):
        async with asyncio.timeout(30):
            await conversation(python(tmp_path, floods), line_limit=1_000_000)


class Loading(Subprocess):
    """Has begun once it says something on stderr."""

    async def start(self, receiver: Receiver) -> None:
        await super().start(receiver)
        async with asyncio.timeout(60):
            while not self.stderr.endswith("\n"):  # noqa: ASYNC110 - another process says it
                await asyncio.sleep(0.01)


async def test_a_cli_that_stalls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence has a limit; the error has the last words, and the process is gone."""
    monkeypatch.setattr(client, "Subprocess", Loading)
    stalls = "import sys, time, os\nsys.stderr.write(f'loading {os.getpid()}\\n'); sys.stderr.flush(); sys.stdin.read()"

    with pytest.raises(CliSilent, match="loading") as error:
        await conversation(python(tmp_path, stalls), initialize_timeout=0.5)

    assert not alive(int(error.value.stderr.split()[1]))


async def test_a_cli_that_is_not_there(tmp_path: Path) -> None:
    """The error says what to do."""
    with pytest.raises(CliNotFound, match="not a program"):
        await conversation([str(tmp_path / "nothing")])
    with pytest.raises(CliNotFound, match="no such directory"):
        await ClaudeClient(cli="/bin/cat", cwd=tmp_path / "nowhere").connect()
