"""What a hook may answer, and how two answers become one.

A `Reply` says only what the hook wants said: every field's default means "nothing to say", and `Reply()` is the
identity of `|`. Joining is associative, so a fold over replies in configured order gives the same verdict however the
hooks were grouped; which decision wins never depends on the order at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import IntEnum
from operator import add, attrgetter
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
        return WORDS[self]


WORDS = tuple(decision.name.lower() for decision in Decision)  # the decisions as words, in their order


Action = Literal["accept", "decline", "cancel"]  # what may be done with a question in the user's place


class EventFields(msgspec.Struct, frozen=True, kw_only=True):
    """What only single events understand; `hookline.events.catalog` says which field fits which event."""

    mcp_output: Any = msgspec.UNSET  # what the model gets in place of an MCP tool's output; `output` wins over it
    classifier_context: str | None = None  # something for the permission classifier alone
    session_title: str | None = None  # a new title for the session
    suppress_original_prompt: bool = False  # do not repeat a blocked prompt to the user
    initial_user_message: str | None = None  # a prompt to begin with, before the user's own
    watch_paths: tuple[str, ...] = ()  # files whose changes should be announced as FileChanged
    reload_skills: bool = False  # read the skills again
    updated_permissions: tuple[Mapping[str, Any], ...] = ()  # permission rules to add, or a mode to set
    interrupt: bool = False  # with a deny: end the turn, too
    retry: bool = False  # tell the model that it may try the call again
    action: Action | None = None  # answer in the user's place: `accept`, `decline` or `cancel`
    content: dict[str, Any] | None = None  # what to fill in
    worktree_path: str | None = None  # the worktree that the hook made
    display_content: str | None = None  # the text to show instead
    terminal_sequence: str | None = None  # an escape sequence for the user's terminal

    def __or__(self, other: EventFields) -> EventFields:
        return EventFields(**_joined(self, other, _OWN))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook answers, or what several answers merged to.

    A field that does not fit the event it answers is refused, never ignored. `later` is the work of a reply that goes
    on in the background; `specific` holds what only single events understand.
    """

    decision: Decision = Decision.PASS  # pass, allow, ask, defer or deny
    reasons: tuple[str, ...] = ()  # why; one per hook that decided
    input: dict[str, Any] | None = None  # what the tool is to be called with instead: the whole input
    output: Any = msgspec.UNSET  # what the model gets for the tool's output; `UNSET` leaves it alone, `None` is a value
    context: tuple[str, ...] = ()  # texts that the model is told with its next request
    messages: tuple[str, ...] = ()  # texts that the user is told
    stop: bool = False  # end the agent's turn; on a gate, what was about to happen does not happen either
    stop_reason: str | None = None  # why
    keep_going: bool = False  # send the agent back to work
    keep_going_reasons: tuple[str, ...] = ()  # what for
    suppress_output: bool = False  # spare the user the hook's output
    background: bool = False  # the hook goes on by itself; this answer says nothing more
    background_timeout: float | None = None  # seconds it may take
    later: Awaitable[Any] | None = None  # the work that goes on
    specific: EventFields | None = None  # what only single events understand, below

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
        stricter = self if self.decision > other.decision else other
        agree = self.decision == other.decision
        reasons = self.reasons + other.reasons if agree else stricter.reasons  # only of those who decided
        return Reply(decision=stricter.decision, reasons=reasons, **_joined(self, other, _PLAIN))

    __ror__ = __or__  # `None | reply`: who says nothing changes nothing


def _joined(a: Any, b: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _JOIN[name](getattr(a, name), getattr(b, name)) for name in names}


class Merge(msgspec.Struct, frozen=True):
    """How one field of two replies becomes one."""

    about: str
    join: Callable[[Any, Any], Any]


_LATER = Merge("the later replaces the earlier, whole", lambda a, b: a if b is None else b)
_LATER_OUTPUT = Merge(_LATER.about, lambda a, b: a if b is msgspec.UNSET else b)  # `None` is an output like any other
_FIRST = Merge("the first stands", lambda a, b: b if a is None else a)
_ANY = Merge("any", lambda a, b: a or b)
_ALL = Merge("all, in configured order", add)
_EACH = Merge("field by field", lambda a, b: a | b if a is not None and b is not None else a or b)
_DECIDED = Merge("the strictest", max)
_OF_DECIDERS = Merge("of those who decided, in configured order", add)


_BY_DEFAULT: dict[Any, Merge] = {None: _LATER, msgspec.UNSET: _LATER_OUTPUT, False: _ANY, (): _ALL}
MERGES = {
    name: _BY_DEFAULT[default]
    for cls in (Reply, EventFields)
    for name, default in zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True)
} | {"decision": _DECIDED, "reasons": _OF_DECIDERS, "stop_reason": _FIRST, "specific": _EACH}
"""How each field of two replies becomes one: what its default says, but for a few."""

WIRE_NAMES = {
    "input": "updatedInput", "output": "updatedToolOutput", "context": "additionalContext",
    **{
        name: name[0] + name.title().replace("_", "")[1:] for name in EventFields.__struct_fields__
        if name not in ("updated_permissions", "interrupt", "terminal_sequence")  # which are said elsewhere
    },
    "mcp_output": "updatedMCPToolOutput",
}  # fmt: skip
"""The names of fields in an event's own part of the output."""

_JOIN = {name: rule.join for name, rule in MERGES.items()}
_PLAIN = tuple(name for name in Reply.__struct_fields__ if MERGES[name] not in (_DECIDED, _OF_DECIDERS))
_OWN = EventFields.__struct_fields__

NOTHING = Reply()  # the answer of a hook that has nothing to say

HookAnswer = Reply | Mapping[str, Any] | None
"""What a hook may return: nothing, a reply, or a mapping in the wire format."""


_PASS, _ALLOW, _ASK, _DEFER, _DENY = Decision  # a look-up in an enum costs as much as the reply, on Python 3.11


def texts(text: str | None) -> tuple[str, ...]:
    """A text as a field of texts holds it; the empty one says nothing."""
    return (text,) if text else ()


def allow(reason: str = "") -> Reply:
    """Go ahead, without asking (deny and ask rules of the settings still hold)."""
    return Reply(decision=_ALLOW, reasons=texts(reason))


def ask(reason: str = "") -> Reply:
    """A person has to say yes."""
    return Reply(decision=_ASK, reasons=texts(reason))


def defer(reason: str = "") -> Reply:
    """End the run here and leave the call to the session that resumes it."""
    return Reply(decision=_DEFER, reasons=texts(reason))


def deny(reason: str = "") -> Reply:
    """No. The reason is told to the model, or to the user."""
    return Reply(decision=_DENY, reasons=texts(reason))


def rewrite(input: Mapping[str, Any]) -> Reply:
    """Run the tool with this input instead (the whole input, not a patch)."""
    if not isinstance(input, Mapping):
        raise ReplyError(f'rewrote the input to `{type(input).__name__}`; write `rewrite({{"command": "…"}})`')
    return Reply(input=dict(input))


def replace_output(output: Any) -> Reply:
    """Give the model this instead of what the tool returned."""
    return Reply(output=output)


def context(text: str) -> Reply:
    """Tell the model something with its next request."""
    return Reply(context=texts(text))


def message(text: str) -> Reply:
    """Tell the user something."""
    return Reply(messages=texts(text))


def stop(reason: str = "") -> Reply:
    """End the agent's turn; on a gate, what it was about to do does not happen either."""
    return Reply(stop=True, stop_reason=reason or None)


def keep_going(reason: str = "") -> Reply:
    """The agent wanted to stop: send it back to work, and say why."""
    return Reply(keep_going=True, keep_going_reasons=texts(reason))


def background(work: Awaitable[Any] | None = None, timeout: float | None = None) -> Reply:
    """Answer now with nothing and go on; what `work` returns is collected by `Hooks.pending()` and `drain()`."""
    return Reply(background=True, later=work, background_timeout=timeout)


def specific(**fields: Any) -> Reply:
    """Say what only this event understands: `specific(session_title="…")`; the names are those of `EventFields`."""
    return Reply(specific=EventFields(**fields))


_BACK_TO_WORK = "; to send the agent back to work, answer `keep_going(reason)`"
_EVENT_FIELDS = ("input", "output", "context", "keep_going")
_event_fields = attrgetter(*_EVENT_FIELDS)
_SPECIFIC_NOTHING = EventFields()


def check_fits(reply: Reply, event_name: str, decisions: Collection[str], fields: Collection[str]) -> None:
    """Raise `ReplyMismatch` unless an event that understands `decisions` and `fields` can make sense of `reply`."""
    if str(reply.decision) not in decisions:
        hint = _BACK_TO_WORK if "keep_going" in fields else f"; it says: {reply.reason}" if reply.reason else ""
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
    ("specific", (EventFields, type(None)), "a EventFields"),
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
