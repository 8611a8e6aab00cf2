"""A typed output becomes a `Reply`: one row per field. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET

from hookline.core.wire.output_types import CHOICE, DECISION, REASON, WIRE_NAMES, Allowed, Output, fields_of
from hookline.events import CATALOG, spec_of
from hookline.replies import NOTHING, Decision, EventFields, Reply

WORDS: MappingProxyType[str, Decision] = MappingProxyType({
    "approve": Decision.ALLOW,
    "block": Decision.DENY,
    "allow": Decision.ALLOW,
    "ask": Decision.ASK,
    "defer": Decision.DEFER,
    "deny": Decision.DENY,
})  # fmt: skip
_PERMITS: MappingProxyType[str, dict[str, Decision]] = MappingProxyType({
    name: {word: WORDS[word] for word in spec.decisions if word in WORDS}
    for name, spec in CATALOG.items() if spec.decides == "permission"
})  # fmt: skip
_UNHEARD = ("request", "approve")  # FACTS.md §3: where a decision is an object, a top-level `approve` says nothing

Said = dict[str, Any]
"""The fields of the reply that is being put together; what only single events understand is under `specific`."""


def only_decision(said: dict[str, Any], event_name: str) -> Reply | None:
    """The reply to an output that holds a permission decision and nothing else, as most gates' answers do.

    Anything else is `None`, and read by `typed` and `reply_of`, which would say the same of this one.
    """
    body = said.get("hookSpecificOutput")
    if len(said) != 1 or body.__class__ is not dict or event_name not in _PERMITS:
        return None
    name, word, reason = body.get("hookEventName"), body.get(DECISION), body.get(REASON)
    if not name.__class__ is word.__class__ is reason.__class__ is str or len(body) != 3 or name != event_name:
        return None
    decision = _PERMITS[event_name].get(word)
    return None if decision is None else Reply(decision=decision, reasons=(reason,) if reason else ())


def reply_of(output: Any, event_name: str) -> Reply:
    """What an output means on the event it answers. `async` leaves the rest for later, so nothing else counts then."""
    if output.async_ is True:
        timeout = output.async_timeout
        return Reply(background=True, background_timeout=None if timeout is UNSET else timeout)
    said: Said = {}
    _plain(said, output, event_name)
    body = output.hook_specific_output
    if body is not UNSET:
        for name, read in _readers(event_name):
            value = getattr(body, name)
            if value is not UNSET:
                read(said, value, output, body)
    if "specific" in said:
        said["specific"] = EventFields(**said["specific"])
    return Reply(**said) if said else NOTHING


def _plain(said: Said, output: Any, event_name: str) -> None:
    """The fields every event knows."""
    if output.decision is not UNSET:
        _top_decision(said, output, event_name)
    if output.continue_ is False:
        said["stop"] = True
        said["stop_reason"] = output.stop_reason or None
    if output.system_message:
        said["messages"] = (output.system_message,)
    if output.suppress_output:
        said["suppress_output"] = True
    if output.terminal_sequence:
        said["specific"] = {"terminal_sequence": output.terminal_sequence}


def tell_model(reply: Reply, event_name: str) -> Reply:
    """The reply with its messages as context for the model, as seeds/002 and seeds/003 say of `systemMessage`.

    An event that has no context keeps them as messages, and so does an agent that is about to stop: context would keep
    it going.
    """
    spec = spec_of(event_name)
    if not reply.messages or "context" not in spec.fields or (spec.keeps_going and not reply.keep_going):
        return reply
    return msgspec.structs.replace(reply, messages=(), context=(*reply.messages, *reply.context))


def _top_decision(said: Said, output: Any, event_name: str) -> None:
    spec = spec_of(event_name)
    reason = output.reason or output.stop_reason  # seeds/004: a block may give its reason as `stopReason`
    if output.decision == "block" and spec.keeps_going:
        said["keep_going"] = True
        said["keep_going_reasons"] = (reason,) if reason else ()
    elif (spec.decides, output.decision) != _UNHEARD:
        _decide(said, WORDS[output.decision], reason if output.decision == "block" else output.reason)


def _decide(said: Said, decision: Decision, reason: Any) -> None:
    """The stricter of what was said so far and this, with the reasons of the hook that decides."""
    reasons = (reason,) if reason else ()
    before = said.get("decision")
    if before is None or decision > before:
        said["decision"], said["reasons"] = decision, reasons
    elif decision is before and reasons != said["reasons"]:
        said["reasons"] += reasons


Reader = Callable[[Said, Any, Output, Any], None]


def _permission(said: Said, value: Any, output: Output, body: Any) -> None:
    reason = body.permissionDecisionReason
    _decide(said, WORDS[value], output.reason if reason is UNSET else reason)


def _request(said: Said, value: Any, output: Output, body: Any) -> None:
    if isinstance(value, Allowed):
        _decide(said, Decision.ALLOW, UNSET)
        if value.updated_input is not UNSET:
            said["input"] = value.updated_input
        if value.updated_permissions:
            said.setdefault("specific", {})["updated_permissions"] = value.updated_permissions
        return
    _decide(said, Decision.DENY, value.message)
    if value.interrupt:
        said.setdefault("specific", {})["interrupt"] = True


def _whole(name: str) -> Reader:
    def read(said: Said, value: Any, output: Output, body: Any) -> None:
        said[name] = value

    return read


def _context(said: Said, value: Any, output: Output, body: Any) -> None:
    if value:
        said["context"] = (value,)


def _more(name: str) -> Reader:
    def read(said: Said, value: Any, output: Output, body: Any) -> None:
        said.setdefault("specific", {})[name] = value

    return read


_READ: dict[str, Reader] = {
    **{wire: _more(name) for wire, name in WIRE_NAMES.items()},
    DECISION: _permission,
    CHOICE: _request,
    "updatedInput": _whole("input"),
    "updatedToolOutput": _whole("output"),
    "additionalContext": _context,
}


@cache
def _readers(event_name: str) -> tuple[tuple[str, Reader], ...]:
    return tuple((field, _READ[field]) for field in fields_of(event_name) if field in _READ)
