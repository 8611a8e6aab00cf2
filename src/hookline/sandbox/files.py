"""Files and folders that are written to or changed.

Landlock does not know changes of mode, owner, times and attributes. Were the kernel to carry them out after they have
been judged, it would read the path again, and a line that swaps a link in between would change another file. So the
supervisor makes the change itself, on the file that it has opened and judged, with the rights of the thread that asked.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from functools import partial

from hookline.sandbox import kernel, syscalls
from hookline.sandbox.exec_policy import quoted
from hookline.sandbox.judged_line import CallAnswered, CallMade, JudgedLine, Refusal, Syscall, Table, quiet
from hookline.sandbox.path_access import OpenedPath, name_of, real, resolve_in_process
from hookline.sandbox.policy import Policy

_MOST_VALUE, _MOST_ATTRIBUTES = 65_536, 4_096
_MILLION = 1_000_000


class FileChanges:
    """Files and folders that are written to or changed."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line

    def table(self) -> Table:
        table: Table = dict.fromkeys(syscalls.WRITES, self._write)
        return table | dict.fromkeys(syscalls.METADATA, self._change) | {"flock": self._lock}

    def _lock(self, call: Syscall) -> None:
        """Take a lock on a file inside, for the file as the caller has it open; outside it seems to be taken.

        A program outside would wait for it; and what cannot be written needs none.
        """
        if self._line.places is None:
            return
        operation = call.arguments[1]
        fd = kernel.take_descriptor(call.thread, call.number(0))
        try:
            if self._line.places.hold(name_of(fd)):
                fcntl.flock(fd, operation & 0xFF | fcntl.LOCK_NB)
        except BlockingIOError:
            if operation & fcntl.LOCK_NB:
                raise
            kept = os.dup(fd)
            call.answer_later(lambda: fcntl.flock(kept, operation & 0xFF), kept)
            raise CallAnswered from None
        finally:
            os.close(fd)
        raise CallMade

    def _write(self, call: Syscall) -> None:
        """Landlock holds these calls; they are looked at to say why they fail."""
        if self._line.places is None:
            return
        paths = syscalls.WRITES[call.name]
        for position, (folder, path) in enumerate(paths.pairs):
            text = call.text(path) if call.arguments[path] else ""
            if not text and folder < 0:
                return  # the kernel answers an empty path itself
            place = real(call.thread, call.folder(folder), text, follow=paths.follow)
            if self._line.places.hold(place) and not self._line.others.own(place):
                if not place.startswith("/dev/"):
                    self._line.saw("written", place)
                continue
            if _fails_anyway(call, position, place):
                return
            raise outside(self._line.policy, "write", place)

    def _change(self, call: Syscall) -> None:
        """Landlock does not know these calls: they are judged, and made, on one and the same open file."""
        if self._line.places is None:
            return
        with _changed(call) as file:
            if file.fd < 0:
                raise kernel.error(errno.ENOENT)
            if not self._line.places.hold(file.path) or self._line.others.own(file.path):
                raise outside(self._line.policy, "change", file.path)
            if call.name == "ioctl" and call.arguments[1] & 0xFFFFFFFF in syscalls.SUBVOLUMES:
                return
            if call.waits():
                self._line.callers.act(call.thread, lambda: _CHANGES[call.name](call, file.fd))
        raise CallMade


def _changed(call: Syscall) -> OpenedPath:
    paths = syscalls.METADATA[call.name]
    [(folder, path)] = paths.pairs
    at = call.folder(folder)
    if call.name == "ioctl":
        fd = kernel.take_descriptor(call.thread, at)
        return OpenedPath(name_of(fd), fd)
    flags = call.arguments[paths.flags] & 0xFFFFFFFF if paths.flags >= 0 else 0
    if flags & ~(syscalls.AT_NO_FOLLOW | syscalls.AT_EMPTY_PATH):
        raise kernel.error(errno.EINVAL)
    text = _path(call, path, flags) if path >= 0 else ""
    if path < 0 and at < 0:
        raise kernel.error(errno.EBADF)
    return resolve_in_process(call.thread, at, text, follow=paths.follow and not flags & syscalls.AT_NO_FOLLOW)


def _path(call: Syscall, argument: int, flags: int) -> str:
    """The path that a call is given; where it may be left out, the descriptor is meant."""
    if not call.arguments[argument]:
        if call.name in syscalls.MAY_LEAVE_OUT_PATH:
            return ""
        raise kernel.error(errno.EFAULT)
    text = call.text(argument)
    if not text and not flags & syscalls.AT_EMPTY_PATH:
        raise kernel.error(errno.ENOENT)
    return text


def _fails_anyway(call: Syscall, position: int, place: str) -> bool:
    """Whether the kernel answers a call itself: what is to be made is there, or what is to be changed is not."""
    exists = os.path.lexists(place)
    if call.name in syscalls.OPEN_FLAGS:
        flags = call.arguments[syscalls.OPEN_FLAGS[call.name]]
        return flags & syscalls.O_EXCLUSIVE == syscalls.O_EXCLUSIVE if exists else not flags & syscalls.O_CREATE
    if call.name in syscalls.MAKES or (call.name in ("link", "linkat") and position):
        return exists
    return not exists and not position


def outside(policy: Policy, what: str, place: str) -> Refusal:
    """That a place may not be written or changed, and what to add so that it may."""
    folders = ", ".join(f"`{folder}`" for folder in policy.write or ())
    reason = f"it is outside {folders}" if folders else "no folder may be written to"
    flag = "--write" if policy.write_guard == "--write" else "--also"
    advice = f"to allow it, add `{flag} {quoted(worth_allowing(place))}`"
    return Refusal(f"to {what} `{place}`", reason, advice, quiet=quiet(place))


def worth_allowing(place: str) -> str:
    """The folder to allow for a write: a tool's own one in the home directory, else the one the file is in."""
    home = os.environ.get("HOME", "").rstrip("/")
    if home and place.startswith(home + "/"):
        first, *rest = place[len(home) + 1 :].split("/")
        if first in (".local", ".config", ".cache") and len(rest) > 1:
            return f"~/{first}/{rest[0]}" if first != ".local" or len(rest) < 3 else f"~/.local/{rest[0]}/{rest[1]}"
        if first.startswith(".") and rest:
            return f"~/{first}"
    return place.rpartition("/")[0] or "/"


def _link(fd: int) -> bytes:
    return b"/proc/self/fd/%d" % fd


def _chmod(call: Syscall, fd: int, mode: int) -> None:
    os.chmod(_link(fd), call.arguments[mode] & 0o7777)


def _chown(call: Syscall, fd: int, user: int) -> None:
    new = [call.arguments[at] & 0xFFFFFFFF for at in (user, user + 1)]
    kernel.call("fchownat", fd, b"", *new, syscalls.AT_EMPTY_PATH)


def _times(call: Syscall, fd: int, at: int, unit: int) -> None:
    """`unit` is how many nanoseconds the second number of each pair counts in; 0 if there is none."""
    given = None
    if call.arguments[at]:
        size = 4 if unit else 2
        numbers = struct.unpack(f"{size}q", call.block(call.arguments[at], 8 * size))
        seconds, parts = (numbers[::2], numbers[1::2]) if unit else (numbers, (0, 0))
        if unit > 1 and not all(0 <= part < _MILLION for part in parts):
            raise kernel.error(errno.EINVAL)
        given = struct.pack("4q", seconds[0], parts[0] * unit, seconds[1], parts[1] * unit)
    kernel.call("utimensat", fd, b"", given, syscalls.AT_EMPTY_PATH)


def _set_attribute(call: Syscall, fd: int, name: int) -> None:
    address, size, flags = call.arguments[name + 1 : name + 4]
    os.setxattr(_link(fd), call.text(name), _value(call, address, size), flags & 0xFFFFFFFF)


def _set_attribute_at(call: Syscall, fd: int) -> None:
    address, size, flags = struct.unpack("QII", call.block(call.arguments[4], 16))
    os.setxattr(_link(fd), call.text(3), _value(call, address, size), flags)


def _value(call: Syscall, address: int, size: int) -> bytes:
    if size > _MOST_VALUE:
        raise kernel.error(errno.E2BIG)
    return call.block(address, size)


def _remove_attribute(call: Syscall, fd: int, name: int) -> None:
    os.removexattr(_link(fd), call.text(name))


def _set_flags_at(call: Syscall, fd: int) -> None:
    size = min(call.arguments[3], _MOST_ATTRIBUTES)
    kernel.call("file_setattr", -1, _link(fd), call.block(call.arguments[2], size), size, 0)


def _set_flags(call: Syscall, fd: int) -> None:
    command = call.arguments[1] & 0xFFFFFFFF
    fcntl.ioctl(fd, command, bytearray(call.block(call.arguments[2], syscalls.FILE_FLAGS[command])))


_CHANGES: dict[str, Callable[[Syscall, int], None]] = {
    **dict.fromkeys(("chmod", "fchmod"), partial(_chmod, mode=1)),
    **dict.fromkeys(("fchmodat", "fchmodat2"), partial(_chmod, mode=2)),
    **dict.fromkeys(("chown", "fchown", "lchown"), partial(_chown, user=1)),
    "fchownat": partial(_chown, user=2),
    "utime": partial(_times, at=1, unit=0),
    "utimes": partial(_times, at=1, unit=1000),
    "futimesat": partial(_times, at=2, unit=1000),
    "utimensat": partial(_times, at=2, unit=1),
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr"), partial(_set_attribute, name=1)),
    "setxattrat": _set_attribute_at,
    **dict.fromkeys(("removexattr", "lremovexattr", "fremovexattr"), partial(_remove_attribute, name=1)),
    "removexattrat": partial(_remove_attribute, name=3),
    "file_setattr": _set_flags_at,
    "ioctl": _set_flags,
}
"""How each call of `syscalls.METADATA` is made on an open file."""
