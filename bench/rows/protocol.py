"""The control protocol: a `hook_callback` line in, a `control_response` line out, beside the official Python SDK."""

import asyncio
import importlib
import json
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from itertools import count, cycle
from pathlib import Path
from typing import Any

import msgspec

from bench.harness import Batch, Measured, Row, Unavailable, at_least, at_most, interleave
from hookline.api import Hooks
from hookline.events import PostToolUse, PreToolUse
from hookline.hosts.claude_code import ClaudeClient
from hookline.hosts.claude_code.channels import HostChannel
from hookline.hosts.claude_code.messages import Initialize
from hookline.hosts.claude_code.process import PeerExit, Receiver, Subprocess, bundled_cli
from hookline.hosts.claude_code.protocol import REMEMBERED
from hookline.hosts.claude_code.registration import plan

CHUNK = 100  # lines that arrive together when callbacks are pipelined: what a full pipe holds (64 KiB)
CALLS = 100  # tool calls of the run with the real CLI


def rows() -> Iterator[Row]:
    yield Row(
        "protocol.one", "hook_callback in → answer out, one at a time", at_least(2, "× the official Python SDK"), one
    )
    yield Row("protocol.many", "the same, pipelined", at_least(5, "× the official Python SDK"), many)
    yield Row(
        "protocol.p95", "real CLI: callback received → answer written, p95", at_most(10, "ms"), lambda: real(0.95)
    )
    yield Row("protocol.p99", "the same, p99", at_most(50, "ms"), lambda: real(0.99))


async def one() -> Measured:
    ours, theirs = await Ours.make(), await Theirs.make()
    times = await interleave({"ours": ours.one_at_a_time(), "sdk": theirs.one_at_a_time()})
    await theirs.close()
    return _compared(times, 1)


async def many() -> Measured:
    ours, theirs = await Ours.make(), await Theirs.make()
    times = await interleave({"ours": ours.pipelined(), "sdk": theirs.pipelined()}, batch_seconds=0.1)
    await theirs.close()
    return _compared(times, CHUNK)


def _compared(times: Any, lines: int) -> Measured:
    rates = {name: lines / times.seconds(name) for name in ("ours", "sdk")}
    return Measured(times.ratio("sdk", "ours"), note=f"{rates['ours']:,.0f}/s, the SDK {rates['sdk']:,.0f}/s")


# ── the line, as the real CLI writes it ──────────────────────────────────────────────────────────


EVENT = {
    "session_id": "02a4e6d2-33d3-4df6-8c3d-02d43eeab4cf",
    "transcript_path": "/home/u/.claude/projects/-home-u-project/02a4e6d2-33d3-4df6-8c3d-02d43eeab4cf.jsonl",
    "cwd": "/home/u/project",
    "prompt_id": "3d7d9d0e-5c0f-4f0f-9a63-0f9d5e2f1c11",
    "permission_mode": "default",
    "effort": {"level": "medium"},
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "echo ran >> out.txt; echo hello", "description": "d"},
    "tool_use_id": "toolu_1_0",
}
ASKED = {"subtype": "hook_callback", "callback_id": "hook_0", "input": EVENT, "tool_use_id": "toolu_1_0"}
TAIL = b'","request":' + json.dumps(ASKED, separators=(",", ":")).encode() + b"}\n"


def line(request_id: str) -> bytes:
    return b'{"type":"control_request","request_id":"' + request_id.encode() + TAIL


@cache
def chunks() -> list[bytes]:
    """Chunks made beforehand, enough of them that an id comes again only after the ledger has forgotten it."""
    return [b"".join(line(f"{chunk}-{n}") for n in range(CHUNK)) for chunk in range(3 * REMEMBERED // CHUNK)]


class Lines:
    """`hook_callback` lines, each with a request id of its own."""

    def __init__(self) -> None:
        self._ids = count()
        self._chunks = cycle(chunks())

    def one(self) -> bytes:
        return line(f"one-{next(self._ids)}")

    def many(self) -> bytes:
        """A chunk of `CHUNK` lines."""
        return next(self._chunks)


class Answers:
    """Counts the lines that come out, and wakes whoever waits for the last of them."""

    def __init__(self) -> None:
        self.wanted = 0
        self.done = asyncio.Event()

    def expect(self, count: int) -> None:
        self.wanted = count
        self.done.clear()

    def wrote(self, data: bytes) -> None:
        self.wanted -= data.count(b"\n")
        if self.wanted <= 0:
            self.done.set()


class Fed:
    """A candidate that is fed lines and gives answers."""

    def __init__(self) -> None:
        self.lines = Lines()
        self.answers = Answers()

    def feed(self, data: bytes) -> None:
        raise NotImplementedError

    def one_at_a_time(self) -> Batch:
        async def run(count: int) -> None:
            for _ in range(count):
                self.answers.expect(1)
                self.feed(self.lines.one())
                await self.answers.done.wait()

        return Batch(run)

    def pipelined(self) -> Batch:
        """`run(n)` answers n chunks."""

        async def run(count: int) -> None:
            self.answers.expect(count * CHUNK)
            for _ in range(count):
                self.feed(self.lines.many())
                await asyncio.sleep(0)  # as an event loop does: one read of the pipe, then everything else
            await self.answers.done.wait()

        return Batch(run)


class Pipe:
    """A transport in memory."""

    stderr = ""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def start(self, receiver: Receiver) -> None: ...

    def write(self, data: bytes) -> None:
        self._answers.wrote(data)

    async def drain(self) -> None: ...

    def end_input(self) -> None: ...

    async def close(self, grace: float | None = None) -> None: ...


class Ours(Fed):
    """The client's session with one async hook, its timeout on."""

    @classmethod
    async def make(cls) -> "Ours":
        self = cls()
        hooks = Hooks()

        @hooks.on(PreToolUse, timeout=30)
        async def quiet(event: PreToolUse) -> None:
            return None

        self.session = HostChannel(Pipe(self.answers), hooks=hooks)
        self.session.answering.register(plan(hooks))
        opening = asyncio.ensure_future(self.session.request(Initialize(hooks=plan(hooks).hooks)))
        await asyncio.sleep(0)
        answer = {"subtype": "success", "request_id": "req_1", "response": {}}
        self.session.received(json.dumps({"type": "control_response", "response": answer}).encode() + b"\n")
        await opening
        return self

    session: HostChannel

    def feed(self, data: bytes) -> None:
        self.session.received(data)


class Theirs(Fed):
    """The official SDK's own reader, router and writer, over byte streams in memory; the hook answers `{}`."""

    query: Any
    chunks: "asyncio.Queue[bytes]"

    @classmethod
    async def make(cls) -> "Theirs":
        try:
            from anyio.streams.text import TextReceiveStream, TextSendStream
            from claude_agent_sdk import ClaudeAgentOptions
            from claude_agent_sdk._internal.query import Query
            from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
        except ImportError as problem:
            raise Unavailable(f"the official SDK is not installed ({problem})") from None
        self = cls()
        self.chunks = asyncio.Queue()

        class Stdout:
            async def receive(stream, max_bytes: int = 65536) -> bytes:  # noqa: N805 - `self` is the bench's
                return await self.chunks.get()

        class Stdin:
            async def send(stream, item: bytes) -> None:  # noqa: N805
                self.answers.wrote(item)

        class Running:
            returncode = None

        async def hook(payload: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
            return {}

        transport: Any = SubprocessCLITransport(prompt="", options=ClaudeAgentOptions(cli_path="claude"))
        transport._process = Running()  # noqa: SLF001 - the SDK's own parts, without a process
        transport._stdout_stream = TextReceiveStream(Stdout())  # type: ignore[arg-type]  # noqa: SLF001
        transport._stdin_stream = TextSendStream(Stdin())  # type: ignore[arg-type]  # noqa: SLF001
        transport._ready = True  # noqa: SLF001
        self.query = Query(transport, is_streaming_mode=True)
        self.query.hook_callbacks = {"hook_0": hook}
        await self.query.start()
        return self

    def feed(self, data: bytes) -> None:
        self.chunks.put_nowait(data)

    async def close(self) -> None:
        reading = self.query._read_task  # noqa: SLF001
        reading.cancel()
        await reading.wait()


# ── end to end, with the real CLI ────────────────────────────────────────────────────────────────


class Timed(Subprocess):
    """A transport that notes when each callback came in and when its answer went out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.came: dict[str, float] = {}
        self.took: list[float] = []

    async def start(self, receiver: Receiver) -> None:
        timed = self

        class Between:
            def received(self, data: bytes) -> None:
                now = time.perf_counter()
                for line in data.splitlines():
                    if line.startswith(b'{"type":"control_request"') and line.endswith(b"}"):
                        timed.came[json.loads(line)["request_id"]] = now
                receiver.received(data)

            def ended(self, exit: PeerExit) -> None:
                receiver.ended(exit)

        await super().start(Between())

    def write(self, data: bytes) -> None:
        super().write(data)
        now = time.perf_counter()
        for line in data.splitlines():
            came = self.came.pop(msgspec.json.decode(line).get("response", {}).get("request_id", ""), None)
            if came is not None:
                self.took.append((now - came) * 1000)


_measured: list[float] = []


async def real(percentile: float) -> Measured:
    """One run of the real CLI with many tool calls, each with a PreToolUse and a PostToolUse hook; run once."""
    if not _measured:
        _measured.extend(await _real_run())
    ordered = sorted(_measured)
    value = ordered[min(int(len(ordered) * percentile), len(ordered) - 1)]
    return Measured(value, note=f"{len(ordered)} callbacks, median {ordered[len(ordered) // 2]:.2f} ms")


async def _real_run() -> list[float]:
    cli = bundled_cli()
    if cli is None:
        raise Unavailable("no Claude CLI; `pip install claude-agent-sdk` brings one")
    from hookline.hosts.claude_code.process import Options, argv

    hooks = Hooks()

    @hooks.on(PreToolUse, PostToolUse, timeout=30)
    async def quiet(event: Any) -> None:
        return None

    calls = [["Bash", {"command": "true", "description": "d"}]] * CALLS
    api = importlib.import_module("tests.contract.api").Api([{"tools": calls}, {"text": "done"}])
    with tempfile.TemporaryDirectory() as folder:
        (home := Path(folder) / "home").mkdir()
        (project := Path(folder) / "project").mkdir()
        env = {
            "PATH": "/usr/bin:/bin", "HOME": str(home), "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.port}", "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip
        transport = Timed(argv([str(cli)], Options(allowed_tools=["Bash"])), cwd=str(project), env=env)
        try:
            async with ClaudeClient(hooks=hooks, transport=transport) as claude:
                await claude.send("go")
                async for _ in claude.receive():
                    pass
        finally:
            api.close()
    if len(transport.took) < CALLS:
        raise Unavailable(f"the CLI called only {len(transport.took)} hooks")
    return transport.took
