"""Programs that start: each is judged on its real words, and once more before its own code runs."""

from __future__ import annotations

import os

from hookline.sandbox import kernel, signals, syscalls
from hookline.sandbox.exec_policy import Approvals, Start, StartJudge
from hookline.sandbox.judged_line import EPERM, JudgedLine, Notice, number_in
from hookline.sandbox.outside import signed
from hookline.sandbox.path_access import real, resolve_in_process
from hookline.sandbox.programs import Library
from hookline.sandbox.reports import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.judged_line import Table


class ProgramStarts:
    """Programs that start."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line
        self._library = Library(kernel.machine())
        self._judge = StartJudge(list(line.policy.block), self._library, line.places)
        self._approvals = Approvals(self._library)
        self._traced: set[tuple[int, str]] = set()

    def table(self) -> Table:
        """The calls that start a program."""
        started: Table = {name: self._started for name, _ in syscalls.STARTED.values()}
        return {"execve": self._start, "execveat": self._start, "ptrace": self._trace, **started}

    def look_around(self) -> None:
        """See where programs are that patterns name."""
        self._judge.look_around()

    def _start(self, name: str, notice: Notice) -> Refusal | None:
        thread, arguments = notice[1], notice[6:]
        self._line.callers.forget()  # a program may have other rights than the one before it
        at = 0 if name == "execve" else 1
        folder = syscalls.AT_FDCWD if name == "execve" else signed(arguments[0])
        given = os.fsdecode(self._line.memory.text(thread, arguments[at]))
        argv = self._texts(thread, arguments[at + 1])

        def variables() -> list[str]:
            return self._texts(thread, arguments[at + 2])

        cwd = real(thread, syscalls.AT_FDCWD, "")
        with resolve_in_process(thread, folder, given) as place:
            start = Start(given, place.path, argv, cwd, thread, opened=place.opened, variables=variables)
            refusal = self._blocked(start) or self._traced_later(start)
            if refusal is None and self._line.policy.block:
                self._approvals.note(start)
            if refusal is None:
                self._line.saw("program", start.line)
            return refusal

    def _texts(self, thread: int, address: int) -> list[str]:
        return [os.fsdecode(word) for word in self._line.memory.texts(thread, address)]

    def _started(self, _name: str, notice: Notice) -> Refusal | None:
        """Look again at a program that has just started, since its words may have been changed after they were judged.

        Its memory is its own now, and none of its code has run: its C library makes this call. What should not have
        started is ended here, and so is what cannot be looked at.
        """
        thread = notice[1]
        try:
            refusals = (self._blocked(start) for start in self._approvals.surprises(thread))
            return next((refusal for refusal in refusals if refusal is not None), None)
        except (OSError, ValueError) as error:
            reason = f"it cannot be looked at ({error})"
            return Refusal(f"program {thread}", self._line.policy.block_guard, reason)

    def _trace(self, _name: str, notice: Notice) -> Refusal | None:
        """A debugger can make a program do anything: those that patterns name are left alone, then and later."""
        target = signed(notice[6 + 1])
        process = number_in(f"/proc/{target}/status", "Tgid:", target)
        if self._approvals.awaits(process) or self._approvals.awaits(target):
            raise PermissionError(EPERM, os.strerror(EPERM))
        path = os.readlink(f"/proc/{process}/exe")
        pattern = self._judge.names(path, f"/proc/{process}/exe")
        if pattern is not None:
            return Refusal(f"to trace `{path}`", self._line.policy.block_guard, f"the pattern `{pattern}` names it")
        self._traced.add((process, signals.started(process)))
        return None

    def _blocked(self, start: Start) -> Refusal | None:
        file, guard = self._library.look(start.opened), self._line.policy.block_guard
        if file is not None and file.foreign:
            return Refusal(f"`{start.line}`", guard, "programs of another architecture cannot be confined")
        reason = self._judge.blocks(start)
        return None if reason is None else Refusal(f"`{start.line}`", guard, reason)

    def _traced_later(self, start: Start) -> Refusal | None:
        """Refuse what a pattern names where a debugger was let go that may not have attached yet."""
        process = number_in(f"/proc/{start.thread}/status", "Tgid:", start.thread) if self._traced else 0
        traced = (process, signals.started(process)) in self._traced
        if not traced or self._judge.names(start.path, start.opened) is None:
            return None
        return Refusal(f"`{start.line}`", self._line.policy.block_guard, "it is traced")
