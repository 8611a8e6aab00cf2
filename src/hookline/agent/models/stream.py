"""The events of a streamed Messages API answer, put together (no I/O).

Each event is a mapping as the API sends it. `Answer.feed` takes them one by one, `Answer.done` is the whole message. An
answer that breaks off, or whose events make no sense, is a `ModelError`. `AnswerStream` goes the other way: what some
other model says, as such events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hookline.agent.messages import Assistant, Block, Raw, Text, ToolUse, decode_block, decode_usage, encode_block
from hookline.agent.models.base import api_error
from hookline.errors import ModelError

#: delta type → the field of the delta, which is also the field of the block it grows
GROWTH = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


class StreamedAnswer:
    """One answer while it streams in."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, dict[str, list[str]]] = {}
        self._complete = False

    @property
    def started(self) -> bool:
        return bool(self._blocks)

    def feed(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            self._message = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._grow(event["index"], event["delta"])
        elif kind == "message_delta":
            usage = {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            self._message["usage"] = {**(self._message.get("usage") or {}), **usage}
            self._message["stop_reason"] = (event.get("delta") or {}).get("stop_reason")
        elif kind == "message_stop":
            self._complete = bool(self._message)
        elif kind == "error":  # pings and events of the future carry nothing we need
            raise api_error(200, event, model=self.model)

    def done(self) -> Assistant:
        """The whole answer; raises `ModelError` when the stream ended before it did."""
        if not self._complete:
            raise ModelError(f"model `{self.model}`: the answer broke off before it was complete", "server_error")
        return Assistant(
            tuple(self._block(index) for index in sorted(self._blocks)),
            id=str(self._message.get("id") or ""),
            model=str(self._message.get("model") or self.model),
            stop_reason=self._message.get("stop_reason"),
            usage=decode_usage(self._message.get("usage")),
        )

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        if index not in self._blocks:
            what = f"model `{self.model}`: the stream adds to block {index}, which it never opened"
            raise ModelError(what, "server_error")
        field = GROWTH.get(str(delta.get("type")))
        if field is not None:
            self._pieces.setdefault(index, {}).setdefault(field, []).append(str(delta.get(field) or ""))

    def _block(self, index: int) -> Block:
        grown = {target: "".join(parts) for target, parts in self._pieces.get(index, {}).items()}
        arguments = grown.pop("partial_json", "")
        wire = dict(self._blocks[index])
        for target, text in grown.items():
            wire[target] = f"{wire.get(target) or ''}{text}"
        if wire.get("type") == "text":
            return Text(str(wire.get("text") or ""))
        if wire.get("type") == "tool_use":
            id, name = str(wire.get("id") or ""), str(wire.get("name") or "")  # noqa: A001 - the wire's word
            return parse_arguments(id, name, arguments or wire.get("input") or {})
        return Raw({**wire, "input": _json(arguments)}) if arguments else decode_block(wire)


class AnswerStream:
    """An answer told as events while it arrives, or all at once, from a model that has other ones or none."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._started = False
        self._open: set[int] = set()

    def piece(self, kind: str, text: str, index: int, block: Mapping[str, Any], model: str = "") -> None:
        """A piece of block `index`, which begins as `block`; `kind` is a type of delta."""
        self._start("", model)
        if index not in self._open:
            self._open.add(index)
            self._tell({"type": "content_block_start", "index": index, "content_block": dict(block)})
        if text:
            delta = {"type": kind, GROWTH[kind]: text}
            self._tell({"type": "content_block_delta", "index": index, "delta": delta})

    def whole(self, message: Assistant) -> None:
        """All of an answer that came in one piece."""
        self._start(message.id, message.model)
        for index, block in enumerate(message.content):
            wire = encode_block(block)
            if isinstance(block, Text):
                self.piece("text_delta", block.text, index, {**wire, "text": ""})
            elif isinstance(block, ToolUse):
                self.piece("input_json_delta", msgspec.json.encode(block.input).decode(), index, {**wire, "input": {}})
            else:
                self.piece("text_delta", "", index, wire)
        self.end(message)

    def end(self, message: Assistant) -> None:
        """Everything has been said."""
        self._start(message.id, message.model)
        for index in sorted(self._open):
            self._tell({"type": "content_block_stop", "index": index})
        usage = msgspec.to_builtins(message.usage)
        delta = {"stop_reason": message.stop_reason, "stop_sequence": None}
        self._tell({"type": "message_delta", "delta": delta, "usage": usage})
        self._tell({"type": "message_stop"})

    def _start(self, id: str, model: str) -> None:
        if self._started:
            return
        self._started = True
        about: dict[str, Any] = {"id": id, "type": "message", "role": "assistant", "model": model, "content": []}
        usage = {"input_tokens": 0, "output_tokens": 0}
        message = {**about, "stop_reason": None, "stop_sequence": None, "usage": usage}
        self._tell({"type": "message_start", "message": message})


def parse_arguments(id: str, name: str, arguments: Any) -> ToolUse:
    """A tool call from its arguments' JSON; anything but a JSON object is kept in `malformed`, to tell the model."""
    given = _json(arguments) if isinstance(arguments, str) else arguments
    if isinstance(given, dict):
        return ToolUse(id, name, given)
    return ToolUse(id, name, {}, malformed=arguments if isinstance(arguments, str) else repr(arguments))


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text.strip() else {}
    except msgspec.DecodeError:
        return None
