"""The control protocol without I/O: bytes in, messages out, and back.

    connection = Connection("host")
    data = connection.send(connection.ask(Initialize(hooks=…)))     # write these bytes
    for message in connection.receive(chunk): …                     # chunks of any size
    connection.outgoing()                                           # refusals it owes by itself: write these too

Both roles are here; what the `send` of one end takes, the `receive` of the other gives. `receive` never raises: a line
that is not a message, a response to nothing, a second answer are `Violation` values among the others, so nothing that
came with them is lost. `send` raises a `ProtocolError` rather than answer a request twice.
"""

from collections.abc import Collection, Mapping
from io import BytesIO
from itertools import count
from typing import Any, Literal, Union

import msgspec
from msgspec import Raw, Struct

from hookline import errors
from hookline.errors import BadLine, ProtocolError
from hookline.hosts.claude_code import messages as wire

Role = Literal["host", "cli"]
LINE_LIMIT = 256 * 1024 * 1024
REMEMBERED = 16_384  # at least so many closed ids are kept, per direction, to notice a second answer or a reused id

# What each end may be asked. Anything else is refused with `unsupported_request`.
ASKED_OF: Mapping[Role, tuple[type[wire.Request], ...]] = {
    "host": (wire.HookCallback, wire.CanUseTool, wire.McpMessage),
    "cli": (wire.Initialize, wire.Interrupt, wire.SetPermissionMode, wire.SetModel, wire.McpMessage),
}

_UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)
_encode = msgspec.json.Encoder().encode
_SUCCESS = b'{"type":"control_response","response":{"subtype":"success","request_id":'
_EMPTY_END = b',"response":{}}}\n'


class _Response(Struct, tag_field="type", tag="control_response"):
    response: wire.Success | wire.Failure


_SAID = {msgspec.defstruct(f"_Said_{kind}", [], tag_field="type", tag=kind): kind for kind in wire.MESSAGES}
"""What the agent's own lines are recognised by; they are kept as they were written."""

_decode = msgspec.json.Decoder(
    Union[(wire.ControlRequest, _Response, wire.ControlCancel, wire.KeepAlive, *_SAID)]
).decode


class _Loose(Struct):
    """Any message, read as far as it can be."""

    type: str
    request_id: Any = None
    request: Raw = Raw(b"null")


class _Subtype(Struct):
    subtype: str


class Connection:
    """One end of a conversation: `role` is who we are, `also` names further subtypes we serve ourselves."""

    def __init__(self, role: Role, *, line_limit: int = LINE_LIMIT, also: Collection[str] = ()) -> None:
        self.role = role
        self.callbacks: dict[str, str] = {}  # the event of each callback that `initialize` registered, by id
        self.initialized: bool = False
        self.ours: PendingRequests = PendingRequests()  # what we asked
        self.theirs: PendingRequests = PendingRequests()  # what they asked
        self._also = frozenset(also)
        self._ids = count(1)
        self._lines = LineSplitter(line_limit)
        self._outgoing: list[bytes] = []
        self._asked_of = frozenset(ASKED_OF[role])

    def receive(self, data: bytes) -> list[wire.Received]:
        """The messages that these bytes complete, in order."""
        received: list[wire.Received] = []
        for line in self._lines.push(data):
            try:
                if isinstance(line, BadLine):
                    raise line
                message = self._read(line)
            except ProtocolError as problem:
                message = wire.Violation(problem.with_traceback(None))
            if message is not None:
                received.append(message)
        return received

    def end(self) -> list[wire.Violation]:
        """The peer will say no more; half a line is a violation."""
        left = self._lines.end()
        return [wire.Violation(BadLine("cut_off", "the last line was cut off", left))] if left.strip() else []

    def outgoing(self) -> bytes:
        """What the connection owes the peer by itself (refusals); empty most of the time."""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    def _read(self, line: bytes) -> wire.Received | None:
        """The message of a line; `None` if it says nothing, a `ProtocolError` if it may not be said."""
        try:
            if not line.isascii():
                str(line, "utf-8")  # what is kept as it was written is not decoded below
            message: Any = _decode(line)
        except _UNREADABLE:
            return self._read_odd(line)
        kind = message.__class__
        if kind is wire.ControlRequest:
            return self._take_request(message, line)
        if kind is _Response:
            self.ours.answer(message.response.request_id)
            return message.response  # type: ignore[no-any-return]
        if kind is wire.ControlCancel:
            return message if self.theirs.cancel(message.request_id) else None
        return message if kind is wire.KeepAlive else wire.MESSAGES[_SAID[kind]](_SAID[kind], line)

    def _take_request(self, message: wire.ControlRequest, line: bytes) -> wire.Received | None:
        request: Any = message.request
        kind = request.__class__
        if kind not in self._asked_of:
            return self._read_odd(line)
        self.theirs.ask(message.request_id)
        if kind is wire.HookCallback:
            if request.callback_id not in self.callbacks:
                unknown = errors.UnknownCallback(request.callback_id, self.callbacks)
                raise self._refused(message.request_id, unknown, "unknown_callback")
        elif kind is wire.Initialize:
            self._register(request)
        return message

    def _register(self, request: wire.Initialize) -> None:
        if request.hooks is not None:  # one without hooks leaves those of the one before
            entries = ((event, entry) for event, several in request.hooks.items() for entry in several)
            self.callbacks = {name: event for event, entry in entries for name in entry.callback_ids}
        self.initialized = True

    def _read_odd(self, line: bytes) -> wire.Received | None:
        """A line that is not a message we know: blank, of an unknown type or subtype, or broken."""
        if not line.strip():
            return None
        text = line.decode("utf-8", "replace").encode()
        broken = None if text == line else BadLine("not_utf8", "a line is not UTF-8", line)
        try:
            loose = msgspec.json.decode(text, type=_Loose)
        except msgspec.ValidationError:
            raise broken or BadLine("not_a_message", "a line is not a message of the protocol", line) from None
        except _UNREADABLE as problem:
            raise broken or BadLine("not_json", f"a line is not JSON ({problem})", line) from None
        if loose.type == "control_request":
            return self._read_odd_request(loose, line, broken)
        if broken or loose.type in ("control_response", "control_cancel_request", *wire.MESSAGES):
            raise broken or BadLine("not_a_message", f"a `{loose.type}` that cannot be read", line)
        return wire.OtherMessage(loose.type, line)

    def _read_odd_request(self, loose: _Loose, line: bytes, broken: BadLine | None) -> wire.Received:
        """A request that is served besides, or is refused: whoever asked is told, instead of left waiting."""
        try:
            subtype = msgspec.json.decode(loose.request, type=_Subtype).subtype
        except _UNREADABLE:
            subtype = ""
        if not isinstance(loose.request_id, str):
            raise broken or BadLine("not_a_message", "a request without a `request_id`", line)
        self.theirs.ask(loose.request_id)
        if subtype in self._also and broken is None:
            return wire.ControlRequest(loose.request_id, wire.OtherRequest(subtype, Raw(bytes(loose.request))))
        if broken or subtype in {str(kind.__struct_config__.tag) for kind in self._asked_of} or not subtype:
            unreadable = broken or BadLine("not_a_message", f"a `{subtype}` request that cannot be read", line)
            raise self._refused(loose.request_id, unreadable, "invalid_request")
        unsupported = ProtocolError(f"`{subtype}` is not supported here")
        raise self._refused(loose.request_id, unsupported, "unsupported_request")

    def _refused(self, request_id: str, problem: ProtocolError, code: str) -> ProtocolError:
        """The problem, of which the peer will be told."""
        self._outgoing.append(self.send(wire.Failure(request_id, str(problem), code)))
        return problem

    def ask(self, request: wire.Request | wire.OtherRequest) -> wire.ControlRequest:
        """A request with an id of its own, to be sent."""
        return wire.ControlRequest(f"req_{next(self._ids)}", request)

    def answer(self, request_id: str, response: Raw | bytes = wire.EMPTY) -> bytes:
        """The same as sending a `Success`, for those who answer a great many."""
        self.theirs.answer(request_id)
        if response is wire.EMPTY:
            return _SUCCESS + _encode(request_id) + _EMPTY_END
        return b'%b%b,"response":%b}}\n' % (_SUCCESS, _encode(request_id), response)

    def send(self, message: wire.Sendable) -> bytes:
        """The bytes to write; raises `ProtocolError` when the protocol does not allow the message now."""
        match message:
            case wire.ControlRequest():
                return self._send_request(message)
            case wire.Success():
                return self.answer(message.request_id, message.response)
            case wire.Failure():
                self.theirs.answer(message.request_id)
                return b'{"type":"control_response","response":%b}\n' % _encode(message)
            case wire.ControlCancel():
                return _encode(message) + b"\n" if self.ours.cancel(message.request_id) else b""
            case wire.KeepAlive():
                return _encode(message) + b"\n"
            case wire.UserMessage() if self.role == "host" and not self.initialized:
                raise errors.NotInitialized
            case _:
                return message.line + b"\n"

    def _send_request(self, message: wire.ControlRequest) -> bytes:
        request = message.request
        if isinstance(request, wire.HookCallback) and request.callback_id not in self.callbacks:
            raise errors.UnknownCallback(request.callback_id, self.callbacks)
        self.ours.ask(message.request_id)
        if isinstance(request, wire.Initialize):
            self._register(request)
        body = bytes(request.body) if isinstance(request, wire.OtherRequest) else _encode(request)
        return b'{"type":"control_request","request_id":%b,"request":%b}\n' % (_encode(message.request_id), body)


State = Literal["new", "open", "answered", "cancelled"]


class PendingRequests:
    """Where every request of one direction stands; closed ones are remembered, up to a bound."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._now: dict[str, State] = {}
        self._before: dict[str, State] = {}
        self._remembered = self._full = remembered

    @property
    def open(self) -> list[str]:
        """The ids of the requests that wait for an answer."""
        return [request_id for request_id, state in self._now.items() if state == "open"]

    def state(self, request_id: str) -> State:
        return self._now.get(request_id) or self._before.get(request_id, "new")

    def ask(self, request_id: str) -> None:
        """A request is made; its id must be new."""
        if request_id in self._now or request_id in self._before:
            raise errors.RequestIdReused(request_id)
        self._now[request_id] = "open"
        if len(self._now) > self._full:  # what was remembered longest is forgotten, but no open request
            self._before, self._now = self._now, dict.fromkeys(self.open, "open")
            self._full = self._remembered + len(self._now)

    def answer(self, request_id: str) -> None:
        """A request is answered; only an open one can be."""
        if self._now.get(request_id) != "open":
            state = self.state(request_id)
            raise errors.StrayResponse(request_id) if state == "new" else errors.RequestClosed(request_id, state)
        self._now[request_id] = "answered"

    def cancel(self, request_id: str) -> bool:
        """A request is cancelled; False when it was closed before, as answers and cancellations may cross."""
        if self.state(request_id) == "new":
            raise errors.StrayResponse(request_id)
        if self._now.get(request_id) != "open":
            return False
        self._now[request_id] = "cancelled"
        return True


class LineSplitter:
    """Whole lines out of chunks of any size; a line over the limit is reported once and skipped to its end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # of the line that is not whole yet
        self._size = 0
        self._skipping = False  # it was too long

    def push(self, chunk: bytes) -> list[bytes | BadLine]:
        self._parts.append(chunk)
        self._size += len(chunk)
        if b"\n" not in chunk and self._size <= self._limit and not self._skipping:
            return []
        whole = BytesIO(self.end()).readlines()  # looks for the ends of lines in words, where `split` goes byte by byte
        rest = whole.pop() if whole and not whole[-1].endswith(b"\n") else b""
        if self._skipping and whole:
            del whole[0]
            self._skipping = False
        lines: list[bytes | BadLine] = [
            line[:-1] if len(line) <= self._limit + 1 else self._too_long(line) for line in whole
        ]
        if len(rest) > self._limit and not self._skipping:
            self._skipping = True
            lines.append(self._too_long(rest))
        rest = b"" if self._skipping else rest
        self._parts, self._size = [rest] if rest else [], len(rest)
        return lines

    def end(self) -> bytes:
        """What was left without a newline."""
        left, self._parts, self._size = b"".join(self._parts), [], 0
        return left

    def _too_long(self, line: bytes) -> BadLine:
        problem = f"a line is longer than the limit of {self._limit:,} bytes; raise line_limit"
        return BadLine("too_long", problem, line[:300])
