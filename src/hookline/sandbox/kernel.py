"""The kernel's side of confinement: Landlock, seccomp notifications, capabilities, process memory.

The C library is called through `_ctypes`, of which `ctypes` is made: that package takes a sixth of a cold start.
"""

from __future__ import annotations

import _ctypes
import errno
import fcntl
import os
import struct
import time
from _ctypes import Structure, addressof, byref, get_errno

from hookline.sandbox.syscalls import MACHINES, NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import Array, c_char, c_int, c_long, c_size_t, c_uint, c_uint32, c_ulong, c_ushort, c_void_p
else:

    def _simple(code: str) -> type:
        return type(f"c_{code}", (_ctypes._SimpleCData,), {"_type_": code})  # noqa: SLF001 - the base of every `c_…`

    c_char, c_ushort, c_int, c_uint, c_long, c_ulong, c_void_p = map(_simple, "cHiIlLP")
    c_size_t, c_uint32 = c_ulong, c_uint

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_RECEIVE, _SEND, _ID_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_ADD_DESCRIPTOR, _AND_ANSWER = 0x40182103, 2
_PIDFD_THREAD = 0o200
_SYNC_WAKE_UP = 1
_CONTINUE = 1
_PAGE = 4096
_PIECE = 512
"""How much is read at once of a text: it lies within one page, and most texts are shorter."""
_POINTER = 8
_PROCESSORS = 1024
"""The bytes of a set of processors, as many as Linux can be built for."""
_TURNS, _TRIED = 128, 3
"""Of so many calls in a row, how many are answered in each way to see which is the quicker one."""
_LAST_CAPABILITY = 63
_MOST_BYTES = 131_072
_MOST_WORDS = 6 * 1024 * 1024
"""The kernel's limits of one word and of all words of a program; it counts pointers, too."""
_MOST_DESCRIPTORS = 2**31 - 1
NOTICE = struct.Struct("QIIiIQ6Q")
RESPONSE = struct.Struct("QqiI")

KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""What root keeps: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID and NET_BIND_SERVICE."""
_LIBRARY: int = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this program, and the C library in it


class _Int(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = c_int


class _Long(_ctypes.CFuncPtr):
    _flags_ = _Int._flags_
    _restype_ = c_long


def function(name: str, *, long: bool = False) -> Callable[..., int]:
    """A function of the C library that keeps `errno`; it returns an int, or a long."""
    found: Callable[..., int] = (_Long if long else _Int)(_ctypes.dlsym(_LIBRARY, name))
    return found


def failure() -> OSError:
    """The error of the last call."""
    return error(get_errno())


def error(number: int) -> OSError:
    """An error by its number."""
    return OSError(number, os.strerror(number))


def buffer(content: bytes | int) -> Array[c_char]:
    """Memory of our own: these bytes, or so many zeros."""
    size = content if isinstance(content, int) else len(content)
    memory: Array[c_char] = (c_char * size)()
    if not isinstance(content, int):
        memory.raw = content
    return memory


class Unsupported(Exception):
    """The kernel or the container does not offer this."""


_WHY = {
    errno.EBUSY: "this process is confined already, and only one supervisor can watch it",
    **dict.fromkeys(
        (errno.EPERM, errno.EACCES, errno.ENOSYS),
        "the kernel, or the container this runs in, does not allow Landlock or seccomp notifications; "
        "see `hookline confine --check`",
    ),
}
"""What the kernel's errors mean when a process confines itself."""


def why(error: Exception) -> str:
    """What it means that a process cannot confine itself."""
    if isinstance(error, OSError):
        return _WHY.get(error.errno or 0, f"the kernel refuses to confine: {error.strerror}")
    return str(error)


class _Program(Structure):
    _fields_ = (("length", c_ushort), ("filter", c_void_p))


class _Range(Structure):
    _fields_ = (("base", c_void_p), ("length", c_size_t))


_NO_MAGIC_LINKS, _NO_LINKS = 0x02, 0x04
_PROC, _OVERLAY, _STATFS = 0x9FA0, 0x794C7630, 256
_BIRTH, _BIRTH_AT, _EMPTY_PATH = 0x800, 80, 0x1000
_syscall = function("syscall", long=True)
_fstatfs = function("fstatfs")
_facts = (c_long * (_STATFS // 8))()
"""What `_fstatfs` last said: asked of every file that is opened."""
_get_processors, _set_processors = function("sched_getaffinity"), function("sched_setaffinity")
_processor = function("sched_getcpu")
_prctl_call, _capget, _capset = function("prctl"), function("capget"), function("capset")
_connect, bind = function("connect"), function("bind")
_CAPABILITY_HEADER = buffer(struct.pack("Ii", 0x20080522, 0))
MACHINE = os.uname().machine


def number(name: str) -> int:
    """A call's number on this machine."""
    if MACHINE not in MACHINES:
        raise Unsupported(f"`{MACHINE}` machines are not known")
    return NUMBERS[name][MACHINES[MACHINE][1]]


def call(name: str, *arguments: object) -> int:
    """Make a system call; an OSError if it fails. Numbers are handed over whole, as the kernel takes them."""
    given = [c_long(each) if isinstance(each, int) else each for each in arguments]
    result = _syscall(c_long(number(name)), *given)
    if result < 0:
        raise failure()
    return result


def _prctl(option: int, value: int) -> int:
    return _prctl_call(option, c_ulong(value), 0, 0, 0)


# -- what a process is --------------------------------------------------------------------------------------------


def no_new_privileges() -> None:
    """From here on no program gains rights by being started; Landlock and seccomp ask for this."""
    if _prctl(_PR_SET_NO_NEW_PRIVS, 1) != 0:
        raise Unsupported("`no_new_privs` cannot be set")


def die_with_parent(signal: int) -> None:
    """Have the kernel send a signal when the parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def limit(pid: int, resource: int, soft: int, hard: int) -> None:
    """Limit what a process, and each that it starts, may use of a resource; beyond `hard` it cannot undo that."""
    new = struct.pack("QQ", soft, hard)
    call("prlimit64", pid, resource, new, None)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def limit_capabilities() -> None:
    """No program that is started from here on has more of root's capabilities than `KEPT_CAPABILITIES`."""
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in KEPT_CAPABILITIES and _prctl(_PR_CAPBSET_DROP, capability) < 0:
            return  # past the last one, or none is ours to drop


def drop_capabilities() -> None:
    """Keep of root's capabilities what files and users need, and nothing that changes the machine."""
    kept = sum(1 << capability for capability in KEPT_CAPABILITIES)
    try:
        mine = _capabilities()[1] & kept
    except OSError:
        return
    _capset(_CAPABILITY_HEADER, buffer(struct.pack("6I", mine, mine, 0, 0, 0, 0)))


def use_capabilities(effective: int) -> None:
    """Make use of these of our capabilities, and of no others for now."""
    _, low, inherited, _, high, inherited_high = _capabilities()
    new = struct.pack("6I", effective & low, low, inherited, effective >> 32 & high, high, inherited_high)
    if _capset(_CAPABILITY_HEADER, buffer(new)) != 0:
        raise failure()


def _capabilities() -> tuple[int, ...]:
    """Ours: effective, permitted and inherited, first the lower halves and then the upper ones."""
    current = buffer(24)
    if _capget(_CAPABILITY_HEADER, current) != 0:
        raise failure()
    return struct.unpack("6I", current.raw)


def use_identity(user: int, group: int) -> None:
    """Be this user and group to file systems; our own ids stay."""
    for name, new in (("setfsgid", group), ("setfsuid", user)):
        change = function(name)
        change(c_uint(new))
        if change(c_uint(0xFFFFFFFF)) != new:
            raise PermissionError(1, "another user's rights cannot be taken on")


# -- Landlock ------------------------------------------------------------------------------------------------------


def landlock_version() -> int:
    """Landlock's version; 0 where there is none."""
    try:
        return call("landlock_create_ruleset", None, 0, 1)
    except (OSError, Unsupported):
        return 0


# -- seccomp -------------------------------------------------------------------------------------------------------


def notifications() -> bool:
    """Whether the kernel knows the action that hands a call to a supervisor."""
    action_available, notify = 2, struct.pack("I", 0x7FC00000)
    try:
        call("seccomp", action_available, 0, notify)
    except (OSError, Unsupported):
        return False
    return True


def waits_killable() -> bool:
    """Whether a call that was handed over is interrupted by nothing but the end of its process, once it was taken."""
    try:
        call("seccomp", _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, None)
    except (OSError, Unsupported) as error:
        return isinstance(error, OSError) and error.errno == errno.EFAULT  # it got as far as the filter, which is none
    return True


def install_filter(program: bytes) -> int:
    """Install a filter on this process; the descriptor on which its notifications arrive."""
    memory = buffer(program)
    head = byref(_Program(len(program) // 8, addressof(memory)))
    wait = _WAIT_KILLABLE if waits_killable() else 0
    return call("seccomp", _SET_FILTER, _NEW_LISTENER | wait, head)


def take_descriptor(thread: int, descriptor: int) -> int:
    """A copy of another thread's descriptor; before Linux 6.9 that of its process, which is nearly always the same."""
    try:
        pidfd = os.pidfd_open(thread, _PIDFD_THREAD)
    except OSError:
        pidfd = os.pidfd_open(process_of(thread))
    try:
        return call("pidfd_getfd", pidfd, descriptor, 0)
    finally:
        os.close(pidfd)


def wake_quickly(listener: int) -> None:
    """Ask the kernel to hand over on the same processor, where it can."""
    try:
        fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
    except OSError:
        return


def receive(listener: int) -> tuple[int, ...] | None:
    """The next notification: (id, thread, flags, number, arch, pointer, six arguments); None if it has gone again."""
    buffer = bytearray(NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError:
        return None
    return NOTICE.unpack(buffer)


def still_waiting(listener: int, notice: int) -> bool:
    """Whether a notification is still being waited for: what was read of its process was that process's."""
    try:
        fcntl.ioctl(listener, _ID_VALID, struct.pack("Q", notice))
    except OSError:
        return False
    return True


def respond(listener: int, notice: int, error: int | None) -> None:
    """Let a call go on, or answer it: with 0 or an error. A process that has ended meanwhile does not mind."""
    try:
        fcntl.ioctl(listener, _SEND, RESPONSE.pack(notice, 0, -(error or 0), _CONTINUE if error is None else 0))
    except OSError:
        return


def give_descriptor(listener: int, notice: int, fd: int, flags: int, *, answer: bool = False) -> int:
    """Give the process that waits a copy of a descriptor of ours, which may `answer` its call; its number there.

    `flags` may say that programs do not inherit it: O_CLOEXEC.
    """
    asked = bytearray(struct.pack("QIIII", notice, _AND_ANSWER if answer else 0, fd, 0, flags))
    number: int = fcntl.ioctl(listener, _ADD_DESCRIPTOR, asked)
    return number


class Handover:
    """Answers calls with descriptors, in whichever of two ways has been the quicker one of late.

    The kernel wakes a caller that gets a descriptor on a processor that has nothing to do, where there is one, and then
    this process on the other: that takes longer than all else. So the caller can be kept to this processor until it has
    the descriptor; it still waits for its answer then, and sees nothing of that. On a busy machine the second wake-up
    that this takes is the slower way.
    """

    def __init__(self) -> None:
        self._count, self._seconds = 0, [0.0, 0.0]
        self._own, self._theirs = buffer(_PROCESSORS), buffer(_PROCESSORS)
        self._here: Array[c_char] | None = None

    def answer(self, listener: int, notice: int, thread: int, fd: int, flags: int) -> None:
        """Answer a thread's call with a copy of a descriptor of ours."""
        turn = self._count % _TURNS
        self._count += 1
        keep = turn >= _TRIED and (turn < 2 * _TRIED or self._seconds[True] < self._seconds[False])
        if turn in (0, _TRIED):
            self._seconds[keep] = 0.0
        began = time.perf_counter()
        if keep != (self._here is not None):
            self._stay() if keep else self._leave()
        if keep:
            self._answer_here(listener, notice, thread, fd, flags)
        else:
            give_descriptor(listener, notice, fd, flags, answer=True)
        if turn < 2 * _TRIED:
            self._seconds[keep] += time.perf_counter() - began

    def _answer_here(self, listener: int, notice: int, thread: int, fd: int, flags: int) -> None:
        kept = not (_get_processors(thread, _PROCESSORS, self._theirs) < 0 or
                    _set_processors(thread, _PROCESSORS, self._here) < 0)  # fmt: skip
        try:
            number = give_descriptor(listener, notice, fd, flags)
        finally:
            if kept:
                _set_processors(thread, _PROCESSORS, self._theirs)
        fcntl.ioctl(listener, _SEND, RESPONSE.pack(notice, number, 0, 0))

    def _stay(self) -> None:
        _get_processors(0, _PROCESSORS, self._own)
        self._here = buffer((1 << _processor()).to_bytes(_PROCESSORS, "little"))
        _set_processors(0, _PROCESSORS, self._here)

    def _leave(self) -> None:
        _set_processors(0, _PROCESSORS, self._own)
        self._here = None


def open_plainly(folder: int, path: str, flags: int, *, links: bool = True) -> int:
    """Open a path from an open folder; ELOOP where it leads through a link that jumps, or through any at all."""
    how = struct.pack("QQQ", flags, 0, _NO_MAGIC_LINKS if links else _NO_LINKS)
    return call("openat2", folder, os.fsencode(path), how, len(how))


def birth(fd: int, path: str = "") -> int:
    """When a file was made, in nanoseconds; 0 where its file system does not tell. ENOENT if there is none."""
    facts = buffer(_STATFS)
    at = (fd, os.fsencode(path), 0 if path else _EMPTY_PATH)
    call("statx", *at, _BIRTH, facts)
    if not struct.unpack_from("I", facts)[0] & _BIRTH:
        return 0
    seconds, nanoseconds = struct.unpack_from("qI", facts, _BIRTH_AT)
    return int(seconds * 1_000_000_000 + nanoseconds)


def is_proc(fd: int) -> bool:
    """Whether an open file is one of procfs."""
    return _fstatfs(fd, _facts) == 0 and _facts[0] == _PROC


def is_overlay(fd: int) -> bool:
    """Whether an open file is one of overlayfs, where a file is made again when it is changed first."""
    return _fstatfs(fd, _facts) == 0 and _facts[0] == _OVERLAY


def content(path: str) -> bytes:
    """A whole file, read without Python's own files, which take longer to make than a few lines to read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def facts(path: str) -> dict[bytes, bytes]:
    """What a table of procfs says, by name. A process gives itself its own, with any line end in it but this one."""
    return dict(row.partition(b":\t")[::2] for row in content(path).split(b"\n"))


def process_of(thread: int | str) -> int:
    """The process that a thread belongs to."""
    return int(facts(f"/proc/{thread}/status")[b"Tgid"])


def memory_file(data: bytes) -> int:
    """An open file that has no name and holds some bytes."""
    fd = os.memfd_create("hookline")
    os.write(fd, data)
    return fd


def connect(fd: int, address: bytes) -> int:
    """Connect a socket; 0 or the error."""
    return (failure().errno or 0) if _connect(fd, address, len(address)) else 0


class Memory:
    """What another process has in its memory."""

    def __init__(self) -> None:
        self._buffer = buffer(_PAGE)
        self._local = _Range(addressof(self._buffer), 0)
        self._remote = _Range(0, 0)
        self._number = c_long(number("process_vm_readv"))
        self._ranges = (byref(self._local), c_ulong(1), byref(self._remote), c_ulong(1), c_ulong(0))

    def read(self, thread: int, address: int, length: int) -> bytes:
        self._local.length = self._remote.length = length
        self._remote.base = address
        got = _syscall(self._number, thread, *self._ranges)
        if got <= 0:
            raise failure()
        return self._buffer.raw[:got]

    def block(self, thread: int, address: int, length: int) -> bytes:
        parts: list[bytes] = []
        while length > 0:
            part = self.read(thread, address, min(length, _PAGE - address % _PAGE))
            parts.append(part)
            address, length = address + len(part), length - len(part)
        return b"".join(parts)

    def write(self, thread: int, address: int, data: bytes) -> None:
        memory = buffer(data)
        ours, theirs = _Range(addressof(memory), len(data)), _Range(address, len(data))
        call("process_vm_writev", thread, byref(ours), 1, byref(theirs), 1, 0)

    def text(self, thread: int, address: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < _MOST_BYTES:
            piece = self.read(thread, address + size, _PIECE - (address + size) % _PIECE)
            text, end, _ = piece.partition(b"\0")
            parts.append(text)
            if end:
                break
            size += len(piece)
        return b"".join(parts)

    def texts(self, thread: int, address: int) -> list[bytes]:
        """A list of texts that ends with a null pointer; E2BIG if there is more of it than the kernel takes."""
        found: list[bytes] = []
        size = 0
        while address:
            piece = self.read(thread, address, _PAGE - address % _PAGE)
            if len(piece) < _POINTER:  # a pointer that lies across two pages
                piece += self.read(thread, address + len(piece), _POINTER - len(piece))
            pointers = struct.unpack(f"{len(piece) // _POINTER}Q", piece[: len(piece) // _POINTER * _POINTER])
            for pointer in pointers:
                if not pointer:
                    return found
                found.append(self.text(thread, pointer))
                size += len(found[-1]) + _POINTER
                if size > _MOST_WORDS or len(found[-1]) >= _MOST_BYTES:
                    raise error(errno.E2BIG)
            address += _POINTER * len(pointers)
        return found


def close_all_but(*kept: int) -> None:
    """Close every descriptor but some; a negative one is none."""
    after = 0
    for fd in sorted(fd for fd in kept if fd >= 0):
        if fd > after:  # a range without anything in it is everything to Python 3.11
            os.closerange(after, fd)
        after = fd + 1
    os.closerange(after, _MOST_DESCRIPTORS)
