"""A typed output becomes a `Reply`: one row per field. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any, get_args

from msgspec import UNSET

from hookline.replies import NOTHING, Decision, Reply, Specific
from hookline.wire.outputs import NARROWER, SENT_BACK, SPECIFIC, Allowed, Output, Permission, fields_of

WORDS: MappingProxyType[str, Decision] = MappingProxyType({
    "approve": Decision.ALLOW,
    "block": Decision.DENY,
    "allow": Decision.ALLOW,
    "ask": Decision.ASK,
    "defer": Decision.DEFER,
    "deny": Decision.DENY,
})  # fmt: skip
_REASON = "permissionDecisionReason"
_PERMITS: MappingProxyType[str, dict[str, Decision]] = MappingProxyType({
    name: {word: WORDS[word] for word in get_args(NARROWER.get((name, "permissionDecision"), Permission))}
    for name, fields in SPECIFIC.items() if _REASON in fields
})  # fmt: skip
_UNHEARD = ("PermissionRequest", "approve")  # FACTS §3: a top-level `approve` says nothing there

Said = dict[str, Any]
"""The fields of the reply that is being put together; what only single events understand is under `specific`."""


def only_decision(said: dict[str, Any], event_name: str) -> Reply | None:
    """The reply to an output that holds a permission decision and nothing else, as most gates' answers do.

    Anything else is `None`, and read by `typed` and `reply_of`, which would say the same of this one.
    """
    body = said.get("hookSpecificOutput")
    if len(said) != 1 or body.__class__ is not dict or event_name not in _PERMITS:
        return None
    name, word, reason = body.get("hookEventName"), body.get("permissionDecision"), body.get(_REASON)
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
        said["specific"] = Specific(**said["specific"])
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


def _top_decision(said: Said, output: Any, event_name: str) -> None:
    if output.decision == "block" and event_name in SENT_BACK:
        said["keep_going"] = True
        said["keep_going_reasons"] = (output.reason,) if output.reason else ()
    elif (event_name, output.decision) != _UNHEARD:
        _decide(said, WORDS[output.decision], output.reason)


def _decide(said: Said, decision: Decision, reason: Any) -> None:
    """The stricter of what was said so far and this, with the reasons of whoever decides."""
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


SPECIFIC_NAMES: MappingProxyType[str, str] = MappingProxyType({
    "updatedMCPToolOutput": "mcp_output",
    "classifierContext": "classifier_context",
    "sessionTitle": "session_title",
    "suppressOriginalPrompt": "suppress_original_prompt",
    "initialUserMessage": "initial_user_message",
    "watchPaths": "watch_paths",
    "reloadSkills": "reload_skills",
    "retry": "retry",
    "action": "action",
    "content": "content",
    "worktreePath": "worktree_path",
    "displayContent": "display_content",
})  # fmt: skip
"""The wire's fields that are `Specific`'s, and what they are called there."""

_READ: dict[str, Reader] = {
    "permissionDecision": _permission,
    "updatedInput": _whole("input"),
    "additionalContext": _context,
    "updatedToolOutput": _whole("output"),
    "decision": _request,
    **{field: _more(name) for field, name in SPECIFIC_NAMES.items()},
}


@cache
def _readers(event_name: str) -> tuple[tuple[str, Reader], ...]:
    return tuple((field, _READ[field]) for field in fields_of(event_name) if field in _READ)
