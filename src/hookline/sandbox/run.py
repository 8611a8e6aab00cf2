"""Running a line confined: three processes, so that nothing goes on unwatched.

The *launcher* is what the caller waits for. It starts the *supervisor*, which enters Landlock's rules for the line
itself, starts the *command* below them with the filter in place and answers its notifications: what it does in the
line's name it does with the line's rights. If the supervisor is killed, the launcher ends the line;
if the launcher is killed, the supervisor does; if both are, the kernel kills the command, and what it left behind can
neither write outside nor start anything. When the command ends but something it started goes on, the supervisor stays
with it.
"""

from __future__ import annotations

import os
import select
import time

from hookline.core import template
from hookline.sandbox import kernel, signals
from hookline.sandbox.confined_line import FAILED, LIMITED, CommandProcess, ConfinedLine, candidates, say
from hookline.sandbox.places import WritableDirs
from hookline.sandbox.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hookline.sandbox.egress import Egress
    from hookline.sandbox.processes import UsageLimits

    Take = Callable[[], "ConfinedLine | int"]

_DONE = b"."
_MOMENT = 0.0005
"""How long the supervisor rests when it has told the owner, who is woken on the same processor, of the end."""
_IDLE = 2
"""Milliseconds without a call after which the supervisor does what can wait."""


def run(policy: Policy, argv: list[str]) -> int:
    """Run a command confined; its exit code, 128 + n where signal n ended it."""
    line = ConfinedLine(policy, argv, dict(os.environ), WritableDirs.make(policy))
    return Crew(lambda: line).wait()


class Crew:
    """The launcher's two others.

    The supervisor is told its line by `take`, which may give an exit code instead; one forked ahead waits there.
    """

    def __init__(self, take: Take) -> None:
        self._status, status = os.pipe()
        life, self._life = os.pipe()
        kernel.adopt_orphans()
        self._supervisor = os.fork()
        if self._supervisor == 0:
            os.close(self._status)
            os.close(self._life)
            kernel.adopt_orphans()
            os._exit(_supervise(take, status, life))
        os.close(status)
        os.close(life)

    def leave(self) -> None:
        """Let go of a supervisor that has ended before it had a line."""
        os.waitpid(self._supervisor, 0)
        os.close(self._status)
        os.close(self._life)

    def wait(self, caller: int = -1) -> int:
        """The command's exit code; everything ends where the socket `caller` is closed before a byte came from it.

        It does so, too, without a supervisor that could tell the code.
        """
        events = select.poll()
        events.register(self._status, select.POLLIN)
        events.register(caller, select.POLLIN) if caller >= 0 else None
        signals.ignore(signals.INT, signals.QUIT)  # Ctrl-C reaches the command by itself
        signals.hand_on(self._supervisor, signals.TERM, signals.HUP)
        while caller in dict(events.poll()) and os.read(caller, 1):
            events.unregister(caller)  # it has been told the exit code by the supervisor
            caller = -1
        data = os.read(self._status, 4) if self._status in dict(events.poll(0)) else b""
        if len(data) == 4:
            try:
                os.write(self._life, _DONE)
            except BrokenPipeError:
                pass  # nothing of the line is left, so neither is its supervisor
            return int.from_bytes(data, "little")
        signals.end_children()
        say("the supervisor was ended, and so is the line")
        return FAILED


def tell(descriptor: int, code: int) -> None:
    """Say an exit code to those who still wait for it."""
    try:
        os.write(descriptor, code.to_bytes(4, "little"))
    except BrokenPipeError:
        return


# -- the supervisor --------------------------------------------------------------------------------------------------


def _supervise(take: Take, status: int, life: int) -> int:
    kernel.limit_capabilities()  # of what is started from here on: the command
    line = take()
    if isinstance(line, int):
        tell(status, line)
        return line
    try:
        egress = line.egress()
        if line.command is None:
            line.enter_rules()
    except (kernel.Unsupported, OSError) as error:
        say(kernel.why(error))
        line.later()
        tell(status, FAILED)
        return FAILED
    # Memory that is written to after a fork is copied first; but modules are read while the command confines itself.
    early = _Watch(line, status, life, egress) if line.owner >= 0 else None
    command = line.command or CommandProcess(line)
    watch = early or _Watch(line, status, life, egress)
    watch.follow(command.pid, line)
    listener, *doors = command.listener()
    if listener < 0:
        code = command.end()
        if code < 0:  # it had not ended by itself, having said why
            say(f"cannot watch the command: {command.problem}")
        line.later()
        tell(status, FAILED if code < 0 else code)
        return FAILED
    if egress:
        egress.open_doors(doors)
    return watch.until_done(listener)


class _Watch:
    """The supervisor's loop: notifications, the command's end, the launcher's end."""

    def __init__(self, line: ConfinedLine, status: int, life: int, egress: Egress | None) -> None:
        from hookline.sandbox.judged_line import JudgedLine
        from hookline.sandbox.supervisor import Supervisor

        self._owner, self._status, self._life, self._command = line.owner, status, life, 0
        judged = JudgedLine(line.policy, line.room, line.hidden.inside, line.view)
        self._caller, self._later = judged.reporter, line.later
        self._supervisor = Supervisor(judged, egress)
        self._limits: UsageLimits | None = None
        self._running, self._settled, self._egress = True, False, egress

    def follow(self, command: int, line: ConfinedLine) -> None:
        """Watch a command, which has been started; where it still confines itself, judge its program meanwhile."""
        self._command = command
        if line.policy.limits:
            from hookline.sandbox.processes import UsageLimits

            self._limits = UsageLimits(line.policy.limits, command)
        if line.command is None:
            self._supervisor.starts.foresee(candidates(line.argv[0], line.environment), line.argv)

    def until_done(self, listener: int) -> int:
        signals.hand_on(self._command, signals.TERM, signals.HUP)
        ends = os.pidfd_open(self._command)
        events = select.poll()
        told = self._egress.channel.fileno() if self._egress else -1
        for fd in (listener, self._life, ends, *([told] if self._egress else [])):
            events.register(fd, select.POLLIN)
        kept = (listener, ends)
        alive = True
        while alive:
            ready = self._wait(events, kept)
            if self._limits and (reached := self._limits.exceeded()):
                say(f"the line was ended: {reached}")
                self._end(LIMITED << 8)
                break
            for fd, what in ready:
                if fd == listener:
                    alive = self._serve(listener, what, kept) and alive
                elif fd == told:
                    if not self._report_egress():
                        say("the broker was ended, and so is the line")
                        self._end(FAILED << 8)
                        alive = False
                elif fd == ends:
                    events.unregister(ends)
                    self._tell_end()
                elif not os.read(self._life, 1):
                    self._end(signals.KILL)
                    alive = False
                else:
                    events.unregister(self._life)
        self._finish()
        return 0

    def _wait(self, events: select.poll, kept: tuple[int, ...]) -> list[tuple[int, int]]:
        """What there is to do; what can wait is done where nothing has been for a while."""
        ready = events.poll(_IDLE if not self._settled else self._limits.patience if self._limits else None)
        if not ready:
            self._settle(kept)
        return ready

    def _report_egress(self) -> bool:
        """Say what the broker refused; whether it is still there."""
        from hookline.sandbox.judged_line import Refusal

        rows = self._egress.reports() if self._egress else []
        for kind, *words in rows or ():
            if kind == "refused":
                self._caller.say(Refusal(*words, guard="host_guard"))
            else:
                self._caller.saw(kind, words[0])
        return rows is not None

    def _end(self, status: int) -> None:
        signals.end_children()
        self._send(status)

    def _serve(self, listener: int, what: int, kept: tuple[int, ...]) -> bool:
        """Answer what is there; whether there is still a process to answer."""
        if what & select.POLLIN:
            notice = kernel.receive(listener)
            if notice is not None:
                if not (self._settled or self._supervisor.starts_command(notice)):
                    self._settle(kept)
                self._supervisor.answer(listener, notice)
                if not self._settled:
                    self._later()  # while the command starts
            return True
        self._reap()
        return not what & select.POLLHUP

    def _settle(self, kept: tuple[int, ...]) -> None:
        """Do what can wait until the command has started: it has no effect before its next call is answered.

        The command goes on beside this, on another processor where there is one; later it hands over on its own.
        """
        if self._settled:
            return
        from hookline.sandbox.path_access import keep_names

        self._settled = True
        self._later()
        self._supervisor.look_around()
        os.setsid()
        os.chdir("/")
        template.discard(0, 1)
        doors = self._egress.kept if self._egress else []
        kernel.close_all_but(0, 1, 2, self._owner, self._status, self._life, *doors, *kept)
        kernel.wake_quickly(kept[0])
        keep_names()

    def _reap(self) -> None:
        try:
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._command:
                    self._send(status)
        except ChildProcessError:
            return

    def _tell_end(self) -> None:
        try:
            _, status = os.waitpid(self._command, 0)
        except ChildProcessError:
            return
        self._send(status)

    def _send(self, status: int) -> None:
        """Tell the launcher how the command ended, and let go of what the caller may be waiting for."""
        if not self._running:
            return
        self._running = False
        self._report_egress()
        self._supervisor.finish()
        self._caller.finish()
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        if self._owner >= 0:
            tell(self._owner, code)
            time.sleep(_MOMENT)
        self._later()
        tell(self._status, code)
        os.close(self._status)
        template.discard(2)

    def _finish(self) -> None:
        if self._running:
            self._tell_end()
        self._supervisor.finish()
        self._reap()
