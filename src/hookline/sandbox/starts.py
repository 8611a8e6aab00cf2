"""Programs that start: each is judged on its real words, and once more before its own code runs."""

from __future__ import annotations

import os

from hookline.sandbox import kernel, signals, syscalls
from hookline.sandbox.exec_policy import Approvals, Start, StartJudge, pushes
from hookline.sandbox.judged_line import JudgedLine, Notice
from hookline.sandbox.outside import signed
from hookline.sandbox.path_access import real, resolve_in_process
from hookline.sandbox.programs import Library
from hookline.sandbox.reports import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.judged_line import Table

_MOST_WORDS = 1_000_000


class ProgramStarts:
    """Programs that start."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line
        self._library = Library(kernel.machine())
        self._judge = StartJudge(list(line.policy.block), self._library)
        self._approvals = Approvals(self._library)

    def table(self) -> Table:
        """The calls that start a program."""
        return {"execve": self._start, "execveat": self._start, "set_tid_address": self._started}

    def look_around(self) -> None:
        """See where programs are that patterns name."""
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
            if refusal is None:
                self._line.saw("program", start.line)
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
