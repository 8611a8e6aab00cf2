"""The supervisor: answers every call that the filter hands over, until the last process of the line has ended."""

from __future__ import annotations

import os
import struct

from hookline.confine import kernel, syscalls
from hookline.confine.places import WritablePlaces, place_of, real
from hookline.confine.policy import Policy
from hookline.confine.programs import Library
from hookline.confine.reports import Refusal, Reporter, quiet
from hookline.confine.sockets import Sockets
from hookline.confine.starts import Start, StartJudge, pushes, quoted

EPERM, EACCES, EINVAL, ESRCH = 1, 13, 22, 3
_MOST_WORDS = 1_000_000

Notice = tuple[int, ...]


class Supervisor:
    """One line's judge: the policy, and what the kernel says of each call."""

    def __init__(self, policy: Policy, places: WritablePlaces | None, reporter: Reporter) -> None:
        self._policy, self._places, self._reporter = policy, places, reporter
        self._memory = kernel.Memory()
        self._library = Library(kernel.machine())
        self._judge = StartJudge(list(policy.block), self._library)
        self._sockets = Sockets(policy, places)
        column = syscalls.MACHINES[kernel.machine()][1]
        self._names = {numbers[column]: name for name, numbers in syscalls.NUMBERS.items()}

    def answer(self, listener: int, notice: Notice) -> None:
        """Judge one notification and respond; a call that cannot be judged fails."""
        name = self._names.get(notice[3], "")
        try:
            refusal = self._judged(name, notice)
        except OSError as error:
            kernel.respond(listener, notice[0], error.errno or EACCES)
            return
        if not kernel.still_waiting(listener, notice[0]):
            return
        if refusal is not None:
            self._reporter.say(refusal)
        kernel.respond(listener, notice[0], _error_of(name) if refusal is not None else 0)

    def _judged(self, name: str, notice: Notice) -> Refusal | None:
        if name in ("execve", "execveat"):
            return self._start(name, notice)
        if name in syscalls.REFUSED:
            return Refusal(syscalls.REFUSED[name], self._policy.write_guard, "a confined line may not do this")
        if name == "connect":
            return self._connect(notice)
        if name == "socket":
            return Refusal("the network", "--no-network", "this line runs without one")
        if name in syscalls.SIGNALS:
            return self._signal(name, notice)
        return self._change(name, notice)

    # -- programs ------------------------------------------------------------------------------------------------

    def _start(self, name: str, notice: Notice) -> Refusal | None:
        thread, arguments = notice[1], notice[6:]
        at = 0 if name == "execve" else 1
        folder = syscalls.AT_FDCWD if name == "execve" else _signed(arguments[0])
        given = os.fsdecode(self._memory.text(thread, arguments[at]))
        argv = [os.fsdecode(word) for word in self._memory.texts(thread, arguments[at + 1], _MOST_WORDS)]
        variables = self._variables(thread, arguments[at + 2]) if pushes(given, argv) else ()
        cwd = real(thread, syscalls.AT_FDCWD, "")
        with place_of(thread, folder, given) as place:
            start = Start(given, place.path, argv, cwd, thread, opened=place.opened, variables=variables)
            return self._blocked(start)

    def _blocked(self, start: Start) -> Refusal | None:
        file, guard = self._library.look(start.opened), self._policy.block_guard
        if file is not None and file.foreign:
            return Refusal(f"`{start.line}`", guard, "programs of another architecture cannot be confined")
        pattern = self._judge.blocks(start)
        return None if pattern is None else Refusal(f"`{start.line}`", guard, f"the pattern `{pattern}`")

    def _variables(self, thread: int, address: int) -> tuple[str, ...]:
        return tuple(os.fsdecode(pair) for pair in self._memory.texts(thread, address, _MOST_WORDS))

    # -- files ---------------------------------------------------------------------------------------------------

    def _change(self, name: str, notice: Notice) -> Refusal | None:
        if self._places is None:
            return None
        thread, arguments = notice[1], notice[6:]
        call = syscalls.WRITES.get(name) or syscalls.METADATA[name]
        flags = arguments[call.flags] if call.flags >= 0 else 0
        follow = call.follow and not flags & syscalls.AT_NO_FOLLOW
        for position, (folder, path) in enumerate(call.pairs):
            at = syscalls.AT_FDCWD if folder < 0 else _signed(arguments[folder])
            text = os.fsdecode(self._memory.text(thread, arguments[path])) if path >= 0 and arguments[path] else ""
            if not text and path >= 0 and folder < 0:
                return None  # the kernel answers an empty path itself
            place = real(thread, at, text, follow=follow)
            if self._places.hold(place):
                continue
            return None if self._fails_anyway(name, notice, position, place) else self._outside(name, place)
        return None

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
            flags: int = struct.unpack("Q", self._memory.read(notice[1], notice[6 + 2], 8))[0]
            return flags
        at = syscalls.OPEN_FLAGS.get(name)
        return None if at is None else notice[6 + at]

    def _outside(self, name: str, place: str) -> Refusal:
        what = "change" if name in syscalls.METADATA else "write"
        folders = ", ".join(f"`{folder}`" for folder in self._policy.write or ())
        reason = f"it is outside {folders}" if folders else "no folder may be written to"
        guard, advice = self._policy.write_guard, self._advice(place)
        return Refusal(f"to {what} `{place}`", guard, reason, advice, quiet=quiet(place))

    def _advice(self, place: str) -> str:
        folder = quoted(worth_allowing(place))
        flag = "--write" if self._policy.write_guard == "--write" else "--also"
        return f"to allow it, add `{flag} {folder}`"

    # -- other processes -----------------------------------------------------------------------------------------

    def _connect(self, notice: Notice) -> Refusal | None:
        thread, address, length = notice[1], notice[6 + 1], notice[6 + 2]
        data = self._memory.read(thread, address, min(length, 110, 4096 - address % 4096)) if length else b""
        return self._sockets.refuse(thread, data)

    def _signal(self, name: str, notice: Notice) -> Refusal | None:
        target = _signed(notice[6])
        if name == "pidfd_send_signal":
            target = _pid_behind(notice[1], target)
        if target == 0 or (target != -1 and _descends(abs(target), os.getpid())):
            return None
        whom = "every process" if target == -1 else f"process {abs(target)}"
        return Refusal(f"a signal to {whom}", self._policy.write_guard, "this line did not start it")


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


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _pid_behind(thread: int, descriptor: int) -> int:
    with open(f"/proc/{thread}/fdinfo/{descriptor}") as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("Pid:")), -1)


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process, or the group it leads, comes from another one."""
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False
