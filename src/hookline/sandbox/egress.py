"""A line's network. By name: every Internet connection of a line ends at its broker, whatever address it was for.

In a network namespace of the line's own every address is local to it, and datagrams stay there. Where there can be
none, only TCP sockets are made, names are looked up over TCP, and Landlock keeps the line itself from connecting.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import select
import struct

from hookline.core import template
from hookline.sandbox import kernel, signals
from hookline.sandbox.hosts import INTERNET, INTERNET_6, Hosts, synthetic
from hookline.sandbox.judged_line import CallMade, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hookline.sandbox.judged_line import SocketCopy
    from hookline.sandbox.placeholders import Placeholders
    from hookline.sandbox.policy import Policy

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NETLINK, _RAW, _STREAM, _DATAGRAM = 16, 3, 1, 2
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_REQUEST_NEW = 0x605  # NLM_F_REQUEST, ACK, CREATE and EXCL
_NEW_ADDRESS, _NEW_ROUTE = 20, 24
_LOCAL_TABLE, _BOOT, _HOST_SCOPE, _LOCAL = 255, 3, 254, 2
_FAMILIES = ((INTERNET, "0.0.0.0", (0, 8)), (INTERNET_6, "::", (41, 49)))  # noqa: S104 - of the line's own network
"""Internet families: any address of theirs, and the option that tells where a datagram was sent to."""
_ONLY_6 = (41, 26)
ADDRESS = "198.18.0.1"
"""The line's own: C libraries look no IPv4 names up where there is no such address."""
_LOOKUPS = 53
_LISTENS = b"0A"
_PATIENCE = 1.0
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared; what is bound there is bound to the loopback instead
_PROXIES = "_proxy"


class Egress:
    """The supervisor's side: it connects a line's sockets to doors of its own and hands their other ends on."""

    def __init__(self, policy: Policy, variables: Mapping[str, str], tokens: Placeholders | None) -> None:
        self._hosts = Hosts(policy.hosts)
        self.channel: _socket.socket = _start_broker(policy.hosts, variables, tokens)
        self.namespace: bool = False
        self._doors: dict[int, _socket.socket] = {}
        self._own: dict[int, int] = {}

    def open_doors(self, descriptors: list[int]) -> None:
        """Take the sockets of the line's own network, or make some on this machine's loopback."""
        self.namespace = bool(descriptors)
        for fd in descriptors:
            sock = _socket.socket(fileno=fd)
            if sock.type == _STREAM:
                self._doors[sock.family] = sock
            else:
                template.send(self.channel, b"lookups", [sock.detach()])
                os.close(fd)
        for family, host in () if descriptors else ((INTERNET, "127.0.0.1"), (INTERNET_6, "::1")):
            try:
                door = _socket.socket(family, _STREAM)
                door.bind((host, 0))
            except OSError:
                continue  # a machine with one kind of address
            door.listen(512)
            door.setblocking(False)
            self._doors[family] = door

    @property
    def kept(self) -> list[int]:
        return [self.channel.fileno(), *(door.fileno() for door in self._doors.values())]

    def reports(self) -> list[list[str]] | None:
        """What the broker has to say: kind, what, reason and advice each; None once it has ended."""
        found: list[list[str]] = []
        while True:
            try:
                data = self.channel.recv(4096, _socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            if not data:
                return None
            found.append(data.decode("utf-8", "replace").split("\0"))

    def connect(self, sock: SocketCopy, host: str, port: int) -> None:
        """Connect a socket to the broker; returns if the address is the line's own and may be connected to as it is."""
        if sock.socket.type != _STREAM:
            if self.namespace:
                return
            raise Refusal(f"to send to {host}:{port}", "only TCP reaches named hosts", guard="host_guard")
        if port == _LOOKUPS:
            self._hand_on(sock, b"lookups-stream")
        if synthetic(host) or self._hosts.names_at(host, port):
            self._hand_on(sock, f"{host} {port}".encode())
        if host.startswith("127.") or host in ("::1", *_ANY):
            if self.namespace or self._listener(port) == "own":
                return
            if not self._listener(port):
                raise kernel.error(errno.ECONNREFUSED)
            what, advice = f"to connect to port {port} of this machine", f"to allow it, add `--host localhost:{port}`"
            raise Refusal(what, "its listener is outside", advice, guard="host_guard")
        reason = "it is an address, not the name of a host"
        raise Refusal(f"to connect to {host}:{port}", reason, "use a name", guard="host_guard")

    def _hand_on(self, sock: SocketCopy, target: bytes) -> None:
        """Connect to our own door, take the other end ourselves, and tell the broker what it was for."""
        family = _family(sock)
        door = self._doors.get(family)
        if door is None:
            raise kernel.error(errno.EACCES)
        host = _written(sock, "::1" if family == INTERNET_6 else "127.0.0.1")
        code = sock.socket.connect_ex((host, door.getsockname()[1]))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        mine = sock.socket.getsockname()[1]
        while select.select([door], [], [], _PATIENCE)[0]:
            try:
                fd, peer = door._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - `socket` wraps this
            except BlockingIOError:
                continue
            try:
                if peer[1] == mine:  # else a stranger's
                    template.send(self.channel, target, [fd])
                    if code:
                        raise OSError(code, os.strerror(code))
                    raise CallMade
            finally:
                os.close(fd)
        raise kernel.error(errno.ECONNREFUSED)

    def bind(self, sock: SocketCopy, host: str, port: int) -> None:
        """Bind to the loopback, which is all there is for a line that has no network of its own."""
        if host in _ANY:
            host = "::1" if host == "::" and _family(sock) == INTERNET_6 else "127.0.0.1"
        if not host.startswith("127.") and host != "::1":
            raise kernel.error(errno.EADDRNOTAVAIL)
        sock.socket.bind((_written(sock, host), port))

    def listen(self, sock: SocketCopy, backlog: int) -> None:
        """Listen, and remember where; a socket without an address gets one of the loopback."""
        if sock.socket.family in (INTERNET, INTERNET_6):
            if not sock.socket.getsockname()[1]:
                self.bind(sock, _ANY[sock.socket.family == INTERNET_6], 0)
            self._own[sock.socket.getsockname()[1]] = os.fstat(sock.fd).st_ino
        sock.socket.listen(max(backlog, 0))

    def _listener(self, port: int) -> str:
        """Whose socket listens at a port of this machine: `own`, `other`, or nobody's."""
        inodes = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            rows = [row.split() for row in kernel.content(table).splitlines()[1:]]
            inodes |= {
                int(row[9]) for row in rows if row[3] == _LISTENS and int(row[1].rpartition(b":")[2], 16) == port
            }
        return "own" if self._own.get(port) in inodes else "other" if inodes else ""


def _start_broker(hosts: tuple[str, ...], variables: Mapping[str, str], tokens: Placeholders | None) -> _socket.socket:
    """Fork the broker; where connections are handed to it and its reports arrive."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        signals.apart.add(pid)
        return ours
    try:
        kernel.die_with_parent(signals.KILL)
        if os.getppid() != parent:
            os._exit(0)
        os.setsid()
        template.discard(0, 1, 2)
        kernel.close_all_but(0, 1, 2, theirs.fileno())
        signals.default(signals.TERM, signals.HUP)
        from hookline.sandbox.broker import Broker  # and asyncio, while the line starts

        Broker(hosts, theirs.fileno(), variables, tokens).serve()
    finally:
        os._exit(1)


def _family(sock: SocketCopy) -> int:
    """Which addresses a socket takes; one for both is taken for IPv4."""
    family: int = sock.socket.family
    return family if family == INTERNET or sock.socket.getsockopt(*_ONLY_6) else INTERNET


def _written(sock: SocketCopy, host: str) -> str:
    return f"::ffff:{host}" if sock.socket.family == INTERNET_6 and ":" not in host else host


def variables(given: dict[str, str], *, namespace: bool) -> dict[str, str]:
    """A line's variables where it reaches hosts by name: no proxies, and without a namespace lookups over TCP."""
    kept = {name: value for name, value in given.items() if not name.lower().endswith(_PROXIES)}
    return kept if namespace else {**kept, "RES_OPTIONS": f"{given.get('RES_OPTIONS', '')} use-vc".strip()}


# -- a network of the line's own, with nothing but its loopback: there every address is the line's -----------------


def unshare_network() -> None:
    """Move to a network of our own, with nothing in it but its loopback; needs a user namespace unless we are root."""
    user, group = os.geteuid(), os.getegid()
    try:
        kernel.call("unshare", _NEW_NETWORK)
    except OSError:
        try:
            kernel.call("unshare", _NEW_NETWORK | _NEW_USER)
            for name, text in ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        except OSError as error:
            raise kernel.Unsupported(f"a network of its own is not allowed here: {error.strerror}") from None
    sock = _socket.socket(_FAMILIES[0][0], _DATAGRAM)
    try:
        fcntl.ioctl(sock.fileno(), _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))
    finally:
        sock.close()


def can_unshare() -> bool:
    """Whether a network with every address in it can be had; tried in another process, for there is no way back."""
    child = os.fork()
    if child == 0:
        try:
            unshare_network()
            listeners()
        except (OSError, kernel.Unsupported):
            os._exit(1)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def listeners() -> list[int]:
    """Make every address our own; sockets for connections to any of them, and for lookups at any of them."""
    found: list[int] = []
    for family, anywhere, destination in _FAMILIES:
        try:
            _local_route(family)
            stream, packets = _socket.socket(family, _STREAM), _socket.socket(family, _DATAGRAM)
            for sock in (stream, packets):
                if ":" in anywhere:
                    sock.setsockopt(*_ONLY_6, 1)
            packets.setsockopt(*destination, 1)
            stream.bind((anywhere, 0))
            packets.bind((anywhere, 53))
        except OSError:
            if not found:
                raise
            break  # no IPv6
        stream.listen(512)
        for sock in (stream, packets):
            sock.setblocking(False)
            found.append(sock.detach())
    return found


def _local_route(family: int) -> None:
    route = struct.pack("8BI", family, 0, 0, 0, _LOCAL_TABLE, _BOOT, _HOST_SCOPE, _LOCAL, 0)
    _tell_kernel(_NEW_ROUTE, route + struct.pack("HHI", 8, 4, 1))
    if family == _FAMILIES[0][0]:
        own = _socket.inet_aton(ADDRESS)
        _tell_kernel(_NEW_ADDRESS, struct.pack("4BI", family, 32, 0, 0, 1) + struct.pack("HH4s", 8, 2, own))


def _tell_kernel(kind: int, body: bytes) -> None:
    link = _socket.socket(_NETLINK, _RAW, 0)
    try:
        link.send(struct.pack("IHHII", 16 + len(body), kind, _REQUEST_NEW, 1, 0) + body)
        error = -struct.unpack("i", link.recv(4096)[16:20])[0]
    finally:
        link.close()
    if error:
        raise OSError(error, os.strerror(error))
