"""What a hook may answer, and how two answers become one.

A `Reply` says only what the hook wants said: every field's default means "nothing to say", and `Reply()` is the
identity of `|`. Joining is associative, so a fold over replies in configured order gives the same verdict however the
hooks were grouped; which decision wins never depends on the order at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import IntEnum
from operator import attrgetter
from typing import Any, Literal

import msgspec

from hookline.errors import ReplyError, ReplyMismatch


class Decision(IntEnum):
    """How strict an answer is; the strictest of several wins."""

    PASS = 0
    ALLOW = 1
    ASK = 2
    DEFER = 3
    DENY = 4

    def __str__(self) -> str:
        return _WORDS[self]


_WORDS = tuple(decision.name.lower() for decision in Decision)


class Specific(msgspec.Struct, frozen=True, kw_only=True):
    """What only single events understand; `hookline.events.catalog` says which field fits which event."""

    mcp_output: Any = msgspec.UNSET
    classifier_context: str | None = None
    session_title: str | None = None
    suppress_original_prompt: bool = False
    initial_user_message: str | None = None
    watch_paths: tuple[str, ...] = ()
    reload_skills: bool = False
    updated_permissions: tuple[Mapping[str, Any], ...] = ()
    interrupt: bool = False
    retry: bool = False
    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None
    worktree_path: str | None = None
    display_content: str | None = None
    terminal_sequence: str | None = None

    def __or__(self, other: Specific) -> Specific:
        return Specific(**_joined(self, other, self.__struct_fields__))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook answers, or what several answers merged to.

    A field that does not fit the event it answers is refused, never ignored. `later` is the work of a reply that goes
    on in the background; `specific` holds what only single events understand.
    """

    decision: Decision = Decision.PASS
    reasons: tuple[str, ...] = ()
    input: dict[str, Any] | None = None
    output: Any = msgspec.UNSET
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    stop: bool = False
    stop_reason: str | None = None
    keep_going: bool = False
    keep_going_reasons: tuple[str, ...] = ()
    suppress_output: bool = False
    background: bool = False
    background_timeout: float | None = None
    later: Awaitable[Any] | None = None
    specific: Specific | None = None

    @property
    def reason(self) -> str:
        """Why it was decided so: the reasons of all who decided, one a line."""
        return "\n".join(self.reasons)

    def __or__(self, other: Reply | None) -> Reply:
        if other is None or other is NOTHING:
            return self
        if not isinstance(other, Reply):
            return NotImplemented
        if self is NOTHING:
            return other
        decision = max(self.decision, other.decision)
        return Reply(decision=decision, reasons=_reasons(self, other), **_joined(self, other, _PLAIN))

    __ror__ = __or__
    """`None | reply`: who says nothing changes nothing."""


def _joined(a: Any, b: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _JOIN[name](getattr(a, name), getattr(b, name)) for name in names}


def _later(a: Any, b: Any) -> Any:
    """The later answer replaces the earlier one whole."""
    return a if b is None else b


def _later_output(a: Any, b: Any) -> Any:
    """As `_later`, where `None` is an output like any other."""
    return a if b is msgspec.UNSET else b


def _first(a: Any, b: Any) -> Any:
    return b if a is None else a


def _either(a: Any, b: Any) -> Any:
    return a or b


def _both(a: Any, b: Any) -> Any:
    """Two tuples one after the other."""
    return a + b


def _nested(a: Specific | None, b: Specific | None) -> Specific | None:
    return a | b if a is not None and b is not None else _later(a, b)


def _reasons(a: Reply, b: Reply) -> tuple[str, ...]:
    """Only the reasons of those who decided: the stricter side's, or both in order when they agree."""
    if a.decision == b.decision:
        return a.reasons + b.reasons
    return a.reasons if a.decision > b.decision else b.reasons


_JOIN: dict[str, Callable[[Any, Any], Any]] = {
    "input": _later,
    "output": _later_output,
    "context": _both,
    "messages": _both,
    "stop": _either,
    "stop_reason": _first,
    "keep_going": _either,
    "keep_going_reasons": _both,
    "suppress_output": _either,
    "background": _either,
    "background_timeout": _later,
    "later": _later,
    "specific": _nested,
    "mcp_output": _later_output,
    "classifier_context": _later,
    "session_title": _later,
    "suppress_original_prompt": _either,
    "initial_user_message": _later,
    "watch_paths": _both,
    "reload_skills": _either,
    "updated_permissions": _both,
    "interrupt": _either,
    "retry": _either,
    "action": _later,
    "content": _later,
    "worktree_path": _later,
    "display_content": _later,
    "terminal_sequence": _later,
}
_PLAIN = tuple(name for name in Reply.__struct_fields__ if name in _JOIN)

NOTHING = Reply()
"""The answer of a hook that has nothing to say."""


_PASS, _ALLOW, _ASK, _DEFER, _DENY = Decision  # a look-up in an enum costs as much as the reply, on Python 3.11


def _because(reason: str) -> tuple[str, ...]:
    return (reason,) if reason else ()


def allow(reason: str = "") -> Reply:
    """Go ahead, without asking anybody (deny and ask rules of the settings still hold)."""
    return Reply(decision=_ALLOW, reasons=_because(reason))


def ask(reason: str = "") -> Reply:
    """A person has to say yes."""
    return Reply(decision=_ASK, reasons=_because(reason))


def defer(reason: str = "") -> Reply:
    """End the run here and leave the call to whoever resumes it."""
    return Reply(decision=_DEFER, reasons=_because(reason))


def deny(reason: str = "") -> Reply:
    """No. The reason is told to whoever wanted it: the model, or the user."""
    return Reply(decision=_DENY, reasons=_because(reason))


def rewrite(input: Mapping[str, Any]) -> Reply:
    """Run the tool with this input instead (the whole input, not a patch)."""
    return Reply(input=dict(input))


def replace_output(output: Any) -> Reply:
    """Give the model this instead of what the tool returned."""
    return Reply(output=output)


def context(text: str) -> Reply:
    """Tell the model something with its next request."""
    return Reply(context=_because(text))


def message(text: str) -> Reply:
    """Tell the user something."""
    return Reply(messages=_because(text))


def stop(reason: str = "") -> Reply:
    """End the agent's turn; on a gate, what it was about to do does not happen either."""
    return Reply(stop=True, stop_reason=reason or None)


def keep_going(reason: str = "") -> Reply:
    """The agent wanted to stop: send it back to work, and say why."""
    return Reply(keep_going=True, keep_going_reasons=_because(reason))


def background(work: Awaitable[Any] | None = None, timeout: float | None = None) -> Reply:
    """Answer now with nothing and go on; what `work` returns is collected by `Hooks.pending()` and `drain()`."""
    return Reply(background=True, later=work, background_timeout=timeout)


def specific(**fields: Any) -> Reply:
    """Say what only this event understands: `specific(session_title="…")`; the field names are `Specific`'s."""
    return Reply(specific=Specific(**fields))


_DECISION_HINTS = {
    "Stop": "; to send the agent back to work, answer `keep_going(reason)`",
    "SubagentStop": "; to send the subagent back to work, answer `keep_going(reason)`",
    "TeammateIdle": "; to send the teammate back to work, answer `keep_going(reason)`",
}
_EVENT_FIELDS = ("input", "output", "context", "keep_going")
_event_fields = attrgetter(*_EVENT_FIELDS)
_SPECIFIC_NOTHING = Specific()


def check_fits(reply: Reply, event_name: str, decisions: Collection[str], fields: Collection[str]) -> None:
    """Raise `ReplyMismatch` unless an event that understands `decisions` and `fields` can make sense of `reply`."""
    if str(reply.decision) not in decisions:
        hint = _DECISION_HINTS.get(event_name, "")
        raise ReplyMismatch(f"`{reply.decision}` does not fit {event_name}: it knows {_listed(decisions)}{hint}")
    if reply.specific is None and _event_fields(reply) == _event_fields(NOTHING):
        return
    for name in said(reply):
        if name not in fields:
            raise ReplyMismatch(f"`{name}` does not fit {event_name}: it understands {_listed(fields)}")


_NO_TEXTS: tuple[str, ...] = ()


def only_decides(reply: Reply) -> bool:
    """Whether a decision, with a reason at most, is all that `reply` says."""
    reasons = reply.reasons
    return (
        reply.decision.__class__ is Decision
        and (reasons is _NO_TEXTS or (reasons.__class__ is tuple and len(reasons) == 1 and reasons[0].__class__ is str))
        and reply.context is reply.messages is reply.keep_going_reasons is _NO_TEXTS
        and reply.input is None
        and reply.output is msgspec.UNSET
        and reply.specific is None
        and not (reply.stop or reply.keep_going or reply.suppress_output or reply.background)
    )


_TEXTS = ("reasons", "context", "messages", "keep_going_reasons")
_TYPES: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("decision", (Decision,), "a Decision"),
    *((name, (tuple,), "a tuple of texts") for name in _TEXTS),
    ("input", (dict, type(None)), "a dict"),
    ("stop_reason", (str, type(None)), "a text"),
    ("background_timeout", (int, float, type(None)), "seconds"),
    ("specific", (Specific, type(None)), "a Specific"),
)


def check_types(reply: Reply) -> None:
    """Raise `ReplyError` if a field holds what it cannot: `deny(error)`, say, where `deny(str(error))` is meant."""
    for name, types, expected in _TYPES:
        if not isinstance(getattr(reply, name), types):
            raise ReplyError(f"`{name}` of the reply: expected {expected}, got `{type(getattr(reply, name)).__name__}`")
    for name in _TEXTS:
        for text in getattr(reply, name):
            if not isinstance(text, str):
                raise ReplyError(f"`{name}` of the reply: expected texts, got `{type(text).__name__}`")


def said(reply: Reply) -> list[str]:
    """The event-specific fields that `reply` fills in."""
    names = [name for name in _EVENT_FIELDS if getattr(reply, name) != getattr(NOTHING, name)]
    more = reply.specific
    if more is not None:
        names += [n for n in more.__struct_fields__ if getattr(more, n) != getattr(_SPECIFIC_NOTHING, n)]
    return names


def _listed(words: Collection[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words)) or "nothing of its own"
