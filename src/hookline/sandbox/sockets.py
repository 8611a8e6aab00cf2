"""Sockets as doors: a program outside that takes orders would carry them out unconfined.

Connections and names are made here, on a copy of the very socket and with the very address that was judged: were the
kernel to go on after a look, it would read both again. A Unix socket is known by its file's inode: one that this line
has made, or one that the user named.
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import stat
import struct
import time
from functools import partial

from hookline.sandbox import kernel
from hookline.sandbox.hosts import INTERNET, INTERNET_6, reaches
from hookline.sandbox.judged_line import CallAnswered, CallMade, JudgedLine, Refusal, SocketCopy, Syscall, Table
from hookline.sandbox.path_access import resolve_in_process
from hookline.sandbox.patterns import matches_glob
from hookline.sandbox.protected import identity
from hookline.sandbox.syscalls import AT_FDCWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from hookline.sandbox.egress import Egress

UNIX = 1
_SEQPACKET, _DATAGRAM, _RAW, _KIND = 5, 2, 3, 0xF
_LONGEST_ADDRESS = 128
_SOCKET_LEVEL, _ERROR, _SEND_TIMEOUT = 1, 4, 21
_MOMENT = 50  # milliseconds
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, never bound to
_CLOCK = 10_000_000  # nanoseconds: how late the clock of file systems may be
_LOOKUPS = ("/run/nscd/*", "/var/run/nscd/*", "/run/systemd/resolve/*", "/run/avahi-daemon/socket")
"""What looks names up for programs: open with the network, closed without."""
_ON_THE_SIDE = (*_LOOKUPS, "/run/systemd/userdb/*", "/dev/log", "/run/systemd/journal/*")
"""What C libraries try first and do without."""
_REMOTE_SHELLS = {22: "ssh", 23: "telnet", 2375: "docker", 2376: "docker"}


class Sockets:
    """Whom a line may talk to."""

    def __init__(self, line: JudgedLine, egress: Egress | None = None) -> None:
        self._line, self._egress = line, egress
        self._own: set[tuple[int, int]] = set()
        self._abstract: dict[bytes, int] = {}
        self._paths = tuple(os.path.realpath(path) for path in line.policy.sockets)
        self._named = {identity(os.stat(path)) for path in self._paths if os.path.exists(path)}

    def table(self) -> Table:
        made: Table = {"connect": self._connect, "bind": self._bind, "listen": self._listen}
        return made | {"socket": self._kind, "socketpair": self._pair}

    def _kind(self, call: Syscall) -> None:
        """Say why there is no such socket; families that no program needs are unknown here."""
        family = call.number(0)
        if family == UNIX:
            raise Refusal("a Unix datagram socket", "it could send to programs outside", quiet=True)
        if family in (INTERNET, INTERNET_6) and self._line.policy.network == "none":
            raise Refusal("the network", "this line runs without one", guard="--no-network")
        if family in (INTERNET, INTERNET_6):
            raise Refusal("a socket", "only TCP reaches named hosts", guard="host_guard", quiet=True)
        raise kernel.error(errno.EAFNOSUPPORT)

    def _pair(self, call: Syscall) -> None:
        """Two ends that send packets to each other: made so that neither can be pointed elsewhere."""
        family, kind, protocol = map(call.number, range(3))
        if family != UNIX or kind & _KIND not in (_DATAGRAM, _RAW):
            raise kernel.error(errno.EAFNOSUPPORT)
        ends = _socket.socketpair(UNIX, kind & ~_KIND | _SEQPACKET, protocol)
        flags = kind & _socket.SOCK_CLOEXEC
        try:
            numbers = [kernel.give_descriptor(call.listener, call.ident, end.fileno(), flags) for end in ends]
        finally:
            for end in ends:
                end.close()
        call.memory.write(call.thread, call.arguments[3], struct.pack("2i", *numbers))
        raise CallMade

    def _connect(self, call: Syscall) -> None:
        address = _address(call)
        with _copy(call) as sock:
            family = int.from_bytes(address[:2], "little")
            if family == UNIX and sock.socket.family == UNIX:
                self._connect_unix(sock, call, address[2:])
            if family in (INTERNET, INTERNET_6) and sock.socket.family in (INTERNET, INTERNET_6):
                host, port = host_of(family, address), int.from_bytes(address[2:4], "big")
                judge = self._egress.connect if self._egress else _judge_remote_shell
                judge(sock, host, port)
                self._line.saw("host", f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
            _make(sock, call, address)

    # -- Unix sockets ----------------------------------------------------------------------------------------------

    def _connect_unix(self, sock: SocketCopy, call: Syscall, name: bytes) -> NoReturn:
        if name.startswith(b"\0"):
            if not self._is_own_name(call.thread, name):
                raise kernel.error(errno.ECONNREFUSED)
            _make(sock, call, struct.pack("H", UNIX) + name)
        with resolve_in_process(call.thread, AT_FDCWD, os.fsdecode(name.partition(b"\0")[0])) as place:
            found = os.stat(place.fd if place.fd >= 0 else place.path)
            if not stat.S_ISSOCK(found.st_mode):
                raise kernel.error(errno.ECONNREFUSED)
            if not self._is_open(place.path, found):
                advice = f"to allow it, add `--socket {place.path}`"
                quiet = any(matches_glob(pattern, place.path) for pattern in _ON_THE_SIDE)
                raise Refusal(f"to connect to `{place.path}`", "its listener is outside", advice, quiet=quiet)
            self._line.callers.act(call.thread, lambda: _make(sock, call, b"", place.fd))

    def _is_open(self, path: str, found: os.stat_result) -> bool:
        if identity(found) in self._own | self._named:
            return True
        if path in self._paths:  # its listener was started again; a line cannot put another one there
            return self._line.places is not None and not self._line.places.hold(path)
        looks_up = self._line.policy.network == "all" and any(matches_glob(pattern, path) for pattern in _LOOKUPS)
        return looks_up and (self._line.places is None or not self._line.places.hold(path))

    def _is_own_name(self, thread: int, name: bytes) -> bool:
        """Whether the socket that has an abstract name now is the one to which this line gave it."""
        inode = self._abstract.get(name)
        shown = b"@" + name[1:].replace(b"\0", b"@")
        rows = [row.split(None, 7) for row in kernel.content(f"/proc/{thread}/net/unix").split(b"\n")[1:]]
        return inode is not None and any(row[6:] == [b"%d" % inode, shown] for row in rows)

    def _bind(self, call: Syscall) -> None:
        address = _address(call)
        with _copy(call) as sock:
            name = address[2:].partition(b"\0")[0]
            if sock.socket.family == UNIX and b"\n" in address:  # which would be more rows for `_is_own_name`
                raise kernel.error(errno.EINVAL)
            if sock.socket.family == UNIX and address[:2] == struct.pack("H", UNIX) and name:
                self._bind_path(sock, call, os.fsdecode(name), address)
            egress = self._egress
            if egress and not egress.namespace and sock.socket.family in (INTERNET, INTERNET_6):
                family = int.from_bytes(address[:2], "little")
                if family not in (INTERNET, INTERNET_6):
                    raise kernel.error(errno.EAFNOSUPPORT)
                host, port = host_of(family, address), int.from_bytes(address[2:4], "big")
                self._line.callers.act(call.thread, lambda: egress.bind(sock, host, port))
                raise CallMade
            self._line.callers.act(call.thread, lambda: sock.bind(address))
            if sock.socket.family == UNIX:
                own = sock.socket.getsockname()
                self._abstract[own] = os.fstat(sock.fd).st_ino
        raise CallMade

    def _listen(self, call: Syscall) -> None:
        with _copy(call) as sock:
            if self._egress:
                self._egress.listen(sock, call.number(1))
        raise CallMade

    def _bind_path(self, sock: SocketCopy, call: Syscall, name: str, address: bytes) -> NoReturn:
        """Bind with the words of the caller, which it may ask for later, from its folder.

        A link on the way may change meanwhile; Landlock's rules, which hold for us, too, keep the file inside.
        """
        thread, places = call.thread, self._line.places
        parent, _, last = name.rstrip("/").rpartition("/")
        folder = parent or ("/" if name.startswith("/") else "")
        with resolve_in_process(thread, AT_FDCWD, folder) as place:
            path = f"{place.path.rstrip('/')}/{last}"
            if places is not None and (not places.hold(path) or self._line.others.own(path)):
                advice = f"to allow it, add `--write {place.path}`"
                raise Refusal(f"to write `{path}`", "no folder that may be written to holds it", advice)
            begin = time.time_ns() - _CLOCK
            with resolve_in_process(thread, AT_FDCWD, "") as cwd:
                os.fchdir(cwd.fd)
            try:
                self._line.callers.act(thread, lambda: sock.bind(address))
            finally:
                os.chdir("/")
            made = os.stat(last, dir_fd=place.fd, follow_symlinks=False)
            if stat.S_ISSOCK(made.st_mode) and made.st_nlink == 1 and made.st_ctime_ns >= begin:
                self._own.add(identity(made))
        raise CallMade


def _judge_remote_shell(_sock: SocketCopy, host: str, port: int) -> None:
    own = host in _ANY or host.startswith("127.")
    if port in _REMOTE_SHELLS and (own or reaches(host, own=True)):
        raise Refusal(f"to connect to {_REMOTE_SHELLS[port]} on this machine", "it would run commands outside")


def _address(call: Syscall) -> bytes:
    return call.block(call.arguments[1], min(call.arguments[2] & 0xFFFFFFFF, _LONGEST_ADDRESS))


def _copy(call: Syscall) -> SocketCopy:
    """The socket itself, whatever becomes of its number."""
    sock = SocketCopy(kernel.take_descriptor(call.thread, call.number(0)))
    if not call.waits():  # what was read may be another process's
        sock.socket.close()
        raise CallAnswered
    return sock


def _make(sock: SocketCopy, call: Syscall, address: bytes, file: int = -1) -> NoReturn:
    """Connect, to an address or a Unix socket's open file, without waiting here; never comes back."""
    error = sock.connect(address or _path_address(file))
    if sock.blocking and error in (errno.EINPROGRESS, errno.EAGAIN):
        fd, *files = kept = [os.dup(each) for each in (sock.fd, file) if each >= 0]
        waits = error == errno.EINPROGRESS
        deed = partial(_finish, call, fd) if waits else partial(kernel.connect, fd, address or _path_address(*files))
        call.answer_later(deed, *kept)
        raise CallAnswered
    if error:
        raise OSError(error, os.strerror(error))
    raise CallMade


def _finish(call: Syscall, fd: int) -> int:
    """Wait for a connection that is under way; 0 or the error."""
    sock = _socket.socket(fileno=fd)
    seconds, fraction = struct.unpack("2l", sock.getsockopt(_SOCKET_LEVEL, _SEND_TIMEOUT, 16))
    end = time.monotonic() + seconds + fraction / 1e6 if seconds or fraction else None
    events = select.poll()
    events.register(fd, select.POLLOUT)
    try:
        while not events.poll(_MOMENT):
            if not call.waits() or _signalled(call.thread):
                return errno.EINTR
            if end is not None and time.monotonic() > end:
                return errno.EINPROGRESS
        return sock.getsockopt(_SOCKET_LEVEL, _ERROR)
    finally:
        sock.detach()


def _signalled(thread: int) -> bool:
    """Whether a signal waits for a thread, which the kernel keeps back while a call is with us."""
    try:
        rows = kernel.facts(f"/proc/{thread}/status")
    except OSError:
        return True
    pending, blocked, ignored = (int(rows[name], 16) for name in (b"SigPnd", b"SigBlk", b"SigIgn"))
    return bool((pending | int(rows[b"ShdPnd"], 16)) & ~blocked & ~ignored)


def _path_address(file: int) -> bytes:
    return struct.pack("H", UNIX) + b"/proc/self/fd/%d\0" % file


def host_of(family: int, address: bytes) -> str:
    """The host in an address, an IPv4 one also where it is written as IPv6."""
    if len(address) < {INTERNET: 8, INTERNET_6: 24}[family]:
        raise kernel.error(errno.EINVAL)
    if family == INTERNET:
        return _socket.inet_ntop(INTERNET, address[4:8])
    host = address[8:24]
    mapped = host[:12] == bytes(10) + b"\xff\xff"
    return _socket.inet_ntop(INTERNET, host[12:]) if mapped else _socket.inet_ntop(INTERNET_6, host)
