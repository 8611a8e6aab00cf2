"""The Claude CLI as a program: where it is, its options as flags, and a pipe to it that ends it in good order.

A `Transport` is all the client needs of the outside; a fake of forty lines can stand in for it:

    await transport.start(receiver)     receiver.received(chunk) … then receiver.ended(exit), once
    transport.write(data)               never waits; `await transport.drain()` does, while the peer is slow to read
    await transport.close()             close its stdin, wait, TERM, wait, KILL
    transport.stderr                    its last words so far
"""

import asyncio
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from hookline.errors import CliNotFound

Path = str | os.PathLike[str]

BASE = ("-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json")


class Options(Struct, frozen=True, kw_only=True):
    """How to start the CLI; what is left out is the CLI's own default. `extra_args` go last, as they are."""

    model: str | None = None
    fallback_model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    permission_prompt_tool: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    tools: Sequence[str] | None = None
    allowed_tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    max_turns: int | None = None
    max_budget_usd: float | None = None
    settings: str | Mapping[str, Any] | None = None
    setting_sources: Sequence[str] | None = None
    mcp_servers: Mapping[str, Any] | None = None
    strict_mcp_config: bool = False
    agents: Mapping[str, Any] | None = None
    plugin_dirs: Sequence[Path] = ()
    add_dirs: Sequence[Path] = ()
    json_schema: Mapping[str, Any] | None = None
    resume: str | None = None
    continue_conversation: bool = False
    fork_session: bool = False
    session_id: str | None = None
    include_partial_messages: bool = False
    include_hook_events: bool = False
    extra_args: Sequence[str] = ()


_UNSAID = Options()
_FLAGS = {
    "allowed_tools": "--allowedTools",
    "disallowed_tools": "--disallowedTools",
    "mcp_servers": "--mcp-config",
    "plugin_dirs": "--plugin-dir",
    "add_dirs": "--add-dir",
    "continue_conversation": "--continue",
}
"""The flags that are not named as the option is."""
_GLUED = ("system_prompt", "append_system_prompt", "resume", "session_id")
"""Written `--flag=value`: the value may be empty or begin with a dash. A list is, too, as it may be empty."""


def argv(command: Sequence[str], options: Options) -> list[str]:
    """The whole command line."""
    words = [*command, *BASE]
    for name in Options.__struct_fields__[:-1]:
        value = getattr(options, name)
        flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
        if value == getattr(_UNSAID, name):
            continue
        if name in ("plugin_dirs", "add_dirs"):
            words += [word for one in value for word in (flag, os.fspath(one))]
        elif isinstance(value, bool):
            words.append(flag)
        elif isinstance(value, Mapping):
            wrapped = {"mcpServers": value} if name == "mcp_servers" else value
            words += [flag, msgspec.json.encode(wrapped).decode()]
        elif name in _GLUED or not isinstance(value, str | int | float):
            words.append(f"{flag}={value if name in _GLUED else ','.join(value)}")
        else:
            words += [flag, str(value)]
    return [*words, *options.extra_args]


# -- where the CLI is, and whether it is recent enough ----------------------------------------------------------------

ENV = "HOOKLINE_CLAUDE"
MINIMUM = (2, 0, 0)  # the first version with the control protocol of today
Command = str | os.PathLike[str] | Sequence[str]


class Cli(Struct, frozen=True):
    """A CLI that was found: the words to start it with, and where it came from."""

    command: tuple[str, ...]
    source: str


def find_cli(cli: Command | None = None, env: Mapping[str, str] | None = None) -> Cli:
    """The CLI to talk to: the one given, else $HOOKLINE_CLAUDE, else `claude` on the PATH, else the SDK's own copy."""
    env = os.environ if env is None else env
    if cli is not None:
        return Cli(_words(cli), "the argument")
    if env.get(ENV):
        return Cli(_words(env[ENV]), f"${ENV}")
    found = shutil.which("claude", path=env.get("PATH"))
    if found:
        return Cli((found,), "PATH")
    bundled = bundled_cli()
    if bundled is not None:
        return Cli((str(bundled),), "the installed claude-agent-sdk")
    raise CliNotFound(
        f"no Claude CLI found: looked at cli=, ${ENV}, PATH and an installed claude-agent-sdk; "
        "run `npm install -g @anthropic-ai/claude-code` or `pip install claude-agent-sdk`, or pass cli="
    )


def _words(cli: Command) -> tuple[str, ...]:
    """One path, or a command with words of its own; what names a file that is not there is refused here."""
    if isinstance(cli, str) and not pathlib.Path(cli).exists():
        words = tuple(shlex.split(cli))
    elif isinstance(cli, (str, os.PathLike)):
        words = (os.fspath(cli),)
    else:
        words = tuple(cli)
    if not words or shutil.which(words[0]) is None:
        named = words[0] if words else ""
        raise CliNotFound(f"`{named}` is not a program that can be started; pass the path of a Claude CLI")
    return words


def bundled_cli() -> pathlib.Path | None:
    """The copy that the official Python SDK brings along."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = pathlib.Path(spec.origin).parent / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
    return path if path.is_file() else None


def too_old(text: str) -> str | None:
    """What to tell the user of a CLI that says this of its version; `None` when it is recent enough."""
    numbers = re.search(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text)  # `2.1.325 (Claude Code)`
    if numbers and tuple(map(int, numbers.groups())) >= MINIMUM:
        return None
    least = ".".join(map(str, MINIMUM))
    return f"the CLI says it is version `{text.strip() or 'unknown'}`; {least} or later is needed: run `claude update`"


async def version_of(cli: Cli, within: float = 10.0) -> str:
    """What `--version` prints, or the empty string if it says nothing in time."""
    words = [*cli.command, "--version"]
    try:
        done = await asyncio.to_thread(
            subprocess.run, words, stdin=subprocess.DEVNULL, capture_output=True, timeout=within, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


STDERR_KEPT = 8 * 1024
GRACE = 5.0
GRACE_AFTER_TERM = 2.0
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class PeerExit(Struct, frozen=True):
    """How the peer ended: its exit code (negative for a signal) and the end of its stderr."""

    code: int | None
    stderr: str = ""


class Receiver(Protocol):
    """Who is told what the peer said, and that it ended."""

    def received(self, data: bytes) -> None: ...
    def ended(self, exit: PeerExit) -> None: ...


class Transport(Protocol):
    """A pipe to a CLI."""

    async def start(self, receiver: Receiver) -> None: ...
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...
    def end_input(self) -> None: ...
    async def close(self, grace: float | None = None) -> None: ...
    @property
    def stderr(self) -> str: ...


class Subprocess(asyncio.SubprocessProtocol):
    """The transport for a CLI that is a program: its own session, so a Ctrl-C meant for us does not reach it."""

    def __init__(
        self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, grace: float = GRACE
    ) -> None:
        self.argv: list[str] = list(argv)
        self._cwd = cwd
        self._env = None if env is None else dict(env)
        self._grace = grace
        self._receiver: Receiver | None = None
        self._child: asyncio.SubprocessTransport | None = None
        self._stderr = bytearray()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._over = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        own_session: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self, *self.argv, cwd=self._cwd, env=self._env, **own_session
            )
        except OSError as problem:
            raise CliNotFound(_why_not(self.argv[0], self._cwd, problem)) from problem

    @property
    def pid(self) -> int | None:
        return self._child.get_pid() if self._child else None

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")[-STDERR_KEPT:]

    def _pipe(self, fd: int) -> Any:
        """The child's end of a descriptor, as long as it is open."""
        if self._child is None:
            raise CliNotFound("the CLI is not running; call start() first")
        pipe = self._child.get_pipe_transport(fd)
        return None if pipe is None or pipe.is_closing() else pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._child = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1 and self._receiver is not None:
            self._receiver.received(data)
            return
        self._stderr += data
        if len(self._stderr) > 2 * STDERR_KEPT:
            del self._stderr[:-STDERR_KEPT]

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def process_exited(self) -> None:
        """What it wrote is in the pipe already, so take it; a grandchild that holds the pipe open is not waited for."""
        if self._child is not None:
            asyncio.get_running_loop().call_later(1.0, self._child.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called once the process has ended and its pipes are closed."""
        self._may_write.set()
        self._over.set()
        if self._child is not None and self._receiver is not None:
            self._child.close()
            self._receiver.ended(PeerExit(self._child.get_returncode(), self.stderr))

    def write(self, data: bytes) -> None:
        if pipe := self._pipe(0):
            pipe.write(data)

    async def drain(self) -> None:
        await self._may_write.wait()

    def end_input(self) -> None:
        if pipe := self._pipe(0):
            pipe.close()

    async def close(self, grace: float | None = None) -> None:
        """Ends the CLI, which has `grace` seconds to end by itself; a cancelled caller does not leave it running."""
        if self._child is None:
            return
        if self._closing is None:
            self.end_input()
            ending = _end(self._child, self._over, self._grace if grace is None else grace)
            self._closing = asyncio.get_running_loop().create_task(ending)
        await asyncio.shield(self._closing)


async def _end(child: asyncio.SubprocessTransport, over: asyncio.Event, grace: float) -> None:
    """A signal to the CLI first; at the end to everything it started."""
    for wait, number in ((grace, signal.SIGTERM), (GRACE_AFTER_TERM, _KILL)):
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await over.wait()
            return
        with suppress(ProcessLookupError):
            if number == _KILL and os.name == "posix":
                os.killpg(child.get_pid(), number)
            else:
                child.send_signal(number)
    await over.wait()


def _why_not(program: str, cwd: str | None, problem: OSError) -> str:
    if cwd is not None and not pathlib.Path(cwd).is_dir():
        return f"cannot start in `{cwd}`: there is no such directory; pass another cwd="
    return f"cannot start `{program}`: {problem.strerror or problem}; pass cli= or install Claude Code"
