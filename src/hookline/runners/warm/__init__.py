"""Python scripts without the start-up time: each run is a fork of an interpreter that has already started.

`WarmPython.launch` starts a program, in a fork of a warm interpreter where the program is plainly a Python script, else
the ordinary way. The first run of a script is ordinary; when it has ended, an interpreter is kept warm for the next. A
warm parent that dies, stalls or no longer matches the files it was made from is replaced; the run at hand is ordinary.

What a script could tell: `os.getppid()` is the warm parent, the seed of `hash()` for strings is the same in every run
of one parent, `/proc/self/cmdline` is the parent's, `/proc/self/comm` is the run's marker, and a script that prints its
own call stack sees one more frame beneath it, so that recursion ends a frame or two sooner. `HOOKLINE_WARM=0` turns
all this off.

Of a command only what can be read with certainty counts: one simple command, plain words, variables whose value cannot
be split or globbed. Everything else is run the ordinary way.
"""

# ruff: noqa: PTH109, PTH112, PTH113, PTH116, PTH117, PTH118, PTH119, PTH120, PTH123, SIM905 - plain paths cost a tenth
from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Mapping
from functools import lru_cache, partial
from math import inf
from pathlib import Path

import msgspec

from hookline.processes.fork_server import ForkServer, ServerPool, read_at_startup
from hookline.processes.service.client import nameless_file
from hookline.processes.spawn import BY_SHELL, Child, Pipes, ProcessSpec, entries_of, in_bytes, spawn
from hookline.processes.tree import MARKER

BOOT = Path(__file__).with_name("_boot") / "importlib_bootstrap.py"
LIMIT = 4  # interpreters kept warm at once; the one used longest ago makes room
IDLE = 300.0  # seconds without a run after which an interpreter is let go
END_LIMIT = 1.0  # seconds that an interpreter has to end
HELLO_LIMIT = 10.0  # seconds an interpreter may take to start up
ANSWER_LIMIT = 2.0  # seconds a parent may take to fork; after that it is replaced and the run is ordinary


def enabled(setting: bool | None = None, environ: Mapping[str, str] = os.environ) -> bool:  # noqa: FBT001 - the setting is what it is about
    """Whether scripts run warm: as set, else unless `HOOKLINE_WARM=0`; never where there is no `fork`."""
    return hasattr(os, "fork") and (setting if setting is not None else environ.get("HOOKLINE_WARM", "1") != "0")


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
        late = self.loop.call_later(HELLO_LIMIT, self.kill)
        self.answered.add_done_callback(lambda _: late.cancel())

    async def run(self, spec: ProcessSpec, planned: WarmPlan) -> Child | None:
        """Fork for one run; None if the parent did not, in which case nothing of the run has happened."""
        pipes = Pipes()
        go, theirs = socket.socketpair()
        go.setblocking(False)  # noqa: FBT003 - the socket's own signature
        order = nameless_file(_order(spec, planned))
        try:
            try:
                self.send(b".", (*pipes.theirs, theirs.fileno(), order))
            finally:
                theirs.close()
                os.close(order)
            async with asyncio.timeout(ANSWER_LIMIT):
                pid = _told(await self.loop.sock_recv(go, 64), b"begun")
            go.send(b"g")
        except BaseException as problem:
            go.close()
            pipes.close()
            if not isinstance(problem, OSError):
                raise
            self.kill()
            return None
        pipes.close_theirs()
        child = Child(pid, *pipes.ours, self.loop.create_future(), warm=True)
        self.loop.add_reader(go.fileno(), partial(_ended, self.loop, go, child, planned.shell))
        return child


def _order(spec: ProcessSpec, planned: WarmPlan) -> bytes:
    """What a run is told: its folder, interpreter, first entry of the path, marker, words and environment."""
    cwd = spec.cwd or os.getcwd()
    folder = os.path.dirname(os.path.realpath(os.path.join(cwd, planned.words[planned.before])))
    texts = (cwd, planned.interpreter.file, folder, spec.marker.rpartition("/")[2])
    environ = entries_of(spec) or []
    if planned.shell:  # what the skipped shell would have seen to
        environ.append(in_bytes(f"PWD={os.path.realpath(cwd)}"))
    return marshal.dumps((*map(in_bytes, texts), planned.before, [*map(in_bytes, planned.words)], environ), 4)


def _told(line: bytes, what: bytes) -> int:
    """The number that a run has told, or its parent; an `OSError` if it is something else."""
    said = line.split()
    if said[:1] != [what]:
        raise ConnectionResetError("the run has gone")
    return int(said[1])


def _ended(loop: asyncio.AbstractEventLoop, go: socket.socket, child: Child, in_shell: bool) -> None:  # noqa: FBT001
    """The run has said how it ends, or its parent has; where both were killed, that cannot be known any more."""
    loop.remove_reader(go.fileno())
    code = None
    with go, contextlib.suppress(OSError):
        code = _told(go.recv(64), b"ended")
    if in_shell and code is not None and code < 0:
        code, child.last_words = _said_by_a_shell(-code)
    child.exit.set_result(code)


@lru_cache
def _said_by_a_shell(number: int) -> tuple[int, bytes]:
    """How a shell ends whose program dies of a signal, and what it says: the one that was skipped would have, too."""
    done = subprocess.run(("/bin/sh", "-c", f"/bin/sh -c 'kill -{number} $$'"), capture_output=True, check=False)
    return done.returncode, done.stderr


# -- which commands are plainly a Python script, and which Python would run them --------------------------------------

SHELLS = ("/bin/sh", "sh")
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
    shell: bool  # whether a shell was to start it, and is skipped


def plan(spec: ProcessSpec) -> WarmPlan | None:
    """How a warm interpreter would run this program; None if it is not plainly a Python script."""
    env = spec.env if spec.env is not None else os.environ
    argv, cwd = spec.argv, spec.cwd or os.getcwd()
    line = len(argv) == 3 and argv[0] in SHELLS and argv[1] == "-c"
    shell = line or argv[:3] == BY_SHELL
    words = shell_words(argv[2], env) if line else argv[3:] if shell else argv
    words = words and _with_interpreter(words, cwd)
    if not words or not os.path.isdir(cwd):
        return None
    before = 1
    while before < len(words) and FLAGS.fullmatch(words[before]):
        before += 1
    if before == len(words) or words[before].startswith("-") or not os.path.isfile(os.path.join(cwd, words[before])):
        return None
    found = _interpreter(words[0], words[1:before], env)
    return None if found is None else WarmPlan(found, words, before, shell)


def _with_interpreter(words: tuple[str, ...], cwd: str) -> tuple[str, ...] | None:
    """The words, the interpreter first: it is named, or it is in the first line of an executable with a path."""
    if INTERPRETER.fullmatch(os.path.basename(words[0])):
        return words
    path = os.path.join(cwd, words[0])
    try:
        if "/" not in words[0] or not os.access(path, os.X_OK):
            return None
        with open(path, "rb") as script:
            line = script.readline(256)
    except OSError:
        return None
    if not line.startswith(b"#!") or not line.endswith(b"\n") or b"\r" in line:
        return None
    named = os.fsdecode(line[2:]).split()
    if len(named) == 2 and named[0] in ("/usr/bin/env", "/bin/env"):
        named = named[1:]
    elif not named or not os.path.isabs(named[0]):
        return None
    python, *flags = named
    plain = INTERPRETER.fullmatch(os.path.basename(python)) and len(flags) <= 1 and all(map(FLAGS.fullmatch, flags))
    return (*named, *words) if plain else None


def _interpreter(name: str, flags: tuple[str, ...], env: Mapping[str, str]) -> Interpreter | None:
    """The interpreter of that name, started up as this environment has it; None if a warm one could not be that."""
    startup = tuple(sorted(pair for pair in env.items() if read_at_startup(pair[0])))
    path = env.get("PYTHONPATH", "")
    if any(name.startswith("PYTHON") and name not in PYTHON_VARIABLES for name, _ in startup) or (
        path and not all(map(os.path.isabs, path.split(os.pathsep)))
    ):
        return None
    file = name if "/" in name else shutil.which(name, path=env.get("PATH", os.defpath))
    if file is None or not os.path.isabs(file):
        return None
    try:
        stat = os.stat(file)
        identity = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        return Interpreter(file, name, flags, startup, identity) if _is_binary(file, identity) else None
    except OSError:
        return None


@lru_cache(16)
def _is_binary(file: str, identity: tuple[int, ...]) -> bool:
    """Whether a file is a real interpreter, looked at again when it is another file."""
    with open(file, "rb") as binary:
        return binary.read(4) in BINARIES


VARIABLE = r"\$(?:[A-Za-z0-9_]++|\{[A-Za-z0-9_]+\})"  # whole, or a line of many took time without end to refuse
SIMPLE = re.compile(rf"""(?:[\w@%+:,./= \t-]|'[^']*'|"(?:[^"`\\$]|{VARIABLE})*"|{VARIABLE})*""")
PIECE = re.compile(rf"""'[^']*'|"[^"]*"|{VARIABLE}""")
SAFE_VALUE = re.compile(r"[\w@%+:,./-]+")  # what a shell neither splits nor takes for a pattern
THE_SHELLS = frozenset("PWD OLDPWD IFS PPID PS1 PS2 PS4 OPTIND _".split())
"""Variables whose value is the shell's business, as are `$1` and those that are not set."""
RESERVED = frozenset(
    "if then else elif fi do done case esac while until for in exec eval command exit set cd . :".split()
)


def shell_words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The words a shell would make of a simple command, or None if it takes a shell to know."""
    return _words(command, env) if "$" in command else _words_without_variables(command)


def _words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    command = command.strip(" \t\n")
    if not SIMPLE.fullmatch(command):
        return None
    values = {name: value for name, value in env.items() if name not in THE_SHELLS}

    def filled(piece: re.Match[str]) -> str:
        text = piece[0]
        if text[0] == "'":
            return text
        value = re.sub(VARIABLE, lambda found: values[found[0].strip("${}")], text.strip('"'))
        if text[0] == "$" and not SAFE_VALUE.fullmatch(value):
            raise KeyError(text)
        return shlex.quote(value)

    try:
        words = tuple(shlex.split(PIECE.sub(filled, command)))
    except KeyError:
        return None
    return words if words and "=" not in words[0] and words[0] not in RESERVED else None


_words_without_variables = lru_cache(256)(lambda command: _words(command, {}))
