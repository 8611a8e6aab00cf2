"""Pushes an audit log to a receiver: in order, each record at least once, from a place that survives a restart.

It is a process of its own, beside the agents: the log is its queue, so a receiver that is away holds up nothing and
costs no memory. What was sent is noted once the receiver has taken it; after a kill the last batch may come twice.

To send is to return when the receiver has taken everything, or to raise `OSError` if that is not known: then the same
records are sent again. Syslog has no acknowledgement; a batch counts as taken when its receiver has read it to the end
and closed the connection.
"""

import contextlib
import hashlib
import logging
import os
import platform
import shlex
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from hookline.core.files import private_folder, state_folder, try_lock, write_atomically
from hookline.core.wire.json_text import read_as, read_object
from hookline.errors import AuditError
from hookline.records.audit.chain import Link, link_before, link_of, read_head
from hookline.records.audit.export import FORMATS, SEVERITY, Record, otlp
from hookline.records.audit.log_file import AuditFile, append_durably
from hookline.records.audit.reader import Cursor, LogReader

log: logging.Logger = logging.getLogger("hookline.audit")
POLL_SECONDS = 0.5
_LONGEST_WAIT = 60.0
_MOST_LINES = 500
_MOST_BYTES = 256 << 10
SECONDS = 20.0
_FACILITY = 13 * 8  # "log audit"
_LEVELS = {"WARN": 4, "INFO2": 5}


class PushState(msgspec.Struct):
    """How far a log was sent to a receiver, and what is in the way, if anything."""

    log: str
    to: str
    cursor: Cursor = Cursor()
    last: Link = Link()
    sent: int = 0
    missing: int = 0  # records that were deleted before they could be sent
    time: float = 0.0
    problem: str = ""

    @property
    def behind(self) -> int:
        head = read_head(AuditFile(self.log).head_path)
        return max((head.seq if head else 0) - self.last.seq, 0)

    def summary(self) -> dict[str, Any]:
        names = ("log", "to", "sent", "missing", "behind", "time", "problem")
        return {name: getattr(self, name) for name in names}


def push_states(state: str | Path | None = None) -> list[PushState]:
    """Every push of this user, as far as it is known here."""
    folder = Path(state or state_folder()) / "audit"
    return [found for path in sorted(folder.glob("push-*.json")) if (found := _read(path)) is not None]


def _read(path: Path) -> PushState | None:
    with contextlib.suppress(OSError):
        return read_as(path.read_bytes(), PushState)
    return None


class Pusher:
    """One log on its way to one receiver."""

    def __init__(self, path: str | Path, to: str, form: str = "") -> None:
        self.path: Path = Path(os.path.realpath(path))
        self._send = sink_for(to, form)
        name = hashlib.sha256(f"{self.path}\0{to}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._file = private_folder(state_folder() / "audit") / f"push-{name}.json"
        self.state: PushState = _read(self._file) or PushState(str(self.path), to)
        self._reader = LogReader(self.path)
        self._lock: int | None = None

    def acquire(self) -> None:
        """Be the only process that pushes this log there; `AuditError` if there is one already."""
        self._lock = try_lock(self._file.with_suffix(".lock"))
        if self._lock is None:
            raise AuditError(f"{self.path}: another process pushes it there already")

    def step(self) -> int:
        """Send the next records; how many. Raises `OSError` if the receiver did not take them."""
        place = self._reader.found_again(self.state.cursor, self.state.last)
        batch = self._reader.read(place, most_bytes=_MOST_BYTES, most_lines=_MOST_LINES)
        if not (lines := batch.lines):
            return 0
        records = [record for line in lines if (record := read_object(line)) is not None]
        try:
            if records:
                self._send(records)
        except OSError:
            raise
        except Exception as problem:  # a receiver may answer anything; what it took is not known then
            raise OSError(f"{type(problem).__name__}: {problem}") from problem
        first, last = link_before(lines[0]), link_of(lines[-1])
        if first is not None and self.state.last.seq and first.seq > self.state.last.seq:
            self.state.missing += first.seq - self.state.last.seq
            log.warning("%s: %d records were deleted before they could be sent", self.path, self.state.missing)
        self.state.cursor, self.state.last = batch.cursor, last or self.state.last
        self.state.sent += len(records)
        self._note("")
        return len(records)

    def _note(self, problem: str) -> None:
        """Remember how far it got; where that cannot be written, it is known until this process ends."""
        self.state.time, self.state.problem = time.time(), problem
        with contextlib.suppress(OSError):
            write_atomically(self._file, msgspec.json.encode(self.state))

    def until_sent(self) -> int:
        """Send all that is there now; how many. Raises `AuditError` if the receiver does not take it."""
        count = 0
        try:
            while sent := self.step():
                count += sent
        except OSError as problem:
            self._note(str(problem))
            stands = f"{count} records were sent, {self.state.behind} wait"
            raise AuditError(f"{self.state.to}: {problem}; {stands}") from None
        return count

    def follow(self, wait: Callable[[float], bool]) -> None:
        """Send what is written from now on, until `wait(seconds)` says so; a receiver that is away is tried again."""
        delay = POLL_SECONDS
        while True:
            try:
                sent, delay = self.step(), POLL_SECONDS
            except OSError as problem:
                if not self.state.problem:
                    log.warning("%s: %s; %d records wait", self.state.to, problem, self.state.behind)
                sent, delay = 0, min(delay * 2, _LONGEST_WAIT)
                self._note(str(problem) or type(problem).__name__)
            if not sent and wait(delay):
                return


def sinks_in(raw: Any) -> Iterator[tuple[str, str, str]]:
    """The receivers that a `sink` setting names: log, address, format; `AuditError` if it cannot be understood."""
    for one in raw if isinstance(raw, list) else [raw]:
        said = {"to": one} if isinstance(one, str) else one
        if not isinstance(said, dict) or not all(isinstance(said.get(key, ""), str) for key in ("to", "log", "format")):
            raise AuditError('sink: expected an address, or an object such as {"to": "syslog+tls://siem.example:6514"}')
        if not said.get("to") or set(said) - {"to", "log", "format"}:
            raise AuditError(f"sink: expected `to`, and perhaps `log` and `format`, got {', '.join(said) or 'nothing'}")
        yield said.get("log", ""), said["to"], said.get("format", "")


Send = Callable[[list[Record]], None]


def sink_for(to: str, form: str = "") -> Send:
    """What sends to an address: `syslog://`, `syslog+tls://`, `http(s)://`, `file:` or `exec:`."""
    kind, _, rest = to.partition(":")
    if kind not in _SINKS:
        known = ", ".join(f"`{one}:`" for one in _SINKS)
        raise AuditError(f"sink: expected an address that begins with one of {known}, got `{to}`")
    usual, make = _SINKS[kind]
    written = form or usual
    if written not in _WRITTEN or (written == "otlp") != (kind in ("http", "https")):
        raise AuditError(f"sink `{to}`: it cannot take the format `{form}`; leave the format out for `{usual}`")
    return make(to if rest.startswith("//") else rest, _WRITTEN[written])


_Write = Callable[[Record], Iterator[Record]]
_WRITTEN: dict[str, _Write] = {
    "ocsf": lambda record: FORMATS["ocsf"](record, platform.node()),
    "otlp": lambda record: iter(otlp(record, platform.node())["resourceLogs"]),
    "jsonl": lambda record: iter((record,)),
}  # the formats; a record may become several


def _lines(records: list[Record], write: _Write) -> bytes:
    return b"".join(msgspec.json.encode(made) + b"\n" for record in records for made in write(record))


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
            said = read_object(answer.read(1 << 16)) or {}
        if rejected := int((said.get("partialSuccess") or {}).get("rejectedLogRecords") or 0):
            raise OSError(f"the receiver rejected {rejected} of {len(records)} records")

    return send


def _file(path: str, write: _Write) -> Send:
    return lambda records: append_durably(Path(path), _lines(records, write))


def _command(line: str, write: _Write) -> Send:
    if not (words := shlex.split(line)):
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
