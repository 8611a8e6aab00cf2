"""Assertions whose failures explain themselves: what was expected, then the whole verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.core.engine import Verdict
from hookline.replies import Decision

Text = str | re.Pattern[str]
"""A piece of the text, or a regular expression to be found in it."""


def assert_denied(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """What the event announced must not happen; `by` names the hook that said so, `reason` is a part of why."""
    __tracebackhide__ = True
    _check(verdict, verdict.blocked, "to be denied")
    _by_and_why(verdict, by, reason)


def assert_allowed(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """Some hook said yes, and none said anything stricter."""
    __tracebackhide__ = True
    _check(verdict, verdict.decision is Decision.ALLOW and not verdict.blocked, "to be allowed")
    _by_and_why(verdict, by, reason)


def assert_asked(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """A person has to say yes."""
    __tracebackhide__ = True
    _check(verdict, verdict.decision is Decision.ASK and not verdict.blocked, "that a person is asked")
    _by_and_why(verdict, by, reason)


def assert_passed(verdict: Verdict) -> None:
    """No hook decided, stopped the agent, sent it back to work or failed."""
    __tracebackhide__ = True
    quiet = verdict.decision is Decision.PASS and not (verdict.stop or verdict.keep_going or verdict.failures)
    _check(verdict, quiet, "that no hook objects or fails")


def assert_kept_going(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """The agent is sent back to work."""
    __tracebackhide__ = True
    _check(verdict, verdict.keep_going, "that the agent keeps going")
    _by_and_why(verdict, by, reason)


def assert_rewrote(verdict: Verdict, input: Mapping[str, Any]) -> None:
    """The tool is called with exactly this input instead."""
    __tracebackhide__ = True
    _check(verdict, verdict.reply.input == input, f"the input to become {dict(input)}")


def assert_context(verdict: Verdict, text: Text) -> None:
    """The model is told something that contains `text`."""
    __tracebackhide__ = True
    _check(verdict, any(_has(said, text) for said in verdict.context), f"that the model is told {_shown(text)}")


def _by_and_why(verdict: Verdict, by: str | None, reason: Text | None) -> None:
    __tracebackhide__ = True
    deciders = (verdict.decided_by or "no hook").split(", ")
    _check(verdict, by is None or by in deciders, f"`{by}` to decide, but it was {', '.join(deciders)}")
    _check(verdict, reason is None or _has(verdict.reason, reason), f"the reason to contain {_shown(reason)}")


def _check(verdict: Verdict, holds: bool, expected: str) -> None:  # noqa: FBT001 - a condition is what it checks
    __tracebackhide__ = True
    if not holds:
        raise AssertionError(f"expected {expected}\n\n{verdict.explain()}")


def _has(said: str, text: Text) -> bool:
    return text in said if isinstance(text, str) else text.search(said) is not None


def _shown(text: Text | None) -> str:
    return f"`{text.pattern}`" if isinstance(text, re.Pattern) else f"`{text}`"
