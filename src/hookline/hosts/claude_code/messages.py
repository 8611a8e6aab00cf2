"""What the two ends of the control protocol say to each other, as values.

Control messages are decoded; what the agent says (`assistant`, `result`, …) keeps its line as it was written and is
read when asked, so that unknown fields and unknown types pass through whole.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from hookline.errors import BadLine, ProtocolError

EMPTY = Raw(b"{}")

_T = TypeVar("_T")


def _object(text: bytes | Raw, wrong: str, line: bytes = b"") -> dict[str, Any]:
    """A text of JSON as a mapping; anything else reads as an empty one."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadLine("not_json", f"{wrong} ({problem})", line) from None
    return value if isinstance(value, dict) else {}


class CallbackMatcher(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of `initialize`'s hooks: which subjects, which callbacks, how long, and what a failure means."""

    matcher: str | None = None
    callback_ids: list[str] = field(name="hookCallbackIds")
    timeout: float | None = None
    on_failure: str | None = field(name="onFailure", default=None)


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="subtype"):
    """What one end asks of the other; each kind has its subtype."""


class Initialize(Request, frozen=True, kw_only=True, tag="initialize", rename="camel"):
    """The host opens the conversation; sent again, it replaces the callbacks."""

    hooks: dict[str, list[CallbackMatcher]] | None = None
    sdk_mcp_servers: list[str] | None = None
    agents: dict[str, Any] | None = None
    skills: list[str] | None = None
    system_prompt: Any = None
    append_system_prompt: str | None = None
    json_schema: dict[str, Any] | None = None
    exclude_dynamic_sections: bool | None = None
    forward_subagent_text: bool | None = None


class HookCallback(Request, frozen=True, kw_only=True, tag="hook_callback"):
    """The CLI asks a hook of the host; `input` is the event, raw until asked for."""

    callback_id: str
    input: Raw
    tool_use_id: str | None = None


class CanUseTool(Request, frozen=True, kw_only=True, tag="can_use_tool"):
    """The CLI asks the host whether a tool may run."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str | None = None
    agent_id: str | None = None
    permission_suggestions: list[Any] | None = None
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    decision_reason_hook_event: str | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


class Interrupt(Request, frozen=True, kw_only=True, tag="interrupt"):
    """The host stops the turn."""


class SetPermissionMode(Request, frozen=True, kw_only=True, tag="set_permission_mode"):
    """The host changes the permission mode."""

    mode: str


class SetModel(Request, frozen=True, kw_only=True, tag="set_model"):
    """The host changes the model; `None` is the default one."""

    model: str | None = None


class McpMessage(Request, frozen=True, kw_only=True, tag="mcp_message"):
    """One JSON-RPC message to or from an MCP server that lives in the host."""

    server_name: str
    message: Raw


class OtherRequest(Struct, frozen=True):
    """A request of a subtype without a class here; `body` is the whole of it, subtype included."""

    subtype: str
    body: Raw

    @classmethod
    def of(cls, subtype: str, fields: Mapping[str, Any] | None = None) -> Self:
        return cls(subtype, Raw(msgspec.json.encode({"subtype": subtype, **(fields or {})})))


if TYPE_CHECKING:
    AnyRequest = Request | OtherRequest
else:  # what a line is decoded into; an `OtherRequest` is made by hand
    AnyRequest = Initialize | HookCallback | CanUseTool | Interrupt | SetPermissionMode | SetModel | McpMessage


class ControlRequest(Struct, frozen=True, tag_field="type", tag="control_request"):
    """One end asks; the other owes exactly one answer, unless the request is cancelled."""

    request_id: str
    request: AnyRequest


class Success(Struct, frozen=True, tag_field="subtype", tag="success"):
    """The answer to a request; `response` is raw until asked for."""

    request_id: str
    response: Raw = EMPTY

    def data(self) -> dict[str, Any]:
        """The response as a mapping; anything else reads as an empty one."""
        return _object(self.response, f"the response to `{self.request_id}` cannot be read")


class Failure(Struct, frozen=True, omit_defaults=True, tag_field="subtype", tag="error"):
    """The answer to a request that could not be served; `error_code` is for programs."""

    request_id: str
    error: str = "unknown error"
    error_code: str | None = None


class ControlCancel(Struct, frozen=True, tag_field="type", tag="control_cancel_request"):
    """The one who asked no longer wants the answer."""

    request_id: str


class KeepAlive(Struct, frozen=True, tag_field="type", tag="keep_alive"):
    """Nothing to say; the pipe is open."""


class Violation(Struct, frozen=True):
    """Something the peer did that the protocol does not allow, and what was done about it."""

    error: ProtocolError


class _Field(Generic[_T]):
    """A field of a message under its own name; one that is missing, or not of this kind, reads as an empty one."""

    def __init__(self, kind: type[_T]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type["Message"], name: str) -> None:
        self._name = name

    def __get__(self, message: "Message", owner: type["Message"]) -> _T:
        return message.get(self._name, self._kind())


class Message(Struct, frozen=True, dict=True):
    """What is said in the conversation itself; `line` is the JSON as it was written, `data` the same, read."""

    type: str
    line: bytes
    session_id: ClassVar[_Field[str]] = _Field(str)

    @cached_property
    def data(self) -> dict[str, Any]:
        return _object(self.line, "not JSON", self.line)

    def get(self, name: str, default: _T) -> _T:
        """A field if it is there and of the default's kind."""
        value = self.data.get(name)
        return value if isinstance(value, type(default)) else default

    @property
    def parent_tool_use_id(self) -> str | None:
        return self.get("parent_tool_use_id", "") or None


class _Spoken(Message, frozen=True, dict=True):
    """A message with content blocks."""

    @property
    def content(self) -> list[dict[str, Any]]:
        """The blocks; a plain string reads as one text block."""
        spoken: dict[str, Any] = self.get("message", {})
        content = spoken.get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []

    @property
    def text(self) -> str:
        return "".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")


class UserMessage(_Spoken, frozen=True, dict=True):
    """A prompt, or the results of tools going back to the model."""

    @classmethod
    def of(cls, content: str | Sequence[Mapping[str, Any]], session_id: str = "", **fields: Any) -> Self:
        """A prompt: text, or content blocks."""
        spoken = {"role": "user", "content": content if isinstance(content, str) else list(content)}
        body = {"type": "user", "session_id": session_id, "message": spoken, "parent_tool_use_id": None, **fields}
        return cls("user", msgspec.json.encode(body))

    @property
    def tool_results(self) -> list[dict[str, Any]]:
        return [block for block in self.content if block.get("type") == "tool_result"]


class AssistantMessage(_Spoken, frozen=True, dict=True):
    """What the model said."""

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        return [block for block in self.content if block.get("type") == "tool_use"]


class SystemMessage(Message, frozen=True, dict=True):
    """What the CLI has to report; `subtype` says what about."""

    subtype: ClassVar[_Field[str]] = _Field(str)


class StreamEvent(Message, frozen=True, dict=True):
    """A piece of an answer while it is being written."""

    event: ClassVar[_Field[dict[str, Any]]] = _Field(dict)


class ResultMessage(Message, frozen=True, dict=True):
    """The turn is over."""

    subtype: ClassVar[_Field[str]] = _Field(str)
    is_error: ClassVar[_Field[bool]] = _Field(bool)
    result: ClassVar[_Field[str]] = _Field(str)
    num_turns: ClassVar[_Field[int]] = _Field(int)
    terminal_reason: ClassVar[_Field[str]] = _Field(str)
    permission_denials: ClassVar[_Field[list[dict[str, Any]]]] = _Field(list)

    @property
    def errors(self) -> list[str]:
        errors: list[Any] = self.get("errors", [])
        return [str(one) for one in errors]


class OtherMessage(Message, frozen=True, dict=True):
    """A type of message without a class here, passed on whole."""


MESSAGES: Mapping[str, type[Message]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "system": SystemMessage,
    "stream_event": StreamEvent,
    "result": ResultMessage,
}


Received = ControlRequest | Success | Failure | ControlCancel | KeepAlive | Message | Violation
Sendable = ControlRequest | Success | Failure | ControlCancel | KeepAlive | Message
