"""`hookline acs`: a Guardian of OWASP's Agent Control Standard, over HTTP or stdio."""

import base64
import binascii
import os
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

import msgspec

from hookline.api import ask_inbox
from hookline.cli.options import hooks_of, parser_for
from hookline.core.files import private_folder, state_folder
from hookline.errors import ConfigError
from hookline.hosts.acs import Guardian, canonical
from hookline.processes.stdout import claim_stdout
from hookline.records.audit import AuditLog

_MOST_BYTES = 4 << 20


def main(argv: list[str]) -> int:
    """Serve until the client leaves, or Ctrl-C."""
    args = parser_for("acs").parse_args(argv)
    canonical({})  # what it needs is installed, or it does not begin
    database = args.state or private_folder(state_folder() / "acs") / "guardian.db"
    hooks = hooks_of(args)
    hooks.engine.fallback = partial(ask_inbox, host="an ACS client")
    if args.audit:
        hooks.observe(AuditLog(args.audit), inline=True)
    guardian = Guardian(
        hooks, _keys(args.keys), database, governed=args.govern, asks=args.asks, modifies=not args.no_modify
    )
    if args.port is not None:
        return _serve(guardian, args.bind, args.port)
    with claim_stdout() as sink:
        return _on_stdio(guardian, sys.stdin.buffer, sink)


def _keys(path: Path) -> dict[str, bytes]:
    try:
        if path.stat().st_mode & 0o077 and os.name != "nt":
            raise ConfigError(str(path), f"others can read these secrets; run `chmod 600 {path}`")
        said = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
        keys = {name: base64.b64decode(value, validate=True) for name, value in said.items()}
    except (OSError, msgspec.DecodeError, binascii.Error) as problem:
        raise ConfigError(str(path), f'expected secrets as {{"k1": "base64"}}: {problem}') from None
    short = [name for name, secret in keys.items() if len(secret) < 32]
    if short or not keys:
        raise ConfigError(str(path), f"each secret needs 32 bytes at least: {', '.join(short) or 'there is none'}")
    return keys


def _serve(guardian: Guardian, address: str, number: int) -> int:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            size = int(length) if length.isdecimal() else 0
            data = self.rfile.read(min(size, _MOST_BYTES))
            self.close_connection = size > _MOST_BYTES
            said = msgspec.json.encode(guardian.answer(data if size <= _MOST_BYTES else b""))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: what was asked is in the database and the audit log."""

    with ThreadingHTTPServer((address, number), Handler) as server:
        print(f"http://{address}:{server.server_port}/acs", flush=True)
        server.serve_forever()
    return 0


def _on_stdio(guardian: Guardian, source: BinaryIO, sink: BinaryIO) -> int:
    """Messages framed by `Content-Length`, one after another."""
    while (length := _length(source)) is not None:
        data = source.read(min(length, _MOST_BYTES))
        left = length - len(data)
        while left > 0 and (skipped := source.read(min(left, 1 << 16))):
            left -= len(skipped)
        said = msgspec.json.encode(guardian.answer(data if length <= _MOST_BYTES else b""))
        sink.write(b"Content-Length: %d\r\n\r\n" % len(said) + said)
        sink.flush()
    return 0


def _length(source: BinaryIO) -> int | None:
    """How long the next message is; `None` at the end."""
    length = None
    while (line := source.readline(1 << 10)) not in (b"\r\n", b"\n"):
        if not line:
            return None
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    return length or 0
