"""What reaches processes that the line did not start, and what its own may use together."""

import errno
import os
import time
from contextlib import suppress

from hookline.sandbox import kernel, signals, syscalls
from hookline.sandbox.judged_line import CallMade, JudgedLine, Refusal, Syscall, Table

_CPU, _DATA = 0, 2
"""RLIMIT_CPU and RLIMIT_DATA: what one process alone may use is held by the kernel, between two looks of ours."""
_MOMENT = 0.1
_TIMES = slice(11, 15)
"""Where a process's facts have its processor time, and that of its children that have ended."""
_OWN = (b"RssAnon", b"RssShmem")


class OtherProcesses:
    """What reaches other processes: signals, limits, shared memory."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line

    def table(self) -> Table:
        table: Table = dict.fromkeys((*syscalls.SCHEDULING, *syscalls.OWNED_GROUPS), self._process)
        table |= dict.fromkeys(syscalls.FORKS, self._fork) | dict.fromkeys(syscalls.QUEUES, self._queue)
        return table | dict.fromkeys(syscalls.SIGNALS, self._signal) | dict.fromkeys(syscalls.IPC, self._segment)

    def _segment(self, call: Syscall) -> None:
        if self._line.places is not None and self._line.others.own_segment(call.name, call.arguments):
            raise Refusal("to change System V memory, semaphores or queues", "they were there before this line")

    def _queue(self, _call: Syscall) -> None:
        if self._line.places is not None:
            raise Refusal("a message queue", "programs outside may use it")

    def _fork(self, call: Syscall) -> None:
        """A new process, where they are counted; a new namespace, always."""
        if call.name == "clone" and call.arguments[0] & syscalls.NAMESPACES:
            raise Refusal(syscalls.REFUSED[call.name], "a confined line may not do this")
        most = self._line.policy.limits.get("processes")
        if most is not None and len(signals.descendants(os.getpid())) >= most:
            raise kernel.error(errno.EAGAIN)

    def _process(self, call: Syscall) -> None:
        """What changes a process, or its group: only those that the line has started are its to change."""
        target = _target(call)
        if target == -1 or (target is not None and not descends(abs(target), os.getpid())):
            raise _not_started_here("to change", target)

    def _signal(self, call: Syscall) -> None:
        """Landlock keeps signals inside from Linux 6.12 on; before, those to others than the caller are sent here.

        Every process that a group or `-1` means gets it which the line has started, and no other one.
        """
        name, thread, arguments = call.name, call.thread, call.arguments
        caller = kernel.process_of(thread)
        target, number = call.number(0), arguments[syscalls.SIGNAL_AT.get(name, 1)] & 0xFFFFFFFF
        if name == "pidfd_send_signal":
            target = int(kernel.facts(f"/proc/{thread}/fdinfo/{target}").get(b"Pid", b"0"))
            if target <= 0:  # it has ended
                raise kernel.error(errno.ESRCH)
        elif target == caller or (name == "tkill" and _process_of(target) == caller):
            return
        if target > 0 and not _process_of(target):
            raise kernel.error(errno.ESRCH)
        line = signals.descendants(os.getpid())
        group = os.getpgid(thread) if target == 0 else -target
        meant = [target] if target > 0 else [pid for pid in line if target == -1 or _group(pid) == group]
        meant = [pid for pid in meant if _process_of(pid) in line and (target != -1 or pid != caller)]
        if not meant:
            raise _not_started_here("a signal to", target)
        for pid in meant:
            signals.send(pid, number)
        raise CallMade


def _not_started_here(what: str, target: int) -> Refusal:
    whom = "every process" if target == -1 else f"process {abs(target)}"
    return Refusal(f"{what} {whom}", "this line did not start it")


def descends(pid: int, ancestor: int) -> bool:
    """Whether a process, or the group it leads, comes from another one, and is not that one itself."""
    while pid > 1 and pid not in signals.apart:
        pid = signals.parent(pid)
        if pid == ancestor:
            return True
    return False


def _group(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


def _process_of(thread: int) -> int:
    with suppress(OSError):
        return kernel.process_of(thread)
    return 0


# -- limits -----------------------------------------------------------------------------------------------------------


class UsageLimits:
    """The limits of one line, which begins now."""

    def __init__(self, limits: dict[str, float], command: int) -> None:
        self._limits, self._begun = limits, time.monotonic()
        self._adds_up, self._next = "cpu" in limits or "memory" in limits, self._begun
        for name, resource in (("cpu", _CPU), ("memory", _DATA)):
            if name in limits:
                kernel.limit(command, resource, *[max(1, int(limits[name]))] * 2)

    @property
    def patience(self) -> int | None:
        """Milliseconds until the next look; None for no look at all."""
        due = [self._begun + self._limits["seconds"]] if "seconds" in self._limits else []
        due += [self._next] if self._adds_up else []
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1) if due else None

    def exceeded(self) -> str:
        """Which limit the line has reached, with its flag; empty if none."""
        now = time.monotonic()
        used = {"seconds": now - self._begun}
        if self._adds_up and now >= self._next:
            used |= _usage()
            self._next = time.monotonic() + _MOMENT
        reached = (name for name, most in self._limits.items() if used.get(name, 0) >= most)
        return next((f"{_WHAT[name].format(self._limits[name])} (--{name})" for name in reached), "")


def _usage() -> dict[str, float]:
    ended = os.times()
    ticks = kilobytes = 0
    for pid in signals.descendants(os.getpid()):
        ticks += sum(map(int, signals.facts(pid)[_TIMES]))
        with suppress(OSError):  # it has ended
            status = kernel.facts(f"/proc/{pid}/status")
            kilobytes += sum(int(status.get(name, b"0 kB").split()[0]) for name in _OWN)
    seconds = ticks / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system
    return {"cpu": seconds, "memory": kilobytes << 10}


_WHAT = {
    "cpu": "it has used {:g} seconds of processor time",
    "memory": "it has used {:.0f} bytes of memory",
    "seconds": "it has taken {:g} seconds",
}


def _target(call: Syscall) -> int | None:
    """The process whose limits or scheduling a call changes, negative for a group; None if it changes none.

    -1 stands for everything of a user.
    """
    name, arguments, thread = call.name, call.arguments, call.thread
    if name == "prlimit64" and not arguments[syscalls.NEW_LIMIT]:
        return None
    if name not in syscalls.OWNED_GROUPS:
        return call.number(0) or thread
    kind, who = arguments[0] & 0xFFFFFFFF, call.number(1)
    first = syscalls.OWNED_GROUPS[name]
    if kind == first + syscalls.BY_USER:
        return -1
    return (who or thread) if kind == first else -(who or os.getpgid(thread))
