"""What reaches processes that the line did not start."""

from __future__ import annotations

import os

from hookline.sandbox import outside, signals, syscalls
from hookline.sandbox.judged_line import JudgedLine, Notice, number_in
from hookline.sandbox.outside import signed
from hookline.sandbox.reports import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.judged_line import Table


class OtherProcesses:
    """What reaches other processes: signals, limits, shared memory."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line

    def table(self) -> Table:
        """The calls that reach another process."""
        table: Table = dict.fromkeys((*syscalls.SIGNALS, *syscalls.SCHEDULING, *syscalls.OWNED_GROUPS), self._process)
        return table | dict.fromkeys(syscalls.IPC, self._segment)

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
            return outside.target(name, notice[6:], notice[1])
        target = signed(notice[6])
        behind = name == "pidfd_send_signal"
        return number_in(f"/proc/{notice[1]}/fdinfo/{target}", "Pid:", -1) if behind else target


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process, or the group it leads, comes from another one."""
    while pid > 1:
        if pid == ancestor:
            return True
        pid = int(signals.parent(str(pid)) or 0)
    return False
