"""One event in its own process: become what the client would have been, run the command, say how it ended."""

import _socket
import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterable

from hookline.core import template
from hookline.processes.service import frames

FAILED_TO_FLUSH = 120  # Python's own exit code for output that could not be written
FAILED = 2  # the exit code by which a command hook says no

Run = Callable[[list[str]], int]


def receive(connection: _socket.socket) -> tuple[bytes, list[int]]:
    """The request's body and its three descriptors."""
    start, fds = template.receive(connection, 4, 3)
    start += frames.exactly(connection, 4 - len(start))
    size = int.from_bytes(start, "big")
    if len(fds) != 3 or size > frames.LONGEST:
        raise frames.FrameError("not the body of a request")
    return frames.exactly(connection, size), fds


def become(body: bytes, fds: list[int]) -> tuple[list[str], int, int]:
    """Take on the client's place: its arguments, folder, mask, module path, environment and descriptors.

    What is returned are the words, and the descriptors where stdout and stderr are kept until the end.
    """
    fields = body.split(b"\0")
    flags, mask, cwd, argv0 = map(os.fsdecode, fields[:4])
    if flags != repr(tuple(sys.flags)):
        raise frames.FrameError("an interpreter with other flags")
    words, at = frames.take(fields, 4)
    path, at = frames.take(fields, at)
    template.replace_environ(fields[at:])
    os.chdir(cwd)
    os.umask(int(mask))
    sys.path[:] = path
    sys.argv = [argv0, *words]
    template.redirect(fds)
    stdin, out, err = fds
    os.close(stdin)
    return words, out, err


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
        said = f": {problem}" if str(problem) else ""
        sys.stderr.write(f"hookline {words[0]}: cannot judge this: {type(problem).__name__}{said}\n")
        return FAILED
    return 1


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
