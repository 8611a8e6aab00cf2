"""A network of the line's own: nothing but its loopback, and there every address is the line's."""

from __future__ import annotations

import _socket
import fcntl
import os
import struct

from hookline.sandbox import kernel

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NETLINK, _RAW, _STREAM, _DATAGRAM = 16, 3, 1, 2
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_REQUEST_NEW = 0x605  # NLM_F_REQUEST, ACK, CREATE and EXCL
_NEW_ADDRESS, _NEW_ROUTE = 20, 24
_LOCAL_TABLE, _BOOT, _HOST_SCOPE, _LOCAL = 255, 3, 254, 2
_FAMILIES = ((2, "0.0.0.0", (0, 8)), (10, "::", (41, 49)))  # noqa: S104 - of the line's own network
"""Internet families: any address of theirs, and the option that tells where a datagram was sent to."""
_ONLY_6 = (41, 26)
ADDRESS = "198.18.0.1"
"""The line's own: C libraries look no IPv4 names up where there is no such address."""


def unshare_network() -> None:
    """Move to a network of our own, with nothing in it but its loopback; needs a user namespace unless we are root."""
    user, group = os.geteuid(), os.getegid()
    try:
        kernel.call("unshare", _NEW_NETWORK)
    except OSError:
        try:
            kernel.call("unshare", _NEW_NETWORK | _NEW_USER)
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
        except OSError as error:
            raise kernel.Unsupported(f"a network of its own is not allowed here: {error.strerror}") from None
    sock = _socket.socket(_FAMILIES[0][0], _DATAGRAM)
    try:
        fcntl.ioctl(sock.fileno(), _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))
    finally:
        sock.close()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


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
