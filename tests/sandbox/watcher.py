"""A program outside, for lines to reach: a process that does nothing, and its parent, which notes when it is touched.

What was touched is written to `$OUT/touched`. Runs in the arena, beside a line.
"""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path

OUT, PROJECT = Path(os.environ["OUT"]), Path(os.environ["PROJECT"])
_IPC_STAT, _GETVAL, _KEYCTL, _KEY_READ, _ADD_KEY, _IOPRIO_GET, _USER_KEYRING = 2, 12, 250, 11, 248, 252, -4
_KEY = 0x4711
_MOMENT = 0.01
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


def listening(path: Path, kind: int) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(str(path))
    server.setblocking(False)
    if kind == socket.SOCK_STREAM:
        server.listen(9)
    return server


def happens(act: Callable[[], object]) -> bool:
    try:
        return bool(act())
    except OSError:
        return False


class Watched:
    """Everything of the watched process that another one could change."""

    def __init__(self) -> None:
        self.shm, self.sem, self.msg = (
            libc.shmget(_KEY, 4096, 0o1666), libc.semget(_KEY, 1, 0o1666), libc.msgget(_KEY, 0o1666),
        )  # fmt: skip
        libc.mq_unlink(b"/watched")
        self.queue = libc.mq_open(b"/watched", os.O_CREAT | os.O_RDWR, 0o666, None)
        libc.mq_send(self.queue, b"mine", 4, 0)
        self.memory = libc.shmat(self.shm, None, 0)
        self.key = libc.syscall(_ADD_KEY, b"user", b"watched", b"mine", 4, _USER_KEYRING)
        self.master, slave = os.openpty()
        os.set_blocking(self.master, False)
        self.terminal = os.ttyname(slave)
        self.packets = listening(OUT / "packets", socket.SOCK_DGRAM)
        self.streams = listening(OUT / "streams", socket.SOCK_STREAM)
        (PROJECT / "tmux-0").mkdir()
        self.inside = listening(PROJECT / "tmux-0" / "default", socket.SOCK_STREAM)
        Path("/dev/shm/watched").write_text("mine")
        self.secret = ctypes.create_string_buffer(b"unchanged")

    def events(self) -> list[str]:
        """What has come in."""
        found = {
            "typed": lambda: os.read(self.master, 9), "packet": lambda: self.packets.recv(9),
            "caller": self.streams.accept, "caller inside": self.inside.accept,
        }  # fmt: skip
        return [name for name, act in found.items() if happens(act)]

    def facts(self, pid: int) -> dict[str, object]:
        """What the kernel says of the process and of what it shares."""
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        room = ctypes.create_string_buffer(256)
        return {
            "limits": [resource.prlimit(pid, limit) for limit in range(16)],
            "priority": os.getpriority(os.PRIO_PROCESS, pid),
            "processors": sorted(os.sched_getaffinity(pid)),
            "scheduler": os.sched_getscheduler(pid),
            "io": libc.syscall(_IOPRIO_GET, 1, pid),
            "score": Path(f"/proc/{pid}/oom_score_adj").read_text(),
            "state": [line for line in status if line.startswith(("Name", "SigPnd", "ShdPnd", "TracerPid"))],
            "ended": os.waitpid(pid, os.WNOHANG | os.WUNTRACED),
            "file": Path("/dev/shm/watched").read_text(),
            "shared": ctypes.string_at(self.memory, 4),
            "segments": [
                libc.shmctl(self.shm, _IPC_STAT, room), libc.semctl(self.sem, 0, _GETVAL, 0),
                libc.msgctl(self.msg, _IPC_STAT, room), libc.syscall(_KEYCTL, _KEY_READ, self.key, None, 0),
            ],
            "queue": (os.fstat(self.queue).st_nlink, os.pread(self.queue, 80, 0)),
            "messages": int.from_bytes(room.raw[72:88], "little"),
            "secret": self.told(pid),
        }  # fmt: skip

    def told(self, pid: int) -> bytes:
        """What is in the process's memory; the file is closed again, since this is asked a hundred times a second."""
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            return os.pread(memory.fileno(), 9, ctypes.addressof(self.secret))


def watch(watched: Watched, pid: int) -> str:
    before = watched.facts(pid)
    notes = {"address": ctypes.addressof(watched.secret), "terminal": watched.terminal, "key": watched.key, "pid": pid}
    for name, value in notes.items():
        (OUT / name).write_text(str(value))
    (OUT / "ready").touch()
    while True:
        try:
            now = watched.facts(pid)
        except OSError as error:
            return str(error)
        changed = [f"{name}: {value} became {now[name]}" for name, value in before.items() if now[name] != value]
        if changed := [*watched.events(), *changed]:
            return "; ".join(changed)
        time.sleep(_MOMENT)


def main() -> None:
    watched = Watched()
    pid = os.fork()
    while pid == 0:
        time.sleep(1)
    (OUT / "touched").write_text(watch(watched, pid))


if __name__ == "__main__":
    main()
