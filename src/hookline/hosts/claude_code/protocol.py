"""The control protocol without I/O: bytes in, messages out, and back.

    connection = Connection("host")
    data = connection.send(connection.ask(Initialize(hooks=…)))     # write these bytes
    for message in connection.receive(chunk): …                     # chunks of any size
    connection.outgoing()                                           # refusals it owes by itself: write these too

Both roles are here; what the `send` of one end takes, the `receive` of the other gives. `receive` never raises: a line
that is not a message, a response to nothing, a second answer are `Violation` values among the others, so nothing that
came with them is lost. `send` raises a `ProtocolError` rather than answer a request twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from io import BytesIO
from itertools import count
from typing import Any, Literal, Union

import msgspec
from msgspec import Raw, Struct

from hookline.errors import (
    BadLine,
    NotInitialized,
    ProtocolError,
    UnknownCallback,
)
from hookline.hosts.claude_code.messages import (
    EMPTY,
    MESSAGES,
    CallbackMatcher,
    CanUseTool,
    ControlCancel,
    ControlRequest,
    Failure,
    HookCallback,
    Initialize,
    Interrupt,
    KeepAlive,
    McpMessage,
    Message,
    OtherMessage,
    OtherRequest,
    Received,
    Request,
    Sendable,
    SetModel,
    SetPermissionMode,
    Success,
    UserMessage,
    Violation,
)
from hookline.hosts.claude_code.pending import PendingRequests

Role = Literal["host", "cli"]
LINE_LIMIT = 256 * 1024 * 1024

# What each end may be asked. Anything else is refused with `unsupported_request`.
ASKED_OF: Mapping[Role, tuple[type[Request], ...]] = {
    "host": (HookCallback, CanUseTool, McpMessage),
    "cli": (Initialize, Interrupt, SetPermissionMode, SetModel, McpMessage),
}

_UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)
_encode = msgspec.json.Encoder().encode
_SUCCESS = b'{"type":"control_response","response":{"subtype":"success","request_id":'
_EMPTY_END = b',"response":{}}}\n'


class Callback(Struct, frozen=True):
    """One registered hook callback, as `initialize` gave it."""

    callback_id: str
    event: str
    matcher: str | None = None
    timeout: float | None = None
    on_failure: str | None = None


def callbacks_of(hooks: Mapping[str, Collection[CallbackMatcher]] | None) -> dict[str, Callback]:
    """The callbacks of an `initialize`, by id; an id named twice stands for its last entry."""
    return {
        callback_id: Callback(callback_id, event, entry.matcher, entry.timeout, entry.on_failure)
        for event, entries in (hooks or {}).items()
        for entry in entries
        for callback_id in entry.callback_ids
    }


class _Response(Struct, tag_field="type", tag="control_response"):
    response: Success | Failure


_SAID = {msgspec.defstruct(f"_Said_{kind}", [], tag_field="type", tag=kind): kind for kind in MESSAGES}
"""What the agent's own lines are recognised by; they are kept as they were written."""

_decode = msgspec.json.Decoder(Union[(ControlRequest, _Response, ControlCancel, KeepAlive, *_SAID)]).decode


class _Loose(Struct):
    """Any message, read as far as it can be."""

    type: str
    request_id: Any = None
    request: Raw = Raw(b"null")


class _Subtype(Struct):
    subtype: str


_loose = msgspec.json.Decoder(_Loose).decode
_subtype = msgspec.json.Decoder(_Subtype).decode


class Connection:
    """One end of a conversation: `role` is who we are, `also` names further subtypes we serve ourselves."""

    def __init__(self, role: Role, *, line_limit: int = LINE_LIMIT, also: Collection[str] = ()) -> None:
        self.role = role
        self.callbacks: dict[str, Callback] = {}
        self.initialized: bool = False
        self.ours: PendingRequests = PendingRequests()  # what we asked
        self.theirs: PendingRequests = PendingRequests()  # what they asked
        self._also = frozenset(also)
        self._ids = count(1)
        self._lines = LineSplitter(line_limit)
        self._began_ascii = True  # so far, what has come of the line that is not whole yet
        self._outgoing: list[bytes] = []
        self._asked_of = frozenset(ASKED_OF[role])
        self._on: dict[type, Callable[[Any, bytes], Received | None]] = {
            ControlRequest: self._asked,
            _Response: self._answered,
            ControlCancel: self._cancelled,
            KeepAlive: lambda message, line: message,
            **dict.fromkeys(_SAID, self._said),
        }
        self._put: dict[type, Callable[[Any], bytes]] = {
            ControlRequest: self._put_request,
            Success: self._put_success,
            Failure: self._put_failure,
            ControlCancel: self._put_cancel,
            KeepAlive: lambda message: _encode(message) + b"\n",
        }

    # ── in ──────────────────────────────────────────────────────────────────────────────────────

    def receive(self, data: bytes) -> list[Received]:
        """The messages that these bytes complete, in order."""
        received: list[Received] = []
        ascii_only = data.isascii() and self._began_ascii
        self._began_ascii = ascii_only or data.endswith(b"\n")
        on = self._on
        for line in self._lines.push(data):
            if line.__class__ is not bytes or not (ascii_only or is_utf8(line)):
                received.append(self._unreadable(line))
                continue
            try:
                message = _decode(line)
            except _UNREADABLE:
                told = self._odd(line)
            else:
                told = on[message.__class__](message, line)
            if told is not None:
                received.append(told)
        return received

    def end(self) -> list[Received]:
        """The peer will say no more; half a line is a violation."""
        left = self._lines.end()
        return [Violation(BadLine("cut_off", "the last line was cut off", left))] if left.strip() else []

    def outgoing(self) -> bytes:
        """What the connection owes the peer by itself (refusals); empty most of the time."""
        if not self._outgoing:
            return b""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    def _unreadable(self, line: bytes | BadLine) -> Violation:
        return Violation(line) if isinstance(line, BadLine) else self._bad(line, "not_utf8", "a line is not UTF-8")

    def _asked(self, message: ControlRequest, line: bytes) -> Received | None:
        request = message.request
        kind = request.__class__
        if kind not in self._asked_of:
            return self._odd(line)
        try:
            self.theirs.ask(message.request_id)
        except ProtocolError as problem:
            return Violation(problem)
        if kind is HookCallback:
            if request.callback_id not in self.callbacks:  # type: ignore[union-attr]
                unknown = UnknownCallback(request.callback_id, self.callbacks)  # type: ignore[union-attr]
                return self._refused(message.request_id, unknown, "unknown_callback")
        elif isinstance(request, Initialize):
            self._opened(request)
        return message

    def _answered(self, message: _Response, line: bytes) -> Received:
        try:
            self.ours.answer(message.response.request_id)
        except ProtocolError as problem:
            return Violation(problem)
        return message.response

    def _cancelled(self, message: ControlCancel, line: bytes) -> Received | None:
        try:
            return message if self.theirs.cancel(message.request_id) else None
        except ProtocolError as problem:
            return Violation(problem)

    def _said(self, marker: object, line: bytes) -> Message:
        kind = _SAID[type(marker)]  # type: ignore[index]
        return MESSAGES[kind](kind, line)

    def _opened(self, request: Initialize) -> None:
        if request.hooks is not None:  # one without hooks leaves those of the one before
            self.callbacks = callbacks_of(request.hooks)
        self.initialized = True

    def _odd(self, line: bytes) -> Received | None:
        """A line that is not a message we know: blank, of an unknown type or subtype, or broken."""
        if not line.strip():
            return None
        try:
            loose = _loose(line)
        except _UNREADABLE as problem:
            return self._bad(line, *_why(problem))
        if loose.type == "control_request":
            return self._odd_request(loose, line)
        if loose.type in ("control_response", "control_cancel_request", *MESSAGES):
            return Violation(BadLine("not_a_message", f"a `{loose.type}` that cannot be read", line))
        return OtherMessage(loose.type, line)

    def _odd_request(self, loose: _Loose, line: bytes) -> Received:
        try:
            subtype = _subtype(loose.request).subtype
        except _UNREADABLE:
            subtype = ""
        if not isinstance(loose.request_id, str):
            return Violation(BadLine("not_a_message", "a request without a `request_id`", line))
        request = OtherRequest(subtype, Raw(bytes(loose.request)))
        try:
            self.theirs.ask(loose.request_id)
        except ProtocolError as problem:
            return Violation(problem)
        if subtype in self._also:
            return ControlRequest(loose.request_id, request)
        if subtype in {str(kind.__struct_config__.tag) for kind in ASKED_OF[self.role]} or not subtype:
            unreadable = BadLine("not_a_message", f"a `{subtype}` request that cannot be read", line)
            return self._refused(loose.request_id, unreadable, "invalid_request")
        unsupported = ProtocolError(f"`{subtype}` is not supported here")
        return self._refused(loose.request_id, unsupported, "unsupported_request")

    def _bad(self, line: bytes, kind: str, problem: str) -> Violation:
        """A line that cannot be read; if it still names a request, the peer is told instead of left waiting."""
        violation = Violation(BadLine(kind, problem, line))
        if kind == "not_utf8":
            try:
                loose = _loose(line.decode("utf-8", "replace").encode())
            except _UNREADABLE:
                return violation
            if loose.type == "control_request" and isinstance(loose.request_id, str):
                try:
                    self.theirs.ask(loose.request_id)
                except ProtocolError:
                    return violation
                return self._refused(loose.request_id, violation.error, "invalid_request")
        return violation

    def _refused(self, request_id: str, problem: ProtocolError, code: str) -> Violation:
        self._outgoing.append(self._put_failure(Failure(request_id, str(problem), code)))
        return Violation(problem)

    # ── out ─────────────────────────────────────────────────────────────────────────────────────

    def ask(self, request: Request | OtherRequest) -> ControlRequest:
        """A request with an id of its own, to be sent."""
        return ControlRequest(f"req_{next(self._ids)}", request)

    def send(self, message: Sendable) -> bytes:
        """The bytes to write; raises `ProtocolError` when the protocol does not allow the message now."""
        put = self._put.get(type(message))
        return self._queue_message(message) if put is None else put(message)  # type: ignore[arg-type]

    def _put_request(self, message: ControlRequest) -> bytes:
        request = message.request
        if isinstance(request, HookCallback) and request.callback_id not in self.callbacks:
            raise UnknownCallback(request.callback_id, self.callbacks)
        self.ours.ask(message.request_id)
        if isinstance(request, Initialize):
            self._opened(request)
        body = bytes(request.body) if isinstance(request, OtherRequest) else _encode(request)
        return b'{"type":"control_request","request_id":%b,"request":%b}\n' % (_encode(message.request_id), body)

    def answer(self, request_id: str, response: Raw | bytes = EMPTY) -> bytes:
        """The same as sending a `Success`, for those who answer a great many."""
        self.theirs.answer(request_id)
        if response is EMPTY:
            return _SUCCESS + _encode(request_id) + _EMPTY_END
        return b'%b%b,"response":%b}}\n' % (_SUCCESS, _encode(request_id), response)

    def _put_success(self, message: Success) -> bytes:
        return self.answer(message.request_id, message.response)

    def _put_failure(self, message: Failure) -> bytes:
        self.theirs.answer(message.request_id)
        return b'{"type":"control_response","response":%b}\n' % _encode(message)

    def _put_cancel(self, message: ControlCancel) -> bytes:
        return _encode(message) + b"\n" if self.ours.cancel(message.request_id) else b""

    def _queue_message(self, message: Message) -> bytes:
        if self.role == "host" and isinstance(message, UserMessage) and not self.initialized:
            raise NotInitialized
        return message.line + b"\n"


def is_utf8(line: bytes | BadLine) -> bool:
    """Whether the bytes are text."""
    try:
        str(line, "utf-8")  # type: ignore[arg-type]
    except UnicodeDecodeError:
        return False
    return True


def _why(problem: Exception) -> tuple[str, str]:
    if isinstance(problem, msgspec.ValidationError):
        return "not_a_message", "a line is not a message of the protocol"
    return "not_json", f"a line is not JSON ({problem})"


# -- bytes into lines, in bounded memory ------------------------------------------------------------------------------


class LineSplitter:
    """Whole lines out of chunks of any size; a line over the limit is reported once and skipped to its end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def push(self, chunk: bytes) -> list[bytes | BadLine]:
        whole = BytesIO(chunk).readlines()  # looks for the ends of lines in words, where `split` goes byte by byte
        rest = whole.pop() if whole and not chunk.endswith(b"\n") else b""
        lines: list[bytes | BadLine] = [line[:-1] for line in whole]
        if len(chunk) > self._limit:
            lines = [line if len(line) <= self._limit else self._too_long(line) for line in lines]  # type: ignore[arg-type]
        if lines and (self._parts or self._skipping):
            self._finish(lines)
        if rest:
            lines += self._begin(rest)
        return lines

    def end(self) -> bytes:
        """What was left without a newline."""
        left, self._parts, self._size = b"".join(self._parts), [], 0
        return left

    def _finish(self, lines: list[bytes | BadLine]) -> None:
        """The first of these lines ends the one that earlier chunks began."""
        parts, skipped = self._parts, self._skipping
        size, self._parts, self._size, self._skipping = self._size, [], 0, False
        if skipped:
            del lines[0]
        elif isinstance(lines[0], bytes):
            whole = size + len(lines[0])
            lines[0] = b"".join([*parts, lines[0]]) if whole <= self._limit else self._too_long(parts[0])

    def _begin(self, part: bytes) -> list[BadLine]:
        """Keep the beginning of a line, up to the limit."""
        if self._skipping:
            return []
        self._parts.append(part)
        self._size += len(part)
        if self._size <= self._limit:
            return []
        start = self._parts[0]
        self._parts, self._size, self._skipping = [], 0, True
        return [self._too_long(start)]

    def _too_long(self, start: bytes) -> BadLine:
        problem = f"a line is longer than the limit of {self._limit:,} bytes; raise line_limit"
        return BadLine("too_long", problem, start[:300])
