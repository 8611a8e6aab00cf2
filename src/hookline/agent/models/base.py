"""A model answers a conversation; where it runs is its own business.

Every adapter is one class with a `name` and one method. It is given a `ModelRequest`, tells `on_event` what it hears
while it hears it (as events of a streamed Messages API answer, from any model), and returns a whole `ModelResponse`
or raises `ModelError`, whose `kind` is one of the reasons a StopFailure event can carry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from hookline.agent.messages import Assistant, Message, ToolUse, Usage

DEFAULT_MAX_TOKENS = 16_384


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: dict[str, Any]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What the model is asked.

    `model` overrides the adapter's own name for this request. `output_schema` asks for one JSON value of that schema
    (prompt hooks). `thinking` and `effort` are passed on to models that know them and ignored by the others;
    `server_tools` are run by the server itself, and a model whose server has none raises.
    """

    messages: tuple[Message, ...]
    system: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    max_tokens: int = DEFAULT_MAX_TOKENS
    output_schema: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    effort: str | None = None
    server_tools: tuple[dict[str, Any], ...] = ()


class ModelResponse(Struct, frozen=True, kw_only=True):
    """The model's whole answer."""

    message: Assistant

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return self.message.tool_uses

    @property
    def stop_reason(self) -> str | None:
        return self.message.stop_reason

    @property
    def usage(self) -> Usage:
        return self.message.usage


OnEvent: TypeAlias = Callable[[dict[str, Any]], None]
"""Told the events of an answer that streams in: `message_start`, `content_block_delta`, … `message_stop`."""


@runtime_checkable
class Model(Protocol):
    """Anything that can answer a conversation."""

    name: str

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> ModelResponse:
        """The answer, whole; raises `ModelError`."""
        ...
