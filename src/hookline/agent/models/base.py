"""A model answers a conversation; where it runs is its own business.

Every adapter is one class with a `name` and one method. It is given a `ModelRequest`, tells `on_event` what it hears
while it hears it (as events of a streamed Messages API answer, from any model), and returns a whole `ModelResponse`
or raises `ModelError`, whose `kind` is one of the reasons a StopFailure event can carry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from hookline.agent.messages import Assistant, Message, ToolUse, Usage
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


# -- which of the known kinds of failure an HTTP answer is; those are the kinds a StopFailure event can carry -----


#: kind → the words that servers have for it, and the statuses; their word counts before the number
KINDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "authentication_failed": (("authentication_error", "permission_error"), (401, 403)),
    "billing_error": (("billing_error", "insufficient_quota"), (402,)),
    "rate_limit": (("rate_limit_error",), (429,)),
    "overloaded": (("overloaded_error",), (529,)),
    "model_not_found": (("not_found_error", "model_not_found"), (404,)),
    "invalid_request": (("invalid_request_error", "request_too_large"), (400, 413, 422)),
    "server_error": (("timeout_error", "server_error"), ()),
}
BY_WORD = {word: kind for kind, (words, _) in KINDS.items() for word in words}
BY_STATUS = {status: kind for kind, (_, statuses) in KINDS.items() for status in statuses}


def api_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None, *, model: str = ""
) -> ModelError:
    """The error behind a refused request: status, what the server said, and when it may be tried again."""
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {"message": str(inner)}
    # OpenAI's servers name the finer reason in `code` (`insufficient_quota`), Anthropic's in `type`
    words = [str(inner[key]) for key in ("code", "type") if inner.get(key)]
    by_status = BY_STATUS.get(status or 0) or ("server_error" if (status or 0) >= 500 else "unknown")
    kind = next((BY_WORD[word] for word in words if word in BY_WORD), by_status)
    said = inner.get("message") or "the server gave no reason"
    name = f"model `{model}`: " if model else ""
    return ModelError(f"{name}HTTP {status}: {said}", kind, status=status, retry_after=retry_after(headers or {}))


TRANSPORTS = ("httpx", "httpcore", "h11", "anyio", "aiohttp")
"""What the official SDKs let through from their HTTP libraries while a body is being read."""


@contextmanager
def model_errors(sdk: Any, model: str) -> Iterator[None]:
    """Whatever goes wrong while an official SDK asks a model is raised as a `ModelError`."""
    try:
        yield
    except sdk.APIStatusError as problem:
        raise api_error(problem.status_code, problem.body, problem.response.headers, model=model) from problem
    except sdk.APIError as problem:
        raise ModelError(f"model `{model}`: {_cause(problem)}", "server_error") from problem
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ModelError(f"model `{model}`: the answer makes no sense: {problem}", "server_error") from problem
    except Exception as problem:
        if not type(problem).__module__.startswith(TRANSPORTS):
            raise
        raise ModelError(f"model `{model}`: the connection broke: {_cause(problem)}", "server_error") from problem


def _cause(problem: BaseException) -> str:
    """The innermost reason, which is the one that says something."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return str(problem) or type(problem).__name__


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait, if it does so in seconds."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / scale)
        except (KeyError, ValueError):
            continue
    return None


class Price(NamedTuple):
    """US dollars for a million tokens in and out; the context window and the longest answer, in tokens."""

    tokens_in: float
    tokens_out: float
    window: int = 200_000
    longest: int = 32_000


#: the first pattern that is found in a model's name holds; versions first, families after them
PRICES: tuple[tuple[str, Price], ...] = (
    (r"opus-5-5", Price(4, 20, 1_000_000, 128_000)),
    (r"opus-5", Price(5, 25, 1_000_000, 64_000)),
    (r"opus-4-[5-9]", Price(5, 25)),
    (r"opus", Price(15, 75)),
    (r"fable", Price(10, 50, 1_000_000, 64_000)),
    (r"sonnet-5-5", Price(2, 10, 1_000_000, 128_000)),
    (r"sonnet-5", Price(2, 10, 1_000_000, 64_000)),
    (r"sonnet", Price(3, 15)),
    (r"haiku-5", Price(0.1, 0.5, 1_000_000, 128_000)),
    (r"haiku-4", Price(1, 5)),
    (r"3-5-haiku|haiku-3-5", Price(0.8, 4)),
    (r"haiku", Price(0.25, 1.25)),
)
UNKNOWN = Price(0, 0)
#: a token written to the cache, or read from it, costs so much of one that was read again
WRITTEN, READ = 1.25, 0.1
MILLION = 1_000_000


def cost_of(model: str, usage: Usage) -> float:
    """US dollars."""
    price = _price(model)
    read = usage.input_tokens + WRITTEN * usage.cache_creation_input_tokens + READ * usage.cache_read_input_tokens
    return (read * price.tokens_in + usage.output_tokens * price.tokens_out) / MILLION


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
    return next((price for pattern, price in PRICES if "claude" in model and re.search(pattern, model)), UNKNOWN)
