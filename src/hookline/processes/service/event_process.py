"""One event in its own process: become what the client would have been, run the command, say how it ended."""

from __future__ import annotations

import _socket
import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from hookline.core import template
from hookline.processes.service import frames

READ_LIMIT = 5.0
"""Seconds that a client may take to send its body."""
FAILED_TO_FLUSH = 120
"""Python's own exit code for output that could not be written."""

FAILED = 2
"""The exit code by which a command hook says no."""

Run = Callable[[list[str]], int]


class Unsuitable(Exception):
    """A fork of this process cannot stand in for the client's; the client answers by itself."""


class ClientRequest:
    """What the client would have been: its arguments, folder, mask, module path, environment, descriptors."""

    argv0: str
    cwd: str
    flags: str
    words: list[str]
    path: list[str]

    def __init__(self, body: bytes, fds: list[int]) -> None:
        fields = body.split(b"\0")
        self.flags, mask, self.cwd, self.argv0 = map(os.fsdecode, fields[:4])
        self.mask: int = int(mask)
        self.words, at = frames.take(fields, 4)
        self.path, at = frames.take(fields, at)
        self.environ: list[bytes] = fields[at:]
        self.fds = fds


class EventProcess(Protocol):
    """The process that an event runs in."""

    def begin(self, words: list[str]) -> None:
        """The command is about to run, in its client's place."""

    def is_as_before(self) -> bool:
        """Whether the command has left nothing behind in this process."""

    def end(self, *, stays: bool) -> bool:
        """The command is through, and its client not told yet. `stays` if nothing was left; whether it does stay."""


def answer(connection: _socket.socket, go: int, run: Run, process: EventProcess) -> None:
    """Serve one client. The process ends, unless it stays for another one.

    The command begins when the service says so on `go`; if it does not, the service tells the client why.
    """
    stays = False
    try:
        try:
            connection.settimeout(READ_LIMIT)
            request = receive(connection)
            out, err = become(request)
            if os.read(go, 1) != frames.GO:
                os._exit(0)
            os.close(go)
        except (OSError, ValueError, Unsuitable, frames.FrameError) as problem:
            connection.sendall(frames.frame(frames.DECLINED, str(problem).encode()))
            os._exit(0)
        connection.settimeout(None)
        connection.sendall(frames.frame(frames.STARTED, os.getpid().to_bytes(4, "big")))
        process.begin(request.words)
        code = perform(run, request.words)
        sys.stderr.flush()
        unchanged = code == 0 and process.is_as_before() and not os.fstat(err).st_size
        code = code if unchanged else finish(code)
        sizes = [os.fstat(fd).st_size.to_bytes(8, "big") for fd in (out, err)]
        stays = process.end(stays=unchanged) and not has_left(connection)
        connection.sendall(frames.frame(frames.ENDED, code.to_bytes(4, "big", signed=True) + b"".join(sizes)))
        connection.close()
        os.close(out)
        os.close(err)
    finally:
        if not stays:
            os._exit(0)


def has_left(connection: _socket.socket) -> bool:
    """Whether the client has gone; then the worker may be about to end this process."""
    with contextlib.suppress(BlockingIOError):
        return not connection.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
    return False


def receive(connection: _socket.socket) -> ClientRequest:
    """The request's body and its three descriptors."""
    start, fds = template.receive(connection, 4, 3)
    start += frames.exactly(connection, 4 - len(start))
    size = int.from_bytes(start, "big")
    if len(fds) != 3 or size > frames.LONGEST:
        raise Unsuitable("not the body of a request")
    return ClientRequest(frames.exactly(connection, size), fds)


def become(request: ClientRequest) -> tuple[int, int]:
    """Take on the client's place; copies of the descriptors where stdout and stderr are kept until the end."""
    if request.flags != repr(tuple(sys.flags)):
        raise Unsuitable("an interpreter with other flags")
    template.replace_environ(request.environ)
    os.chdir(request.cwd)
    os.umask(request.mask)
    sys.path[:] = request.path
    sys.argv = [request.argv0, *request.words]
    template.redirect(request.fds)
    stdin, out, err = request.fds
    os.close(stdin)
    return out, err


def perform(run: Run, words: list[str]) -> int:
    """The exit code of a command, however it ends."""
    try:
        return run(words) & 0xFF
    except SystemExit as asked:
        if asked.code is None or isinstance(asked.code, int):
            return (asked.code or 0) & 0xFF
        sys.stderr.write(f"{asked.code}\n")
    except KeyboardInterrupt:
        return 130
    except BaseException as problem:  # noqa: BLE001 - an agent goes on when a hook fails with any other code than 2
        sys.stderr.write(refusal(words, problem))
        return FAILED
    return 1


def refusal(words: list[str], problem: BaseException) -> str:
    """Why an event could not be judged, for stderr."""
    said = str(problem)
    return f"hookline {words[0]}: cannot judge this: {type(problem).__name__}{': ' if said else ''}{said}\n"


def finish(code: int) -> int:
    """End as Python ends: wait for threads, run exit functions, flush."""
    ends: Iterable[Callable[[], object]] = (
        threading._shutdown,  # type: ignore[attr-defined]  # noqa: SLF001 - what the interpreter calls, too
        atexit._run_exitfuncs,  # noqa: SLF001
    )
    for end in ends:
        try:
            end()
        except BaseException as problem:  # noqa: BLE001 - reported, and the rest goes on
            sys.excepthook(type(problem), problem, problem.__traceback__)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = FAILED_TO_FLUSH
    return code


def reset_signals() -> None:
    """As in a newly started Python."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
