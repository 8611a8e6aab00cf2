"""Running a line confined: three processes, so that nothing goes on unwatched.

The *launcher* is what the caller waits for. It starts the *supervisor*, which starts the *command* with Landlock's
rules and the filter in place and answers its notifications. If the supervisor is killed, the launcher ends the line;
if the launcher is killed, the supervisor does; if both are, the kernel kills the command, and what it left behind can
neither write outside nor start anything. When the command ends but something it started goes on, the supervisor stays
with it.
"""

from __future__ import annotations

import os
import select
import time

from hookline.confine import filter as seccomp
from hookline.confine import kernel, scratch, signals
from hookline.confine.others import Others
from hookline.confine.places import WritablePlaces
from hookline.confine.policy import Policy
from hookline.confine.reports import Reporter
from hookline.confine.rules import DEVICES, SCOPED_SINCE, SYSTEM, PathRights

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FAILED, CANNOT_START, NOT_FOUND = 125, 126, 127
"""Exit codes: it could not be confined; it could not be started; there is no such program."""
_DONE = b"."
_MOMENT = 0.002
_EPERM, _EACCES, _EBUSY, _ENOSYS = 1, 13, 16, 38
_WHY = {
    _EBUSY: "this process is confined already, and only one supervisor can watch it",
    **dict.fromkeys(
        (_EPERM, _EACCES, _ENOSYS),
        "the kernel, or the container this runs in, does not allow Landlock or seccomp notifications; "
        "see `hookline confine --check`",
    ),
}
"""What the kernel's errors mean when a process confines itself."""


def run(policy: Policy, argv: list[str]) -> int:
    """Run a command confined; its exit code, 128 + n where signal n ended it."""
    line = ConfinedLine(policy, argv, dict(os.environ), Room.make(policy))
    return Crew(lambda _: line).wait()


class Room:
    """Where a line may write: the folders it was given, its own temporary one, its caches and devices."""

    def __init__(self, granted: list[str] | None, temporary: str, caches: str) -> None:
        self.granted, self.temporary, self.caches = granted, temporary, caches

    @classmethod
    def make(cls, policy: Policy) -> Room:
        """Room for one line on this machine."""
        if policy.write is None:
            return cls(None, "", "")
        temporary = scratch.make()
        caches = scratch.cache_folder(temporary)
        given = [*policy.write, *scratch.worktree_folders(policy.write)]
        return cls([*given, caches, temporary, *scratch.open_files()], temporary, caches)


class ConfinedLine:
    """A command, its variables and its policy, with the room that it was given."""

    def __init__(self, policy: Policy, argv: list[str], variables: dict[str, str], room: Room) -> None:
        self.policy, self.argv, self.variables, self.room = policy, argv, variables, room

    @property
    def environment(self) -> dict[str, str]:
        """The command's variables: also where it may put temporary files and caches."""
        if not self.room.temporary:
            return self.variables
        return {**self.variables, **scratch.variables(self.room.temporary, self.room.caches, self.variables)}

    def confine(self, prepared: PathRights | None) -> int:
        """Confine this process; the descriptor on which its notifications arrive.

        With `prepared` rights the capabilities are limited already; a network of its own comes with all of them.
        """
        if self.policy.network == "loopback":
            kernel.unshare_network()
        kernel.no_new_privileges()
        version = kernel.landlock_version()
        if version:
            self._rights(prepared, version).enforce()
        program = seccomp.program(
            kernel.machine(),
            network=self.policy.network != "none",
            scoped_signals=version >= SCOPED_SINCE,
            starts=bool(self.policy.block),
        )
        if prepared is None or self.policy.network == "loopback":
            kernel.limit_capabilities()
        listener = kernel.install_filter(program)
        kernel.drop_capabilities()
        return listener

    def _rights(self, prepared: PathRights | None, version: int) -> PathRights:
        reading, granted = self.policy.read is not None, self.room.granted
        rights = prepared if prepared and not reading else PathRights(version, reading=reading)
        rights.allow_writing(["/"] if granted is None else granted)
        rights.allow_reading([*(self.policy.read or ()), *SYSTEM] if reading else [])
        return rights


SUPERVISOR, COMMAND = "supervisor", "command"


class Crew:
    """The launcher's two others: forked, and each on its way as soon as it has been told its line.

    `told` is asked by each of them, in its own process, for the line, or the exit code if there will be none; a crew
    that was forked ahead waits there.
    """

    def __init__(self, told: Callable[[str], ConfinedLine | int], prepared: PathRights | None = None) -> None:
        self._status, status = os.pipe()
        life, self._life = os.pipe()
        kernel.adopt_orphans()
        self._supervisor = os.fork()
        if self._supervisor == 0:
            os.close(self._status)
            os.close(self._life)
            os._exit(_supervise(told, prepared, status, life))
        os.close(status)
        os.close(life)

    def wait(self) -> int:
        """The command's exit code."""
        return _wait(self._supervisor, self._status, self._life)


# -- the launcher ----------------------------------------------------------------------------------------------------


def _wait(supervisor: int, status: int, life: int) -> int:
    """Wait for the command's exit code; without a supervisor that could tell it, end everything."""
    signals.ignore(signals.INT, signals.QUIT)  # Ctrl-C reaches the command by itself
    signals.hand_on(supervisor, signals.TERM, signals.HUP)
    data = os.read(status, 4)
    if len(data) == 4:
        try:
            os.write(life, _DONE)
        except BrokenPipeError:
            pass  # nothing of the line is left, so neither is its supervisor
        return int.from_bytes(data, "little")
    end_children()
    _say("the supervisor was ended, and so is the line")
    return FAILED


def end_children() -> None:
    """Kill every child, and every orphan that thereby becomes one, until there is none.

    An orphan becomes a child a moment after its parent has ended: so the children are listed again and again.
    """
    while True:
        for child in _children():
            signals.send(child, signals.KILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(_MOMENT)


def _children() -> list[int]:
    me = str(os.getpid())
    try:
        with open(f"/proc/self/task/{me}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == me]


def _parent(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[1]
    except (OSError, IndexError):
        return ""


def _say(text: str) -> None:
    try:
        os.write(2, f"hookline confine: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return


# -- the supervisor --------------------------------------------------------------------------------------------------


def _supervise(told: Callable[[str], ConfinedLine | int], prepared: PathRights | None, status: int, life: int) -> int:
    kernel.adopt_orphans()
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    command = os.fork()
    if command == 0:
        os.close(ready_read)
        os.close(go_write)
        _become(told, prepared, ready_write, go_read)
    os.close(ready_write)
    os.close(go_read)
    line = told(SUPERVISOR)
    _close_all_but(0, 1, 2, status, life, ready_read, go_write)
    if isinstance(line, int):
        signals.send(command, signals.KILL)
        os.write(status, line.to_bytes(4, "little"))
        return line
    watch = _Watch(line, command, status, life)
    try:
        listener = _listener(command, ready_read)
    except OSError as error:
        signals.send(command, signals.KILL)
        _say(f"cannot watch the command: {error.strerror}")
        listener = -1
    if listener < 0:
        os.close(go_write)
        os.waitpid(command, 0)
        os.write(status, FAILED.to_bytes(4, "little"))
        scratch.remove(line.room.temporary)
        return FAILED
    return watch.until_done(listener, go_write)


def _close_all_but(*kept: int) -> None:
    """Let go of what is the command's and not the supervisor's to hold open."""
    for fd in {int(name) for name in os.listdir("/proc/self/fd")}.difference(kept):
        try:
            os.close(fd)
        except OSError:
            continue  # the listing itself


def _listener(command: int, ready: int) -> int:
    """The command's descriptor for notifications, once it has confined itself; -1 if it could not."""
    data = os.read(ready, 4)
    os.close(ready)
    return kernel.take_descriptor(command, int.from_bytes(data, "little")) if len(data) == 4 else -1


class _Watch:
    """The supervisor's loop: notifications, the command's end, the launcher's end."""

    def __init__(self, line: ConfinedLine, command: int, status: int, life: int) -> None:
        from hookline.confine.supervisor import Supervisor  # read while the command confines itself

        self._command, self._temporary = command, line.room.temporary
        self._status, self._life = status, life
        self._caller = Reporter(line.policy.call)
        granted = line.room.granted
        places = None if granted is None else WritablePlaces([*granted, *DEVICES])
        self._supervisor = Supervisor(line.policy, places, Others(), self._caller, self._temporary)
        self._running = True

    def until_done(self, listener: int, go: int) -> int:
        """Answer until nothing of the line is left."""
        os.setsid()
        os.chdir("/")
        signals.hand_on(self._command, signals.TERM, signals.HUP)
        kernel.wake_quickly(listener)
        _to_null(0)
        _to_null(1)
        os.write(go, _DONE)
        os.close(go)
        ends = os.pidfd_open(self._command)
        events = select.poll()
        for fd in (listener, self._life, ends):
            events.register(fd, select.POLLIN)
        alive = True
        while alive:
            for fd, what in events.poll():
                if fd == listener:
                    alive = self._serve(listener, what) and alive
                elif fd == ends:
                    events.unregister(ends)
                    self._tell_end()
                elif not os.read(self._life, 1):
                    end_children()
                    alive = False
                else:
                    events.unregister(self._life)
        self._finish()
        return 0

    def _serve(self, listener: int, what: int) -> bool:
        """Answer what is there; whether there is still somebody to answer."""
        if what & select.POLLIN:
            notice = kernel.receive(listener)
            if notice is not None:
                self._supervisor.answer(listener, notice)
            return True
        self._reap()
        return not what & select.POLLHUP

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
        os.write(self._status, (128 - code if code < 0 else code).to_bytes(4, "little"))
        os.close(self._status)
        _to_null(2)

    def _finish(self) -> None:
        if self._running:
            self._tell_end()
        self._reap()
        scratch.remove(self._temporary)


def _to_null(fd: int) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


# -- the command -----------------------------------------------------------------------------------------------------


def _execute(argv: list[str], environment: dict[str, str]) -> None:
    """Turn into a program that is looked for in PATH; nothing is imported here, since it might not be readable now."""
    places = [""] if "/" in argv[0] else environment.get("PATH", "/usr/bin:/bin").split(":")
    problem: OSError = FileNotFoundError()
    for place in places:
        try:
            os.execve(f"{place or '.'}/{argv[0]}" if "/" not in argv[0] else argv[0], argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


def _confined(line: ConfinedLine, prepared: PathRights | None) -> int:
    """Confine this process; where that is not possible it ends here, with the reason."""
    try:
        return line.confine(prepared)
    except kernel.Unsupported as error:
        _say(str(error))
    except OSError as error:
        _say(_WHY.get(error.errno or 0, f"the kernel refuses to confine: {error.strerror}"))
    os._exit(FAILED)


def _become(told: Callable[[str], ConfinedLine | int], prepared: PathRights | None, ready: int, go: int) -> None:
    """Confine this process and turn it into the command; never comes back."""
    program = ""
    try:
        kernel.die_with_parent(signals.KILL)
        line = told(COMMAND)
        if isinstance(line, int):
            os._exit(line)
        program = line.argv[0]
        environment = line.environment
        listener = _confined(line, prepared)
        os.write(ready, listener.to_bytes(4, "little"))
        if os.read(go, 1) != _DONE:
            os._exit(FAILED)
        os.close(listener)
        signals.default(signals.PIPE, signals.XFSZ)  # Python ignores these; a command expects to be ended by them
        _execute(line.argv, environment)
    except FileNotFoundError:
        _say(f"`{program}`: no such program")
        os._exit(NOT_FOUND)
    except OSError as error:
        _say(f"cannot start `{program}`: {error.strerror}")
        os._exit(CANNOT_START)
    finally:
        os._exit(FAILED)
