"""What a hook's JSON output looks like, event by event: tables, and the typed structs made from them. Pure.

`SPECIFIC` is the one place that says which fields an event's `hookSpecificOutput` has. The structs are made when an
event is first answered, so that starting up costs nothing; decoding is by concrete type, never into a union.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from hookline.errors import ReplyError, ReplyMismatch
from hookline.events import CATALOG, spec_of

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Output(msgspec.Struct, rename="camel"):
    """What every event's output may say; `null` is not one of the values (FACTS §3)."""

    continue_: bool | UnsetType = msgspec.field(default=UNSET, name="continue")
    suppress_output: bool | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET
    decision: Literal["approve", "block"] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    system_message: str | UnsetType = UNSET
    terminal_sequence: str | UnsetType = UNSET
    async_: bool | UnsetType = msgspec.field(default=UNSET, name="async")
    async_timeout: Seconds | UnsetType = UNSET


class Allowed(msgspec.Struct, rename="camel", tag_field="behavior", tag="allow"):
    """Somebody allowed the call that PermissionRequest asked about."""

    updated_input: dict[str, Any] | UnsetType = UNSET
    updated_permissions: tuple[dict[str, Any], ...] | UnsetType = UNSET


class Denied(msgspec.Struct, rename="camel", tag_field="behavior", tag="deny"):
    """Somebody refused the call that PermissionRequest asked about."""

    message: str | UnsetType = UNSET
    interrupt: bool | UnsetType = UNSET


Permission = Literal["allow", "deny", "ask", "defer"]
Action = Literal["accept", "decline", "cancel"]

TYPES: MappingProxyType[str, Any] = MappingProxyType({
    "permissionDecision": Permission,
    "permissionDecisionReason": str,
    "updatedInput": dict[str, Any],
    "additionalContext": str,
    "classifierContext": str,
    "updatedToolOutput": Any,
    "updatedMCPToolOutput": Any,
    "sessionTitle": str,
    "suppressOriginalPrompt": bool,
    "initialUserMessage": str,
    "watchPaths": tuple[str, ...],
    "reloadSkills": bool,
    "decision": Allowed | Denied,
    "retry": bool,
    "action": Action,
    "content": dict[str, Any],
    "worktreePath": str,
    "displayContent": str,
})  # fmt: skip
"""Every field that some event's specific output has."""

_CONTEXT = "additionalContext"
SPECIFIC: MappingProxyType[str, str] = MappingProxyType({
    "PreToolUse": "permissionDecision permissionDecisionReason updatedInput additionalContext",
    "PostToolUse": "additionalContext classifierContext updatedToolOutput updatedMCPToolOutput",
    "PostToolUseFailure": _CONTEXT,
    "PostToolBatch": _CONTEXT,
    "Notification": _CONTEXT,
    "UserPromptSubmit": "additionalContext sessionTitle suppressOriginalPrompt",
    "UserPromptExpansion": "additionalContext suppressOriginalPrompt",
    "SessionStart": "additionalContext initialUserMessage sessionTitle watchPaths reloadSkills",
    "Stop": _CONTEXT,
    "SubagentStart": _CONTEXT,
    "SubagentStop": _CONTEXT,
    "PreModelSwitch": "permissionDecision permissionDecisionReason",
    "PostModelSwitch": _CONTEXT,
    "PermissionRequest": "decision",
    "PermissionDenied": "retry",
    "Setup": _CONTEXT,
    "Elicitation": "action content",
    "ElicitationResult": "action content",
    "WorktreeCreate": "worktreePath",
    "CwdChanged": "watchPaths",
    "FileChanged": "watchPaths",
    "MessageDisplay": "displayContent",
})  # fmt: skip
"""The fields of each event's `hookSpecificOutput`; an event that is not here has none."""

REQUIRED = frozenset({("PermissionRequest", "decision"), ("WorktreeCreate", "worktreePath")})
NARROWER: MappingProxyType[tuple[str, str], Any] = MappingProxyType({
    ("PreModelSwitch", "permissionDecision"): Literal["allow", "deny", "ask"],
})  # fmt: skip

SENT_BACK = frozenset({"Stop", "SubagentStop", "TeammateIdle"})
"""Where `decision: "block"` means: do not stop yet."""


@cache
def fields_of(event_name: str) -> tuple[str, ...]:
    """The fields of the event's specific output, by their names on the wire."""
    return tuple(SPECIFIC.get(event_name, "").split())


@cache
def specific_type(event_name: str) -> type[msgspec.Struct]:
    """The struct of the event's `hookSpecificOutput`; its attributes are named as on the wire."""
    rows: list[Any] = [("hookEventName", Literal[event_name])]
    for field in fields_of(event_name):
        kind = NARROWER.get((event_name, field), TYPES[field])
        needed = (event_name, field) in REQUIRED
        rows.append((field, kind) if needed else (field, kind | UnsetType if kind is not Any else Any, UNSET))
    return msgspec.defstruct(f"{event_name}SpecificOutput", rows, kw_only=True)


@cache
def output_type(event_name: str, plain: type[Output] = Output) -> type[Any]:
    """The struct of a hook's whole output on this event; `plain` has the fields that every event knows."""
    spec_of(event_name)
    kind = specific_type(event_name) if event_name in SPECIFIC else dict[str, Any]
    row = ("hook_specific_output", kind | UnsetType, msgspec.field(default=UNSET, name="hookSpecificOutput"))
    return msgspec.defstruct(f"{event_name}Output", [row], bases=(plain,))


def typed(payload: dict[str, Any], event_name: str, plain: type[Output] = Output) -> Any:
    """The output as its struct; a value that does not fit is a `ReplyError` that names the field."""
    try:
        output = msgspec.convert(payload, output_type(event_name, plain))
    except msgspec.ValidationError as problem:
        _check_event_name(payload.get("hookSpecificOutput"), event_name)
        raise ReplyError(f"reply to {event_name}: {explained(str(problem), event_name)}") from None
    if event_name not in SPECIFIC and output.hook_specific_output is not UNSET:
        _check_event_name(payload["hookSpecificOutput"], event_name)
        raise ReplyError(f"reply to {event_name}: `hookSpecificOutput`: {event_name} has none; leave it out")
    return output


def _check_event_name(body: Any, event_name: str) -> None:
    """An answer to another event, or to none, is refused whatever else it says."""
    if not isinstance(body, dict):
        return
    said = body.get("hookEventName", UNSET)
    where = f"reply to {event_name}: `hookSpecificOutput.hookEventName`:"
    if said is UNSET:
        raise ReplyError(f"{where} it is missing; write `{event_name}`")
    if said == event_name:
        return
    if isinstance(said, str) and said in CATALOG:
        raise ReplyMismatch(f"{where} this is an answer to `{said}`; write `{event_name}`")
    raise ReplyError(f"{where} expected `{event_name}`, got `{said}`")


# -- msgspec's complaints, in the words of the wire -----------------------------------------------------------------

_NOUNS = {"str": "a string", "bool": "`true` or `false`", "int": "a number", "float": "a number", "null": "null",
          "object": "an object", "array": "an array", "dict": "an object", "list": "an array"}  # fmt: skip


def explained(problem: str, event_name: str = "") -> str:
    """Where it is wrong, what was expected and what to do: ``tool_input`: expected an object, got an array`."""
    text, _, path = problem.partition(" - at `")
    place = path.rstrip("`").removeprefix("$").lstrip(".")
    if "`key` in" in problem:
        text, place = "Expected `str`", "a key"
    said = _in_words(text, place, event_name)
    return f"`{place}`: {said}" if place and place != "a key" else f"{place}{': ' if place else ''}{said}"


def _in_words(text: str, place: str, event_name: str) -> str:
    if text.startswith("Expected `float` > 0"):
        return "expected seconds, more than 0"
    if text.startswith("Expected "):
        expected, _, got = text.removeprefix("Expected ").partition(", got ")
        words = " or ".join(_noun(word) for word in expected.strip("`").split(" | "))
        return f"expected {words}" + (f", got {_noun(got.strip('`'))}" if got else "") + _hint(expected, got)
    if text.startswith(("Invalid enum value ", "Invalid value ")):
        choices = ", ".join(f"`{word}`" for word in _choices(place, event_name))
        return f"expected one of {choices}, got `{text.partition(chr(39))[2].rstrip(chr(39))}`"
    return f"{text[:1].lower()}{text[1:]}"


def _noun(word: str) -> str:
    return _NOUNS.get(word, f"`{word}`")


def _hint(expected: str, got: str) -> str:
    return "; leave it out to say nothing" if got == "`null`" and "null" not in expected else ""


def _choices(place: str, event_name: str) -> tuple[str, ...]:
    """What may be written at this place."""
    field = place.rpartition(".")[2]
    return _TOP.get(place) or get_args(NARROWER.get((event_name, field)) or TYPES.get(field)) or ("allow", "deny")


_TOP = {"decision": ("approve", "block"), "type": ("hook_response",)}
