"""The supervisor: answers every call that the filter hands over, until the last process of the line has ended."""

from __future__ import annotations

import os
import struct

from hookline.sandbox import kernel, signals, syscalls
from hookline.sandbox import outside as others
from hookline.sandbox.exec_policy import Approvals, Start, StartJudge, pushes, quoted
from hookline.sandbox.outside import OutsideResources, signed
from hookline.sandbox.path_access import OpenedPath, WritablePlaces, name_of, real, resolve_in_process
from hookline.sandbox.policy import Policy
from hookline.sandbox.programs import Library
from hookline.sandbox.reports import Refusal, Reporter, quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hookline.sandbox.metadata import Actor
    from hookline.sandbox.sockets import Sockets

    Table = dict[str, Callable[[str, "Notice"], Refusal | None]]

ENOENT, EBADF, EACCES, EPERM, EFAULT, EINVAL = 2, 9, 13, 1, 14, 22
_MOST_WORDS = 1_000_000

Notice = tuple[int, ...]


class CallMade(Exception):
    """The supervisor has made a call itself: the caller gets the answer, and the kernel does nothing more."""


class JudgedLine:
    """What the judges of one line share: its policy, where it may write, what was there before, and who is calling."""

    def __init__(self, policy: Policy, places: WritablePlaces | None, others: OutsideResources) -> None:
        self.policy: Policy = policy
        self.places: WritablePlaces | None = places
        self.others: OutsideResources = others
        self.memory: kernel.Memory = kernel.Memory()
        self.listener: int = -1

    def waits(self, notice: Notice) -> bool:
        """Whether a call is still waited for: what was read of its process was that process's."""
        return kernel.still_waiting(self.listener, notice[0])


class Supervisor:
    """One line's judge: the policy, and what the kernel says of each call."""

    def __init__(
        self,
        policy: Policy,
        places: WritablePlaces | None,
        others: OutsideResources,
        reporter: Reporter,
        temporary: str = "",
    ) -> None:
        self._line, self._reporter = JudgedLine(policy, places, others), reporter
        self._starts, self._processes = _Starts(self._line), _OtherProcesses(self._line, temporary)
        column = syscalls.MACHINES[kernel.machine()][1]
        self._names = {numbers[column]: name for name, numbers in syscalls.NUMBERS.items()}
        table: Table = dict.fromkeys(syscalls.REFUSED, self._never)
        self._judges = table | self._starts.table() | _Files(self._line).table() | self._processes.table()

    def look_around(self) -> None:
        """See where folders and programs are, while nothing of the line has had an effect on them."""
        if self._line.places is not None:
            self._line.places.look()
        self._starts.look_around()
        self._processes.look_around()

    def answer(self, listener: int, notice: Notice) -> None:
        """Judge one notification and respond; a call that cannot be judged fails."""
        name = self._names.get(notice[3], "")
        self._line.listener = listener
        try:
            refusal = self.judge(name, notice)
        except CallMade:
            kernel.respond(listener, notice[0], 0)
            return
        except OSError as error:
            kernel.respond(listener, notice[0], error.errno or EACCES)
            return
        if not self._line.waits(notice):
            return
        if refusal is not None:
            self._reporter.say(refusal)
        kernel.respond(listener, notice[0], None if refusal is None else _error_of(name))

    def judge(self, name: str, notice: Notice) -> Refusal | None:
        """Why a call may not be made, if it may not; `CallMade` if it has been, OSError if it fails."""
        return self._judges[name](name, notice)

    def _never(self, name: str, _notice: Notice) -> Refusal | None:
        return Refusal(syscalls.REFUSED[name], self._line.policy.write_guard, "a confined line may not do this")


class _Starts:
    """Programs that start."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line
        self._library = Library(kernel.machine())
        self._judge = StartJudge(list(line.policy.block), self._library)
        self._approvals = Approvals(self._library)

    def table(self) -> Table:
        return {"execve": self._start, "execveat": self._start, "set_tid_address": self._started}

    def look_around(self) -> None:
        self._judge.look_around()

    def _start(self, name: str, notice: Notice) -> Refusal | None:
        thread, arguments = notice[1], notice[6:]
        at = 0 if name == "execve" else 1
        folder = syscalls.AT_FDCWD if name == "execve" else signed(arguments[0])
        given = os.fsdecode(self._line.memory.text(thread, arguments[at]))
        argv = [os.fsdecode(word) for word in self._line.memory.texts(thread, arguments[at + 1], _MOST_WORDS)]
        pairs = self._line.memory.texts(thread, arguments[at + 2], _MOST_WORDS) if pushes(given, argv) else ()
        variables = tuple(os.fsdecode(pair) for pair in pairs)
        cwd = real(thread, syscalls.AT_FDCWD, "")
        with resolve_in_process(thread, folder, given) as place:
            start = Start(given, place.path, argv, cwd, thread, opened=place.opened, variables=variables)
            refusal = self._blocked(start)
            if refusal is None and self._line.policy.block:
                self._approvals.note(start)
            return refusal

    def _started(self, _name: str, notice: Notice) -> Refusal | None:
        """Look again at a program that has just started, since its words may have been changed after they were judged.

        Its memory is its own now, and none of its code has run: the loader makes this call. What should not have
        started is ended here.
        """
        thread = notice[1]
        for start in self._approvals.surprises(thread):
            refusal = self._blocked(start)
            if refusal is not None and self._line.waits(notice):
                os.kill(thread, signals.KILL)
                return refusal
        return None

    def _blocked(self, start: Start) -> Refusal | None:
        file, guard = self._library.look(start.opened), self._line.policy.block_guard
        if file is not None and file.foreign:
            return Refusal(f"`{start.line}`", guard, "programs of another architecture cannot be confined")
        pattern = self._judge.blocks(start)
        return None if pattern is None else Refusal(f"`{start.line}`", guard, f"the pattern `{pattern}`")


class _Files:
    """Files and folders that are written to or changed."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line
        self._actor: Actor | None = None

    def table(self) -> Table:
        table: Table = dict.fromkeys(syscalls.WRITES, self._write)
        return table | dict.fromkeys(syscalls.METADATA, self._change)

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
                raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
            if not self._line.places.hold(file.path) or self._line.others.own(file.path):
                return self._outside(name, file.path)
            if self._line.waits(notice):
                self._make(name, thread, arguments, file.fd)
        raise CallMade

    def _changed(self, name: str, notice: Notice) -> OpenedPath:
        """The file that a call would change."""
        thread, arguments = notice[1], notice[6:]
        call = syscalls.METADATA[name]
        [(folder, path)] = call.pairs
        at = syscalls.AT_FDCWD if folder < 0 else signed(arguments[folder])
        if name == "ioctl":
            fd = kernel.take_descriptor(_number_in(f"/proc/{thread}/status", "Tgid:", thread), at)
            return OpenedPath(name_of(fd), fd)
        flags = arguments[call.flags] & 0xFFFFFFFF if call.flags >= 0 else 0
        if flags & ~(syscalls.AT_NO_FOLLOW | syscalls.AT_EMPTY_PATH):
            raise OSError(EINVAL, os.strerror(EINVAL))
        text = self._path(thread, arguments[path], flags, name) if path >= 0 else ""
        if path < 0 and at < 0:
            raise OSError(EBADF, os.strerror(EBADF))
        return resolve_in_process(thread, at, text, follow=call.follow and not flags & syscalls.AT_NO_FOLLOW)

    def _path(self, thread: int, address: int, flags: int, name: str) -> str:
        """The path that a call is given; where it may be left out, the descriptor is meant."""
        if not address:
            if name in syscalls.MAY_LEAVE_OUT_PATH:
                return ""
            raise OSError(EFAULT, os.strerror(EFAULT))
        text = os.fsdecode(self._line.memory.text(thread, address))
        if not text and not flags & syscalls.AT_EMPTY_PATH:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return text

    def _make(self, name: str, thread: int, arguments: tuple[int, ...], fd: int) -> None:
        from hookline.sandbox import metadata

        request = metadata.MetadataCall(self._line.memory, thread, arguments)
        self._actor = self._actor or metadata.Actor()
        self._actor.act(thread, lambda: metadata.CHANGES[name](request, fd))

    def _fails_anyway(self, name: str, notice: Notice, position: int, place: str) -> bool:
        """Whether the kernel answers a call itself: what is to be made is there, or what is to be changed is not."""
        exists = os.path.lexists(place)
        flags = self._open_flags(name, notice)
        if flags is not None:
            return not flags & syscalls.O_WRITES or _open_fails(flags, exists=exists)
        if name in syscalls.MAKES or (name in ("link", "linkat") and position):
            return exists
        return not exists and not position

    def _open_flags(self, name: str, notice: Notice) -> int | None:
        """What a file is opened for; the flags of `openat2` are in memory, where the filter cannot look."""
        if name == "openat2":
            flags: int = struct.unpack("Q", self._line.memory.read(notice[1], notice[6 + 2], 8))[0]
            return flags
        at = syscalls.OPEN_FLAGS.get(name)
        return None if at is None else notice[6 + at]

    def _outside(self, name: str, place: str) -> Refusal:
        what = "change" if name in syscalls.METADATA else "write"
        folders = ", ".join(f"`{folder}`" for folder in self._line.policy.write or ())
        reason = f"it is outside {folders}" if folders else "no folder may be written to"
        guard = self._line.policy.write_guard
        flag = "--write" if guard == "--write" else "--also"
        advice = f"to allow it, add `{flag} {quoted(worth_allowing(place))}`"
        return Refusal(f"to {what} `{place}`", guard, reason, advice, quiet=quiet(place))


class _OtherProcesses:
    """What reaches other processes: sockets, signals, shared memory."""

    def __init__(self, line: JudgedLine, temporary: str) -> None:
        self._line, self._temporary = line, temporary
        self._sockets: Sockets | None = None

    def table(self) -> Table:
        table: Table = dict.fromkeys((*syscalls.SIGNALS, *syscalls.SCHEDULING, *syscalls.OWNED_GROUPS), self._process)
        table |= dict.fromkeys(syscalls.IPC, self._segment) | dict.fromkeys(syscalls.SENDS, self._send)
        return table | {"connect": self._connect, "socket": self._socket}

    def look_around(self) -> Sockets:
        """Find the sockets that may be connected to."""
        from hookline.sandbox.sockets import Sockets  # not needed to let the command go

        self._sockets = self._sockets or Sockets(self._line.policy, self._line.places, self._temporary)
        return self._sockets

    def _connect(self, _name: str, notice: Notice) -> Refusal | None:
        return self._address(notice[1], notice[6 + 1], notice[6 + 2])

    def _address(self, thread: int, address: int, length: int) -> Refusal | None:
        data = self._line.memory.block(thread, address, min(length, 110)) if address and length else b""
        return self.look_around().refuse(thread, data)

    def _send(self, name: str, notice: Notice) -> Refusal | None:
        thread, arguments = notice[1], notice[6:]
        if name == "sendto":
            return self._address(thread, arguments[4], arguments[5])
        count = min(arguments[2], syscalls.MOST_MESSAGES) if name == "sendmmsg" else 1
        for index in range(count):
            head = self._line.memory.block(thread, arguments[1] + index * syscalls.MESSAGE, 12)
            refusal = self._address(thread, *struct.unpack("QI", head))
            if refusal is not None:
                return refusal
        return None

    def _socket(self, _name: str, _notice: Notice) -> Refusal | None:
        return Refusal("the network", "--no-network", "this line runs without one")

    def _segment(self, name: str, notice: Notice) -> Refusal | None:
        if self._line.places is None or not self._line.others.own_segment(name, notice[6:]):
            return None
        what = "to change System V memory, semaphores or queues"
        return Refusal(what, self._line.policy.write_guard, "they were there before this line")

    def _process(self, name: str, notice: Notice) -> Refusal | None:
        target = self._target(name, notice)
        if target is None or target == 0 or (target != -1 and _descends(abs(target), os.getpid())):
            return None
        whom = "every process" if target == -1 else f"process {abs(target)}"
        what = f"a signal to {whom}" if name in syscalls.SIGNALS else f"to change {whom}"
        return Refusal(what, self._line.policy.write_guard, "this line did not start it")

    def _target(self, name: str, notice: Notice) -> int | None:
        if name not in syscalls.SIGNALS:
            return others.target(name, notice[6:], notice[1])
        target = signed(notice[6])
        behind = name == "pidfd_send_signal"
        return _number_in(f"/proc/{notice[1]}/fdinfo/{target}", "Pid:", -1) if behind else target


def _open_fails(flags: int, *, exists: bool) -> bool:
    if exists:
        return flags & syscalls.O_EXCLUSIVE == syscalls.O_EXCLUSIVE
    return not flags & syscalls.O_CREATE


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


def _error_of(name: str) -> int:
    return EACCES if name in syscalls.WRITES or name in ("execve", "execveat", "socket", "connect") else EPERM


def _number_in(path: str, key: str, default: int) -> int:
    with open(path) as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith(key)), default)


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process, or the group it leads, comes from another one."""
    while pid > 1:
        if pid == ancestor:
            return True
        pid = int(signals.parent(str(pid)) or 0)
    return False
