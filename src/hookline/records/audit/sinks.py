"""Where records are pushed to: syslog (RFC 5424 over TCP or TLS), OTLP logs over HTTP, a file, a command.

`send` returns when the receiver has taken everything, and raises `OSError` if it is not known whether it has: then the
same records are sent again. Syslog has no acknowledgement of its own; a batch counts as taken when its receiver has
read it to the end and closed the connection.
"""

from __future__ import annotations

import os
import platform
import shlex
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from hookline.errors import AuditError
from hookline.records.audit.export import FORMATS, SEVERITY, Record, otlp
from hookline.records.audit.log_file import write_all

SECONDS = 20.0
_FACILITY = 13 * 8  # "log audit"
_LEVELS = {"WARN": 4, "INFO2": 5}

Send = Callable[[list[Record]], None]


def sink_for(to: str, form: str = "") -> Send:
    """What sends to an address: `syslog://`, `syslog+tls://`, `http(s)://`, `file:` or `exec:`."""
    kind, _, rest = to.partition(":")
    if kind not in _SINKS:
        known = ", ".join(f"`{one}:`" for one in _SINKS)
        raise AuditError(f"sink: expected an address that begins with one of {known}, got `{to}`")
    usual, make = _SINKS[kind]
    if (form or usual) not in _WRITTEN or ((form or usual) == "otlp") != (kind in ("http", "https")):
        raise AuditError(f"sink `{to}`: it cannot take the format `{form}`; leave the format out for `{usual}`")
    return make(to if rest.startswith("//") else rest, _WRITTEN[form or usual])


_Write = Callable[[Record], Iterator[Record]]
_WRITTEN: dict[str, _Write] = {
    "ocsf": lambda record: FORMATS["ocsf"](record, platform.node()),
    "otlp": lambda record: iter(otlp(record, platform.node())["resourceLogs"]),
    "jsonl": lambda record: iter((record,)),
}
"""The formats; a record may become several."""


def _lines(records: list[Record], write: _Write) -> bytes:
    return b"".join(msgspec.json.encode(made) + b"\n" for record in records for made in write(record))


# -- syslog ------------------------------------------------------------------------------------------------------------


def syslog_message(record: Record, body: Record) -> bytes:
    """One message of RFC 5424, framed by its length (RFC 6587, 5425)."""
    text, _ = SEVERITY.get(str(record.get("decision", "")), ("INFO", 9))
    event = "".join(char for char in str(record.get("event") or "-") if "!" <= char <= "~")[:32] or "-"
    number = record.get("seq")
    place = number % (1 << 31) if isinstance(number, int) else 0
    head = (
        f"<{_FACILITY + _LEVELS.get(text, 6)}>1 {record.get('time') or '-'} {platform.node() or '-'} hookline "
        f'{os.getpid()} {event} [meta sequenceId="{place}"][origin software="hookline"] '
    )
    message = head.encode() + msgspec.json.encode(body)
    return b"%d %s" % (len(message), message)


def _syslog(to: str, write: _Write) -> Send:
    where = urlsplit(to)
    tls = where.scheme == "syslog+tls"
    address = (_host(where, to), where.port or (6514 if tls else 601))
    context = _context(where) if tls else None

    def send(records: list[Record]) -> None:
        data = b"".join(syslog_message(record, made) for record in records for made in write(record))
        with closing(socket.create_connection(address, SECONDS)) as plain:
            wrapped = plain if context is None else context.wrap_socket(plain, server_hostname=address[0])
            with closing(wrapped) as connection:
                connection.sendall(data)
                if isinstance(connection, ssl.SSLSocket):
                    _end_tls(connection, any_end="close" in parse_qs(where.query))
                else:
                    connection.shutdown(socket.SHUT_WR)
                    if connection.recv(1):
                        raise OSError("the receiver answers: is it a syslog server?")

    return send


def _end_tls(connection: ssl.SSLSocket, *, any_end: bool) -> None:
    """Wait until the receiver has read all; one that leaves without TLS's word for it counts only with `?close=any`."""
    try:
        connection.unwrap()
    except ssl.SSLEOFError:
        if not any_end:
            raise OSError("the receiver left without `close_notify`; add `close=any` if it always does") from None


def _context(where: SplitResult) -> ssl.SSLContext:
    """Certificates are checked; `?ca=FILE` names the authority, `&cert=FILE` a certificate of our own with its key."""
    said = parse_qs(where.query)
    try:
        context = ssl.create_default_context(cafile=said.get("ca", [None])[0])
        if "cert" in said:
            context.load_cert_chain(said["cert"][0])
    except OSError as problem:
        raise AuditError(f"sink `{where.geturl()}`: a certificate cannot be read: {problem}") from None
    return context


def _host(where: SplitResult, to: str) -> str:
    try:
        _ = where.port
    except ValueError as problem:
        raise AuditError(f"sink `{to}`: {problem}") from None
    if not where.hostname:
        raise AuditError(f"sink `{to}`: it names no host")
    return where.hostname


# -- the others --------------------------------------------------------------------------------------------------------


def _otlp(to: str, write: _Write) -> Send:
    """A POST to `/v1/logs` unless another path is named; `OTEL_EXPORTER_OTLP_HEADERS` has the headers, if any."""
    where = urlsplit(to)
    _host(where, to)
    url = to if where.path.strip("/") else where._replace(path="/v1/logs").geturl()
    pairs = (pair.partition("=") for pair in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",") if pair)
    headers = {name.strip(): value.strip() for name, _, value in pairs} | {"Content-Type": "application/json"}

    def send(records: list[Record]) -> None:
        body = msgspec.json.encode({"resourceLogs": [made for record in records for made in write(record)]})
        request = urllib.request.Request(url, body, headers)  # noqa: S310 - http or https, as `sink_for` has it
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            said = _decoded(answer.read(1 << 16))
        rejected = int((said.get("partialSuccess") or {}).get("rejectedLogRecords") or 0)
        if rejected:
            raise OSError(f"the receiver rejected {rejected} of {len(records)} records")

    return send


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def _file(path: str, write: _Write) -> Send:
    def send(records: list[Record]) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            write_all(fd, _lines(records, write))
            os.fsync(fd)
        finally:
            os.close(fd)

    return send


def _command(line: str, write: _Write) -> Send:
    words = shlex.split(line)
    if not words:
        raise AuditError("sink `exec:`: it names no command")

    def send(records: list[Record]) -> None:
        try:
            ran = subprocess.run(words, input=_lines(records, write), capture_output=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise OSError(f"`{words[0]}` did not end within {SECONDS:.0f} s") from None
        if ran.returncode:
            raise OSError(f"`{words[0]}` ended with {ran.returncode}: {ran.stderr.decode(errors='replace')[-200:]}")

    return send


_SINKS: dict[str, tuple[str, Callable[[str, _Write], Send]]] = {
    "syslog": ("ocsf", _syslog), "syslog+tls": ("ocsf", _syslog), "http": ("otlp", _otlp), "https": ("otlp", _otlp),
    "file": ("jsonl", _file), "exec": ("jsonl", _command),
}  # fmt: skip
