"""The warm interpreters of one engine, which commands they run, and which Python would run each.

A script's first run is ordinary, and then an interpreter is kept for it. Of a command only what can be read with
certainty counts: one simple command, plain words, variables whose value cannot be split or globbed. Everything else is
run the ordinary way.
"""

# ruff: noqa: PTH109, PTH112, PTH113, PTH116, PTH117, PTH118, PTH119, PTH120, PTH123, SIM905 - plain paths cost a tenth
from __future__ import annotations

import asyncio
import functools
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf
from pathlib import Path

import msgspec

from hookline.processes.fork_server import (
    STARTUP_NAMES,
    STARTUP_PREFIXES,
    ForkServer,
    ServerPool,
    read_at_startup,
    write_file,
)
from hookline.processes.loop import when_gone
from hookline.processes.spawn import BY_SHELL, Child, Pipes, ProcessSpec, entries_of, spawn
from hookline.processes.tree import MARKER

BOOT = Path(__file__).with_name("_boot") / "importlib_bootstrap.py"
LIMIT = 4
"""Interpreters kept warm at once; the one used longest ago makes room."""
IDLE = 300.0
"""Seconds without a run after which an interpreter is let go."""
END_LIMIT = 1.0
"""Seconds that an interpreter has to end."""
HELLO_LIMIT = 10.0
"""Seconds an interpreter may take to start up."""
ANSWER_LIMIT = 2.0
"""Seconds a parent may take to fork; after that it is replaced and the run is ordinary."""

SILENT = frozenset({signal.SIGINT, signal.SIGPIPE})
"""Signals that a shell says nothing about."""


def enabled(setting: bool | None = None, environ: Mapping[str, str] = os.environ) -> bool:  # noqa: FBT001 - the setting is what it is about
    """Whether scripts run warm: as set, else unless `HOOKLINE_WARM=0`; never where there is no `fork`."""
    possible = hasattr(os, "fork") and hasattr(os, "setsid") and BOOT.is_file()
    return possible and (setting if setting is not None else environ.get("HOOKLINE_WARM", "1") != "0")


class WarmPython:
    """Starts programs, Python scripts among them in a fork of a warm interpreter."""

    def __init__(self, *, limit: int = LIMIT, idle: float = IDLE) -> None:
        self._pool: ServerPool[Interpreter, WarmParent] = ServerPool(limit=limit, idle=idle, retry=inf)
        self._closed = False

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start a program: warm if it can be, else the ordinary way, and see to it that the next run is warm."""
        planned = plan(spec)
        if planned is None or entries_of(spec) is None:
            return await spawn(spec)
        parent = self._ready(planned.interpreter)
        if parent is not None:
            child = await parent.run(spec, planned)
            if child is not None:
                return child
        child = await spawn(spec)
        child.exit.add_done_callback(lambda _: self._prepare(planned.interpreter, spec))
        return child

    def _ready(self, python: Interpreter) -> WarmParent | None:
        parent = self._pool.servers.get(python)
        if parent is None or not parent.ready:
            return None
        if parent.loop is asyncio.get_running_loop() and not parent.retired and parent.fresh:
            return parent
        self._pool.let_go(python)
        return None

    def _prepare(self, python: Interpreter, spec: ProcessSpec) -> None:
        """Begin to keep an interpreter warm, unless it is or has been found impossible."""
        if self._closed or python in self._pool.servers or self._pool.has_failed(python):
            return
        try:
            parent = WarmParent(python, spec.environ())
        except OSError:
            self._pool.note_failure(python)
            return
        self._pool.keep(python, parent)
        parent.loop.run_in_executor(None, shell_reports_signals)

    async def warmed(self) -> None:
        """Wait until every interpreter that is getting warm is warm (for tests and benchmarks)."""
        for parent in self.parents:
            if not await parent.answered:
                await parent.ended

    @property
    def parents(self) -> tuple[WarmParent, ...]:
        return tuple(self._pool.servers.values())

    async def aclose(self) -> None:
        """Let go of every interpreter; none is left when this returns."""
        self._closed = True
        await self._pool.aclose(END_LIMIT)


class WarmParent(ForkServer):
    """A Python that has started up and forks on request."""

    def __init__(self, python: Interpreter, env: Mapping[str, str]) -> None:
        outer = env.get(MARKER, "").rpartition("/")[0]  # ending a run must not end its parent
        boot = {**env, MARKER: outer} if outer else {name: env[name] for name in env if name != MARKER}
        super().__init__((python.name, *python.flags, str(BOOT)), boot, python.file)
        self._ids = itertools.count()
        self._starting: dict[int, asyncio.Future[int]] = {}
        self._running: dict[int, _Running] = {}
        late = self.loop.call_later(HELLO_LIMIT, self.kill)
        self.answered.add_done_callback(lambda _: late.cancel())

    async def run(self, spec: ProcessSpec, planned: WarmPlan) -> Child | None:
        """Fork for one run; None if the parent did not, in which case nothing of the run has happened."""
        name = next(self._ids)
        started = self._starting[name] = self.loop.create_future()
        pipes = Pipes()
        go, theirs = socket.socketpair()
        order = write_file(_order(spec, planned))
        late = self.loop.call_later(ANSWER_LIMIT, self.kill)
        try:
            self.send(name.to_bytes(8, "big"), (*pipes.theirs, theirs.fileno(), order))
            pid = await started
            go.send(b"g")
        except BaseException as problem:
            go.close()
            pipes.close()
            if not isinstance(problem, OSError):
                raise
            self.kill()
            return None
        finally:
            late.cancel()
            self._starting.pop(name)
            theirs.close()
            os.close(order)
        pipes.close_theirs()
        child = Child(pid, *pipes.ours, self.loop.create_future(), warm=True)
        self._running[name] = _Running(self.loop, child, go, in_shell=planned.shell and shell_reports_signals())
        return child

    def handle(self, word: bytes, rest: bytes) -> None:
        """`started ID PID` or `exited ID STATUS`."""
        if word == b"ready":
            super().handle(word, rest)
            return
        name, number = map(int, rest.split())
        if word == b"exited":
            run = self._running.pop(name, None)
            if run is not None:
                run.set_exit_status(number)
        elif name in self._starting and not self._starting[name].done():
            self._starting[name].set_result(number)

    def lost(self) -> None:
        """Runs not begun are begun elsewhere; how the others end can no longer be known."""
        for waiting in self._starting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("the warm interpreter has gone"))
        for run in self._running.values():
            # it will not tell us its return code any more: wait until it has gone, and call the code unknown
            when_gone(run.child.pid, self.loop, functools.partial(run.ended, None))
        self._running.clear()


def _order(spec: ProcessSpec, planned: WarmPlan) -> bytes:
    """What a run is told: its folder, interpreter, first entry of the path, words, marker and environment."""
    cwd = spec.cwd or os.getcwd()
    script = os.path.join(cwd, planned.words[planned.before])
    fields = [cwd, planned.interpreter.file, os.path.dirname(os.path.realpath(script)), str(planned.before)]
    fields += [str(len(planned.words)), *planned.words, spec.marker.rpartition("/")[2]]
    entries = entries_of(spec) or []
    if planned.shell:  # what the skipped shell would have seen to
        entries.append(os.fsencode(f"PWD={os.path.realpath(cwd)}"))
    return b"\0".join([os.fsencode("\0".join(fields)), *entries])


@functools.cache
def shell_reports_signals() -> bool:
    """Whether `/bin/sh -c` waits for its last command and says what it died of, rather than putting it in its place."""
    asked = subprocess.run(("/bin/sh", "-c", "/bin/sh -c 'kill -TERM $$'"), capture_output=True, check=False)
    return asked.returncode >= 0


class _Running:
    """One run: its return code comes from the run itself, at its very end, or from the parent that reaped it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, child: Child, go: socket.socket, *, in_shell: bool) -> None:
        self.loop, self.child, self.go, self._in_shell = loop, child, go, in_shell
        go.setblocking(False)  # noqa: FBT003 - the socket's own signature
        loop.add_reader(go, self._reported)

    def _reported(self) -> None:
        try:
            said = self.go.recv(16)
        except OSError:
            said = b""
        self._hang_up()
        if said.endswith(b"\n"):
            self.ended(int(said))

    def _hang_up(self) -> None:
        if self.go.fileno() >= 0:
            self.loop.remove_reader(self.go)
            self.go.close()

    def ended(self, code: int | None) -> None:
        self._hang_up()
        if not self.child.exit.done():
            self.child.exit.set_result(code)

    def set_exit_status(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and self._in_shell and not self.child.exit.done():  # the shell that we skip would have said so
            words = signal.strsignal(-code) or f"Signal {-code}"
            dumped = " (core dumped)" if os.WCOREDUMP(status) else ""
            self.child.last_words = b"" if -code in SILENT else f"{words}{dumped}\n".encode()
            code = 128 - code
        self.ended(code)


# -- which commands are plainly a Python script, and which Python would run them --------------------------------------

SHELLS = ("/bin/sh", "sh")
STARTUP = (*STARTUP_NAMES, *STARTUP_PREFIXES)
PYTHON_VARIABLES = frozenset(
    "PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONHASHSEED "
    "PYTHONNOUSERSITE PYTHONWARNINGS PYTHONOPTIMIZE PYTHONPYCACHEPREFIX PYTHONUSERBASE PYTHON".split()
)
"""Those that a warm interpreter honours; with any other of Python's own set the script runs the ordinary way.

`PYTHON` is not its own: `make PYTHON=python3.12` sets it for all that it runs.
"""
FLAGS = re.compile(r"-[BOsu]+")
INTERPRETER = re.compile(r"python(?:3(?:\.\d+)?)?")
BINARIES = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How a real interpreter begins; a wrapper script might choose another one next time."""
SAFE_VALUE = re.compile(r"[\w@%+:,./-]+")


class Interpreter(msgspec.Struct, frozen=True):
    """One way to start Python: the file, the name it is called by, its flags, and the environment it starts up in."""

    file: str
    name: str
    flags: tuple[str, ...]
    startup: tuple[tuple[str, str], ...]
    identity: tuple[int, ...]


class WarmPlan(msgspec.Struct, frozen=True):
    """A Python script as a warm interpreter runs it: the command's words, `before` of which come before the script."""

    interpreter: Interpreter
    words: tuple[str, ...]
    before: int
    shell: bool
    """Whether a shell was to start it, and is skipped."""


def plan(spec: ProcessSpec) -> WarmPlan | None:
    """How a warm interpreter would run this program; None if it is not plainly a Python script."""
    env = spec.env if spec.env is not None else os.environ
    argv = spec.argv
    line = len(argv) == 3 and argv[0] in SHELLS and argv[1] == "-c"
    shell = line or argv[:3] == BY_SHELL
    words = shell_words(argv[2], env) if line else argv[3:] if shell else argv
    cwd = spec.cwd or os.getcwd()
    if not words or not os.path.isdir(cwd):
        return None
    called = _called(words, cwd)
    startup = None if called is None else _startup(env)
    if called is None or startup is None:
        return None
    python, flags, script, arguments = called
    found = _interpreter(python, flags, cwd, env, startup)
    if found is None or not os.path.isfile(os.path.join(cwd, script)):
        return None
    return WarmPlan(found, (python, *flags, script, *arguments), 1 + len(flags), shell)


Startup = tuple[tuple[str, str], ...]


def _startup(env: Mapping[str, str]) -> Startup | None:
    """What of an environment an interpreter reads while it starts up; None if a warm one could not honour it."""
    counting = tuple(sorted((name, value) for name, value in env.items() if name.startswith(STARTUP)))
    if any(name.startswith("PYTHON") and name not in PYTHON_VARIABLES for name, _ in counting):
        return None
    path = env.get("PYTHONPATH", "")
    if path and not all(os.path.isabs(entry) for entry in path.split(os.pathsep)):
        return None
    return tuple(pair for pair in counting if read_at_startup(pair[0]))


def _called(words: tuple[str, ...], cwd: str) -> tuple[str, tuple[str, ...], str, tuple[str, ...]] | None:
    """The interpreter as named, its flags, the script and its arguments."""
    first, rest = words[0], words[1:]
    if INTERPRETER.fullmatch(os.path.basename(first)):
        flags = 0
        while flags < len(rest) and FLAGS.fullmatch(rest[flags]):
            flags += 1
        if flags == len(rest) or rest[flags].startswith("-"):
            return None
        return first, rest[:flags], rest[flags], rest[flags + 1 :]
    if "/" not in first:
        return None
    line = _shebang(os.path.join(cwd, first))
    return None if line is None else (line[0], line[1:], first, rest)


def _shebang(path: str) -> tuple[str, ...] | None:
    """The interpreter, and its one flag, that the first line of an executable names."""
    try:
        if not os.access(path, os.X_OK):
            return None
        with open(path, "rb") as script:
            line = script.readline(256)
    except OSError:
        return None
    if not line.startswith(b"#!") or not line.endswith(b"\n") or b"\r" in line:
        return None
    words = os.fsdecode(line[2:]).split()
    if len(words) == 2 and words[0] in ("/usr/bin/env", "/bin/env"):
        words = words[1:]
    elif not words or not os.path.isabs(words[0]):
        return None
    if not INTERPRETER.fullmatch(os.path.basename(words[0])) or len(words) > 2:
        return None
    return tuple(words) if len(words) == 1 or FLAGS.fullmatch(words[1]) else None


def _interpreter(
    name: str, flags: tuple[str, ...], cwd: str, env: Mapping[str, str], startup: Startup
) -> Interpreter | None:
    file = os.path.join(cwd, name) if "/" in name else shutil.which(name, path=env.get("PATH", os.defpath))
    if file is None or not os.path.isabs(file) or ("/" in name and not os.path.isabs(name)):
        return None
    try:
        stat = os.stat(file)
        identity = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        real = _is_binary(file, identity)
    except OSError:
        return None
    return Interpreter(file, name, flags, startup, identity) if real else None


@lru_cache(16)
def _is_binary(file: str, identity: tuple[int, ...]) -> bool:
    """Whether a file is a real interpreter, looked at again when it is another file."""
    with open(file, "rb") as binary:
        return binary.read(4) in BINARIES


# ---- the words of a simple command

PIECE = re.compile(
    r"""(?P<space>[ \t]+)"""
    r"""|'(?P<single>[^']*)'"""
    r"""|"(?P<double>[^"`\\]*)\""""
    r"""|\$(?:\{(?P<braced>\w+)\}|(?P<bare>\w+))"""
    r"""|(?P<plain>[\w@%+:,./=-]+)"""
)
VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*)|())")
RESERVED = frozenset(
    "if then else elif fi do done case esac while until for in exec eval command exit set cd . :".split()
)


class _NotPlain(Exception):
    """The command needs a shell to be understood."""


def shell_words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The words a shell would make of a simple command, or None if it takes a shell to know."""
    return _words(command, env) if "$" in command else _words_without_variables(command)


def _words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    try:
        words = tuple(_split(command.strip(" \t\n"), env))
    except _NotPlain:
        return None
    if not words or "=" in words[0] or words[0] in RESERVED:
        return None
    return words


_words_without_variables = lru_cache(256)(lambda command: _words(command, {}))


def _split(command: str, env: Mapping[str, str]) -> Iterator[str]:
    word: str | None = None
    at = 0
    while at < len(command):
        piece = PIECE.match(command, at)
        if piece is None:
            raise _NotPlain
        at = piece.end()
        if piece["space"] is not None:
            if word is not None:
                yield word
            word = None
        else:
            word = (word or "") + _text(piece, env)
    if word is not None:
        yield word


def _text(piece: re.Match[str], env: Mapping[str, str]) -> str:
    for group in ("single", "plain"):
        if piece[group] is not None:
            return piece[group]
    if piece["double"] is not None:
        return VARIABLE.sub(lambda found: _value(found[1] or found[2] or "", env), piece["double"])
    value = _value(piece["braced"] or piece["bare"], env)
    if not SAFE_VALUE.fullmatch(value):  # unquoted, it would be split or globbed
        raise _NotPlain
    return value


def _value(name: str, env: Mapping[str, str]) -> str:
    """A variable from the environment; the shell's own (`$1`, `$PWD`, one not set) are its business."""
    if name not in env or name in ("PWD", "OLDPWD", "IFS", "PPID", "PS1", "PS2", "PS4", "OPTIND", "_"):
        raise _NotPlain
    return env[name]
