"""Receivers that a log is pushed to in the tests: real sockets, which can be away, slow, or die in the middle."""

from __future__ import annotations

import datetime as dt
import json
import socket
import ssl
import struct
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any


def certificate(folder: Path) -> Path:
    """A certificate for `localhost` with its key, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "localhost.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


class Syslog:
    """A syslog server on a port; of the connections in `dies`, it takes so many bytes and is gone."""

    def __init__(
        self, pem: Path | None = None, port: int = 0, dies: tuple[int, ...] = (), *, says_goodbye: bool = True
    ) -> None:
        self._says_goodbye = says_goodbye
        self.data: list[bytes] = []
        self._context = None
        if pem is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(pem)
        self._dies = list(dies)
        self._socket = socket.create_server(("localhost", port))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            try:
                connection = self._context.wrap_socket(plain, server_side=True) if self._context else plain
                self._take(connection)
            except OSError:
                plain.close()

    def _take(self, connection: socket.socket) -> None:
        limit, data = self._dies.pop(0) if self._dies else None, b""
        while part := connection.recv(65_536 if limit is None else max(limit - len(data), 1)):
            data += part
            if limit is not None and len(data) >= limit:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.data.append(data)
                connection.close()  # with a reset, as a process that is killed
                return
        self.data.append(data)
        if isinstance(connection, ssl.SSLSocket) and self._says_goodbye:
            connection.unwrap()
        connection.close()

    def messages(self) -> list[bytes]:
        """What came in, one after another; a part of a message at the end of a connection is not one."""
        found = []
        for left in map(bytearray, self.data):
            while left:
                length, _, rest = left.partition(b" ")
                if not length.isdigit() or len(rest) < int(length):
                    break
                found.append(bytes(rest[: int(length)]))
                del left[: len(length) + 1 + int(length)]
        return found

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


class Collector:
    """An OTLP collector: takes logs over HTTP; the first answers are those in `answers`."""

    def __init__(self, answers: tuple[tuple[int, bytes], ...] = ()) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        collector, self._answers = self, list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code, said = collector._answers.pop(0) if collector._answers else (200, b"{}")
                if code == 200:
                    collector.requests.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(code)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("localhost", 0), Handler)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
