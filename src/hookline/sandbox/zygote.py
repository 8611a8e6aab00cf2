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
import struct
from _ctypes import addressof
from contextlib import suppress

from hookline.core import template
from hookline.sandbox import (
    confined_line,
    kernel,
    main,
    run,
    signals,
    supervisor,
)
from hookline.sandbox import filter as seccomp
from hookline.sandbox.confined_line import SCOPED_SINCE, PathRights, ReadRules
from hookline.sandbox.judged_line import JudgedLine, Reporter
from hookline.sandbox.path_access import WritablePlaces
from hookline.sandbox.places import HiddenPlaces, WritableDirs
from hookline.sandbox.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["FREE", "serve"]

FREE = 10
"""Descriptors of a line have numbers below this one; everything of ours is above."""
SETTLE = 0.05
"""Seconds after a line in which the next crew is not made yet: the line needs the processors more."""
_STREAMS = 3
_WATCHED = b"w"
"""Says that the end of the process that waits for the exit code is the line's end, too."""
_USUAL = Policy(("/",), block=("true *",))


def serve(descriptor: int) -> NoReturn:
    """Start a line for each message, until its owner has gone."""
    signals.ignore(signals.INT, signals.QUIT)
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
    crews = _Crews(owner)
    crews.serve()
    _WaitingCrew(crews).work()


class _Crews(template.Template):
    """Forks the crews; most lines are like the one before, so that the rules for what they read can be made ahead."""

    quiet = SETTLE
    last = b""

    def taken(self, data: bytes, fds: list[int]) -> template.Run:
        self.last = template.read_file(fds.pop())
        return super().taken(data, fds)

    def read_rules(self) -> ReadRules | None:
        """The rules for reading that the last line had, made for the next one; None for the first."""
        if not self.last:
            return None
        read, outside, shown = marshal.loads(self.last)  # noqa: S302 - written by us
        rules = ReadRules(read, HiddenPlaces(outside, [], shown))
        rules.rights()
        return rules

    def close(self) -> None:
        super().close()
        os._exit(0)  # lines that run go on


class _WaitingCrew:
    """The crew of the next line: the launcher, and the supervisor, which takes the line."""

    def __init__(self, crews: _Crews) -> None:
        self._crews, self._pid = crews, os.getpid()
        self._launcher, self._to_launcher = _socket.socketpair()

    def work(self) -> NoReturn:
        """Be the launcher: fork the supervisor, and wait for the line."""
        status, code = -1, template.GONE
        try:
            os.setsid()
            signals.default(signals.INT, signals.QUIT)
            crew = run.Crew(self._take_or_report)
            self._keep(self._launcher)
            message, descriptors = template.receive(self._launcher, 1, FREE + 2)
            if message:
                status, errors = descriptors
                code = confined_line.FAILED
                os.dup2(errors, 2)
                os.close(errors)
                code = crew.wait(status if message == _WATCHED else -1)
        finally:
            if status >= 0:
                run.tell(status, code)  # also where the supervisor has: what comes second is not read
            os._exit(code)

    def _keep(self, *kept: _socket.socket) -> None:
        """Close what the other process of the crew uses, so that each sees when the other one has ended."""
        outer = (self._crews.requests, self._crews.to_template)
        for one in (*outer, self._launcher, self._to_launcher):
            if one not in kept:
                one.close()

    def _take_or_report(self) -> confined_line.ConfinedLine | int:
        try:
            return self._take()
        except OSError as error:
            os.write(2, f"hookline confine: {error}\n".encode("utf-8", "replace"))
            return confined_line.FAILED

    def _take(self) -> confined_line.ConfinedLine | int:
        """Take the line from the owner, as the supervisor; an exit code if it cannot be started."""
        self._keep(self._crews.requests, self._crews.to_template, self._to_launcher)
        kernel.die_with_parent(signals.KILL)
        if os.getppid() != self._pid:
            os._exit(confined_line.FAILED)
        if not template.is_waiting(self._crews.requests):
            _rehearse()
        ahead, version = self._crews.read_rules(), kernel.landlock_version()
        devices = PathRights(version, reading=False) if version else None
        descriptors = self._crews.next_request(1, FREE + 2)[1]
        kernel.die_with_parent(0)  # from here on the line has to be ended first
        status, order, *given = descriptors
        os.write(status, self._pid.to_bytes(4, "little"))
        folder, words, variables, targets, *state = _read(order)
        for fd, target in zip(given, targets, strict=True):  # where the line has them
            os.dup2(fd, target)
            os.close(fd)
        if state:  # by `launcher.c`, which knows bytes only
            folder, words = os.fsdecode(folder), [os.fsdecode(word) for word in words]
            variables = dict(os.fsdecode(pair).partition("=")[::2] for pair in variables)
            _take_over(*state)
        template.replace_environ([os.fsencode(f"{name}={value}") for name, value in variables.items()])
        os.chdir(folder)
        template.send(self._to_launcher, _WATCHED if state else b".", [status, 2])
        found = main.understood(words)
        if isinstance(found, int):
            return found
        policy, argv = found
        line = confined_line.ConfinedLine(
            policy, argv, variables, WritableDirs.make(policy), owner=status, ahead=ahead, devices=devices
        )
        with suppress(ConnectionError):  # there will be no next line: what forks the crews was let go, or killed
            self._crews.note(template.TAKEN, b"", _note(policy.read, line.hidden.outside, line.hidden.shown))
        gc.enable()
        return line


def _rehearse() -> None:
    """Judge something, so that the memory which that writes to is this process's own before the line comes."""
    for starts, reads in ((True, True), (True, False), (False, True), (False, False)):
        scoped = kernel.landlock_version() >= SCOPED_SINCE
        seccomp.program(kernel.machine(), scoped_signals=scoped, starts=starts, reads=reads)
    main.understood([*_USUAL.arguments(), "--", "true"])
    reporter = Reporter("")
    judge = supervisor.Supervisor(JudgedLine(_USUAL, WritablePlaces(["/"]), reporter), reporter)
    judge.look_around()
    path = kernel.buffer(b"/bin/true\0")
    words = kernel.buffer(struct.pack("QQ", addressof(path), 0))
    arguments = (addressof(path), addressof(words), addressof(words) + 8, 0, 0, 0)
    judge.judge("execve", (0, os.getpid(), 0, 0, 0, 0, *arguments))


def _note(*values: object) -> int:
    fd = os.memfd_create("line")
    os.write(fd, marshal.dumps(values))  # type: ignore[arg-type]  # texts and lists of them
    return fd


def _read(fd: int) -> tuple:  # type: ignore[type-arg]  # whatever was noted
    value: tuple = marshal.loads(template.read_file(fd))  # type: ignore[type-arg]  # noqa: S302 - written by our owner or by us
    return value


def _take_over(state: bytes) -> None:
    """Have the file mask and the limits of the process in whose place this one runs."""
    mask, *limits = struct.unpack(f"{len(state) // 8}Q", state)
    os.umask(mask)
    for which, (soft, hard) in enumerate(zip(limits[::2], limits[1::2], strict=True)):
        kernel.limit(0, which, soft, hard)
