"""Confined lines for one program that starts many: each by a crew that was forked ahead and has read everything.

`launch.py --serve FD` is the process that keeps one crew waiting. Its owner sends a descriptor of what to run over a
socket, with the line's own descriptors, and the crew takes it from there; the answer is the line's pid and, once it has
ended, its exit code. When the owner ends, so does this, and so does the crew that waits.
"""

import _socket
import fcntl
import gc
import marshal
import os
import struct
from _ctypes import addressof
from contextlib import suppress

from hookline.core import template
from hookline.sandbox import confined_line, kernel, main, run, signals, supervisor, syscalls
from hookline.sandbox.confined_line import SCOPED_SINCE
from hookline.sandbox.judged_line import JudgedLine, Refusal, Syscall
from hookline.sandbox.places import HiddenPlaces, WritableDirs, hidden_places
from hookline.sandbox.policy import Policy

FREE = 10
"""Descriptors of a line have numbers below this one; everything of ours is above."""
SETTLE = 0.05
"""Seconds after a line in which the next crew is not made yet: the line needs the processors more."""
_STREAMS = 3
_WATCHED, _OTHER = b"w", b"o"
"""What a supervisor says: the end of the process that waits for the exit code is the line's end, too; or, it has
confined itself for another line than the one that came."""
_NO_REFERENCES = 2
"""The version of `marshal` in which equal values are equal bytes."""
_USUAL = Policy(("/",), block=("true *",))


def serve(descriptor: int) -> None:
    """Start a line for each message, until its owner has gone; never comes back."""
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
    """Forks the crews. Where a line was like the one before, the next one will be, too: its crew is confined ahead."""

    quiet = SETTLE
    last = b""
    alike = False
    noted = False

    def heard(self, kind: bytes, pid: int, data: bytes, fds: list[int]) -> None:
        super().heard(kind, pid, data, [])
        if kind == template.TAKEN:
            line = template.read_file(fds.pop())
            self.last, self.alike = line, line == self.last

    def last_line(self) -> confined_line.ConfinedLine | None:
        """The line before, without its command, for which the rules for reading are made; None before the first."""
        if not self.last:
            return None
        policy, hidden, room = marshal.loads(self.last)  # noqa: S302 - written by us
        places = HiddenPlaces(**hidden)
        line = confined_line.ConfinedLine(Policy(**policy), [], {}, WritableDirs(**room), hidden=places)
        line.read.rights()
        return line

    def note_line(self, line: confined_line.ConfinedLine | None) -> None:
        """Tell the template, once, that a line was taken, and how it is confined where this is known."""
        if self.noted:
            return
        self.noted = True
        data = b""
        if line is not None:
            data = marshal.dumps((line.kind(), vars(line.hidden), vars(line.room)), _NO_REFERENCES)
        file = kernel.memory_file(data)
        with suppress(OSError):  # there will be no next line: what forks the crews was let go, or killed
            self.note(template.TAKEN, b"", file)
        os.close(file)

    def close(self) -> None:
        super().close()
        os._exit(0)  # lines that run go on


class _WaitingCrew:
    """The crew of the next line: the launcher, and the supervisor, which takes the line."""

    def __init__(self, crews: _Crews) -> None:
        self._crews, self._pid = crews, os.getpid()
        self._launcher, self._to_launcher = _socket.socketpair()

    def work(self) -> None:
        """Be the launcher: fork the supervisor, and wait for the line; never comes back."""
        status, code = -1, template.GONE
        try:
            os.setsid()
            signals.default(signals.INT, signals.QUIT)
            crew = run.Crew(self._take)
            for one in (self._crews.requests, self._crews.to_template, self._to_launcher):
                one.close()  # the supervisor's: each sees when the other one has ended
            message, descriptors = template.receive(self._launcher, 1, FREE + 2)
            if message == _OTHER:
                crew.leave()
                crew = self._crew_for(descriptors)
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

    def _crew_for(self, descriptors: list[int]) -> run.Crew:
        """Fork a supervisor that is held to nothing yet, for a line that has come."""
        self._launcher.close()
        self._launcher, self._to_launcher = _socket.socketpair()
        self._crews.noted = True
        crew = run.Crew(lambda: self._line(descriptors, None))
        self._to_launcher.close()
        for fd in descriptors:
            os.close(fd)
        return crew

    def _take(self) -> confined_line.ConfinedLine | int:
        """Take a line from the owner, as the supervisor; an exit code if it cannot be started."""
        self._launcher.close()
        kernel.die_with_parent(signals.KILL)
        if os.getppid() != self._pid:
            os._exit(confined_line.FAILED)
        before = self._crews.last_line()
        if not template.is_waiting(self._crews.requests):
            if before is not None and self._crews.alike:
                before.confine_ahead()
            _rehearse(before)
        descriptors = self._crews.next_request(1, FREE + 2)[1]
        kernel.die_with_parent(0)  # from here on the line has to be ended first
        os.write(descriptors[0], self._pid.to_bytes(4, "little"))
        return self._line(descriptors, before)

    def _line(
        self, descriptors: list[int], before: confined_line.ConfinedLine | None
    ) -> confined_line.ConfinedLine | int:
        """The line that was asked for; one that is confined as the line before uses the command that waits."""
        status, file, *given = descriptors
        request = template.read_file(file)
        folder, words, variables, targets, *state = marshal.loads(request)  # noqa: S302 - written by our owner
        confined_line.place_descriptors(given, targets)  # where the line has them
        limits: list[int] = []
        if state:  # by `launcher.c`, which knows bytes only
            folder, words = os.fsdecode(folder), [os.fsdecode(word) for word in words]
            variables = dict(os.fsdecode(pair).partition("=")[::2] for pair in variables)
            mask, *limits = struct.unpack(f"{len(state[0]) // 8}Q", state[0])
            os.umask(mask)
            confined_line.use_limits(limits)
        template.replace_environ([os.fsencode(f"{name}={value}") for name, value in variables.items()])
        line, problem = None, None
        try:
            os.chdir(folder)
            policy, argv = main.understand(words)
            room = WritableDirs.make(policy)
            line = confined_line.ConfinedLine(policy, argv, variables, room, owner=status, before=before)
        except (main.UsageError, OSError) as error:
            problem = error
        if before is not None and before.confined:  # perhaps to rules under which this line cannot be understood
            fits = line is not None and before.hand_over(line, folder, limits, targets)
            if not fits:
                self._crews.note_line(line)
                template.send(self._to_launcher, _OTHER, [status, kernel.memory_file(request), *targets])
                os._exit(0)

        def tell_others() -> None:
            if self._to_launcher.fileno() >= 0:  # else they were told
                template.send(self._to_launcher, _WATCHED if state else b".", [status, 2])
                self._to_launcher.close()
                self._crews.note_line(line)

        if line is None:
            tell_others()
            return main.complain(problem)
        line.later = tell_others
        gc.enable()
        return line


def _rehearse(before: confined_line.ConfinedLine | None = None) -> None:
    """Understand and judge something, so that the memory which that writes to is this process's own before the line."""
    for starts, reads in ((True, True), (True, False), (False, True), (False, False)):
        scoped = kernel.landlock_version() >= SCOPED_SINCE
        syscalls.program(kernel.MACHINE, scoped_signals=scoped, starts=starts, reads=reads)
    policy = _USUAL if before is None else before.policy
    template.replace_environ([b"=".join(pair) for pair in os.environb.items()])
    with suppress(main.UsageError, OSError):  # of a place that has gone
        main.understand([*policy.arguments(), "--", "true"])
        hidden_places(policy, dict(os.environ))
        _ = before and WritableDirs.make(policy)  # which leaves a folder
    line = JudgedLine(_USUAL, WritableDirs([], "", "", ["/"]), (), None)
    judge = supervisor.Supervisor(line)
    judge.look_around()
    path = kernel.buffer(b"/bin/true\0")
    words = kernel.buffer(struct.pack("QQ", addressof(path), 0))
    arguments = (addressof(path), addressof(words), addressof(words) + 8, 0, 0, 0)
    with suppress(Refusal):
        judge.judge(Syscall("execve", (0, os.getpid(), 0, 0, 0, 0, *arguments), line.memory))
