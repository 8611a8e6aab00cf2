"""What the agent and its model have said to each other, and how a turn ended, as values.

A conversation is a tuple of messages; a message is a tuple of blocks. The shapes follow the Messages API, so a
transcript written by Claude Code reads as one of ours. Blocks we do not act on (thinking, images, …) are kept as they
came, in `Raw`, and go back to the model unchanged.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct


class Usage(Struct, frozen=True, kw_only=True):
    """The tokens one answer cost; usages add up with `+`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    @property
    def context_tokens(self) -> int:
        """How much of the context window the conversation fills after this answer."""
        return sum(getattr(self, name) for name in self.__struct_fields__)


class Text(Struct, frozen=True):
    """Words, from either side."""

    text: str


class ToolUse(Struct, frozen=True):
    """The model asks for a tool; `malformed` holds arguments that were no JSON object (`input` is then empty)."""

    id: str
    name: str
    input: dict[str, Any]
    malformed: str = ""


class ToolOutput(Struct, frozen=True):
    """What a tool call came to, as the model is told: text, or content blocks (images, MCP results)."""

    tool_use_id: str
    content: str | list[dict[str, Any]] = ""
    is_error: bool = False


class Raw(Struct, frozen=True):
    """A block passed through as it came: thinking, an image, a server tool's result."""

    value: dict[str, Any]


Block: TypeAlias = Text | ToolUse | ToolOutput | Raw


class User(Struct, frozen=True):
    """What the user, or a tool on the user's side, said; `synthetic` when no person typed it (feedback, summaries)."""

    content: tuple[Block, ...]
    synthetic: bool = False

    @classmethod
    def of(cls, *parts: str | Block, synthetic: bool = False) -> "User":
        return cls(tuple(Text(part) if isinstance(part, str) else part for part in parts), synthetic)

    @property
    def text(self) -> str:
        return text_of(self.content)


class Assistant(Struct, frozen=True):
    """One answer of the model."""

    content: tuple[Block, ...]
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUse))


class Reminder(Struct, frozen=True):
    """What a hook (or the host) adds for the model; each model adapter words it as its model expects (FACTS.md §1).

    `file` is where it comes from, if it is a file's instructions.
    """

    text: str
    file: str = ""


Message: TypeAlias = User | Assistant | Reminder


def text_of(content: Iterable[Block]) -> str:
    """The words of some blocks, joined by nothing, as the Messages API splits them."""
    return "".join(block.text for block in content if isinstance(block, Text))


def encode_message(message: Message) -> dict[str, Any]:
    """A message as the Messages API writes it: `{"role": …, "content": […]}`."""
    if isinstance(message, Reminder):
        return {"role": "system", "content": message.text}
    role = "user" if isinstance(message, User) else "assistant"
    return {"role": role, "content": [encode_block(block) for block in message.content]}


def encode_block(block: Block) -> dict[str, Any]:
    """A block as the Messages API writes it."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUse):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if isinstance(block, ToolOutput):
        wire = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": block.content}
        return {**wire, "is_error": True} if block.is_error else wire
    return block.value


def decode_block(wire: Any) -> Block:
    """The block behind one entry of `content`; an unknown one survives as `Raw`."""
    if not isinstance(wire, dict):
        return Text(str(wire))
    if wire.get("type") == "text":
        return Text(str(wire.get("text", "")))
    if wire.get("type") == "tool_use":
        given, about = wire.get("input") or {}, (str(wire.get("id") or ""), str(wire.get("name") or ""))
        return ToolUse(*about, given) if isinstance(given, dict) else ToolUse(*about, {}, malformed=str(given))
    if wire.get("type") == "tool_result":
        return ToolOutput(str(wire.get("tool_use_id", "")), wire.get("content") or "", bool(wire.get("is_error")))
    return Raw(wire)


def decode_usage(wire: Any) -> Usage:
    """The token counts of an answer; what is missing or not a number counts as none."""
    if not isinstance(wire, Mapping):
        return Usage()
    counts = {name: wire.get(name) for name in Usage.__struct_fields__}
    return Usage(**{name: count for name, count in counts.items() if isinstance(count, int)})


def encode_entry(message: Message) -> dict[str, Any]:
    """A message as a line of the transcript."""
    if isinstance(message, Reminder):
        reminder = {"type": "system", "subtype": "reminder", "content": message.text}
        return {**reminder, "file": message.file} if message.file else reminder
    wire = encode_message(message)
    if isinstance(message, User):
        plain = [block.text for block in message.content if isinstance(block, Text)]
        said = {**wire, "content": plain[0]} if len(plain) == len(message.content) == 1 else wire
        return {"type": "user", "message": said, **({"isMeta": True} if message.synthetic else {})}
    about = {"id": message.id, "type": "message", "model": message.model, "stop_reason": message.stop_reason}
    return {"type": "assistant", "message": {**about, "usage": msgspec.to_builtins(message.usage), **wire}}


def decode_entry(entry: Mapping[str, Any]) -> Message | None:
    """The message on a line; None for lines that are about something else."""
    kind, message = entry.get("type"), entry.get("message")
    if kind == "system" and entry.get("subtype") == "reminder":
        return Reminder(str(entry.get("content") or ""), str(entry.get("file") or ""))
    if kind not in {"user", "assistant"} or not isinstance(message, Mapping):
        return None
    content = message.get("content") or ()
    blocks = (Text(content),) if isinstance(content, str) else tuple(decode_block(block) for block in content)
    if kind == "user":
        return User(blocks, synthetic=bool(entry.get("isMeta")))
    usage = decode_usage(message.get("usage"))
    return Assistant(blocks, message.get("id") or "", message.get("model") or "", message.get("stop_reason"), usage)


class TurnEnd(Struct, frozen=True, kw_only=True):
    """Why a turn is over; `reason` is the wire's `terminal_reason`."""

    text: str | None = None
    subtype: str = "success"
    is_error: bool = False
    reason: str = "completed"
    stop_reason: str | None = None
    deferred: ToolUse | None = None
    errors: tuple[str, ...] = ()
    structured: Any = UNSET  # the answer in the form that was asked for
    turns: int = 0  # how often the model was told something


def fail_turn(reason: str, why: str, subtype: str = "error_during_execution", **more: Any) -> TurnEnd:
    """The end of a turn that did not come to its own."""
    return TurnEnd(reason=reason, subtype=subtype, is_error=True, errors=(why,), **more)


class Result(TurnEnd, frozen=True, kw_only=True):
    """What one prompt came to: the last words, how it ended, what it cost and what was denied."""

    text: str = ""
    duration_ms: int = 0
    api_ms: int = 0
    usage: Usage = Usage()
    denials: tuple[dict[str, Any], ...] = ()
    session_id: str = ""
    cost_usd: float = 0.0  # US dollars the session has cost so far
    model_usage: dict[str, dict[str, Any]] = {}  # what it used of which model
    origin: dict[str, Any] | None = None  # what woke the agent, if no person typed the prompt

    @property
    def ok(self) -> bool:
        """Whether the agent came to its end by itself."""
        return not self.is_error
