"""Files and folders that are written to or changed.

Landlock does not know changes of mode, owner, times and attributes. Were the kernel to carry them out after they have
been judged, it would read the path again, and a line that swaps a link in between would change another file. So the
supervisor makes the change itself, on the file that it has opened and judged, with the rights of the thread that asked.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import struct
from functools import partial

from hookline.sandbox import kernel, syscalls
from hookline.sandbox.exec_policy import quoted
from hookline.sandbox.judged_line import (
    CallAnswered,
    CallMade,
    JudgedLine,
    Notice,
    Refusal,
    number_in,
    quiet,
    signed,
)
from hookline.sandbox.path_access import OpenedPath, name_of, real, resolve_in_process
from hookline.sandbox.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hookline.sandbox.judged_line import Table

_MOST_VALUE, _MOST_ATTRIBUTES = 65_536, 4_096
_MILLION = 1_000_000


class FileChanges:
    """Files and folders that are written to or changed."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line

    def table(self) -> Table:
        """The calls that write or change."""
        table: Table = dict.fromkeys(syscalls.WRITES, self._write)
        return table | dict.fromkeys(syscalls.METADATA, self._change) | {"flock": self._lock}

    def _lock(self, _name: str, notice: Notice) -> Refusal | None:
        """Take a lock on a file inside, for the file as the caller has it open; outside it seems to be taken.

        A program outside would wait for it; and what cannot be written needs none.
        """
        if self._line.places is None:
            return None
        thread, (number, operation, *_) = notice[1], notice[6:]
        fd = kernel.take_descriptor(thread, signed(number))
        wait = not operation & fcntl.LOCK_NB
        try:
            if self._line.places.hold(name_of(fd)):
                fcntl.flock(fd, operation & 0xFF | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            _thread.start_new_thread(_wait_for_lock, (self._line.listener, notice[0], os.dup(fd), operation & 0xFF))
            raise CallAnswered from None
        finally:
            os.close(fd)
        raise CallMade

    def _write(self, name: str, notice: Notice) -> Refusal | None:
        """Landlock holds these calls; they are looked at to say why they fail."""
        if self._line.places is None:
            return None
        thread, arguments = notice[1], notice[6:]
        call = syscalls.WRITES[name]
        for position, (folder, path) in enumerate(call.pairs):
            at = syscalls.AT_FDCWD if folder < 0 else signed(arguments[folder])
            text = os.fsdecode(self._line.memory.text(thread, arguments[path])) if arguments[path] else ""
            if not text and folder < 0:
                return None  # the kernel answers an empty path itself
            place = real(thread, at, text, follow=call.follow)
            if self._line.places.hold(place) and not self._line.others.own(place):
                if not place.startswith("/dev/"):
                    self._line.saw("written", place)
                continue
            return None if self._fails_anyway(name, notice, position, place) else self._outside(name, place)
        return None

    def _change(self, name: str, notice: Notice) -> Refusal | None:
        """Landlock does not know these calls: they are judged, and made, on one and the same open file."""
        if self._line.places is None:
            return None
        thread, arguments = notice[1], notice[6:]
        if name == "ioctl" and arguments[1] & 0xFFFFFFFF in syscalls.SUBVOLUMES:
            place = real(thread, signed(arguments[0]), "")
            return None if self._line.places.hold(place) else self._outside(name, place)
        with self._changed(name, notice) as file:
            if file.fd < 0:
                raise kernel.error(errno.ENOENT)
            if not self._line.places.hold(file.path) or self._line.others.own(file.path):
                return self._outside(name, file.path)
            if self._line.waits(notice):
                request = MetadataCall(self._line.memory, thread, arguments)
                self._line.callers.act(thread, lambda: _CHANGES[name](request, file.fd))
        raise CallMade

    def _changed(self, name: str, notice: Notice) -> OpenedPath:
        """The file that a call would change."""
        thread, arguments = notice[1], notice[6:]
        call = syscalls.METADATA[name]
        [(folder, path)] = call.pairs
        at = syscalls.AT_FDCWD if folder < 0 else signed(arguments[folder])
        if name == "ioctl":
            fd = kernel.take_descriptor(number_in(f"/proc/{thread}/status", "Tgid:", thread), at)
            return OpenedPath(name_of(fd), fd)
        flags = arguments[call.flags] & 0xFFFFFFFF if call.flags >= 0 else 0
        if flags & ~(syscalls.AT_NO_FOLLOW | syscalls.AT_EMPTY_PATH):
            raise kernel.error(errno.EINVAL)
        text = self._path(thread, arguments[path], flags, name) if path >= 0 else ""
        if path < 0 and at < 0:
            raise kernel.error(errno.EBADF)
        return resolve_in_process(thread, at, text, follow=call.follow and not flags & syscalls.AT_NO_FOLLOW)

    def _path(self, thread: int, address: int, flags: int, name: str) -> str:
        """The path that a call is given; where it may be left out, the descriptor is meant."""
        if not address:
            if name in syscalls.MAY_LEAVE_OUT_PATH:
                return ""
            raise kernel.error(errno.EFAULT)
        text = os.fsdecode(self._line.memory.text(thread, address))
        if not text and not flags & syscalls.AT_EMPTY_PATH:
            raise kernel.error(errno.ENOENT)
        return text

    def _fails_anyway(self, name: str, notice: Notice, position: int, place: str) -> bool:
        """Whether the kernel answers a call itself: what is to be made is there, or what is to be changed is not."""
        exists = os.path.lexists(place)
        if name in syscalls.OPEN_FLAGS:
            flags = notice[6 + syscalls.OPEN_FLAGS[name]]
            return flags & syscalls.O_EXCLUSIVE == syscalls.O_EXCLUSIVE if exists else not flags & syscalls.O_CREATE
        if name in syscalls.MAKES or (name in ("link", "linkat") and position):
            return exists
        return not exists and not position

    def _outside(self, name: str, place: str) -> Refusal:
        return outside(self._line.policy, "change" if name in syscalls.METADATA else "write", place)


def _wait_for_lock(listener: int, notice: int, fd: int, operation: int) -> None:
    try:
        fcntl.flock(fd, operation)
        kernel.respond(listener, notice, 0)
    except OSError as error:
        kernel.respond(listener, notice, error.errno)
    finally:
        os.close(fd)


def outside(policy: Policy, what: str, place: str) -> Refusal:
    """That a place may not be written or changed, and what to add so that it may."""
    folders = ", ".join(f"`{folder}`" for folder in policy.write or ())
    reason = f"it is outside {folders}" if folders else "no folder may be written to"
    flag = "--write" if policy.write_guard == "--write" else "--also"
    advice = f"to allow it, add `{flag} {quoted(worth_allowing(place))}`"
    return Refusal(f"to {what} `{place}`", policy.write_guard, reason, advice, quiet=quiet(place))


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


class MetadataCall:
    """A call that changes mode, owner, times or attributes, as it was made: its arguments, and what they point to."""

    def __init__(self, memory: kernel.Memory, thread: int, arguments: tuple[int, ...]) -> None:
        self._memory, self._thread = memory, thread
        self.arguments: tuple[int, ...] = arguments

    def block(self, argument: int, length: int) -> bytes:
        """What an argument points to."""
        return self.at(self.arguments[argument], length)

    def at(self, address: int, length: int) -> bytes:
        """What lies at an address."""
        return self._memory.block(self._thread, address, length)

    def text(self, argument: int) -> bytes:
        """The text that an argument points to."""
        return self._memory.text(self._thread, self.arguments[argument])


def _link(fd: int) -> bytes:
    return b"/proc/self/fd/%d" % fd


def _chmod(request: MetadataCall, fd: int, mode: int) -> None:
    os.chmod(_link(fd), request.arguments[mode] & 0o7777)


def _chown(request: MetadataCall, fd: int, user: int) -> None:
    new = [request.arguments[at] & 0xFFFFFFFF for at in (user, user + 1)]
    kernel.call("fchownat", fd, b"", *new, syscalls.AT_EMPTY_PATH)


def _times(request: MetadataCall, fd: int, at: int, unit: int) -> None:
    """`unit` is how many nanoseconds the second number of each pair counts in; 0 if there is none."""
    given = None
    if request.arguments[at]:
        size = 4 if unit else 2
        numbers = struct.unpack(f"{size}q", request.block(at, 8 * size))
        seconds, parts = (numbers[::2], numbers[1::2]) if unit else (numbers, (0, 0))
        if unit > 1 and not all(0 <= part < _MILLION for part in parts):
            raise kernel.error(errno.EINVAL)
        given = struct.pack("4q", seconds[0], parts[0] * unit, seconds[1], parts[1] * unit)
    kernel.call("utimensat", fd, b"", given, syscalls.AT_EMPTY_PATH)


def _set_attribute(request: MetadataCall, fd: int, name: int) -> None:
    address, size, flags = request.arguments[name + 1 : name + 4]
    os.setxattr(_link(fd), request.text(name), _value(request, address, size), flags & 0xFFFFFFFF)


def _set_attribute_at(request: MetadataCall, fd: int) -> None:
    address, size, flags = struct.unpack("QII", request.block(4, 16))
    os.setxattr(_link(fd), request.text(3), _value(request, address, size), flags)


def _value(request: MetadataCall, address: int, size: int) -> bytes:
    if size > _MOST_VALUE:
        raise kernel.error(errno.E2BIG)
    return request.at(address, size)


def _remove_attribute(request: MetadataCall, fd: int, name: int) -> None:
    os.removexattr(_link(fd), request.text(name))


def _set_flags_at(request: MetadataCall, fd: int) -> None:
    size = min(request.arguments[3], _MOST_ATTRIBUTES)
    kernel.call("file_setattr", -1, _link(fd), request.block(2, size), size, 0)


def _set_flags(request: MetadataCall, fd: int) -> None:
    command = request.arguments[1] & 0xFFFFFFFF
    fcntl.ioctl(fd, command, bytearray(request.block(2, syscalls.FILE_FLAGS[command])))


_CHANGES: dict[str, Callable[[MetadataCall, int], None]] = {
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
