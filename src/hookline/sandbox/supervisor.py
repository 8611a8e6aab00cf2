"""The supervisor: answers every call that the filter hands over, until the last process of the line has ended."""

from __future__ import annotations

import os
from contextlib import suppress

from hookline.sandbox import kernel, signals, syscalls
from hookline.sandbox.judged_line import EACCES, EPERM, CallAnswered, CallMade, JudgedLine, Notice
from hookline.sandbox.reports import Refusal, Reporter
from hookline.sandbox.starts import ProgramStarts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.egress import Egress
    from hookline.sandbox.judged_line import Table
    from hookline.sandbox.protected import ProtectedPaths, Snapshot

_COLUMN = syscalls.MACHINES.get(kernel.machine(), (0, 0))[1]
_NAMES = {numbers[_COLUMN]: name for name, numbers in syscalls.NUMBERS.items()}
"""The calls of this machine, by number."""


class Supervisor:
    """One line's judge: the policy, and what the kernel says of each call."""

    def __init__(self, line: JudgedLine, reporter: Reporter, egress: Egress | None = None) -> None:
        self._line, self._reporter = line, reporter
        self._starts = ProgramStarts(line)
        self._egress = egress
        self._protected: ProtectedPaths | None = None
        self._snapshot: Snapshot | None = None
        self._judges: Table = self._starts.table()

    def look_around(self) -> None:
        """See where folders and programs are, and read the other judges, while nothing of the line has had an effect.

        The first call of a line is the start of its program: nothing more is needed to let that go.
        """
        from hookline.sandbox.files import FileChanges
        from hookline.sandbox.opens import OpenCalls
        from hookline.sandbox.processes import OtherProcesses
        from hookline.sandbox.protected import ProtectedPaths, Snapshot
        from hookline.sandbox.sockets import Sockets
        from hookline.sandbox.writes import NameCalls

        if self._line.places is not None:
            self._line.places.look()
        self._starts.look_around()
        self._judges |= dict.fromkeys(syscalls.REFUSED, self._never)
        for judge in (FileChanges, OtherProcesses):
            self._judges |= judge(self._line).table()
        self._judges |= Sockets(self._line, self._egress).table()
        self._protected = ProtectedPaths.of(self._line.policy, self._line.roots)
        if not kernel.waits_killable():
            self._snapshot = Snapshot(self._protected.places())
        else:
            for maker in (NameCalls, OpenCalls):
                self._judges |= maker(self._line, self._protected).table()

    def finish(self) -> None:
        """Take back what could not be judged before the line had ended, and say so."""
        guard = self._line.policy.write_guard
        for path in self._protected.astray() if self._protected else ():
            with suppress(OSError):
                os.unlink(path)
            reason = "it leads git to settings that are not protected, and was removed"
            self._reporter.say(Refusal(f"to leave `{path}`", guard, reason))
        for path in self._snapshot.put_back() if self._snapshot else ():
            reason = "it runs later; it was changed, and put back when the line had ended"
            self._reporter.say(Refusal(f"to leave `{path}`", guard, reason, f"to allow it, add `--unprotect {path}`"))

    def answer(self, listener: int, notice: Notice) -> None:
        """Judge one notification and respond; a call that cannot be judged fails."""
        name = _NAMES.get(notice[3], "")
        self._line.listener = listener
        try:
            refusal = self.judge(name, notice)
        except CallMade as made:
            kernel.respond(listener, notice[0], 0, made.value)
            return
        except CallAnswered:
            return
        except OSError as error:
            kernel.respond(listener, notice[0], error.errno or EACCES)
            return
        if not self._line.waits(notice):
            return
        if refusal is not None:
            self._reporter.say(refusal)
            if name in ("arch_prctl", "set_tid_address"):  # by a program that has started
                signals.send(notice[1], signals.KILL)
        kernel.respond(listener, notice[0], None if refusal is None else _error_of(name))

    def judge(self, name: str, notice: Notice) -> Refusal | None:
        """Why a call may not be made, if it may not; `CallMade` if it has been, OSError if it fails."""
        if name not in self._judges:
            self.look_around()
        return self._judges[name](name, notice)

    def _never(self, name: str, _notice: Notice) -> Refusal | None:
        return Refusal(syscalls.REFUSED[name], self._line.policy.write_guard, "a confined line may not do this")


def _error_of(name: str) -> int:
    return EACCES if name in syscalls.WRITES or name in ("execve", "execveat", "socket", "connect", "bind") else EPERM
