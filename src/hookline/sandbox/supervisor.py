"""The supervisor: answers every call that the filter hands over, until the last process of the line has ended."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from hookline.sandbox import kernel, signals, syscalls
from hookline.sandbox.exec_policy import Approvals, Start, StartJudge
from hookline.sandbox.judged_line import CallAnswered, CallMade, JudgedLine, Refusal, Syscall, Table
from hookline.sandbox.path_access import real, resolve_in_process
from hookline.sandbox.programs import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.egress import Egress
    from hookline.sandbox.protected import ProtectedPaths, Snapshot


class ProgramStarts:
    """Programs that start."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line
        self._library = Library()
        self.judge: StartJudge = StartJudge(list(line.policy.block), self._library, line.places)
        self._approvals = Approvals(self._library)
        self._traced: set[tuple[int, str]] = set()

    def table(self) -> Table:
        started: Table = {name: self._started for name, _ in syscalls.STARTED.values()}
        return {"execve": self._start, "execveat": self._start, "ptrace": self._trace, **started}

    def foresee(self, paths: list[str], argv: list[str]) -> None:
        """Judge a program that is about to start, so that what this reads is at hand when it does; that one counts."""
        path = next((path for path in paths if os.path.exists(path)), "")
        with suppress(OSError, Refusal):  # such as a folder that has been removed
            if path:
                self._judge(Start(path, os.path.realpath(path), argv, os.getcwd(), os.getpid()))

    def _start(self, call: Syscall) -> None:
        self._line.callers.forget()  # a program may have other rights than the one before it
        at = 0 if call.name == "execve" else 1
        given, argv = call.text(at), _texts(call, at + 1)
        cwd = real(call.thread, syscalls.AT_FDCWD, "")
        with resolve_in_process(call.thread, call.folder(at - 1), given) as place:
            start = Start(given, place.path, argv, cwd, call.thread, opened=place.opened,
                          variables=lambda: _texts(call, at + 2))  # fmt: skip
            self._judge(start)
            self._judge_traced(start)
            if self._line.policy.block:
                self._approvals.note(start)
            self._line.saw("program", start.line)

    def _started(self, call: Syscall) -> None:
        """Look again at a program that has just started, since its words may have been changed after they were judged.

        Its memory is its own now, and none of its code has run: its C library makes this call. What should not have
        started is ended here, and so is what cannot be looked at.
        """
        try:
            for start in self._approvals.surprises(call.thread):
                self._judge(start)
        except (OSError, ValueError) as error:
            reason = f"it cannot be looked at ({error})"
            raise Refusal(f"program {call.thread}", reason, guard="block_guard") from None

    def _trace(self, call: Syscall) -> None:
        """A debugger can make a program do anything: those that patterns name are left alone, then and later."""
        target = call.number(1)
        process = kernel.process_of(target)
        if process in self._approvals.noted or target in self._approvals.noted:
            raise kernel.error(errno.EPERM)
        path = os.readlink(f"/proc/{process}/exe")
        pattern = self.judge.names(path, f"/proc/{process}/exe")
        if pattern is not None:
            raise Refusal(f"to trace `{path}`", f"the pattern `{pattern}` names it", guard="block_guard")
        self._traced.add((process, signals.started(process)))

    def _judge(self, start: Start) -> None:
        file = self._library.look(start.opened)
        foreign = "programs of another architecture cannot be confined" if file is not None and file.foreign else None
        if reason := foreign or self.judge.blocks(start):
            raise Refusal(f"`{start.line}`", reason, guard="block_guard")

    def _judge_traced(self, start: Start) -> None:
        """Refuse what a pattern names where a debugger was let go that may not have attached yet."""
        if self._traced:
            process = kernel.process_of(start.thread)
            traced = (process, signals.started(process)) in self._traced
            if traced and self.judge.names(start.path, start.opened) is not None:
                raise Refusal(f"`{start.line}`", "it is traced", guard="block_guard")


def _texts(call: Syscall, argument: int) -> list[str]:
    return [os.fsdecode(word) for word in call.memory.texts(call.thread, call.arguments[argument])]


_COLUMN = syscalls.MACHINES.get(kernel.MACHINE, (0, 0))[1]
_NAMES = {numbers[_COLUMN]: name for name, numbers in syscalls.NUMBERS.items()}
"""The calls of this machine, by number."""
_STARTED = {name for name, _ in syscalls.STARTED.values()}


class Supervisor:
    """One line's judge: the policy, and what the kernel says of each call."""

    def __init__(self, line: JudgedLine, egress: Egress | None = None) -> None:
        self._line = line
        self.starts: ProgramStarts = ProgramStarts(line)
        self._egress = egress
        self._protected: ProtectedPaths | None = None
        self._snapshot: Snapshot | None = None
        self._judges: Table = self.starts.table()
        self._calls = 0

    def starts_command(self, notice: tuple[int, ...]) -> bool:
        """Whether a call is part of the start of the line's own program: none of its code has run yet."""
        self._calls += 1
        return self._calls == 1 or (self._calls == 2 and _NAMES.get(notice[3]) in _STARTED)

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
        self.starts.judge.look_around()
        self._judges |= dict.fromkeys(syscalls.REFUSED, self._never)
        for judge in (FileChanges, OtherProcesses):
            self._judges |= judge(self._line).table()
        self._judges |= Sockets(self._line, self._egress).table()
        self._protected = ProtectedPaths(self._line.policy, self._line.roots)
        if not kernel.waits_killable():
            self._snapshot = Snapshot(self._protected.places())
        else:
            for maker in (NameCalls, OpenCalls):
                self._judges |= maker(self._line, self._protected).table()

    def finish(self) -> None:
        """Take back what could not be judged before the line had ended, and say so."""
        say = self._line.reporter.say
        for path in self._protected.astray() if self._protected else ():
            with suppress(OSError):
                os.unlink(path)
            say(Refusal(f"to leave `{path}`", "it leads git to settings that are not protected, and was removed"))
        for path in self._snapshot.put_back() if self._snapshot else ():
            reason = "it runs later; it was changed, and put back when the line had ended"
            say(Refusal(f"to leave `{path}`", reason, f"to allow it, add `--unprotect {path}`"))

    def answer(self, listener: int, notice: tuple[int, ...]) -> None:
        """Judge one notification and respond; a call that cannot be judged fails."""
        call = Syscall(_NAMES.get(notice[3], ""), notice, self._line.memory, listener)
        try:
            self.judge(call)
            if call.waits():
                call.answer(None)
        except CallMade:
            call.answer(0)
        except CallAnswered:
            return
        except OSError as error:
            call.answer(error.errno or errno.EACCES)
        except Refusal as refusal:
            if not call.waits():
                return
            self._line.reporter.say(refusal)
            if call.name in _STARTED:
                signals.send(call.thread, signals.KILL)
            denied = call.name in syscalls.WRITES or call.name in ("execve", "execveat", "socket", "connect", "bind")
            call.answer(errno.EACCES if denied else errno.EPERM)

    def judge(self, call: Syscall) -> None:
        """Let a call go on, or raise: `CallMade` if it has been made, `Refusal` if it may not, OSError if it fails."""
        if call.name not in self._judges:
            self.look_around()
        self._judges[call.name](call)

    def _never(self, call: Syscall) -> None:
        raise Refusal(syscalls.REFUSED[call.name], "a confined line may not do this")
