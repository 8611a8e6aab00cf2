"""Changes of mode, owner, times and attributes, made here in the caller's name.

Landlock does not know these calls. Were the kernel to carry them out after they have been judged, it would read the
path again, and a line that swaps a link in between would change another file. So the supervisor makes the change
itself, on the file that it has opened and judged, with the rights of the thread that asked.
"""

from __future__ import annotations

import os
import struct

from hookline.sandbox import kernel, libc
from hookline.sandbox.syscalls import AT_EMPTY_PATH, FILE_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_EINVAL, _E2BIG = 22, 7
_MOST_VALUE, _MOST_ATTRIBUTES = 65_536, 4_096
_MILLION = 1_000_000


class MetadataCall:
    """A call as it was made: its arguments, and the memory that they point to."""

    __slots__ = ("_memory", "_thread", "arguments")

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


def _chmod(mode: int) -> Callable[[MetadataCall, int], None]:
    def change(request: MetadataCall, fd: int) -> None:
        os.chmod(_link(fd), request.arguments[mode] & 0o7777)

    return change


def _chown(user: int) -> Callable[[MetadataCall, int], None]:
    def change(request: MetadataCall, fd: int) -> None:
        new = [libc.c_uint(request.arguments[at] & 0xFFFFFFFF) for at in (user, user + 1)]
        kernel.call("fchownat", libc.c_int(fd), b"", *new, libc.c_int(AT_EMPTY_PATH))

    return change


def _times(at: int, layout: str, unit: int) -> Callable[[MetadataCall, int], None]:
    """`unit` is how many nanoseconds the second number of each pair counts in; 0 if there is none."""

    def change(request: MetadataCall, fd: int) -> None:
        given = None
        if request.arguments[at]:
            numbers = struct.unpack(layout, request.block(at, struct.calcsize(layout)))
            given = _nanoseconds(numbers, unit)
        kernel.call("utimensat", libc.c_int(fd), b"", given, libc.c_int(AT_EMPTY_PATH))

    return change


def _nanoseconds(numbers: tuple[int, ...], unit: int) -> bytes:
    if not unit:
        return struct.pack("4q", numbers[0], 0, numbers[1], 0)
    if unit > 1 and not all(0 <= part < _MILLION for part in numbers[1::2]):
        raise OSError(_EINVAL, os.strerror(_EINVAL))
    return struct.pack("4q", numbers[0], numbers[1] * unit, numbers[2], numbers[3] * unit)


def _set_attribute(name: int) -> Callable[[MetadataCall, int], None]:
    def change(request: MetadataCall, fd: int) -> None:
        address, size, flags = request.arguments[name + 1 : name + 4]
        os.setxattr(_link(fd), request.text(name), _value(request, address, size), flags & 0xFFFFFFFF)

    return change


def _set_attribute_at(request: MetadataCall, fd: int) -> None:
    address, size, flags = struct.unpack("QII", request.block(4, 16))
    os.setxattr(_link(fd), request.text(3), _value(request, address, size), flags)


def _value(request: MetadataCall, address: int, size: int) -> bytes:
    if size > _MOST_VALUE:
        raise OSError(_E2BIG, os.strerror(_E2BIG))
    return request.at(address, size)


def _remove_attribute(name: int) -> Callable[[MetadataCall, int], None]:
    def change(request: MetadataCall, fd: int) -> None:
        os.removexattr(_link(fd), request.text(name))

    return change


def _set_flags_at(request: MetadataCall, fd: int) -> None:
    size = min(request.arguments[3], _MOST_ATTRIBUTES)
    number = libc.c_size_t(size)
    kernel.call("file_setattr", libc.c_int(-1), _link(fd), request.block(2, size), number, libc.c_uint(0))


def _set_flags(request: MetadataCall, fd: int) -> None:
    import fcntl

    command = request.arguments[1] & 0xFFFFFFFF
    fcntl.ioctl(fd, command, bytearray(request.block(2, FILE_FLAGS[command])))


CHANGES: dict[str, Callable[[MetadataCall, int], None]] = {
    "chmod": _chmod(1), "fchmod": _chmod(1), "fchmodat": _chmod(2), "fchmodat2": _chmod(2),
    "chown": _chown(1), "fchown": _chown(1), "lchown": _chown(1), "fchownat": _chown(2),
    "utime": _times(1, "2q", 0), "utimes": _times(1, "4q", 1000), "futimesat": _times(2, "4q", 1000),
    "utimensat": _times(2, "4q", 1), "setxattr": _set_attribute(1), "lsetxattr": _set_attribute(1),
    "fsetxattr": _set_attribute(1), "setxattrat": _set_attribute_at, "removexattr": _remove_attribute(1),
    "lremovexattr": _remove_attribute(1), "fremovexattr": _remove_attribute(1), "removexattrat": _remove_attribute(3),
    "file_setattr": _set_flags_at, "ioctl": _set_flags,
}  # fmt: skip
"""How each call of `syscalls.METADATA` is made on an open file."""
