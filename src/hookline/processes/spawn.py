"""Start a program: three pipes, a process group of its own, and a future of its return code.

The standard library starts programs well and slowly: a tenth of the time of a small hook goes into `subprocess.Popen`
(`make bench ARGS="--only commands"`). So the system call behind it is made directly, where it is the one we know; what
is out of the ordinary, and what fails, is left to `Popen`, which says why.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from hookline.errors import HookFailed
from hookline.processes.loop import ExitWatch, Started
from hookline.processes.tree import MARKER

fork_exec: Callable[..., int] | None
try:
    from _posixsubprocess import fork_exec
except ImportError:
    fork_exec = None

STANDARD = 3  # descriptors below this are stdin, stdout and stderr
BY_SHELL = ("/bin/sh", "-c", 'exec "$0" "$@"')
"""Before a program and its arguments: a shell finds it, and is replaced by it."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit codes of a shell that cannot start a program
LEAVE = 'exec 3<&0; "$@" <&3 3<&- >/dev/null 2>&1 &'
"""The shell starts the program and ends: from then on it is a child of `init`."""


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What to start: the program with its arguments, where, with which environment, and what it reads.

    `marker` is an entry of the environment too: by it everything the program starts can be found.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    stdin: bytes = b""
    marker: str = ""

    @property
    def base(self) -> Mapping[str, str]:
        return os.environ if self.env is None else self.env

    def environ(self) -> dict[str, str]:
        return {**self.base, **({MARKER: self.marker} if self.marker else {})}


class Child(msgspec.Struct):
    """A started program: our ends of its pipes, and the future of its return code (negative: the signal)."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    exit: asyncio.Future[int | None]
    warm: bool = False
    last_words: bytes = b""  # what a skipped shell would have added to stderr; known when `exit` is
    look: Callable[[], None] | None = None
    """Looks whether it has ended; if it has not, the loop will tell. Until then it is not watched, which saves time."""


async def spawn(spec: ProcessSpec) -> Child:
    """Start a program the ordinary way: vfork, its own process group, three pipes."""
    pipes = Pipes()
    try:
        process = _quickly(spec, *pipes.theirs) or _carefully(spec, *pipes.theirs)
    except BaseException:
        pipes.close()
        raise
    pipes.close_theirs()
    watch = ExitWatch(process, asyncio.get_running_loop())
    return Child(process.pid, *pipes.ours, watch.ended, look=watch.look)


def _quickly(spec: ProcessSpec, stdin: int, stdout: int, stderr: int) -> Started | None:
    """A program that has begun; None if nothing has happened yet and `_carefully` is to be asked."""
    entries = entries_of(spec)
    standard = stdin < STANDARD  # we were started without some of them, so that pipes have taken their numbers
    if fork_exec is None or "/" not in spec.argv[0] or entries is None or standard:
        return None
    words = [in_bytes(word) for word in spec.argv]
    sys.audit("subprocess.Popen", spec.argv[0], spec.argv, spec.cwd, spec.env)
    heard, said = os.pipe()  # closed when the program begins; if it cannot, that is said here
    try:
        pid = fork_exec(
            words,
            words[:1],
            True,  # noqa: FBT003 - close all other descriptors
            (said,),
            spec.cwd,
            entries,
            stdin, -1, -1, stdout, -1, stderr, heard, said,
            True,  # noqa: FBT003 - signals that Python ignores are not ignored there
            False,  # noqa: FBT003
            0,  # a group, not a new session: the scheduler would make every hook a task group of its own
            None, None, None, -1, None,
            True,  # noqa: FBT003 - vfork
        )  # fmt: skip
    except TypeError:  # a Python where this call is another one
        os.close(heard)
        return None
    except BaseException:
        os.close(heard)
        raise
    finally:
        os.close(said)
    failed = os.read(heard, 1)
    os.close(heard)
    if failed:
        os.waitpid(pid, 0)
        return None
    return Started(pid)


_ENCODED: list[tuple[dict[str, str], list[bytes] | None]] = []
"""The environment that was encoded last, its marker aside: as a rule the next program's is the same."""


def entries_of(spec: ProcessSpec) -> list[bytes] | None:
    """The environment as the kernel wants it; None if it cannot be written so."""
    if not _ENCODED or _ENCODED[0][0] != spec.base:
        env = {name: value for name, value in spec.base.items() if name != MARKER}
        entries = in_bytes("\0".join([f"{name}={value}" for name, value in env.items()])).split(b"\0")
        plain = len(entries) == len(env) and "=" not in "".join(env)
        _ENCODED[:] = [({**spec.base}, entries if plain else None)]
    known, marker = _ENCODED[0][1], spec.marker or spec.base.get(MARKER)
    return known if known is None or marker is None else [*known, in_bytes(f"{MARKER}={marker}")]


def in_bytes(text: str) -> bytes:
    """A text as programs get it; where the locale has no bytes for it (`LC_ALL=C`), in UTF-8."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def _carefully(spec: ProcessSpec, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
    """The same by the standard library, whose errors say what is wrong."""
    argv = [in_bytes(word) for word in spec.argv] if os.name == "posix" else spec.argv
    env: Mapping[Any, Any] = spec.environ()
    if os.name == "posix":
        env = {in_bytes(name): in_bytes(value) for name, value in env.items()}
    return subprocess.Popen(argv, cwd=spec.cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, process_group=0)


def not_started(spec: ProcessSpec, error: Exception) -> HookFailed:
    """The failure of a program that could not be started, with the exit code a shell would give it."""
    if spec.cwd is not None and not Path(spec.cwd).is_dir():
        return HookFailed(f"cannot run in `{spec.cwd}`: there is no such folder", exit_code=NOT_EXECUTABLE)
    missing = isinstance(error, FileNotFoundError)
    problem = getattr(error, "strerror", None) or str(error)
    said = f"could not be started: `{spec.argv[0]}`: {problem[:1].lower()}{problem[1:]}"
    return HookFailed(said, exit_code=NOT_FOUND if missing else NOT_EXECUTABLE)


class Pipes:
    """Three pipes: `theirs` are stdin, stdout and stderr of a child, `ours` the other ends, non-blocking."""

    def __init__(self) -> None:
        self._open: list[int] = []
        try:
            for _ in range(3):
                self._open.extend(os.pipe())
        except OSError:
            self.close()
            raise
        in_r, in_w, out_r, out_w, err_r, err_w = self._open
        self.theirs: tuple[int, int, int] = (in_r, out_w, err_w)
        self.ours: tuple[int, int, int] = (in_w, out_r, err_r)
        for fd in self.ours:
            os.set_blocking(fd, False)

    def close_theirs(self) -> None:
        for fd in self.theirs:
            os.close(fd)

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)


async def leave_running(spec: ProcessSpec) -> None:
    """Start a program that is not waited for, in a session of its own; what it prints is lost. Raises `OSError`."""
    await asyncio.to_thread(_leave, spec)


def _leave(spec: ProcessSpec) -> None:
    import tempfile

    with tempfile.TemporaryFile() as stdin:  # a pipe would break once we are gone
        stdin.write(spec.stdin)
        stdin.seek(0)
        argv = ["/bin/sh", "-c", LEAVE, "sh", *spec.argv]
        subprocess.run(
            argv, cwd=spec.cwd, env=spec.environ(), stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, check=False,
        )  # fmt: skip


# -- how many programs may be starting at once ------------------------------------------------------------------------


PARALLEL_STARTS = min(8, os.cpu_count() or 1)
"""Programs that may be starting at once: more of them stall the event loop and finish no sooner."""


class Slot:
    """One of the slots, held from before the start until the program has ended or has proved to be long-lived."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._free = _SLOTS.get(loop) or _SLOTS.setdefault(loop, asyncio.BoundedSemaphore(PARALLEL_STARTS))
        self.given: bool = False

    async def __aenter__(self) -> Self:
        await self._free.acquire()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.give()

    def give(self) -> None:
        if not self.given:
            self.given = True
            self._free.release()


_SLOTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.BoundedSemaphore] = weakref.WeakKeyDictionary()
