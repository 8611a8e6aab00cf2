"""What belongs to programs outside although a line could reach it: their processes, terminals and shared memory."""

from __future__ import annotations

import os
import stat

from hookline.sandbox.kernel import content
from hookline.sandbox.syscalls import BY_USER, IPC_CHANGES, NEW_LIMIT, OWNED_GROUPS, READ_ONLY_SEGMENT

_SHARED = ("/dev/shm", "/dev/pts")
"""Folders that every program puts something into; a line may, too, but what was there before is not its own."""
_TERMINALS = range(136, 144)
_KINDS = {"shmat": "shm", "shmctl": "shm", "semop": "sem", "semtimedop": "sem", "semctl": "sem",
          "msgsnd": "msg", "msgrcv": "msg", "msgctl": "msg"}  # fmt: skip


class OutsideResources:
    """What was there before the line: taken down before it starts."""

    def __init__(self) -> None:
        found = {f"{folder}/{entry.name}": entry.inode() for folder in _SHARED for entry in _entries(folder)}
        found.pop("/dev/pts/ptmx", None)
        own = _own_terminals() if found else ()
        self._files = {path: inode for path, inode in found.items() if path not in own}
        self._segments = {kind: _identifiers(kind) for kind in ("shm", "sem", "msg")}

    def own(self, path: str) -> bool:
        """Whether a real path is, or lies below, something that was in a shared folder before."""
        if not path.startswith(_SHARED):
            return False
        top = "/".join(path.split("/", 4)[:4])
        if top not in self._files:
            return False
        try:
            return os.lstat(top).st_ino == self._files[top]
        except OSError:
            return False

    def own_segment(self, name: str, arguments: tuple[int, ...]) -> bool:
        """Whether a System V call would change what was there before."""
        if name == "shmat" and arguments[2] & READ_ONLY_SEGMENT:
            return False
        position, commands = IPC_CHANGES.get(name, (0, ()))
        if commands and arguments[position] & 0xFF not in commands:
            return False
        return arguments[0] & 0xFFFFFFFF in self._segments[_KINDS[name]]


def keep_sockets() -> None:
    """Do not hand on sockets that are connected outside to the command, standard streams apart."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                os.set_inheritable(int(name), False)
        except OSError:
            continue


def target(name: str, arguments: tuple[int, ...], thread: int) -> int | None:
    """The process whose limits or scheduling a call changes, negative for a group; None if it changes none.

    -1 stands for everything of a user.
    """
    if name == "prlimit64" and not arguments[NEW_LIMIT]:
        return None
    if name not in OWNED_GROUPS:
        return signed(arguments[0]) or thread
    kind, who = arguments[0] & 0xFFFFFFFF, signed(arguments[1])
    first = OWNED_GROUPS[name]
    if kind == first + BY_USER:
        return -1
    return (who or thread) if kind == first else -(who or os.getpgid(thread))


def signed(value: int) -> int:
    """An argument that is an `int`, of which the kernel looks at the lower half."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _own_terminals() -> set[str]:
    """The terminal that this process belongs to, and those it was given."""
    found = set()
    for fd in (0, 1, 2):
        try:
            found.add(os.ttyname(fd))
        except OSError:
            continue
    return found | {terminal_of("self")}


def terminal_of(thread: int | str) -> str:
    """The terminal that a thread belongs to; empty where it has none."""
    number = int(content(f"/proc/{thread}/stat").rpartition(b")")[2].split()[4])
    if os.major(number) not in _TERMINALS:
        return ""
    return f"/dev/pts/{(os.major(number) - _TERMINALS.start) * 256 + os.minor(number)}"


def _identifiers(kind: str) -> frozenset[int]:
    """The ids of what there is of a System V kind."""
    try:
        return frozenset(int(line.split()[1]) for line in content(f"/proc/sysvipc/{kind}").splitlines()[1:])
    except OSError:
        return frozenset()
