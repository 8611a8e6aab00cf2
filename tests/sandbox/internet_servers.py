"""The servers of the small Internet: names, web, packages, repositories, a database, ssh, an echo, and what is evil."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import io
import json
import os
import socket
import ssl
import struct
import subprocess
import tarfile
import threading
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from hookline.sandbox.placeholders import Authority
from tests.sandbox.internet import EVIL_PORTS, NAMES, PYPI_TOKEN, TOKEN, start

_LOCK = threading.Lock()


class Log:
    """Where every server notes who came, one line each."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "log"

    def note(self, *words: str) -> None:
        """One line."""
        with _LOCK, self._path.open("a") as file:
            file.write(" ".join(words).replace("\n", " ") + "\n")


def serve(folder: Path, ready: int) -> NoReturn:
    """Be the world."""
    log, authority = Log(folder), Authority(["example"])
    (folder / "ca.pem").write_text(authority.certificate)
    (folder / "ca.pem").chmod(0o644)
    packages, shop = make_packages(), folder / "repositories"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(shop / "demo.git")], check=True)
    subprocess.run(["git", "-C", str(shop / "demo.git"), "config", "http.receivepack", "true"], check=True)
    for host in ("11.0.0.1", "2a11::10"):
        start(lookups, host, log)
    for name in ("pypi.example", "npm.example", "crates.example", "code.example", "api.code.example", "six.example"):
        sites.setdefault(NAMES[name], []).append(name)
    for address, names in sites.items():
        for port in (80, 443):
            start(web, address, port, names, authority, log, packages, shop)
    start(stream, NAMES["echo.example"], 7001, echo, log)
    start(stream, NAMES["echo.example"], 7002, one_byte, log)
    start(stream, NAMES["db.example"], 5432, database, log)
    start(stream, NAMES["proxy.example"], 3128, proxy, log)
    start(secure_shell, shop, log)
    for port in EVIL_PORTS:
        start(stream, NAMES["evil.example"], port, sink, log)
        start(datagrams, NAMES["evil.example"], port, log)
    os.write(ready, b".")
    threading.Event().wait()
    raise AssertionError("it never ends")


sites: dict[str, list[str]] = {}


def listen_here(folder: Path) -> None:
    """What listens on the machine itself, outside of any line."""
    log = Log(folder)
    for host in ("127.0.0.1", "11.0.0.2", "::1"):
        start(stream, host, 18666, sink, log)
    start(datagrams, "127.0.0.1", 18667, log)
    start(stream, "127.0.0.1", 7001, echo, log)
    for name in (str(folder / "sink"), "\0hookline-sink"):
        start(local, name, sink, log)
    start(local, str(folder / "rights"), give_rights, log)
    packets = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    packets.bind(str(folder / "packets"))
    (folder / "packets").chmod(0o777)
    start(receive, packets, log)


def local(name: str, handle: Any, log: Log) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen(64)
    if name.startswith("/"):
        Path(name).chmod(0o777)
    accept(server, name.strip("\0").rpartition("/")[2], handle, log)


def stream(host: str, port: int, handle: Any, log: Log) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    accept(socket.create_server((host, port), family=family, backlog=1024), f"{host}:{port}", handle, log)


def accept(server: socket.socket, name: str, handle: Any, log: Log) -> None:
    while True:
        conn, _ = server.accept()
        start(attend, handle, conn, name, log)


def attend(handle: Any, conn: socket.socket, name: str, log: Log) -> None:
    """One visitor, who may leave at any moment."""
    with suppress(OSError, struct.error):
        handle(conn, name, log)


def datagrams(host: str, port: int, log: Log) -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((host, port))
    receive(server, log)


def receive(server: socket.socket, log: Log) -> None:
    while True:
        log.note("packet", str(server.recv(4096)))


def sink(conn: socket.socket, name: str, log: Log) -> None:
    """Where nothing should ever arrive; what does is sent back."""
    with conn:
        while data := conn.recv(4096):
            log.note("sink", name, str(data))
            conn.sendall(data)


def echo(conn: socket.socket, name: str, log: Log) -> None:
    with conn:
        log.note("echo", name)
        while data := conn.recv(65536):
            conn.sendall(data)


def one_byte(conn: socket.socket, _name: str, _log: Log) -> None:
    with conn:
        conn.sendall(b"x")


def give_rights(conn: socket.socket, _name: str, _log: Log) -> None:
    with conn, socket.create_connection(("127.0.0.1", 18666)) as far:
        socket.send_fds(conn, [b"x"], [far.fileno()])


def database(conn: socket.socket, _name: str, log: Log) -> None:
    """As much of PostgreSQL as one question needs."""
    with conn:
        while True:
            size, kind = struct.unpack(">II", conn.recv(8, socket.MSG_WAITALL))
            if kind not in (80877103, 80877104):
                break
            conn.sendall(b"N")  # neither TLS nor GSS
        conn.recv(size - 8, socket.MSG_WAITALL)
        ready = b"Z\0\0\0\5I"
        conn.sendall(b"R\0\0\0\x08\0\0\0\0" + b"S" + struct.pack(">I", 24) + b"server_version\x0016.1\0" + ready)
        while head := conn.recv(5, socket.MSG_WAITALL):
            body = conn.recv(struct.unpack(">I", head[1:])[0] - 4, socket.MSG_WAITALL)
            if head[:1] != b"Q":
                return
            log.note("query", body.rstrip(b"\0").decode())
            field = b"a\0" + struct.pack(">IHIhiH", 0, 0, 25, -1, -1, 0)
            row = struct.pack(">HI", 1, 5) + b"hello"
            for letter, data in ((b"T", struct.pack(">H", 1) + field), (b"D", row), (b"C", b"SELECT 1\0")):
                conn.sendall(letter + struct.pack(">I", len(data) + 4) + data)
            conn.sendall(ready)


def proxy(conn: socket.socket, _name: str, log: Log) -> None:
    """The user's own proxy: it connects, if asked with its password."""
    with conn:
        head = b""
        while b"\r\n\r\n" not in head:
            head += conn.recv(4096)
        lines = head.split(b"\r\n")
        log.note("proxy", lines[0].decode(), str(b"Proxy-Authorization: Basic bWU6cGFzcw==" in lines))
        target = lines[0].split(b" ")[1]
        if lines[0].startswith(b"CONNECT"):
            name, port = target.decode().rsplit(":", 1)
            conn.sendall(b"HTTP/1.1 200 yes\r\n\r\n")
            head = b""
        else:
            name, port = target.split(b"/")[2].decode(), "80"
            head = head.replace(b"http://" + name.encode(), b"", 1)
        with socket.create_connection((NAMES[name], int(port))) as far:
            far.sendall(head)
            start(copy, far, conn)
            copy(conn, far)


def copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


# -- names ---------------------------------------------------------------------------------------------------------


def lookups(host: str, log: Log) -> None:
    """A name server of the world; every question is noted."""
    server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((host, 53))
    while True:
        query, peer = server.recvfrom(4096)
        if query.startswith(b"leak"):
            log.note("lookup", str(query))
            server.sendto(query, peer)
            continue
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, kind = ".".join(labels), struct.unpack(">H", query[at + 1 : at + 3])[0]
        log.note("lookup", name)
        address = NAMES.get(name)
        fits = address is not None and kind == (28 if ":" in address else 1)
        record = b""
        if fits and address:
            data = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
            record = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(data)) + data
        flags = 0x8180 if address else 0x8183
        head = query[:2] + struct.pack(">HHHHH", flags, 1, 1 if record else 0, 0, 0)
        server.sendto(head + query[12 : at + 5] + record, peer)


# -- the web -------------------------------------------------------------------------------------------------------


def web(
    address: str, port: int, names: list[str], authority: Authority, log: Log, packages: dict[str, bytes], shop: Path
) -> None:
    handler: Any = type("Handler", (Web,), {"log": log, "packages": packages, "shop": shop, "secure": port == 443})
    server_class: Any = type("Server", (http.server.ThreadingHTTPServer,), {"request_queue_size": 512})
    if ":" in address:
        server_class.address_family = socket.AF_INET6
    server = server_class((address, port), handler)
    if port == 443:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

        def choose(sock: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
            sock.context = authority.context(name if name in names else names[0])

        context.sni_callback = choose
        authority.context(names[0])
        first = authority.context(names[0])
        first.sni_callback = choose
        server.socket = first.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


class Web(http.server.BaseHTTPRequestHandler):
    """Pages, packages, repositories, and what needs a token."""

    protocol_version = "HTTP/1.1"
    log: Log
    packages: dict[str, bytes]
    shop: Path
    secure: bool

    def do_GET(self) -> None:
        """Answer a request."""
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while count := int(self.rfile.readline(), 16):
                body += self.rfile.read(count)
                self.rfile.readline()
            self.rfile.readline()
        given = self.headers.get("Authorization") or self.headers.get("X-Api-Key") or ""
        host, path = self.headers.get("Host", ""), self.path.partition("?")[0]
        self.log.note(
            "web", self.command, host, path, "tls" if self.secure else "plain", given, body[:60].decode("latin-1")
        )
        if path.startswith("/private/"):
            basic = base64.b64encode(f"user:{TOKEN}".encode()).decode()
            if given not in (f"Bearer {TOKEN}", f"Basic {basic}", TOKEN, f"token {PYPI_TOKEN}"):
                return self._send(401, b"no", ("WWW-Authenticate", 'Basic realm="x"'))
            path = path.removeprefix("/private")
        if path == "/echo":
            return self._send(200, f"you sent {given}".encode())
        if path.startswith("/demo.git"):
            return self._repository(path, body)
        found = self.packages.get(path)
        return self._send(404, b"none") if found is None else self._send(200, found)

    do_POST = do_PUT = do_HEAD = do_GET

    def _send(self, code: int, data: bytes, *fields: tuple[str, str]) -> None:
        self.send_response(code)
        kind = "application/json" if data.startswith(b"{") else "text/html" if data.startswith(b"<") else "text/plain"
        for name, value in (("Content-Length", str(len(data))), ("Content-Type", kind), *fields):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _repository(self, path: str, body: bytes) -> None:
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        env = {
            "PATH": os.environ["PATH"], "HOOKLINE_SERVICE": "0",
            "GIT_PROJECT_ROOT": str(self.shop), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "REQUEST_METHOD": self.command, "QUERY_STRING": self.path.partition("?")[2], "REMOTE_USER": "user",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "HOME": str(self.shop),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        fields = [tuple(line.decode().split(": ", 1)) for line in head.split(b"\r\n") if line]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing: what matters is noted."""


def make_packages() -> dict[str, bytes]:
    """Pages, and one package of each kind."""
    wheel, crate, node = io.BytesIO(), io.BytesIO(), io.BytesIO()
    info = "demo_pkg-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("demo_pkg.py", "print('hello from the package')\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    files = {
        "package/package.json": b'{"name": "demo-pkg", "version": "1.0.0"}',
        "package/index.js": b"module.exports = 7",
    }
    pack(node, files)
    pack(crate, {
        "demo-crate-1.0.0/Cargo.toml": b'[package]\nname = "demo-crate"\nversion = "1.0.0"\nedition = "2021"\n',
        "demo-crate-1.0.0/src/lib.rs": b"pub fn seven() -> i32 { 7 }\n",
    })  # fmt: skip
    tarball, digest = "https://npm.example/demo-pkg/-/demo-pkg-1.0.0.tgz", hashlib.sha512(node.getvalue()).digest()
    version = {
        "name": "demo-pkg", "version": "1.0.0",
        "dist": {"tarball": tarball, "integrity": "sha512-" + base64.b64encode(digest).decode()},
    }  # fmt: skip
    row = {
        "name": "demo-crate", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
        "cksum": hashlib.sha256(crate.getvalue()).hexdigest(),
    }  # fmt: skip
    listed = {"name": "demo-pkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    return {
        "/hello": b"hello from the world\n", "/big": b"x" * (8 << 20),
        "/simple/demo-pkg/": b'<a href="/files/demo_pkg-1.0-py3-none-any.whl">demo_pkg-1.0-py3-none-any.whl</a>',
        "/files/demo_pkg-1.0-py3-none-any.whl": wheel.getvalue(),
        "/demo-pkg": json.dumps(listed).encode(), "/demo-pkg/-/demo-pkg-1.0.0.tgz": node.getvalue(),
        "/index/config.json": b'{"dl": "https://crates.example/dl"}',
        "/index/de/mo/demo-crate": json.dumps(row).encode() + b"\n",
        "/dl/demo-crate/1.0.0/download": crate.getvalue(),
    }  # fmt: skip


def pack(target: io.BytesIO, files: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=target, mode="w:gz") as file:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            file.addfile(entry, io.BytesIO(data))


# -- ssh -----------------------------------------------------------------------------------------------------------


def secure_shell(shop: Path, log: Log) -> None:
    """A real ssh server, where the library for one is installed; else only its greeting."""
    try:
        import asyncssh
    except ImportError:
        stream(NAMES["code.example"], 22, greeting, log)
        return
    import asyncio

    key = asyncssh.generate_private_key("ssh-ed25519")

    class Server(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

    async def handle(process: Any) -> None:
        words = (process.command or "").split()
        log.note("ssh", process.command or "")
        repository = str(shop / words[1].strip("'/"))
        child = await asyncio.create_subprocess_exec(
            "git", words[0].removeprefix("git-"), repository,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
        process.exit(await child.wait())

    async def run() -> None:
        await asyncssh.create_server(
            Server, NAMES["code.example"], 22, server_host_keys=[key], process_factory=handle, encoding=None
        )
        await asyncio.Event().wait()

    asyncio.run(run())


def greeting(conn: socket.socket, _name: str, log: Log) -> None:
    with conn:
        conn.sendall(b"SSH-2.0-stand-in\r\n")
        log.note("ssh", conn.recv(255).decode("latin-1").strip())
