"""Confined lines for one program that starts many: each by a crew that was forked ahead and has read everything.

`launch.py --serve FD` is the process that keeps one crew waiting. Its owner sends a descriptor of what to run over a
socket, with the line's own descriptors, and the crew takes it from there; the answer is the line's pid and, once it has
ended, its exit code. When the owner ends, so does this, and so does the crew that waits.
"""

from __future__ import annotations

import _socket
import fcntl
import gc
import marshal
import os
import select
import struct
from contextlib import suppress

from hookline.sandbox import check, kernel, libc, main, metadata, run, signals, sockets, supervisor
from hookline.sandbox import filter as seccomp
from hookline.sandbox.outside import OutsideResources
from hookline.sandbox.path_access import WritablePlaces
from hookline.sandbox.policy import Policy
from hookline.sandbox.reports import Reporter
from hookline.sandbox.rules import SCOPED_SINCE
from hookline.sandbox.writable_dirs import WritableDirs

__all__ = ["FREE", "serve"]

FREE = 10
"""Descriptors of a line have numbers below this one; everything of ours is above."""
SETTLE = 0.05
"""Seconds after a line in which the next crew is not made yet: the line needs the processors more."""
_WARM = (check, metadata, sockets, supervisor)
"""Read before the first line comes."""
_CLOSE_ON_EXEC = 0x40000000
_STREAMS = 3
_NO_STARTS = b"-"
_USUAL = Policy(("/",), block=("true *",))


def serve(descriptor: int) -> int:
    """Start a line for each message, until there is nobody to send one."""
    signals.ignore(signals.INT, signals.QUIT, signals.CHLD)  # what has ended is gone, also while nobody asks
    owner = _socket.socket(fileno=fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FREE))
    os.close(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(_STREAMS, FREE):  # taken, so that nothing of ours is where a line's own will be
        if number != null:
            os.dup2(null, number, inheritable=False)
    _rehearse()
    gc.collect()
    gc.freeze()
    gc.disable()
    starts = True
    while True:
        taken, told = os.pipe()
        if os.fork() == 0:
            os.close(taken)
            _WaitingCrew(owner, told, starts=starts).work()
        os.close(told)
        if _gone(owner, taken):
            return 0
        starts = os.read(taken, 1) != _NO_STARTS  # most lines are like the one before
        os.close(taken)
        _comes(owner, SETTLE)


def _gone(owner: _socket.socket, taken: int) -> bool:
    """Wait until the crew has its line; whether the owner has ended instead."""
    events = select.poll()
    events.register(owner, 0)
    events.register(taken, 0)
    return any(fd == owner.fileno() for fd, _ in events.poll())


class _WaitingCrew:
    """The crew of the next line. Its supervisor takes the line and tells the others, since it has the most to do."""

    def __init__(self, owner: _socket.socket, taken: int, *, starts: bool) -> None:
        self._owner, self._taken, self._pid = owner, taken, os.getpid()
        self._ahead = run.PreparedCommand(starts=starts)
        self._launcher, self._to_launcher = _pair()
        self._command, self._to_command = _pair()

    def work(self) -> None:
        """Be the launcher: fork the others, and wait for the line; never comes back."""
        status, code = -1, run.FAILED
        try:
            os.setsid()
            signals.default(signals.INT, signals.QUIT, signals.CHLD)
            crew = run.Crew(self._take_or_report, self._follow, self._ahead)
            self._keep(self._launcher)
            message, descriptors = _receive(self._launcher)
            if message:
                status, errors = descriptors
                os.dup2(errors, 2)
                os.close(errors)
                code = crew.wait()
        finally:
            if status >= 0:
                run.tell(status, code)  # also where the supervisor has: what comes second is not read
            os._exit(code)

    def _keep(self, *kept: _socket.socket) -> None:
        """Close what other processes of the crew use, so that each sees when another one has ended."""
        for one in (self._owner, self._launcher, self._to_launcher, self._command, self._to_command):
            if one not in kept:
                one.close()
        if self._owner not in kept and self._taken >= 0:
            os.close(self._taken)
            self._taken = -1

    def _take_or_report(self) -> run.ConfinedLine | int:
        try:
            return self._take()
        except OSError as error:
            os.write(2, f"hookline confine: {error}\n".encode("utf-8", "replace"))
            return run.FAILED

    def _take(self) -> run.ConfinedLine | int:
        """Take the line from the owner, as the supervisor; an exit code if it cannot be started."""
        self._keep(self._owner, self._to_launcher, self._to_command)
        kernel.die_with_parent(signals.KILL)
        if os.getppid() != self._pid:
            os._exit(run.FAILED)
        known = dict(os.environ)
        if not _comes(self._owner):
            _rehearse()
        message, descriptors = _receive(self._owner)
        if not message:
            os._exit(run.FAILED)
        kernel.die_with_parent(0)  # from here on the line has to be ended first
        status, order, *given = descriptors
        self._tell_command([order, *given])
        os.write(status, self._pid.to_bytes(4, "little"))
        folder, words, variables, targets = _read(order)
        _install(given, targets)
        if variables != known:
            _use_variables(variables, known)
        os.chdir(folder)
        _send(self._to_launcher, [status, 2])
        found = main.understood(words)
        if isinstance(found, int):
            return found
        policy, argv = found
        room = WritableDirs.make(policy)
        if self._ahead.fits(policy):
            if self._ahead.rights is not None:
                self._ahead.rights.allow_writing(room.places)
            self._tell_command([_note(argv, room.granted, room.temporary, room.caches)])
        with suppress(BrokenPipeError):  # the owner has let go of its lines, and there will be no next one
            os.write(self._taken, b"+" if policy.block else _NO_STARTS)
        gc.enable()
        return run.ConfinedLine(policy, argv, variables, room, owner=status)

    def _tell_command(self, descriptors: list[int]) -> None:
        """Hand descriptors to the command; where it has ended, another one takes its place."""
        with suppress(BrokenPipeError):
            _send(self._to_command, descriptors)

    def _follow(self) -> run.ConfinedLine:
        """Have the line told, as the command: first its surroundings, then what it is and may do."""
        self._keep(self._command)
        message, descriptors = _receive(self._command)
        if not message:
            os._exit(run.FAILED)
        order, *given = descriptors
        folder, _, variables, targets = _read(order)
        _install(given, targets)
        os.chdir(folder)
        message, descriptors = _receive(self._command)
        if not message:
            os._exit(run.FAILED)
        argv, *room = _read(descriptors[0])
        return run.ConfinedLine(self._ahead.policy, argv, variables, WritableDirs(*room))


def _rehearse() -> None:
    """Judge something, so that the memory which that writes to is this process's own before the line comes."""
    for starts in (True, False):
        seccomp.program(kernel.machine(), scoped_signals=kernel.landlock_version() >= SCOPED_SINCE, starts=starts)
    main.understood([*_USUAL.arguments(), "--", "true"])
    judge = supervisor.Supervisor(_USUAL, WritablePlaces(["/"]), OutsideResources(), Reporter(""))
    judge.look_around()
    ours, theirs = _pair()
    _send(ours, [note := _note("")])
    _read(_receive(theirs)[1][0])
    os.close(note)
    path = libc.buffer(b"/bin/true\0")
    words = libc.buffer(struct.pack("QQ", libc.addressof(path), 0))
    arguments = (libc.addressof(path), libc.addressof(words), libc.addressof(words) + 8, 0, 0, 0)
    judge.judge("execve", (0, os.getpid(), 0, 0, 0, 0, *arguments))


def _comes(channel: _socket.socket, seconds: float = 0) -> bool:
    """Whether there is something to receive, now or soon."""
    return bool(select.select([channel.fileno()], [], [], seconds)[0])


def _pair() -> tuple[_socket.socket, _socket.socket]:
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)


def _send(channel: _socket.socket, descriptors: list[int]) -> None:
    rights = b"".join(fd.to_bytes(4, "little") for fd in descriptors)
    channel.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])


def _receive(channel: _socket.socket) -> tuple[bytes, list[int]]:
    """The next message and its descriptors; an empty one when nobody is left to send any."""
    message, ancillary, _, _ = channel.recvmsg(1, _socket.CMSG_SPACE(4 * (FREE + 2)), _CLOSE_ON_EXEC)
    data = b"".join(piece for _, _, piece in ancillary)
    return message, [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def _note(*values: object) -> int:
    fd = os.memfd_create("line")
    os.write(fd, marshal.dumps(values))  # type: ignore[arg-type]  # texts and lists of them
    return fd


def _read(fd: int) -> tuple:  # type: ignore[type-arg]  # whatever was noted
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    value: tuple = marshal.loads(data)  # type: ignore[type-arg]  # noqa: S302 - written by our owner or by us
    return value


def _install(given: list[int], targets: list[int]) -> None:
    """Put descriptors where the line has them."""
    for fd, target in zip(given, targets, strict=True):
        os.dup2(fd, target)
        os.close(fd)


def _use_variables(variables: dict[str, str], known: dict[str, str]) -> None:
    for name in known.keys() - variables.keys():
        del os.environ[name]
    for name, value in variables.items():
        if known.get(name) != value:
            os.environ[name] = value
