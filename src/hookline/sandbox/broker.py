"""The broker: a process outside that looks names up and speaks to named hosts for a line.

It answers lookups of names on the list with addresses of its own choice, and all others with "no such name"; no query
leaves. A connection to such an address is one to that name: it is looked up here, once, the address is judged and
dialled, and bytes are handed on. TLS must ask for that name, and so must HTTP.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import socket
import struct
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress

from hookline.core import template
from hookline.sandbox.hosts import FAKE, FAKE_6, INTERNET, INTERNET_6, Hosts, reaches, synthetic, upstream_proxy
from hookline.sandbox.streams import RefusedConnection, Stream, checked_head, copy_requests, opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.placeholders import Placeholders

_FIRST, _MOST_NAMES = 256, 60_000
_PATIENCE, _REMEMBERED = 20.0, 60.0
_ADDRESS, _ADDRESS_6 = 1, 28
_SPARE = 64
_ADVICE = "to allow it, add `--host {}`"


class Broker:
    """One line's names and connections."""

    def __init__(
        self, hosts: tuple[str, ...], channel: int, variables: Mapping[str, str], tokens: Placeholders | None
    ) -> None:
        self._hosts, self._variables, self._tokens = Hosts(hosts), variables, tokens
        self._channel = socket.socket(fileno=channel)
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._only_6 = not reaches("192.0.2.1") and reaches("2001:db8::1")
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = 1 << 20 if most == resource.RLIM_INFINITY else most
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._room = most // 2 - _SPARE

    def serve(self) -> None:
        """Take connections from the supervisor until it has ended."""
        self._channel.setblocking(False)
        self._loop.add_reader(self._channel, self._take)
        self._loop.run_forever()

    def _take(self) -> None:
        data, descriptors = template.receive(self._channel, 256, 8)
        if not data:
            os._exit(0)
        words = data.decode().split()
        for fd in descriptors:
            sock = socket.socket(fileno=fd)
            if words == ["lookups"]:
                self._loop.add_reader(sock, self._answer_packet, sock)
            else:
                self._start(self._handled(sock, words))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Have something done beside all else; the loop itself does not hold on to it."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

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

    def _answer_packet(self, sock: socket.socket) -> None:
        """Answer a lookup that came as a datagram, from the address that was asked."""
        with suppress(OSError, IndexError, struct.error):  # who asked may have gone; it may be no lookup
            query, info, _, peer = sock.recvmsg(4096, 256)
            asked = [
                (level, kind, bytes(4) + data[8:12] + bytes(4) if level == 0 else data[:16] + bytes(4))
                for level, kind, data in info
            ]
            sock.sendmsg([self.answer(query)], asked, 0, peer)

    async def _stream_lookups(self, stream: Stream) -> None:
        while len(data := await stream.fill(2)) >= 2:
            size = int.from_bytes(data[:2], "big")
            data = await stream.fill(2 + size)
            stream.data = data[2 + size :]
            reply = self.answer(data[2 : 2 + size])
            await stream.send(len(reply).to_bytes(2, "big") + reply)

    # -- connections -----------------------------------------------------------------------------------------------

    async def _handled(self, sock: socket.socket, words: list[str]) -> None:
        """One connection from beginning to end; whatever goes wrong ends it and nothing else."""
        inside = Stream(sock)
        self._room -= 1
        try:
            if words == ["lookups-stream"]:
                await self._stream_lookups(inside)
            else:
                await self._connection(inside, words[0], int(words[1]))
        except (RefusedConnection, TimeoutError) as refused:
            shown = ":".join((self._name_at(words[0]) if len(words) > 1 else words[0], *words[1:]))
            self._tell("refused", f"a connection to `{shown}`", str(refused) or "it took too long")
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

    async def _connection(self, inside: Stream, address: str, port: int) -> None:
        if self._room < 0:
            raise RefusedConnection("there are too many at once")
        name = self._name_at(address)
        names = self._hosts.names_at(address, port) if name == address else [name] * (port in self._hosts.ports(name))
        if not names:
            raise RefusedConnection("it is not among the hosts")
        kind, name = "", names[0]
        tokens = self._tokens if self._tokens and self._tokens.knows(names) else None
        if port in (80, 443) or tokens:
            kind, name = await self._opening(inside, names, port)
        self._tell("host", f"{name}:{port}")
        swapped = tokens if kind in ("tls", "http") else None
        outside = Stream(await self._dial(name, 443 if swapped and kind == "http" else port))
        try:
            if swapped:
                client = swapped.client(inside, name) if kind == "tls" else inside
                server = await swapped.server(outside, name)
                requests = copy_requests(client, server, lambda lines: swapped.edit(lines, name))
                await self._relay(client, server, requests)
            else:
                await self._relay(inside, outside, self._forward(inside, outside, names, port, kind))
        finally:
            outside.sock.close()

    async def _opening(self, inside: Stream, names: list[str], port: int) -> tuple[str, str]:
        """What a client speaks, and to which of the names."""
        kind, asked = await opening(inside)
        if kind == "tls" and asked not in names:
            raise RefusedConnection(f"TLS asks for `{asked[:80]}`" if asked else "TLS does not ask for its name")
        if kind == "raw" and port in (80, 443) and inside.data:
            raise RefusedConnection("it speaks neither TLS nor HTTP")
        return kind, asked or names[0]

    async def _forward(self, inside: Stream, outside: Stream, names: list[str], port: int, kind: str) -> None:
        """Hand on what a line says, once it is clear to whom."""
        kind = kind or (await self._opening(inside, names, port))[0]
        if kind == "http":
            proxy = upstream_proxy(self._variables, names[0], port) if port == 80 else None
            await copy_requests(inside, outside, lambda lines: _for_proxy(checked_head(lines, names), names, proxy))
        else:
            await inside.copy(outside)

    async def _relay(self, inside: Stream, outside: Stream, forward: Coroutine[None, None, None]) -> None:
        """Hand bytes on in both directions until both have ended."""
        back = self._start(_back(outside, inside))
        try:
            await forward
            outside.end()
        except (RefusedConnection, OSError, ValueError):
            outside.end(socket.SHUT_RDWR)
            inside.end(socket.SHUT_RDWR)
            raise
        finally:
            await back

    # -- the world outside -----------------------------------------------------------------------------------------

    async def _dial(self, name: str, port: int) -> socket.socket:
        """A connection to a name: to the address that was judged, or through the user's proxy."""
        proxy = upstream_proxy(self._variables, name, port)
        places = await self._lookup(proxy[0]) if proxy else await self._judged(name, port)
        problem = "it has no address"
        for address in places:
            sock = socket.socket(INTERNET_6 if ":" in address else INTERNET, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._loop.sock_connect(sock, (address, proxy[1] if proxy else port))
            except OSError as error:
                sock.close()
                if not error.errno:
                    raise  # it took too long
                problem = os.strerror(error.errno)
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy and port != 80:
                await _through(Stream(sock), name, port, proxy[2])
            return sock
        raise RefusedConnection(f"it cannot be reached: {problem}")

    async def _judged(self, name: str, port: int) -> list[str]:
        """A name's addresses, without those inside this machine or its network, unless the user has named them."""
        if named := self._hosts.addresses.get(name):
            return named
        if ":" in name or name.replace(".", "").isdigit():
            return [name]
        found = await self._lookup(name)
        good = [address for address in found if is_public(address) or port in self._hosts.ports(address)]
        if found and not good:
            raise RefusedConnection(f"it resolves to {found[0]}, inside this machine or its network")
        return good

    async def _lookup(self, name: str) -> list[str]:
        """A name's addresses, remembered for a while."""
        until, found = self._known.get(name, (0.0, []))
        if time.monotonic() < until:
            return found
        async with asyncio.timeout(_PATIENCE):
            try:
                rows = await self._loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                return []  # it has none
        found = list(dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows))
        self._known[name] = time.monotonic() + _REMEMBERED, found
        return found


async def _back(outside: Stream, inside: Stream) -> None:
    try:
        await outside.copy(inside)
        inside.end()
    except OSError:
        inside.end(socket.SHUT_RDWR)
        outside.end(socket.SHUT_RDWR)


async def _through(stream: Stream, name: str, port: int, credentials: bytes) -> None:
    lines = [f"CONNECT {name}:{port} HTTP/1.1", f"Host: {name}:{port}"]
    lines += [f"Proxy-Authorization: Basic {credentials.decode()}"] if credentials else []
    await stream.send("\r\n".join([*lines, "", ""]).encode())
    head = await stream.head()
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
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in ipaddress.ip_network("64:ff9b::/96") or ip in ipaddress.ip_network("64:ff9b:1::/48"):
            inner = ipaddress.IPv4Address(ip.packed[-4:])
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not reaches(address, own=True)
