"""The client in a command hook: have the event answered by the user's service, and know when to answer it oneself."""

import _socket
import os
import sys

from hookline.core.interpreter import PACKAGES
from hookline.processes.service import address, frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

START_LIMIT = 4.0  # seconds in which the event's process must have begun
GLANCE = 2.0  # seconds between looks at whether a process that is still working has been stopped
STREAM_GRACE = 0.1  # seconds after a whole line in which stdin must end; if it does not, more events will come
GUARD_LIMIT = 5.0  # seconds that a guard may take: settings written by `hookline init` give it ten

WHOLE, PROMPT, STREAM, UNREAD = "whole", "prompt", "stream", "unread"
"""How stdin is read: to its end · to its end if that comes soon · as lines that may keep coming · not at all."""
END_LIMIT = 0.5
"""Seconds in which the end must come for a command that has a deadline of its own and keeps it also without one."""


def _fire(words: list[str]) -> str:
    """Hot with `--json`, if it is plain whether the event comes from stdin."""
    if "--json" not in words:
        return ""
    if words[0] != "-" and not words[0].startswith("-"):
        return UNREAD
    return WHOLE if words[0] == "-" or all(word.startswith("-") for word in words) else ""


HOT: "dict[str, Callable[[list[str]], str]]" = {
    "guard": lambda words: "" if any(word.startswith("--l") for word in words) else WHOLE,  # `--lines` answers many
    "pipe": lambda words: STREAM,
    "fire": _fire,
    "answer": lambda words: PROMPT,
}
"""The commands that the service answers, and how each reads stdin; nothing: this one not."""
LIMITS = {"guard": GUARD_LIMIT}  # commands that cannot take long by nature, and how long that is


class NotAnswered(Exception):
    """The service has not answered, and nothing has been written: answer by yourself."""


def way(words: list[str]) -> str:
    """How a command line reads stdin if the service can answer it, else nothing."""
    if not words or words[0] not in HOT or not address.instance() or not sys.executable:
        return ""
    if any(word == "-h" or (len(word) > 2 and "--help".startswith(word)) for word in words):
        return ""
    try:
        return "" if os.isatty(0) or os.path.exists(address.off_switch()) else HOT[words[0]](words[1:])
    except OSError:  # no stdin at all
        return ""


def take_stdin(how: str) -> bool:
    """Put what stdin holds into a file that can be read again, as the new stdin; False if more may still come.

    Then nothing is lost: stdin begins with what was read already.
    """
    if how == UNREAD:
        return True
    chunks, ended = _read(how)
    if not ended:
        if chunks:
            _feed(chunks)
        return False
    store = nameless_file(b"".join(chunks))
    os.lseek(store, 0, os.SEEK_SET)
    os.dup2(store, 0)
    os.close(store)
    return True


def rewind_stdin() -> None:
    """Have stdin begin again, however far a process of the service has read it; that one may still be reading."""
    try:
        again = os.open("/proc/self/fd/0", os.O_RDONLY)
    except OSError:
        os.lseek(0, 0, os.SEEK_SET)
        return
    os.dup2(again, 0)
    os.close(again)


def _read(how: str) -> tuple[list[bytes], bool]:
    """What stdin holds, and whether it ends there: for a stream, soon after a whole line."""
    import time

    chunks: list[bytes] = []
    due = time.monotonic() + END_LIMIT if how == PROMPT else None
    while due is None or _readable(due - time.monotonic()):
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return chunks, True
        chunks.append(chunk)
        if how == STREAM and (due or b"\n" in chunk):
            due = time.monotonic() + STREAM_GRACE
    return chunks, False


def _readable(patience: float) -> bool:
    import select

    return bool(select.select([0], [], [], max(0.0, patience))[0])


def _feed(chunks: list[bytes]) -> None:
    """Make a pipe stdin that begins with what was read; a process of its own keeps filling it while we live."""
    inlet, outlet = os.pipe()
    reader = os.getpid()
    if os.fork() == 0:
        try:
            os.close(inlet)
            for chunk in chunks:
                write_all(outlet, chunk)
            while os.getppid() == reader:
                if not _readable(1.0):
                    continue
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    break
                write_all(outlet, chunk)
        except OSError:
            pass  # the reader has gone
        finally:
            os._exit(0)
    os.close(outlet)
    os.dup2(inlet, 0)
    os.close(inlet)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def nameless_file(data: bytes = b"") -> int:
    """A file that goes along with a request, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("hookline", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    write_all(fd, data)
    return fd


def start(entry: str) -> None:
    """Start a service for the next event, if there is none; its workers import the module `entry`."""
    try:
        from hookline.processes.service import control

        control.start(entry)
    except OSError:
        pass  # a full disk, a read-only folder: then every event is answered without a service


def ask(words: list[str], connection: _socket.socket | None) -> int:
    """The exit code of a command that the service has run, its output written; `NotAnswered` if it has not."""
    if connection is None:
        raise NotAnswered("no service")
    try:
        if not address.is_trusted(connection):
            raise NotAnswered("another user's service")
        code, out, err, sizes = _converse(connection, words)
    except (OSError, frames.FrameError) as problem:
        raise NotAnswered(str(problem)) from None
    finally:
        connection.close()
    _copy(out, 1, sizes[0])
    _copy(err, 2, sizes[1])
    return code


def _converse(connection: _socket.socket, words: list[str]) -> tuple[int, int, int, tuple[int, int]]:
    out, err = nameless_file(), nameless_file()
    environ = [b"%b=%b" % entry for entry in os.environb.items()]
    connection.sendall(frames.head(frames.RUN, _route(words, environ)))
    send_body(connection, words, environ, [0, out, err])
    worker = _expect(connection, frames.ACCEPTED, address.peer(connection)[0])
    connection.settimeout(START_LIMIT)
    process = _expect(connection, frames.STARTED, worker)
    result = _await_end(connection, process, LIMITS.get(words[0]))
    code = int.from_bytes(result[:4], "big", signed=True)
    return code, out, err, (int.from_bytes(result[4:12], "big"), int.from_bytes(result[12:20], "big"))


def _route(words: list[str], environ: list[bytes]) -> bytes:
    """Who is to answer: this interpreter and package, started up in an environment like ours; and what is asked."""
    options = ("-I" if sys.flags.isolated else "", "-X utf8" if sys.flags.utf8_mode else "")
    texts = (sys.executable, PACKAGES, repr(tuple(sys.flags)), " ".join(options).strip(), os.getcwd())
    return b"\0".join([*map(os.fsencode, texts), *frames.counted(words), *environ])


def send_body(connection: _socket.socket, words: list[str], environ: list[bytes], fds: list[int]) -> None:
    """Say what the process that answers has to become; its stdin, stdout and stderr go along."""
    mask = os.umask(0o077)
    os.umask(mask)
    texts = (repr(tuple(sys.flags)), str(mask), os.getcwd(), sys.argv[0])
    body = b"\0".join([*map(os.fsencode, texts), *frames.counted(words), *frames.counted(sys.path), *environ])
    size = len(body).to_bytes(4, "big")
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
    sent = connection.sendmsg([size, body], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)]) - len(size)
    if sent < len(body):
        connection.sendall(body[sent:])


def _expect(connection: _socket.socket, kind: bytes, responsible: int) -> int:
    """The process that a frame of this kind names; who does not answer in time is ended, for the next event's sake."""
    try:
        found, payload = frames.read_frame(connection)
    except TimeoutError:
        try:
            if responsible > 1:
                os.kill(responsible, 9)
        except OSError:
            pass
        raise
    if found == frames.DECLINED:
        raise NotAnswered(payload.decode(errors="replace"))
    if found != kind or len(payload) != 4:
        raise frames.FrameError("not the frame that was due")
    return int.from_bytes(payload, "big")


def _await_end(connection: _socket.socket, process: int, limit: float | None) -> bytes:
    """How the event's process ended. It may take its time, but not be stopped."""
    connection.settimeout(limit or GLANCE)
    while True:
        try:
            kind, payload = frames.read_frame(connection)
        except TimeoutError:
            if limit or _stopped(process):
                raise
            continue
        if kind != frames.ENDED or len(payload) != 20:
            raise frames.FrameError("not how it ended")
        return payload


def _stopped(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb", buffering=0) as stat:
            return stat.read(4096).rpartition(b")")[2].split()[0] in b"Tt"
    except OSError:
        return sys.platform == "linux"


def _copy(source: int, target: int, size: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    while size > 0:
        chunk = os.read(source, min(size, 1 << 20))
        if not chunk:
            return
        write_all(target, chunk)
        size -= len(chunk)
