"""What tokens cost at list price, and how much a model takes in: for `total_cost_usd`, `modelUsage` and budgets.

A model that is not in the table costs nothing here, which a budget must not rely on: `priced` says whether it is known.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hookline.agent.messages import Usage


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
