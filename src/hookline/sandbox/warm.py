"""Starting confined lines from a program that runs on: without a new interpreter for each."""

import atexit
import contextlib
import marshal
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping

from hookline.core.interpreter import launch_argv
from hookline.sandbox.policy import Policy

_MOST, _TRIES, _LIMITS = 10, 3, 16
_SOURCE = os.path.join(os.path.dirname(__file__), "launcher.c")
_STATUS = (b"Groups:", b"Cpus_allowed:")


class WarmLine:
    """A line that was started: its process, which leads a session of its own, and where its exit code arrives."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid: int = pid
        self.status: int = status

    def exit_code(self) -> int | None:
        """Wait for the line to end; 137 if it was killed, None if no process was left to tell."""
        with open(self.status, "rb", 0) as status:
            told = status.read(4)
        return int.from_bytes(told, "little") if told else None


class WarmStarter:
    """Starts confined lines through a process that is kept for this, and started with the first of them."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(
        self, policy: Policy, command: list[str], *, cwd: str, env: Mapping[str, str], files: Mapping[int, int]
    ) -> WarmLine:
        """Start a command; `files` are its descriptors, by the numbers it will have. OSError if it cannot be."""
        if [*files][:3] != [0, 1, 2] or max(files) >= _MOST:
            raise ValueError(f"the descriptors of a line are 0, 1, 2 and numbers below {_MOST}")
        with open(os.memfd_create("line"), "wb", 0) as order:
            words = [*policy.arguments(), "--", *command]
            order.write(marshal.dumps((cwd, words, dict(env), list(files))))
            for _ in range(_TRIES):
                line = self._start([order.fileno(), *files.values()])
                if line is not None:
                    return line
        raise ConnectionError("the line was not started")

    def _start(self, descriptors: list[int]) -> WarmLine | None:
        """The line that was started; None if the crew that took it was killed before, so that nothing has run."""
        status, tell = os.pipe()
        try:
            self.send([tell, *descriptors])
        except OSError:
            os.close(status)
            raise
        finally:
            os.close(tell)
        told = os.read(status, 4)
        if told:
            return WarmLine(int.from_bytes(told, "little"), status)
        os.close(status)
        return None

    def warm_up(self) -> None:
        if self._channel is None or self._owner != os.getpid():
            self._open()

    def send(self, descriptors: list[int]) -> None:
        """Hand on a request: where to answer, what to run, and the line's descriptors."""
        self.warm_up()
        assert self._channel is not None
        try:
            socket.send_fds(self._channel, [b"."], descriptors)
        except OSError:
            self._open()
            socket.send_fds(self._channel, [b"."], descriptors)

    def _open(self) -> None:
        """Start the process that starts lines; it ends when our end of the channel is closed."""
        self.close()
        if not self._owner:
            atexit.register(self.close)
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*launch_argv(), "--serve", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        self._channel, self._owner = ours, os.getpid()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self.process is not None and self._owner == os.getpid():
            self.process.wait()
        self._channel = self.process = None


class LineServer:
    """Takes the requests of `launcher.c` and hands each to a crew, where that can stand in for what the caller is."""

    def __init__(self, path: str, trusted: Callable[[socket.socket], int]) -> None:
        self._trusted, self._starter = trusted, WarmStarter()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener: socket.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.setblocking(False)
        self.listener.bind(path)
        self.listener.listen(128)
        self._path = path
        self._starter.warm_up()

    def accept(self) -> None:
        """Hand on every request that is there; one that is declined is closed, and its launcher does without."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except BlockingIOError:
                return
            with connection, contextlib.suppress(OSError):
                self._hand_on(connection)

    def _hand_on(self, connection: socket.socket) -> None:
        connection.settimeout(1)
        descriptors = socket.recv_fds(connection, 1, _MOST + 2)[1]
        try:
            pid = self._trusted(connection)
            if pid and len(descriptors) > 4 and _alike(pid):
                self._starter.send(descriptors)
        finally:
            for fd in descriptors:
                os.close(fd)

    def close(self) -> None:
        """Take no more requests; lines that run go on."""
        self.listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._starter.close()


def _alike(pid: int) -> bool:
    """Whether a process is where we are: in our cgroup and groups, on our processors, and without a higher limit."""
    same = os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
    same = same and _read(pid, "cgroup") == _read("self", "cgroup") and _facts(pid) == _facts("self")
    limits = [resource.prlimit(pid, each)[1] for each in range(_LIMITS)]
    own = [resource.getrlimit(each)[1] for each in range(_LIMITS)]
    return same and all(mine == -1 or 0 <= theirs <= mine for theirs, mine in zip(limits, own, strict=True))


def _facts(pid: int | str) -> list[bytes]:
    return [line for line in _read(pid, "status").splitlines() if line.startswith(_STATUS)]


def _read(pid: int | str, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
        return file.read(65536)


def launcher_path(state: str) -> str:
    """Where the launcher of this version is kept once it is built."""
    source = os.stat(_SOURCE)
    return f"{state}/launcher-{source.st_size:x}-{source.st_mtime_ns:x}"


def build_launcher(state: str) -> str:
    """Build the launcher unless it is there; its path, or nothing where there is no compiler."""
    path, compiler = launcher_path(state), shutil.which("cc")
    if os.path.exists(path):
        return path
    new = f"{path}.{os.getpid()}"
    argv = [compiler or "", "-O2", "-o", new, _SOURCE]
    if not compiler or subprocess.run(argv, capture_output=True, check=False).returncode:
        return ""
    os.rename(new, path)
    return path
