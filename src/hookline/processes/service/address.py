"""Where the user's service is, and whether the process at the other end of a connection may be believed.

The folder depends on the user id alone. Variables such as `XDG_RUNTIME_DIR` are not asked: a project's settings can set
them for its hooks, and nothing a project contains may choose who answers. `HOOKLINE_SERVICE` only picks a name inside
that folder, or turns the service off.
"""

import _socket
import os
import sys

OFF = ("0", "off", "no", "false")  # what `HOOKLINE_SERVICE` may say to turn the service off
DEFAULT = "service"
ANSWERED = ("guard", "pipe", "fire", "answer")  # the commands that it answers
LONGEST_NAME = 40
ACCEPT_LIMIT = 2.0  # seconds in which the service must have passed the event on; after that it counts as hung
NAMESPACES = ("mnt", "user", "pid", "net", "ipc")
STATUS = (b"Uid:", b"Gid:", b"CapEff:", b"NoNewPrivs:", b"Seccomp:", b"Seccomp_filters:")
"""The lines of `/proc/PID/status` that tell a confined process from one that is not."""


def instance() -> str:
    """The name of the service to ask; nothing if it is turned off or this system cannot have one."""
    name = os.environ.get("HOOKLINE_SERVICE", "")
    if name in OFF or not hasattr(_socket, "AF_UNIX") or not hasattr(os, "fork") or os.getuid() != os.geteuid():
        return ""
    if name in ("", "1"):
        return DEFAULT
    plain = name.replace("-", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() and len(name) <= LONGEST_NAME else ""


def off_switch() -> str:
    """The file whose existence turns the service off for good: `hookline service off` makes it."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.environ.get("HOME") or "/", ".config")
    return os.path.join(config, "hookline", "service.off")


def folder() -> str:
    """The folder of the user's sockets, which may not exist yet."""
    base = f"/run/user/{os.getuid()}"
    if sys.platform != "linux":
        from hookline.core.interpreter import temporary_folder

        base = temporary_folder()
    return f"{base}/hookline" if is_private(base) else f"/tmp/hookline-{os.getuid()}"  # noqa: S108 - checked before use


def connect() -> _socket.socket | None:
    """A connection to the user's service, if it is there and takes us; it is told nothing yet."""
    connection, name = None, instance()
    try:
        if name and is_private(place := folder()):
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            connection.settimeout(ACCEPT_LIMIT)
            connection.connect(f"{place}/{name}.sock")
    except OSError:
        if connection is not None:
            connection.close()
        return None
    return connection


def is_private(path: str) -> bool:
    """Whether it is a folder, not a link to one, that is ours and that no other user can enter."""
    try:
        return is_ours_alone(os.lstat(path))
    except OSError:
        return False


def is_ours_alone(found: os.stat_result) -> bool:
    """The same of what was looked at already."""
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == os.getuid()


def peer(connection: _socket.socket) -> tuple[int, int]:
    """The process and the user at the other end, as the system knows them."""
    if hasattr(_socket, "SO_PEERCRED"):
        raw = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return int.from_bytes(raw[:4], sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder)
    raw = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: a `struct xucred`
    pid = connection.getsockopt(0, 2, 4)  # LOCAL_PEERPID
    return int.from_bytes(pid, sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder)


def is_trusted(connection: _socket.socket, own: list[object] | None = None) -> int:
    """The process id of the other end if it is this user's and as free as we are (`own`), else 0.

    A confined process (other namespaces, a seccomp filter, Landlock with its `no_new_privs`) must not have its hook
    files run outside of its confinement, and its answers must not count outside of it.
    """
    try:
        pid, uid = peer(connection)
        return pid if uid == os.getuid() and confinement(pid) == (own or confinement("self")) else 0
    except OSError:
        return 0


def confinement(pid: int | str) -> list[object]:
    """What a process may do, as far as the system tells: its ids, capabilities, filters, namespaces and root."""
    if sys.platform != "linux":
        return []
    with open(f"/proc/{pid}/status", "rb", buffering=0) as status:
        lines: list[object] = [line for line in status.read(8192).split(b"\n") if line.startswith(STATUS)]
    for name in NAMESPACES:
        lines.append(os.stat(f"/proc/{pid}/ns/{name}").st_ino)
    root = os.stat(f"/proc/{pid}/root")
    return [*lines, root.st_dev, root.st_ino]
