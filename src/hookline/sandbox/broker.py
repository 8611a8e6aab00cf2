"""The broker: a process outside that looks names up and speaks to named hosts for a line.

It answers lookups of names on the list with addresses of its own choice, and all others with "no such name"; no query
leaves. A connection to such an address is one to that name: it is looked up here, once, the address is judged and
dialled, and bytes are handed on. TLS must ask for that name, and so must HTTP.
"""

from __future__ import annotations

import _socket
import _thread
import errno
import os
import struct
import time
from contextlib import suppress

from hookline.core import template
from hookline.sandbox import kernel, signals
from hookline.sandbox.hosts import INTERNET, INTERNET_6, Hosts, UpstreamProxy, reaches
from hookline.sandbox.streams import (
    IN,
    OUT,
    RefusedConnection,
    Scheduler,
    Stream,
    checked_head,
    copy_requests,
    opening,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from hookline.sandbox.placeholders import Placeholders
    from hookline.sandbox.streams import Steps

_STREAM = 1
FAKE, FAKE_6 = b"\xc6\x12", b"\xfd\x68\x6f\x6f\x6b" + bytes(9)
"""How the addresses begin that names are given: 198.18.0.0/16 and fd68:6f6f:6b::/112."""
_FIRST, _MOST_NAMES = 256, 60_000
_PATIENCE, _REMEMBERED = 20.0, 60.0
_ADDRESS, _ADDRESS_6 = 1, 28
_SPARE = 64
_ADVICE = "to allow it, add `--host {}`"


def synthetic(address: str) -> int:
    """The number in an address that this broker gave a name; 0 for any other."""
    packed = _socket.inet_pton(INTERNET_6 if ":" in address else INTERNET, address)
    return int.from_bytes(packed[-2:], "big") if packed[:-2] in (FAKE, FAKE_6) else 0


class Broker:
    """One line's names and connections."""

    def __init__(
        self, hosts: tuple[str, ...], channel: _socket.socket, variables: Mapping[str, str], tokens: Placeholders | None
    ) -> None:
        self._hosts, self._channel, self._proxy, self._tokens = Hosts(hosts), channel, UpstreamProxy(variables), tokens
        self._dialer = Dialer(self._hosts, self._proxy)
        self._scheduler = Scheduler()
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._only_6 = not reaches("192.0.2.1") and reaches("2001:db8::1")
        self._room = _raise_limit() // 2 - _SPARE

    def serve(self) -> NoReturn:
        """Take connections from the supervisor until it has ended."""
        self._channel.setblocking(False)
        self._scheduler.start(self._take())
        self._scheduler.run()

    def _take(self) -> Steps[None]:
        while True:
            try:
                data, descriptors = template.receive(self._channel, 256, 8)
            except BlockingIOError:
                yield self._channel.fileno(), IN, 0
                continue
            if not data:
                os._exit(0)
            words = data.decode().split()
            for fd in descriptors:
                sock = _socket.socket(fileno=fd)
                self._scheduler.start(self._packets(sock) if words == ["lookups"] else self._handled(sock, words))

    def _tell(self, kind: str, what: str, reason: str = "", advice: str = "") -> None:
        parts = (part.replace("\0", "?")[:900] for part in (kind, what, reason, advice))
        with suppress(BlockingIOError):
            self._channel.send("\0".join(parts).encode())

    # -- names -----------------------------------------------------------------------------------------------------

    def answer(self, query: bytes) -> bytes:
        """The answer to a lookup; IndexError or struct.error for one that is none."""
        ident, flags, count = struct.unpack(">HHH", query[:6])
        if count != 1 or flags & 0xF800:
            return struct.pack(">HHHHHH", ident, 0x8184, 0, 0, 0, 0)
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
            at += 1 + query[at]
        name, question = ".".join(labels), query[12 : at + 5]
        kind = int.from_bytes(query[at + 1 : at + 3], "big")
        record, code = b"", 0
        if not self._hosts.ports(name):
            code = 3
            if kind in (_ADDRESS, _ADDRESS_6) and "." in name:  # not the machine's own name
                shown = name[:80]
                self._tell("refused", f"to look up `{shown}`", "it is not among the hosts", _ADVICE.format(shown))
        elif kind == _ADDRESS or (kind == _ADDRESS_6 and self._only_6):
            address = (FAKE if kind == _ADDRESS else FAKE_6) + self._number(name).to_bytes(2, "big")
            record = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(address)) + address
        return struct.pack(">HHHHHH", ident, 0x8180 | code, 1, bool(record), 0, 0) + question + record

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            if len(self._names) >= _MOST_NAMES:
                raise IndexError("too many names")
            self._numbers[name] = _FIRST + len(self._names)
            self._names.append(name)
        return self._numbers[name]

    def _packets(self, sock: _socket.socket) -> Steps[None]:
        """Lookups as datagrams: answered from the address that was asked."""
        while True:
            try:
                query, info, _, peer = sock.recvmsg(4096, 256)
                reply = self.answer(query)
            except BlockingIOError:
                yield sock.fileno(), IN, 0
                continue
            except (IndexError, struct.error):
                continue
            asked = [
                (level, kind, bytes(4) + data[8:12] + bytes(4) if level == 0 else data[:16] + bytes(4))
                for level, kind, data in info
            ]
            with suppress(OSError):  # it may have gone
                sock.sendmsg([reply], asked, 0, peer)

    def _stream_lookups(self, stream: Stream) -> Steps[None]:
        while len(data := (yield from stream.fill(2))) >= 2:
            size = int.from_bytes(data[:2], "big")
            data = yield from stream.fill(2 + size)
            stream.data = data[2 + size :]
            reply = self.answer(data[2 : 2 + size])
            yield from stream.send(len(reply).to_bytes(2, "big") + reply)

    # -- connections -----------------------------------------------------------------------------------------------

    def _handled(self, sock: _socket.socket, words: list[str]) -> Steps[None]:
        """One connection from beginning to end; whatever goes wrong ends it and nothing else."""
        inside = Stream(sock)
        self._room -= 1
        try:
            if words == ["lookups-stream"]:
                yield from self._stream_lookups(inside)
            else:
                yield from self._connection(inside, words[0], int(words[1]))
        except (RefusedConnection, TimeoutError) as refused:
            shown = ":".join((self._name_at(words[0]) if len(words) > 1 else words[0], *words[1:]))
            self._tell("refused", f"a connection to `{shown}`", str(refused))
            inside.reset()
        except (OSError, ValueError, IndexError, struct.error):
            inside.reset()
        finally:
            self._room += 1
            inside.sock.close()

    def _name_at(self, address: str) -> str:
        """The name that was given an address of ours, or any other address itself."""
        number = synthetic(address) - _FIRST
        return self._names[number] if 0 <= number < len(self._names) else address

    def _connection(self, inside: Stream, address: str, port: int) -> Steps[None]:
        if self._room < 0:
            raise RefusedConnection("there are too many at once")
        name = self._name_at(address)
        names = self._hosts.names_at(address, port) if name == address else [name] * (port in self._hosts.ports(name))
        if not names:
            raise RefusedConnection("it is not among the hosts")
        kind, name = "", names[0]
        tokens = self._tokens if self._tokens and self._tokens.knows(names) else None
        if port in (80, 443) or tokens:
            kind, name = yield from self._opening(inside, names, port)
        self._tell("host", f"{name}:{port}")
        swapped = tokens if kind in ("tls", "http") else None
        outside = Stream((yield from self._dialer.dial(name, 443 if swapped and kind == "http" else port)))
        try:
            if swapped:
                client = swapped.client(inside, name) if kind == "tls" else inside
                server = yield from swapped.server(outside, name)
                requests = copy_requests(client, server, lambda lines: swapped.edit(lines, name))
                yield from self._relay(client, server, requests)
            else:
                yield from self._relay(inside, outside, self._forward(inside, outside, names, port, kind))
        finally:
            outside.sock.close()

    def _opening(self, inside: Stream, names: list[str], port: int) -> Steps[tuple[str, str]]:
        """What a client speaks, and to which of the names."""
        kind, asked = yield from opening(inside)
        if kind == "tls" and asked not in names:
            raise RefusedConnection(f"TLS asks for `{asked[:80]}`" if asked else "TLS does not ask for its name")
        if kind == "raw" and port in (80, 443) and inside.data:
            raise RefusedConnection("it speaks neither TLS nor HTTP")
        return kind, asked or names[0]

    def _forward(self, inside: Stream, outside: Stream, names: list[str], port: int, kind: str) -> Steps[None]:
        """Hand on what a line says, once it is clear to whom."""
        kind = kind or (yield from self._opening(inside, names, port))[0]
        if kind == "http":
            proxy = self._proxy.for_host(names[0], port) if port == 80 else None
            yield from copy_requests(
                inside, outside, lambda lines: _for_proxy(checked_head(lines, names), names, proxy)
            )
        else:
            yield from inside.copy(outside)

    def _relay(self, inside: Stream, outside: Stream, forward: Steps[None]) -> Steps[None]:
        """Hand bytes on in both directions until both have ended."""
        back = _back(outside, inside)
        self._scheduler.start(back)
        try:
            yield from forward
            outside.end()
        except (RefusedConnection, OSError, ValueError):
            outside.end(_socket.SHUT_RDWR)
            inside.end(_socket.SHUT_RDWR)
            raise
        finally:
            yield back


def _back(outside: Stream, inside: Stream) -> Steps[None]:
    """Hand on what a host answers."""
    try:
        yield from outside.copy(inside)
        inside.end()
    except OSError:
        inside.end(_socket.SHUT_RDWR)
        outside.end(_socket.SHUT_RDWR)


class Dialer:
    """Connections to names, in the world outside."""

    def __init__(self, hosts: Hosts, proxy: UpstreamProxy) -> None:
        self._hosts, self._proxy = hosts, proxy
        self._known: dict[str, tuple[float, list[str]]] = {}

    def dial(self, name: str, port: int) -> Steps[_socket.socket]:
        """A connection to a name: to the address that was judged, or through the user's proxy."""
        proxy = self._proxy.for_host(name, port)
        places = (yield from self._lookup(proxy[0])) if proxy else (yield from self._judged(name, port))
        problem: OSError = OSError("it has no address")
        for address in places:
            sock = _socket.socket(INTERNET_6 if ":" in address else INTERNET, _STREAM)
            sock.setblocking(False)
            error = sock.connect_ex((address, proxy[1] if proxy else port))
            if error == errno.EINPROGRESS:
                yield sock.fileno(), OUT, time.monotonic() + _PATIENCE
                error = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
            if not error:
                sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
                if proxy and port != 80:
                    yield from _through(Stream(sock), name, port, proxy[2])
                return sock
            sock.close()
            problem = OSError(error, os.strerror(error))
        raise RefusedConnection(f"it cannot be reached: {problem.strerror or problem}")

    def _judged(self, name: str, port: int) -> Steps[list[str]]:
        """A name's addresses, without those inside this machine or its network, unless the user has named them."""
        if named := self._hosts.addresses.get(name):
            return named
        if ":" in name or name.replace(".", "").isdigit():
            return [name]
        found = yield from self._lookup(name)
        good = [address for address in found if is_public(address) or port in self._hosts.ports(address)]
        if found and not good:
            raise RefusedConnection(f"it resolves to {found[0]}, inside this machine or its network")
        return good

    def _lookup(self, name: str) -> Steps[list[str]]:
        """A name's addresses, remembered for a while."""
        until, found = self._known.get(name, (0.0, []))
        if time.monotonic() < until:
            return found
        results: list[str] = []
        done = os.eventfd(0, os.EFD_NONBLOCK)
        _thread.start_new_thread(_resolve, (name, results, done))
        yield done, IN, time.monotonic() + _PATIENCE
        os.close(done)
        if results:
            self._known[name] = time.monotonic() + _REMEMBERED, results
        return results


def _resolve(name: str, results: list[str], done: int) -> None:
    try:
        with suppress(OSError, UnicodeError):  # it has none
            rows = _socket.getaddrinfo(name, None, 0, _STREAM)
            results += dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows)
    finally:
        os.eventfd_write(done, 1)


def _through(stream: Stream, name: str, port: int, credentials: bytes) -> Steps[None]:
    """Have the user's proxy connect."""
    lines = [f"CONNECT {name}:{port} HTTP/1.1", f"Host: {name}:{port}"]
    lines += [f"Proxy-Authorization: Basic {credentials.decode()}"] if credentials else []
    yield from stream.send("\r\n".join([*lines, "", ""]).encode())
    head = yield from stream.head()
    if head.split(b" ", 2)[1:2] != [b"200"] or stream.data:
        raise RefusedConnection(f"your proxy answers `{head[:60].decode('ascii', 'replace').splitlines()[0]}`")


def _for_proxy(lines: list[bytes], names: list[str], proxy: tuple[str, int, bytes] | None) -> list[bytes]:
    """A request's head as the user's proxy takes it."""
    if proxy is None:
        return lines
    method, target, version = lines[0].split(b" ", 2)
    own = [b"Proxy-Authorization: Basic " + proxy[2]] if proxy[2] else []
    return [b" ".join((method, b"http://" + names[0].encode() + target, version)), *lines[1:], *own]


def is_public(address: str) -> bool:
    """Whether an address is neither this machine's nor of a network around it, however it is written."""
    import ipaddress  # only where something is dialled

    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in ipaddress.ip_network("64:ff9b::/96") or ip in ipaddress.ip_network("64:ff9b:1::/48"):
            inner = ipaddress.IPv4Address(ip.packed[-4:])
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not reaches(address, own=True)


def _raise_limit() -> int:
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = 1 << 20 if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def start(hosts: tuple[str, ...], variables: Mapping[str, str], tokens: Placeholders | None) -> _socket.socket:
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
        template.redirect([os.open(os.devnull, os.O_RDWR)] * 3)
        kernel.close_all_but(0, 1, 2, theirs.fileno())
        signals.default(signals.TERM, signals.HUP)
        Broker(hosts, theirs, variables, tokens).serve()
    finally:
        os._exit(1)
