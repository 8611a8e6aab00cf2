"""What reaches processes that the line did not start."""

from __future__ import annotations

import os

from hookline.sandbox import outside, signals, syscalls
from hookline.sandbox.judged_line import CallMade, JudgedLine, Notice, number_in
from hookline.sandbox.outside import signed
from hookline.sandbox.reports import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.judged_line import Table


ESRCH, EAGAIN = 3, 11


class OtherProcesses:
    """What reaches other processes: signals, limits, shared memory."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line

    def table(self) -> Table:
        """The calls that reach another process."""
        table: Table = dict.fromkeys((*syscalls.SCHEDULING, *syscalls.OWNED_GROUPS), self._process)
        table |= dict.fromkeys(syscalls.FORKS, self._fork)
        return table | dict.fromkeys(syscalls.SIGNALS, self._signal) | dict.fromkeys(syscalls.IPC, self._segment)

    def _segment(self, name: str, notice: Notice) -> Refusal | None:
        if self._line.places is None or not self._line.others.own_segment(name, notice[6:]):
            return None
        what = "to change System V memory, semaphores or queues"
        return Refusal(what, self._line.policy.write_guard, "they were there before this line")

    def _fork(self, name: str, notice: Notice) -> Refusal | None:
        """A new process, where they are counted; a new namespace, always."""
        guard, most = self._line.policy.write_guard, self._line.policy.limits.get("processes")
        if name == "clone" and notice[6] & syscalls.NAMESPACES:
            return Refusal(syscalls.REFUSED[name], guard, "a confined line may not do this")
        if most is not None and len(signals.descendants(os.getpid())) >= most:
            raise BlockingIOError(EAGAIN, os.strerror(EAGAIN))
        return None

    def _process(self, name: str, notice: Notice) -> Refusal | None:
        """What changes a process, or its group: only those that the line has started are its to change."""
        target = outside.target(name, notice[6:], notice[1])
        if target is None or (target != -1 and _descends(abs(target), os.getpid())):
            return None
        return self._refused("to change", target)

    def _signal(self, name: str, notice: Notice) -> Refusal | None:
        """Landlock keeps signals inside from Linux 6.12 on; before, those to others than the caller are sent here.

        Every process that a group or `-1` means gets it which the line has started, and no other one.
        """
        thread, arguments = notice[1], notice[6:]
        caller = number_in(f"/proc/{thread}/status", "Tgid:", thread)
        target, number = signed(arguments[0]), arguments[syscalls.SIGNAL_AT.get(name, 1)] & 0xFFFFFFFF
        if name == "pidfd_send_signal":
            target = number_in(f"/proc/{thread}/fdinfo/{target}", "Pid:", -1)
        if target == caller or (name == "tkill" and number_in(f"/proc/{target}/status", "Tgid:", 0) == caller):
            return None
        if target > 0 and not _process_of(target):
            raise ProcessLookupError(ESRCH, os.strerror(ESRCH))
        line = signals.descendants(os.getpid())
        group = os.getpgid(thread) if target == 0 else -target
        meant = [target] if target > 0 else [pid for pid in line if target == -1 or _group(pid) == group]
        meant = [pid for pid in meant if _process_of(pid) in line and (target != -1 or pid != caller)]
        if not meant:
            return self._refused("a signal to", target)
        for pid in meant:
            signals.send(pid, number)
        raise CallMade

    def _refused(self, what: str, target: int) -> Refusal:
        whom = "every process" if target == -1 else f"process {abs(target)}"
        return Refusal(f"{what} {whom}", self._line.policy.write_guard, "this line did not start it")


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process, or the group it leads, comes from another one, and is not that one itself."""
    while pid > 1:
        pid = int(signals.parent(str(pid)) or 0)
        if pid == ancestor:
            return True
    return False


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _process_of(thread: int) -> int:
    try:
        return number_in(f"/proc/{thread}/status", "Tgid:", 0)
    except OSError:
        return 0
