"""Sockets as doors: a program outside that takes orders would carry them out unconfined."""

from __future__ import annotations

import os
import struct

from hookline.sandbox.judged_line import JudgedLine, Notice
from hookline.sandbox.path_access import real
from hookline.sandbox.patterns import matches_glob
from hookline.sandbox.reports import Refusal
from hookline.sandbox.syscalls import AT_FDCWD, MESSAGE, MOST_MESSAGES, SENDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.judged_line import Table

_UNIX, _INTERNET, _INTERNET_6 = 1, 2, 10
_HARMLESS = ("/run/nscd/*", "/var/run/nscd/*", "/run/systemd/resolve/*", "/run/systemd/userdb/*", "/dev/log",
             "/run/systemd/journal/*", "*/S.gpg-agent*", "*/.s.PGSQL.*", "*/mysql*.sock", "*/mysqld.sock",
             "*/redis*.sock", "/run/avahi-daemon/socket")  # fmt: skip
"""Look-ups, logs, keys and databases: these answer, and start nothing in the caller's name."""
_DOORS = (
    "*/tmux-*/*", "*/.X11-unix/*", "*/screen/*", "*/.screen/*", "*/docker.sock", "*/podman.sock", "*/containerd.sock",
    "*/emacs*/server", "*/dbus-*", "*/kitty*", "*/.vscode-*", "*/vscode-*.sock", "*/nvim*",
)  # fmt: skip
"""Programs that run what they are told, also where their socket lies in a folder that may be written to."""
_REMOTE_SHELLS = {22: "ssh", 23: "telnet", 2375: "docker", 2376: "docker"}


class Sockets:
    """Whom a line may talk to on this machine."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line
        agent = os.environ.get("SSH_AUTH_SOCK", "")
        self._allowed = tuple(os.path.realpath(path) for path in (*line.policy.sockets, agent) if path)

    def table(self) -> Table:
        """The calls that make a socket, or name whom it talks to."""
        table: Table = dict.fromkeys(SENDS, self._send)
        return table | {"connect": self._connect, "socket": self._socket}

    def _connect(self, _name: str, notice: Notice) -> Refusal | None:
        return self._address(notice[1], notice[6 + 1], notice[6 + 2])

    def _address(self, thread: int, address: int, length: int) -> Refusal | None:
        data = self._line.memory.block(thread, address, min(length, 110)) if address and length else b""
        refusal = self.refuse(thread, data)
        if refusal is None and (host := host_in(data)):
            self._line.saw("host", host)
        return refusal

    def _send(self, name: str, notice: Notice) -> Refusal | None:
        thread, arguments = notice[1], notice[6:]
        if name == "sendto":
            return self._address(thread, arguments[4], arguments[5])
        count = min(arguments[2], MOST_MESSAGES) if name == "sendmmsg" else 1
        for index in range(count):
            head = self._line.memory.block(thread, arguments[1] + index * MESSAGE, 12)
            refusal = self._address(thread, *struct.unpack("QI", head))
            if refusal is not None:
                return refusal
        return None

    def _socket(self, _name: str, _notice: Notice) -> Refusal | None:
        return Refusal("the network", "--no-network", "this line runs without one")

    def refuse(self, thread: int, address: bytes) -> Refusal | None:
        """Why a connection may not be made, if it may not; the kernel itself answers what is no address at all."""
        family = struct.unpack("H", address[:2])[0] if len(address) > 2 else 0
        if family == _UNIX:
            return self._local(thread, address[2:])
        port = struct.unpack(">H", address[2:4])[0] if len(address) >= 8 else 0
        if port in _REMOTE_SHELLS and _loopback(family, address):
            what = f"to connect to {_REMOTE_SHELLS[port]} on this machine"
            return Refusal(what, self._line.policy.write_guard, "it would run commands outside")
        return None

    def _local(self, thread: int, name: bytes) -> Refusal | None:
        if self._line.places is None or name.startswith(b"\0"):
            return None
        path = real(thread, AT_FDCWD, os.fsdecode(name.partition(b"\0")[0]))
        if path in self._allowed or not os.path.exists(path):
            return None
        if not self._is_door(path):
            return None
        return Refusal(
            f"to connect to `{path}`", self._line.policy.write_guard, "its listener is outside",
            f"to allow it, add `--socket {path}`",
        )  # fmt: skip

    def _is_door(self, path: str) -> bool:
        if self._line.temporary and path.startswith(f"{self._line.temporary}/"):
            return False  # its listener was started by this line
        if any(matches_glob(pattern, path) for pattern in _DOORS):
            return True
        inside = self._line.places is not None and self._line.places.hold(path)
        return not inside and not any(matches_glob(pattern, path) for pattern in _HARMLESS)


def host_in(address: bytes) -> str:
    """The host and port of an Internet address as the kernel has it; nothing for any other."""
    family = struct.unpack("H", address[:2])[0] if len(address) >= 8 else 0
    if family == _INTERNET:
        return f"{'.'.join(map(str, address[4:8]))}:{struct.unpack('>H', address[2:4])[0]}"
    if family != _INTERNET_6 or len(address) < 24:
        return ""
    return f"[{':'.join(f'{part:x}' for part in struct.unpack('>8H', address[8:24]))}]:{address[2] << 8 | address[3]}"


def _loopback(family: int, address: bytes) -> bool:
    if family == _INTERNET:
        return address[4] in (0, 127)
    if family != _INTERNET_6 or len(address) < 24:
        return False
    host = address[8:24]
    return host in (bytes(15) + b"\1", bytes(16)) or (host[:12] == bytes(10) + b"\xff\xff" and host[12] in (0, 127))
