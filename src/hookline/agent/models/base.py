"""A model answers a conversation; where it runs is its own business.

Every adapter is one class with a `name` and one method. It is given a `ModelRequest`, tells `on_event` what it hears
while it hears it (as events of a streamed Messages API answer, from any model), and returns a whole `Assistant`
or raises `ModelError`, whose `kind` is one of the reasons a StopFailure event can carry.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec import Struct

from hookline.agent.messages import Assistant, Message, Usage
from hookline.errors import ModelError

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


OnEvent: TypeAlias = Callable[[dict[str, Any]], None]
"""Told the events of an answer that streams in: `message_start`, `content_block_delta`, … `message_stop`."""


@runtime_checkable
class Model(Protocol):
    """Anything that can answer a conversation."""

    name: str

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> Assistant:
        """The answer, whole; raises `ModelError`."""
        ...


def api_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None, *, model: str = ""
) -> ModelError:
    """The error behind a refused request: status, what the server said, and when it may be tried again."""
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {"message": str(inner)}
    # OpenAI's servers name the finer reason in `code` (`insufficient_quota`), Anthropic's in `type`
    words = (str(inner.get("code")), str(inner.get("type")), str(status))
    usual = "server_error" if (status or 0) >= 500 else "unknown"
    kind = next((TABLE.failures[word] for word in words if word in TABLE.failures), usual)
    said = inner.get("message") or "the server gave no reason"
    what = f"model `{model}`: HTTP {status}: {said}"
    return ModelError(what, kind, status=status, retry_after=_retry_after(headers or {}))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait, if it does so in seconds."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) / scale)
    return None


class Price(NamedTuple):
    """US dollars for a million tokens in and out; the context window and the longest answer, in tokens."""

    tokens_in: float
    tokens_out: float
    window: int
    longest: int


class ModelTable(Struct):
    """What is known of models: `models.json`.

    Words for a model (`opusplan` plans with another one, and everything else is done by this), the variables that say
    which one a word means, prices by a pattern that is found in a model's name (the first one holds: versions first,
    families after them), and the kind of failure behind a server's word or status, as a StopFailure event carries it.
    """

    aliases: dict[str, str]
    stated: dict[str, str]
    prices: list[tuple[str, Price]]
    failures: dict[str, str]


TABLE = msgspec.json.decode(Path(__file__).with_name("models.json").read_bytes(), type=ModelTable)
UNKNOWN = Price(0, 0, 200_000, 32_000)
WRITTEN, READ = 1.25, 0.1  # what a token written to the cache, or read from it, costs of one that was read again


def cost_of(model: str, usage: Usage) -> float:
    """US dollars."""
    price = _price(model)
    read = usage.input_tokens + WRITTEN * usage.cache_creation_input_tokens + READ * usage.cache_read_input_tokens
    return (read * price.tokens_in + usage.output_tokens * price.tokens_out) / 1_000_000


def has_price(model: str) -> bool:
    """Whether the table knows what the model costs."""
    return _price(model) is not UNKNOWN


def model_usage(model: str, usage: Usage) -> dict[str, Any]:
    """A row of a result's `modelUsage`."""
    price = _price(model)
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_input_tokens,
        "cacheCreationInputTokens": usage.cache_creation_input_tokens,
        "webSearchRequests": 0,
        "costUSD": cost_of(model, usage),
        "contextWindow": price.window,
        "maxOutputTokens": price.longest,
    }


def _price(model: str) -> Price:
    return next((price for pattern, price in TABLE.prices if "claude" in model and re.search(pattern, model)), UNKNOWN)
