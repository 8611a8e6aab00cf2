"""A process that forks: it has imported what its forks need, and one of them always waits for the next request.

The fork that waits (a spare) takes the request from the socket itself, tells the template, and is a run from then on;
the template forks the next spare, and says how runs end. Requests are short messages with descriptors, so that one
read gives one message; what is long (an environment) is in a file whose descriptor goes along.

Warm interpreters load this file by its path: it needs nothing but the standard library's C modules.
"""

import _signal  # type: ignore[import-not-found]  # `signal` would load `enum`
import _socket
import _thread
import os
import select
import sys
import time

GONE = 71  # the exit code of a spare that found no owner; the template ends as well
TAKEN = b"t"  # what a spare tells its template: it has taken a request. Other letters are the client's own
MOST_LOST = 3  # spares in a row that may end without a request


def send(channel: _socket.socket, data: bytes, fds: list[int] | tuple[int, ...]) -> None:
    """Send a message and open descriptors."""
    rights = b"".join([fd.to_bytes(4, sys.byteorder) for fd in fds])
    channel.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if fds else [])


def receive(channel: _socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """The next message and its descriptors, which programs do not inherit; an empty one at the end."""
    data, ancillary, _, _ = channel.recvmsg(size, _socket.CMSG_SPACE(4 * most))
    fds = []
    for level, kind, rights in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            whole = len(rights) - len(rights) % 4
            fds += [int.from_bytes(rights[at : at + 4], sys.byteorder) for at in range(0, whole, 4)]
    for fd in fds:
        os.set_inheritable(fd, False)
    return data, fds


def read_file(fd: int) -> bytes:
    """All of a file that came along, which is closed; where others read it does not matter."""
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    return data


def files_of(modules: list[object]) -> list[str]:
    """The files that modules were loaded from, the standard library's own aside."""
    stdlib = os.path.dirname(os.__file__)
    files = [getattr(module, "__file__", None) or stdlib + os.sep for module in modules]
    return [file for file in files if not file.startswith(stdlib + os.sep) or "-packages" in file[len(stdlib) :]]


def redirect(fds: list[int]) -> None:
    """Make these descriptors stdin, stdout and stderr."""
    for target, fd in enumerate(fds):
        os.dup2(fd, target)


def discard(*targets: int) -> None:
    """Have nothing come from these descriptors, and go nowhere what is written to them."""
    null = os.open(os.devnull, os.O_RDWR)
    for target in targets:
        os.dup2(null, target)
    if null not in targets:
        os.close(null)


def replace_environ(entries: list[bytes]) -> None:
    """Make this the environment, in this order; the locale that Python itself has put there stays (PEP 538)."""
    new = dict([entry.partition(b"=")[::2] for entry in entries])
    old = os.environ._data  # type: ignore[attr-defined]  # noqa: SLF001 - `os.environ` has no way to set an order
    if b"LC_CTYPE" in old and b"LC_CTYPE" not in new:
        new[b"LC_CTYPE"] = old[b"LC_CTYPE"]
    for name in old.keys() - new.keys():
        os.unsetenv(name)
    for name, value in new.items():
        if old.get(name) != value:
            os.putenv(name, value)
    old.clear()
    old.update(new)


def is_waiting(channel: _socket.socket, seconds: float = 0) -> bool:
    """Whether there is a request, now or soon."""
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class Run:
    """A fork that has taken a request; what it was sent with the note that says so."""

    def __init__(self, data: bytes, fds: list[int]) -> None:
        self.data: bytes = data
        self.fds: list[int] = fds
        self.begun: float = time.monotonic()


class Template:
    """The process that forks. Subclasses say what a run is (`taken`) and what follows its end (`ended`)."""

    quiet: float = 0.0  # seconds after a request without a fork ahead: the run wants the machine for itself

    def __init__(self, requests: _socket.socket) -> None:
        self.requests = requests
        os.set_inheritable(requests.fileno(), False)
        self.running: dict[int, Run] = {}
        self.waiting: set[int] = set()
        self.open: bool = True
        self.lost: int = 0
        self.fork_at: float = 0.0
        self.pid: int = 0
        self.wake: tuple[int, int] = os.pipe()
        for fd in self.wake:
            os.set_blocking(fd, False)
        self.notes: _socket.socket
        self.to_template: _socket.socket
        self.notes, self.to_template = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        self.notes.setblocking(False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(self.wake[1], warn_on_full_buffer=False)
        self.poll: select.poll = select.poll()
        self.poll.register(self.notes.fileno(), select.POLLIN)
        self.poll.register(self.wake[0], select.POLLIN)

    def serve(self) -> None:
        """Fork for every request. Returns in the forks only; the process ends with its owner and its last run."""
        while self.open or self.running:
            needed = self.open and not self.waiting
            if needed and self.fork_at <= time.monotonic():
                if self._fork():
                    return
                continue
            ready = self._wait(needed)
            if self.requests.fileno() in ready:
                self.fork_at = 0.0
            self.look(ready)
        os._exit(0)

    def _wait(self, needed: bool) -> set[int]:  # noqa: FBT001 - called once
        due = [*self.due(), self.fork_at] if needed else self.due()
        patience = max(0, int((min(due) - time.monotonic()) * 1000) + 1) if due else None
        if needed:
            self.poll.register(self.requests.fileno(), select.POLLIN)
        try:
            return {fd for fd, _ in self.poll.poll(patience)}
        finally:
            if needed:
                self.poll.unregister(self.requests.fileno())

    def look(self, ready: set[int]) -> None:
        """See what has become of the forks; `ready` are the descriptors that have something to tell."""
        self._hear()
        try:
            os.read(self.wake[0], 65536)
        except BlockingIOError:
            pass
        while self.running or self.waiting:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            self._hear()  # it may have told us in its last moment
            if pid in self.waiting:
                self.waiting.discard(pid)
                self.lost += status != 0
                if status == GONE << 8 or self.lost > MOST_LOST:
                    self.close()
            elif pid in self.running:
                self.ended(pid, self.running.pop(pid), status)

    def _hear(self) -> None:
        while True:
            try:
                data, fds = receive(self.notes, 4096, 4)
            except BlockingIOError:
                return
            self.heard(data[:1], int.from_bytes(data[1:5], "big"), data[5:], fds)

    def close(self) -> None:
        """Take no more requests; the spare is not needed any more."""
        self.open = False
        for pid in self.waiting:
            os.kill(pid, _signal.SIGKILL)

    def say(self, *words: bytes) -> None:
        try:
            self.requests.sendall(b" ".join(words) + b"\n")
        except OSError:
            self.open = False

    def announce(self, files: list[str]) -> None:
        """Tell the owner that forks can be had, and which files they are made from; end where that cannot be."""
        paths = [os.fsencode(path) for path in files]
        threads = os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else [""]
        if _thread._count() or len(threads) > 1 or b"\n" in b"".join(paths):  # noqa: SLF001 - forking needs one thread
            os._exit(70)
        self.say(b"ready", b"\0".join(paths))

    def heard(self, kind: bytes, pid: int, data: bytes, fds: list[int]) -> None:
        if kind == TAKEN:
            self.waiting.discard(pid)
            self.lost = 0
            self.fork_at = time.monotonic() + self.quiet
            self.running[pid] = self.taken(data, fds)

    def taken(self, data: bytes, fds: list[int]) -> Run:
        return Run(data, fds)

    def ended(self, pid: int, run: Run, status: int) -> None:
        """A run has ended."""

    def due(self) -> list[float]:
        """When to look around even if nothing happens."""
        return []

    def _fork(self) -> bool:
        try:
            pid = os.fork()
        except OSError:  # too many processes: the owner starts another template when there is room
            self.close()
            return False
        if pid:
            self.waiting.add(pid)
            return False
        self.pid = os.getpid()
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        for fd in (*self.wake, self.notes.detach(), *[fd for run in self.running.values() for fd in run.fds]):
            os.close(fd)
        return True

    def note(self, kind: bytes, data: bytes = b"", *fds: int) -> None:
        send(self.to_template, kind + self.pid.to_bytes(4, "big") + data, fds)

    def next_request(self, size: int, most: int) -> tuple[bytes, list[int]]:
        """The next request, as a spare; the process ends if its owner has."""
        data, fds = receive(self.requests, size, most)
        if not data:
            os._exit(GONE)
        return data, fds
