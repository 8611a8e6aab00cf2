"""What the judges of one line share, in whose name they act, and how each of them answers a call.

Every module with a judge (`files`, `processes`, `sockets`, `writes`) has a class with a `table`: the calls it knows, by
name, each with the method that answers it. The supervisor joins these tables and does nothing else with a call.
"""

from __future__ import annotations

import _socket
import _thread
import errno
import fcntl
import os
from contextlib import suppress

from hookline.sandbox import kernel
from hookline.sandbox.path_access import WritablePlaces
from hookline.sandbox.places import DEVICES, WritableDirs, entries_in
from hookline.sandbox.policy import Policy
from hookline.sandbox.syscalls import AT_FDCWD, IPC_CHANGES, READ_ONLY_SEGMENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self, TypeVar

    Result = TypeVar("Result")

_SHARED = ("/dev/shm", "/dev/pts")
"""Folders that every program puts something into; a line may, too, but what was there before is not its own."""
_TERMINALS = range(136, 144)
_KINDS = {"shmat": "shm", "shmctl": "shm", "semop": "sem", "semtimedop": "sem", "semctl": "sem",
          "msgsnd": "msg", "msgrcv": "msg", "msgctl": "msg"}  # fmt: skip


class OutsideResources:
    """What was there before the line: taken down before it starts."""

    def __init__(self) -> None:
        found = {f"{folder}/{entry.name}": entry.inode() for folder in _SHARED for entry in entries_in(folder)}
        found.pop("/dev/pts/ptmx", None)
        own = _own_terminals() if found else ()
        self._files = {path: inode for path, inode in found.items() if path not in own}
        self._segments = {kind: _identifiers(kind) for kind in ("shm", "sem", "msg")}

    def own(self, path: str) -> bool:
        """Whether a real path is, or lies below, something that was in a shared folder before."""
        if not path.startswith(_SHARED):
            return False
        top = "/".join(path.split("/", 4)[:4])
        if top not in self._files:
            return False
        with suppress(OSError):
            return os.lstat(top).st_ino == self._files[top]
        return False

    def own_segment(self, name: str, arguments: tuple[int, ...]) -> bool:
        """Whether a System V call would change what was there before."""
        if name == "shmat" and arguments[2] & READ_ONLY_SEGMENT:
            return False
        position, commands = IPC_CHANGES.get(name, (0, ()))
        if commands and arguments[position] & 0xFF not in commands:
            return False
        return arguments[0] & 0xFFFFFFFF in self._segments[_KINDS[name]]


def _own_terminals() -> set[str]:
    """The terminal that this process belongs to, and those it was given."""
    found = set()
    for fd in (0, 1, 2):
        with suppress(OSError):
            found.add(os.ttyname(fd))
    return found | {terminal_of("self")}


def terminal_of(thread: int | str) -> str:
    """The terminal that a thread belongs to; empty where it has none."""
    number = int(kernel.content(f"/proc/{thread}/stat").rpartition(b")")[2].split()[4])
    if os.major(number) not in _TERMINALS:
        return ""
    return f"/dev/pts/{(os.major(number) - _TERMINALS.start) * 256 + os.minor(number)}"


def _identifiers(kind: str) -> frozenset[int]:
    with suppress(OSError):
        return frozenset(int(line.split()[1]) for line in kernel.content(f"/proc/sysvipc/{kind}").splitlines()[1:])
    return frozenset()


_MOST_LINES = 30
_MOST_EFFECTS = 500
_QUIET_NAMES = ("__pycache__", ".package-cache", ".package-cache-mutate", ".global-cache", ".lesshst", ".viminfo")
_QUIET_PLACES = ("/tmp/hsperfdata_", "/var/cache/man/")
"""Files and folders that programs try to write on the side, and do without when they cannot."""


class Refusal(Exception):
    """What was refused, why, what to do about it, and by whom: a field of the policy that names a guard, or a flag."""

    def __init__(
        self, what: str, reason: str, advice: str = "", *, guard: str = "write_guard", quiet: bool = False
    ) -> None:
        self.what: str = what
        self.reason: str = reason
        self.advice: str = advice
        self.guard: str = guard
        self.quiet: bool = quiet


class Reporter:
    """Says each refusal once, and notes it with the call it belongs to, by guard; notes there, too, what was done."""

    def __init__(self, policy: Policy) -> None:
        self._said: set[str] = set()
        self._seen: set[tuple[str, str]] = set()
        self._left_out = 0
        self._policy, self._call = policy, policy.call

    def saw(self, kind: str, what: str) -> None:
        """Note what the line did, for the call's record (`core.calls`): each `program`, `written` and `host` once."""
        if not self._call or (kind, what) in self._seen or len(self._seen) > _MOST_EFFECTS:
            return
        self._seen.add((kind, what))
        line = f"{kind} {printable(what)}" if len(self._seen) <= _MOST_EFFECTS else "more"
        _append(f"{self._call}.effect", line, os.O_TRUNC if len(self._seen) == 1 else 0)

    def say(self, refusal: Refusal) -> None:
        """One line on stderr, unless it has been said or there were too many."""
        guard = getattr(self._policy, refusal.guard, refusal.guard)
        found = f"{refusal.what}: {refusal.reason} ({guard})"
        line = printable(f"hookline: refused {found}" + (f"; {refusal.advice}" if refusal.advice else ""))
        self.saw("refused", found)
        if refusal.quiet or line in self._said:
            return
        if len(self._said) >= _MOST_LINES:
            self._left_out += 1
            return
        self._said.add(line)
        _write(2, line)
        if self._call:
            _append(f"{self._call}.{guard}", line)

    def finish(self) -> None:
        if self._left_out:
            _write(2, f"hookline: refused {self._left_out} more times")
            self._left_out = 0


def quiet(path: str) -> bool:
    """Whether a refused write is one that programs do without, so that it need not be reported."""
    parts = path.split("/")
    own = len(parts) > 3 and parts[1] == "proc" and parts[2].isdigit()
    return own or path.startswith(_QUIET_PLACES) or any(name in parts for name in _QUIET_NAMES)


def printable(text: str) -> str:
    """A text that cannot steer a terminal or fake a line."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _append(path: str, line: str, flags: int = 0) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
    except OSError as error:
        _write(2, f"hookline: cannot note this in `{path}`: {error.strerror}")
        return
    _write(fd, line)
    os.close(fd)


def _write(fd: int, line: str) -> None:
    with suppress(OSError):
        os.write(fd, (line + "\n").encode("utf-8", "replace"))


_SYS_PTRACE = 1 << 19
_MOST_KNOWN = 512


class CallMade(Exception):
    """The supervisor has made a call itself: the caller is told so, and the kernel does nothing more."""


class CallAnswered(Exception):
    """The caller has its answer already, or gets it from a thread that waits in its place."""


class Syscall:
    """A system call that waits for its answer, by a notification: its name, thread and arguments."""

    def __init__(self, name: str, notice: tuple[int, ...], memory: kernel.Memory, listener: int = -1) -> None:
        self.name: str = name
        self.ident: int = notice[0]
        self.thread: int = notice[1]
        self.arguments: tuple[int, ...] = notice[6:]
        self.memory: kernel.Memory = memory
        self.listener: int = listener

    def text(self, argument: int) -> str:
        return os.fsdecode(self.memory.text(self.thread, self.arguments[argument]))

    def block(self, address: int, length: int) -> bytes:
        return self.memory.block(self.thread, address, length)

    def number(self, argument: int) -> int:
        """An argument that is an `int`, of which the kernel looks at the lower half."""
        value = self.arguments[argument] & 0xFFFFFFFF
        return value - (1 << 32) if value >= 1 << 31 else value

    def folder(self, argument: int) -> int:
        """The folder that an argument is; the caller's own one where there is no such argument."""
        return AT_FDCWD if argument < 0 else self.number(argument)

    def waits(self) -> bool:
        """Whether it is still waited for: what was read of its process was that process's."""
        return kernel.still_waiting(self.listener, self.ident)

    def answer(self, error: int | None) -> None:
        kernel.respond(self.listener, self.ident, error)

    def answer_later(self, deed: Callable[[], int | None], *fds: int) -> None:
        """Have a thread do what may take long, answer with the error that this returns, and close descriptors."""

        def work() -> None:
            try:
                self.answer(deed() or 0)
            except CallAnswered:
                return
            except OSError as error:
                self.answer(error.errno or errno.EACCES)
            finally:
                for fd in fds:
                    os.close(fd)

        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:
            for fd in fds:
                os.close(fd)
            raise kernel.error(errno.EAGAIN) from None


Table = dict[str, "Callable[[Syscall], object]"]
"""A call's name → its judge, which lets it go on by returning; a `Refusal` fails it, and an OSError does in silence."""


class Rights:
    """A thread's user, group, further groups, capabilities and umask, as files see them; `file` tells threads apart."""

    def __init__(self, thread: int | str, file: int = 0) -> None:
        facts = kernel.facts(f"/proc/{thread}/status")
        self.user: int = int(facts[b"Uid"].split()[3])
        self.group: int = int(facts[b"Gid"].split()[3])
        self.groups: list[int] = [int(group) for group in facts[b"Groups"].split()]
        self.capabilities: int = int(facts[b"CapEff"], 16)
        self.umask: int = int(facts.get(b"Umask", b"022"), 8)
        self.file: int = file
        self.like_ours: bool = False

    def same(self, other: Rights) -> bool:
        mine = (self.user, self.group, self.groups, self.capabilities & ~_SYS_PTRACE)
        return mine == (other.user, other.group, other.groups, other.capabilities & ~_SYS_PTRACE)


class Callers:
    """Acts with a caller's rights and umask, and takes its own back.

    Only root has any to put down. Who is not root cannot become another user in a confined line, so that the
    supervisor's rights are the line's. Root's supervisor keeps to the capabilities that the line has, but for the one
    to look into its processes. What is known of a thread is forgotten when any of the line changes its own rights.
    """

    def __init__(self) -> None:
        self._own: Rights | None = None
        self._known: dict[int, Rights] = {}
        self._umask = -1

    def forget(self) -> None:
        self._known.clear()

    def act(self, thread: int, deed: Callable[[], Result]) -> Result:
        """Do something as the thread would; OSError where that thread may not."""
        own = self._own or self._settle()
        theirs = self._rights(thread, own)
        if theirs.umask != self._umask:
            os.umask(theirs.umask)
            self._umask = theirs.umask
        if not own.capabilities or theirs.like_ours:
            return deed()
        self._become(theirs, (theirs.capabilities | _SYS_PTRACE) & own.capabilities)
        try:
            return deed()
        finally:
            kernel.use_capabilities(own.capabilities)
            self._become(own, own.capabilities)

    def _settle(self) -> Rights:
        own = Rights("self")
        if own.capabilities:
            own.capabilities &= sum(1 << each for each in kernel.KEPT_CAPABILITIES) | _SYS_PTRACE
            kernel.use_capabilities(own.capabilities)
        self._own = own
        return own

    def _rights(self, thread: int, own: Rights) -> Rights:
        file = os.stat(f"/proc/{thread}").st_ino if own.capabilities else 0
        known = self._known.get(thread)
        if known is None or known.file != file:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[thread] = Rights(thread, file)
            known.like_ours = known.same(own)
        return known

    def _become(self, rights: Rights, capabilities: int) -> None:
        """Groups first: changing them takes a capability."""
        if rights.groups != os.getgroups():
            os.setgroups(rights.groups)
        kernel.use_identity(rights.user, rights.group)
        kernel.use_capabilities(capabilities)


class JudgedLine:
    """What the judges of one line share: its policy, where it may write, what was there before, and who is calling.

    `roots` are the folders in which files are protected, `hidden` the secrets in them,
    `view` the files of which it sees a part, where its view of the machine is limited.
    """

    def __init__(
        self, policy: Policy, room: WritableDirs, hidden: Iterable[str], view: dict[str, tuple[str, bytes]] | None
    ) -> None:
        everywhere = room.projects is None
        self.policy: Policy = policy
        self.places: WritablePlaces | None = None if everywhere else WritablePlaces([*room.granted, *DEVICES])
        self.others: OutsideResources = OutsideResources()
        self.reporter: Reporter = Reporter(policy)
        self.saw: Callable[[str, str], None] = self.reporter.saw
        self.roots: tuple[str, ...] = tuple(room.projects or ())
        self.hidden: tuple[str, ...] = tuple(hidden)
        self.secrets: dict[tuple[int, int], int] = {}
        """The files that are hidden, by what they are, with when they were made: numbers are used again."""
        self.view: dict[str, tuple[str, bytes]] | None = view
        self.callers: Callers = Callers()
        self.memory: kernel.Memory = kernel.Memory()


class SocketCopy:
    """A copy of a line's socket, which `with` closes."""

    def __init__(self, fd: int) -> None:
        self.fd: int = fd
        try:
            self.socket: _socket.socket = _socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            raise
        self._flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        self.blocking: bool = not self._flags & os.O_NONBLOCK

    def connect(self, address: bytes) -> int:
        """Connect without waiting; 0 or the error."""
        if self.blocking:
            fcntl.fcntl(self.fd, fcntl.F_SETFL, self._flags | os.O_NONBLOCK)
        try:
            return kernel.connect(self.fd, address)
        finally:
            if self.blocking:
                fcntl.fcntl(self.fd, fcntl.F_SETFL, self._flags)

    def bind(self, address: bytes) -> None:
        if kernel.bind(self.fd, address, len(address)):
            raise kernel.failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
