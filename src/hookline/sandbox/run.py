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

from hookline.sandbox import filter as seccomp
from hookline.sandbox import kernel, signals, writable_dirs
from hookline.sandbox.outside import OutsideResources, keep_sockets
from hookline.sandbox.path_access import WritablePlaces
from hookline.sandbox.policy import Policy
from hookline.sandbox.reports import Reporter
from hookline.sandbox.rules import DEVICES, SCOPED_SINCE, PathRights, ReadRules
from hookline.sandbox.secret_places import hidden_places
from hookline.sandbox.writable_dirs import WritableDirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hookline.sandbox.processes import UsageLimits

    Take = Callable[[], "ConfinedLine | int"]

LIMITED, FAILED, CANNOT_START, NOT_FOUND = 124, 125, 126, 127
"""Exit codes: a limit ended it; it could not be confined; it could not be started; there is no such program."""
_DONE = b"."
_MOMENT = 0.0005
"""How long the supervisor rests when it has told the owner, who is woken on the same processor, of the end."""


def run(policy: Policy, argv: list[str]) -> int:
    """Run a command confined; its exit code, 128 + n where signal n ended it."""
    line = ConfinedLine(policy, argv, dict(os.environ), WritableDirs.make(policy))
    return Crew(lambda: line).wait()


class ConfinedLine:
    """A command, its variables and its policy, with the room that it was given and what is hidden from it.

    `owner` is a descriptor on which the exit code is told at once, besides the launcher; -1 for none. `ahead` are rules
    for reading that were made before, and are used where they fit.
    """

    def __init__(
        self, policy: Policy, argv: list[str], variables: dict[str, str], room: WritableDirs, *,
        owner: int = -1, ahead: ReadRules | None = None,
    ) -> None:  # fmt: skip
        self.policy, self.argv, self.variables, self.room, self.owner = policy, argv, variables, room, owner
        self.hidden = hidden_places(policy, variables)
        read = ReadRules(policy.read, self.hidden)
        self.read = ahead if ahead is not None and ahead.fits(read) else read

    @property
    def environment(self) -> dict[str, str]:
        """The command's variables: also where it may put temporary files and caches."""
        if not self.room.temporary:
            return self.variables
        return {**self.variables, **writable_dirs.variables(self.room.temporary, self.room.caches, self.variables)}

    def enter_rules(self) -> None:
        """Hold this process, and all that it starts, to what the line may read and write; once, as the supervisor.

        It may also note refusals, and set up a namespace. The line itself may not: `own_rights`.
        """
        rights = self.read.rights()
        if rights is not None:
            notes = [os.path.dirname(os.path.realpath(self.policy.call))] if self.policy.call else []
            rights.allow_writing([*self.room.places, "/proc", *notes])
            kernel.no_new_privileges()
            rights.enforce()

    def own_rights(self) -> PathRights | None:
        """The rules that only the line itself is held to, besides; None where there is no Landlock."""
        version = kernel.landlock_version()
        if not version:
            return None
        rights = PathRights(version, reading=False)
        rights.allow_writing(self.room.places)
        return rights


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

    def wait(self, caller: int = -1) -> int:
        """The command's exit code; everything ends where the socket `caller` is closed before a byte came from it."""
        return _wait(self._supervisor, self._status, self._life, caller)


# -- the launcher ----------------------------------------------------------------------------------------------------


def _wait(supervisor: int, status: int, life: int, caller: int) -> int:
    """Wait for the command's exit code; without a supervisor that could tell it, end everything."""
    events = select.poll()
    events.register(status, select.POLLIN)
    events.register(caller, select.POLLIN) if caller >= 0 else None
    signals.ignore(signals.INT, signals.QUIT)  # Ctrl-C reaches the command by itself
    signals.hand_on(supervisor, signals.TERM, signals.HUP)
    while caller in dict(events.poll()) and os.read(caller, 1):
        events.unregister(caller)  # it has been told the exit code by the supervisor
        caller = -1
    data = os.read(status, 4) if status in dict(events.poll(0)) else b""
    if len(data) == 4:
        try:
            os.write(life, _DONE)
        except BrokenPipeError:
            pass  # nothing of the line is left, so neither is its supervisor
        return int.from_bytes(data, "little")
    signals.end_children()
    _say("the supervisor was ended, and so is the line")
    return FAILED


def _say(text: str) -> None:
    try:
        os.write(2, f"hookline confine: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return


def tell(descriptor: int, code: int) -> None:
    """Say an exit code to those who still wait for it."""
    try:
        os.write(descriptor, code.to_bytes(4, "little"))
    except BrokenPipeError:
        return


# -- the supervisor --------------------------------------------------------------------------------------------------


def _supervise(take: Take, status: int, life: int) -> int:
    line = take()
    if isinstance(line, int):
        tell(status, line)
        return line
    try:
        line.enter_rules()
    except (kernel.Unsupported, OSError) as error:
        _say(kernel.why(error))
        tell(status, FAILED)
        return FAILED
    command = _CommandProcess(line)
    watch = _Watch(line, command.pid, status, life)
    listener = command.listener()
    if listener < 0:
        code = command.end()
        if code < 0:  # it had not ended by itself, having said why
            _say(f"cannot watch the command: {command.problem}")
        tell(status, FAILED if code < 0 else code)
        return FAILED
    return watch.until_done(listener)


class _CommandProcess:
    """The process that turns into the command."""

    def __init__(self, line: ConfinedLine) -> None:
        self._ready, ready = os.pipe()
        self.problem: str | None = None
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._ready)
            kernel.die_with_parent(signals.KILL)
            if os.getppid() == supervisor:
                _become(line, ready)
            os._exit(FAILED)
        os.close(ready)

    def listener(self) -> int:
        """Where its calls arrive, once they are handed over; -1 if they cannot be."""
        data = os.read(self._ready, 4)
        os.close(self._ready)
        if not data:
            return -1
        try:
            listener = kernel.take_descriptor(self.pid, int.from_bytes(data, "little"))
        except OSError as error:
            self.problem = error.strerror
            return -1
        return listener

    def end(self) -> int:
        """End it; its exit code if it has ended by itself, else a negative number."""
        signals.send(self.pid, signals.KILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class _Watch:
    """The supervisor's loop: notifications, the command's end, the launcher's end."""

    def __init__(self, line: ConfinedLine, command: int, status: int, life: int) -> None:
        from hookline.sandbox.supervisor import Supervisor  # read while the command confines itself

        self._command, self._temporary = command, line.room.temporary
        self._owner, self._status, self._life = line.owner, status, life
        self._caller = Reporter(line.policy.call)
        granted = line.room.granted
        places = None if granted is None else WritablePlaces([*granted, *DEVICES])
        self._supervisor = Supervisor(line.policy, places, OutsideResources(), self._caller, self._temporary)
        self._limits: UsageLimits | None = None
        if line.policy.limits:
            from hookline.sandbox.processes import UsageLimits

            self._limits = UsageLimits(line.policy.limits, command)
        self._running, self._settled = True, False

    def until_done(self, listener: int) -> int:
        """Answer until nothing of the line is left."""
        signals.hand_on(self._command, signals.TERM, signals.HUP)
        ends = os.pidfd_open(self._command)
        events = select.poll()
        for fd in (listener, self._life, ends):
            events.register(fd, select.POLLIN)
        alive = True
        while alive:
            ready = events.poll(self._limits.patience if self._limits else None)
            if self._limits and (reached := self._limits.exceeded()):
                _say(f"the line was ended: {reached}")
                self._end(LIMITED << 8)
                break
            for fd, what in ready:
                if fd == listener:
                    alive = self._serve(listener, what) and alive
                    self._settle(listener, ends)
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

    def _end(self, status: int) -> None:
        signals.end_children()
        self._send(status)

    def _serve(self, listener: int, what: int) -> bool:
        """Answer what is there; whether there is still a process to answer."""
        if what & select.POLLIN:
            notice = kernel.receive(listener)
            if notice is not None:
                self._supervisor.answer(listener, notice)
            return True
        self._reap()
        return not what & select.POLLHUP

    def _settle(self, *kept: int) -> None:
        """Do what can wait until the command has been let go: it has no effect before its next call is answered.

        The command goes on beside this, on another processor where there is one; later it hands over on its own.
        """
        if self._settled:
            return
        self._settled = True
        self._supervisor.look_around()
        os.setsid()
        os.chdir("/")
        _to_null(0)
        _to_null(1)
        kernel.close_all_but(0, 1, 2, self._owner, self._status, self._life, *kept)
        kernel.wake_quickly(kept[0])

    def _reap(self) -> None:
        """Let go of orphans that have ended, the command apart."""
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
        self._caller.finish()
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        if self._owner >= 0:
            tell(self._owner, code)
            time.sleep(_MOMENT)
        tell(self._status, code)
        os.close(self._status)
        _to_null(2)

    def _finish(self) -> None:
        if self._running:
            self._tell_end()
        self._reap()


def _to_null(fd: int) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


# -- the command -----------------------------------------------------------------------------------------------------


def _execute(argv: list[str], environment: dict[str, str]) -> None:
    """Turn into a program that is looked for in PATH; nothing is imported here, since it might not be readable now."""
    places = environment.get("PATH", "/usr/bin:/bin").split(":")
    paths = [argv[0]] if "/" in argv[0] else [f"{place or '.'}/{argv[0]}" for place in places]
    problem: OSError = FileNotFoundError()
    for path in paths:
        try:
            os.stat(path)  # sooner answered than an attempt to start it
            os.execve(path, argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


def _hand_over(policy: Policy) -> int:
    """Have this process's calls handed over from here on; the descriptor on which they arrive."""
    if policy.network == "loopback":
        kernel.unshare_network()
    kernel.no_new_privileges()
    kernel.limit_capabilities()
    program = seccomp.program(
        kernel.machine(),
        network="none" if policy.network == "none" else "all",
        scoped_signals=kernel.landlock_version() >= SCOPED_SINCE,
        starts=bool(policy.block),
        forks="processes" in policy.limits,
    )
    listener = kernel.install_filter(program)
    kernel.drop_capabilities()
    return listener


def _become(line: ConfinedLine, ready: int) -> None:
    """Confine this process and turn it into the command; never comes back."""
    program = line.argv[0]
    try:
        try:
            rights = line.own_rights()  # made before its calls are handed over
            os.write(ready, _hand_over(line.policy).to_bytes(4, "little"))
            if rights is not None:
                rights.enforce()
        except (kernel.Unsupported, OSError) as error:
            _say(kernel.why(error))
            os._exit(FAILED)
        keep_sockets()
        signals.default(signals.PIPE, signals.XFSZ)  # Python ignores these; a command expects to be ended by them
        _execute(line.argv, line.environment)
    except FileNotFoundError:
        _say(f"`{program}`: no such program")
        os._exit(NOT_FOUND)
    except OSError as error:
        _say(f"cannot start `{program}`: {error.strerror}")
        os._exit(CANNOT_START)
    finally:
        os._exit(FAILED)
