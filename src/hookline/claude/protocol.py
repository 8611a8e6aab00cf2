"""The control protocol without I/O: bytes in, messages out, and back.

    connection = Connection("host")
    data = connection.send(connection.ask(Initialize(hooks=…)))     # write these bytes
    for message in connection.receive(chunk): …                     # chunks of any size
    connection.outgoing()                                           # refusals it owes by itself: write these too

Both roles are here; what the `send` of one end takes, the `receive` of the other gives. `receive` never raises: a line
that is no message, a response to nothing, a second answer are `Violation` values among the others, so nothing that
came with them is lost. `send` raises a `ProtocolError` rather than answer a request twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from hookline.claude.messages import (
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
from hookline.errors import (
    BadLine,
    NotInitialized,
    ProtocolError,
    RequestClosed,
    RequestIdReused,
    StrayResponse,
    UnknownCallback,
)

Role = Literal["host", "cli"]
State = Literal["new", "open", "answered", "cancelled"]
Step = Literal["ask", "answer", "cancel"]

LINE_LIMIT = 256 * 1024 * 1024
REMEMBERED = 16_384  # at least so many closed ids are kept, per direction, to notice a second answer or a reused id

# What each end may be asked. Anything else is refused with `unsupported_request`.
ASKED_OF: Mapping[Role, tuple[type[Request], ...]] = {
    "host": (HookCallback, CanUseTool, McpMessage),
    "cli": (Initialize, Interrupt, SetPermissionMode, SetModel, McpMessage),
}

# The life of a request, the same in both directions.
NEXT: Mapping[tuple[State, Step], State] = {
    ("new", "ask"): "open",
    ("open", "answer"): "answered",
    ("open", "cancel"): "cancelled",
}
# A cancellation that crosses the answer on the wire is no one's fault.
HARMLESS: frozenset[tuple[State, Step]] = frozenset({("answered", "cancel"), ("cancelled", "cancel")})
PROBLEM: Mapping[tuple[State, Step], Callable[[str, State], ProtocolError]] = {
    ("open", "ask"): lambda rid, state: RequestIdReused(rid),
    ("answered", "ask"): lambda rid, state: RequestIdReused(rid),
    ("cancelled", "ask"): lambda rid, state: RequestIdReused(rid),
    ("new", "answer"): lambda rid, state: StrayResponse(rid),
    ("new", "cancel"): lambda rid, state: StrayResponse(rid),
    ("answered", "answer"): RequestClosed,
    ("cancelled", "answer"): RequestClosed,
}

_UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)
_encode = msgspec.json.Encoder().encode


class Ledger:
    """Where every request of one direction stands; closed ones are remembered, up to a bound."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.open: dict[str, Request | OtherRequest | None] = {}
        self._closed: dict[str, State] = {}
        self._older: dict[str, State] = {}
        self._remembered = remembered

    def state(self, request_id: str) -> State:
        if request_id in self.open:
            return "open"
        return self._closed.get(request_id) or self._older.get(request_id, "new")

    def step(self, request_id: str, step: Step, request: Request | OtherRequest | None = None) -> bool:
        """Takes the step; False when there is nothing to do, a `ProtocolError` when it is not allowed."""
        state = self.state(request_id)
        after = NEXT.get((state, step))
        if after is None:
            if (state, step) in HARMLESS:
                return False
            raise PROBLEM[state, step](request_id, state)
        if after == "open":
            self.open[request_id] = request
            return True
        del self.open[request_id]
        self._closed[request_id] = after
        if len(self._closed) >= self._remembered:
            self._closed, self._older = {}, self._closed
        return True


class Lines:
    """Whole lines out of chunks of any size; a line over the limit is reported once and skipped to its end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def push(self, chunk: bytes) -> Iterator[bytes | BadLine]:
        first, *rest = chunk.split(b"\n")
        if not rest:
            yield from self._add(first)
            return
        yield from self._add(first)
        yield from self._take()
        for line in rest[:-1]:
            yield line if len(line) <= self._limit else self._too_long(line)
        yield from self._add(rest[-1])

    def end(self) -> bytes:
        """What was left without a newline."""
        left, self._parts, self._size = b"".join(self._parts), [], 0
        return left

    def _add(self, part: bytes) -> Iterator[BadLine]:
        if self._skipping or not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            start = self._parts[0]
            self._parts, self._size, self._skipping = [], 0, True
            yield self._too_long(start)

    def _take(self) -> Iterator[bytes]:
        if not self._skipping:
            parts = self._parts
            yield parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts, self._size, self._skipping = [], 0, False

    def _too_long(self, start: bytes) -> BadLine:
        problem = f"a line is longer than the limit of {self._limit:,} bytes; raise line_limit"
        return BadLine("too_long", problem, start[:300])


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


class _User(Struct, tag_field="type", tag="user"):
    pass


class _Assistant(Struct, tag_field="type", tag="assistant"):
    pass


class _System(Struct, tag_field="type", tag="system"):
    pass


class _StreamEvent(Struct, tag_field="type", tag="stream_event"):
    pass


class _Result(Struct, tag_field="type", tag="result"):
    pass


_SAID = {_User: "user", _Assistant: "assistant", _System: "system", _StreamEvent: "stream_event", _Result: "result"}


class _HostAsked(Struct, tag_field="type", tag="control_request"):
    request_id: str
    request: HookCallback | CanUseTool | McpMessage


class _CliAsked(Struct, tag_field="type", tag="control_request"):
    request_id: str
    request: Initialize | Interrupt | SetPermissionMode | SetModel | McpMessage


_HOST = _HostAsked | _Response | ControlCancel | KeepAlive | _User | _Assistant | _System | _StreamEvent | _Result
_CLI = _CliAsked | _Response | ControlCancel | KeepAlive | _User | _Assistant | _System | _StreamEvent | _Result
_DECODERS: Mapping[Role, msgspec.json.Decoder[Any]] = {
    "host": msgspec.json.Decoder(_HOST),
    "cli": msgspec.json.Decoder(_CLI),
}


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
        self.initialized = False
        self.ours = Ledger()  # what we asked
        self.theirs = Ledger()  # what they asked
        self._also = frozenset(also)
        self._ids = count(1)
        self._lines = Lines(line_limit)
        self._outgoing: list[bytes] = []
        self._decode = _DECODERS[role].decode
        self._on: dict[type, Callable[[Any, bytes], Received | None]] = {
            _HostAsked: self._asked,
            _CliAsked: self._asked,
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
        for line in self._lines.push(data):
            message = self._read(line) if isinstance(line, bytes) else Violation(line)
            if message is not None:
                received.append(message)
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

    def _read(self, line: bytes) -> Received | None:
        if not line.isascii():
            try:
                str(line, "utf-8")
            except UnicodeDecodeError as problem:
                return self._bad(line, "not_utf8", f"a line is not UTF-8 (at byte {problem.start})")
        try:
            message = self._decode(line)
        except _UNREADABLE:
            return self._odd(line)
        return self._on[type(message)](message, line)

    def _asked(self, message: _HostAsked | _CliAsked, line: bytes) -> Received | None:
        request = message.request
        try:
            self.theirs.step(message.request_id, "ask", request)
        except ProtocolError as problem:
            return Violation(problem)
        if isinstance(request, HookCallback) and request.callback_id not in self.callbacks:
            unknown = UnknownCallback(request.callback_id, self.callbacks)
            return self._refused(message.request_id, unknown, "unknown_callback")
        if isinstance(request, Initialize):
            self._opened(request)
        return ControlRequest(message.request_id, request)

    def _answered(self, message: _Response, line: bytes) -> Received:
        try:
            self.ours.step(message.response.request_id, "answer")
        except ProtocolError as problem:
            return Violation(problem)
        return message.response

    def _cancelled(self, message: ControlCancel, line: bytes) -> Received | None:
        try:
            return message if self.theirs.step(message.request_id, "cancel") else None
        except ProtocolError as problem:
            return Violation(problem)

    def _said(self, marker: object, line: bytes) -> Message:
        kind = _SAID[type(marker)]  # type: ignore[index]
        return MESSAGES[kind](kind, line)

    def _opened(self, request: Initialize) -> None:
        self.callbacks = callbacks_of(request.hooks)
        self.initialized = True

    def _odd(self, line: bytes) -> Received | None:
        """A line that is no message we know: blank, of an unknown type or subtype, or broken."""
        if not line.strip():
            return None
        try:
            loose = _loose(line)
        except _UNREADABLE as problem:
            return self._bad(line, *_why(line, problem))
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
            self.theirs.step(loose.request_id, "ask", request)
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
                    self.theirs.step(loose.request_id, "ask")
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
        return self._put_said(message) if put is None else put(message)  # type: ignore[arg-type]

    def _put_request(self, message: ControlRequest) -> bytes:
        request = message.request
        if isinstance(request, HookCallback) and request.callback_id not in self.callbacks:
            raise UnknownCallback(request.callback_id, self.callbacks)
        self.ours.step(message.request_id, "ask", request)
        if isinstance(request, Initialize):
            self._opened(request)
        body = bytes(request.body) if isinstance(request, OtherRequest) else _encode(request)
        return b'{"type":"control_request","request_id":%b,"request":%b}\n' % (_encode(message.request_id), body)

    def _put_success(self, message: Success) -> bytes:
        self.theirs.step(message.request_id, "answer")
        return b'{"type":"control_response","response":{"subtype":"success","request_id":%b,"response":%b}}\n' % (
            _encode(message.request_id),
            message.response,
        )

    def _put_failure(self, message: Failure) -> bytes:
        self.theirs.step(message.request_id, "answer")
        return b'{"type":"control_response","response":%b}\n' % _encode(message)

    def _put_cancel(self, message: ControlCancel) -> bytes:
        return _encode(message) + b"\n" if self.ours.step(message.request_id, "cancel") else b""

    def _put_said(self, message: Message) -> bytes:
        if self.role == "host" and isinstance(message, UserMessage) and not self.initialized:
            raise NotInitialized
        return message.line + b"\n"


def _why(line: bytes, problem: Exception) -> tuple[str, str]:
    if isinstance(problem, msgspec.ValidationError):
        return "not_a_message", "a line is no message of the protocol"
    return "not_json", f"a line is not JSON ({problem})"
