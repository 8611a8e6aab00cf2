"""What a hook's output means, event by event: JSON by typed structs, plain text, the exit code (FACTS.md §2). Pure.

A command says what it wants in JSON on stdout, which counts whatever the exit code; the exit code alone says the rest.
Which fields an event's `hookSpecificOutput` has follows from the event's row and the rows of the reply's fields. The
structs are made when an event is first answered, so that starting up costs nothing; decoding is by concrete type,
never into a union.
"""

from __future__ import annotations

import re
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from hookline.errors import ReplyError, ReplyMismatch
from hookline.events import CATALOG, spec_of
from hookline.replies import NOTHING, WIRE_NAMES, Decision, EventFields, Reply, deny, keep_going, specific, texts

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Output(msgspec.Struct, rename="camel"):
    """What every event's output may say; `null` is not one of the values (FACTS.md §3)."""

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
    """The answer that allows the call that PermissionRequest asked about."""

    updated_input: dict[str, Any] | UnsetType = UNSET
    updated_permissions: tuple[dict[str, Any], ...] | UnsetType = UNSET


class Denied(msgspec.Struct, rename="camel", tag_field="behavior", tag="deny"):
    """The answer that refuses the call that PermissionRequest asked about."""

    message: str | UnsetType = UNSET
    interrupt: bool | UnsetType = UNSET


DECISION, REASON, CHOICE = "permissionDecision", "permissionDecisionReason", "decision"
FIELD_NAMES = {wire: name for name, wire in WIRE_NAMES.items()}
_TYPES = {"updatedInput": dict[str, Any], "updatedToolOutput": Any, "additionalContext": str, REASON: str}


@cache
def fields_of(event_name: str) -> tuple[str, ...]:
    """The fields of the event's own part of the output, by their names on the wire; an event without any has none."""
    spec = spec_of(event_name)
    if spec.decides == "request":
        return (CHOICE,)
    named = [WIRE_NAMES[name] for name in spec.fields if name not in spec.unsaid and name in WIRE_NAMES]
    return (*((DECISION, REASON) if spec.decides == "permission" else ()), *named)


@cache
def type_of(event_name: str, field: str) -> Any:
    """The type of a field of the event's own part."""
    if field == DECISION:
        said = spec_of(event_name).decisions
        return Literal[tuple(word for word in ("allow", "deny", "ask", "defer") if word in said)]
    if field == CHOICE:
        return Allowed | Denied
    kind = _TYPES.get(field) or get_type_hints(EventFields)[FIELD_NAMES[field]]
    return Union[tuple(one for one in get_args(kind) if one is not NoneType)] if NoneType in get_args(kind) else kind  # noqa: UP007


@cache
def specific_type(event_name: str) -> type[msgspec.Struct]:
    """The struct of the event's `hookSpecificOutput`; its attributes are named as on the wire."""
    rows: list[Any] = [("hookEventName", Literal[event_name])]
    required = (CHOICE, *(WIRE_NAMES[name] for name in spec_of(event_name).required))
    for field in fields_of(event_name):
        kind = type_of(event_name, field)
        optional = (field, kind if kind is Any else kind | UnsetType, UNSET)
        rows.append((field, kind) if field in required else optional)
    return msgspec.defstruct(f"{event_name}SpecificOutput", rows, kw_only=True)


@cache
def output_type(event_name: str, plain: type[Output] = Output) -> type[Any]:
    """The struct of a hook's whole output on this event; `plain` has the fields that every event knows."""
    spec_of(event_name)
    kind = specific_type(event_name) if fields_of(event_name) else dict[str, Any]
    row = ("hook_specific_output", kind | UnsetType, msgspec.field(default=UNSET, name="hookSpecificOutput"))
    return msgspec.defstruct(f"{event_name}Output", [row], bases=(plain,))


def typed(payload: dict[str, Any], event_name: str, plain: type[Output] = Output) -> Any:
    """The output as its struct; a value that does not fit is a `ReplyError` that names the field."""
    try:
        output = msgspec.convert(payload, output_type(event_name, plain))
    except (msgspec.ValidationError, UnicodeEncodeError) as problem:
        _check_event_name(payload.get("hookSpecificOutput"), event_name)
        raise ReplyError(f"reply to {event_name}: {explained(str(problem), event_name)}") from None
    if not fields_of(event_name) and output.hook_specific_output is not UNSET:
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
        nouns = [_NOUNS.get(word, f"`{word}`") for word in (*expected.strip("`").split(" | "), got.strip("`"))]
        hint = "; leave it out to say nothing" if got == "`null`" and "null" not in expected else ""
        return f"expected {' or '.join(nouns[:-1])}" + (f", got {nouns[-1]}" if got else "") + hint
    if text.startswith(("Invalid enum value ", "Invalid value ")):
        field = place.rpartition(".")[2]
        own = field != CHOICE and bool(event_name) and field in fields_of(event_name)
        words = _TOP.get(place) or (get_args(type_of(event_name, field)) if own else ("allow", "deny"))
        choices = ", ".join(f"`{word}`" for word in words)
        return f"expected one of {choices}, got `{text.partition(chr(39))[2].rstrip(chr(39))}`"
    return f"{text[:1].lower()}{text[1:]}"


_TOP = {"decision": ("approve", "block"), "type": ("hook_response",)}


DECISIONS = {
    "approve": Decision.ALLOW, "block": Decision.DENY,
    "allow": Decision.ALLOW, "ask": Decision.ASK, "defer": Decision.DEFER, "deny": Decision.DENY,
}  # fmt: skip
_PERMITS = {
    name: {word: DECISIONS[word] for word in spec.decisions if word in DECISIONS}
    for name, spec in CATALOG.items() if spec.decides == "permission"
}  # fmt: skip
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
    return None if decision is None else Reply(decision=decision, reasons=texts(reason))


def reply_of(output: Any, event_name: str) -> Reply:
    """What an output means on the event it answers. `async` leaves the rest for later, so nothing else counts then."""
    if output.async_ is True:
        timeout = output.async_timeout
        return Reply(background=True, background_timeout=None if timeout is UNSET else timeout)
    said = _plain(output, event_name)
    body = output.hook_specific_output
    if body is not UNSET:
        for name in fields_of(event_name):
            value = getattr(body, name)
            if value is not UNSET and name != REASON:
                _read(said, name, value, output, body)
    if "specific" in said:
        said["specific"] = EventFields(**said["specific"])
    return Reply(**said) if said else NOTHING


def _plain(output: Any, event_name: str) -> Said:
    said: Said = {}
    if output.decision is not UNSET:
        spec = spec_of(event_name)
        reason = output.reason or output.stop_reason  # seeds/004: a block may give its reason as `stopReason`
        if output.decision == "block" and spec.keeps_going:
            said |= {"keep_going": True, "keep_going_reasons": texts(reason)}
        elif (spec.decides, output.decision) != _UNHEARD:
            _decide(said, DECISIONS[output.decision], reason if output.decision == "block" else output.reason)
    if output.continue_ is False:
        said["stop"] = True
        said["stop_reason"] = output.stop_reason or None
    if output.system_message:
        said["messages"] = (output.system_message,)
    if output.suppress_output:
        said["suppress_output"] = True
    if output.terminal_sequence:
        said["specific"] = {"terminal_sequence": output.terminal_sequence}
    return said


def tell_model(reply: Reply, event_name: str) -> Reply:
    """The reply with its messages as context for the model, as seeds/002 and seeds/003 say of `systemMessage`.

    An event that has no context keeps them as messages, and so does an agent that is about to stop: context would keep
    it going.
    """
    spec = spec_of(event_name)
    if not reply.messages or "context" not in spec.fields or (spec.keeps_going and not reply.keep_going):
        return reply
    return msgspec.structs.replace(reply, messages=(), context=(*reply.messages, *reply.context))


def _decide(said: Said, decision: Decision, reason: Any) -> None:
    """The stricter of what was said so far and this, with the reasons of the hook that decides."""
    reasons = texts(reason)
    before = said.get("decision")
    if before is None or decision > before:
        said["decision"], said["reasons"] = decision, reasons
    elif decision is before and reasons != said["reasons"]:
        said["reasons"] += reasons


def _read(said: Said, name: str, value: Any, output: Any, body: Any) -> None:
    if name == DECISION:
        reason = body.permissionDecisionReason
        _decide(said, DECISIONS[value], output.reason if reason is UNSET else reason)
    elif name == CHOICE:
        _read_choice(said, value)
    elif name in ("updatedInput", "updatedToolOutput"):
        said[FIELD_NAMES[name]] = value
    elif name != "additionalContext":
        said.setdefault("specific", {})[FIELD_NAMES[name]] = value
    elif value:
        said["context"] = (value,)


def _read_choice(said: Said, value: Allowed | Denied) -> None:
    if isinstance(value, Denied):
        _decide(said, Decision.DENY, value.message)
        if value.interrupt:
            said.setdefault("specific", {})["interrupt"] = True
        return
    _decide(said, Decision.ALLOW, UNSET)
    if value.updated_input is not UNSET:
        said["input"] = value.updated_input
    if value.updated_permissions:
        said.setdefault("specific", {})["updated_permissions"] = value.updated_permissions


_NOT_THERE = re.compile(
    r"\S*python[\d.]*: can't open file '(?P<path>[^']+)': \[Errno 2\]"
    r"|\S*sh: \d+: cannot open (?P<sh>\S+?): No such file"
)


def no(event_name: str, reason: str) -> Reply | None:
    """The reply of a command that says no by exit code 2; None on an event that cannot be blocked."""
    spec = spec_of(event_name)
    if spec.keeps_going:
        return keep_going(reason)
    return deny(reason) if "deny" in spec.decisions else None


def script_missing(event_name: str, command: str, stdout: str, stderr: str) -> bool:
    """Whether exit 2 is an interpreter's word for a script that is not there, on an event that sends an agent back.

    The work was not looked at then, so it is a failure, as in Claude Code; elsewhere exit 2 blocks.
    """
    lines = stderr.strip().splitlines()
    if not spec_of(event_name).keeps_going or stdout.strip() or len(lines) != 1:
        return False
    found = _NOT_THERE.match(lines[0])
    return found is not None and (found["path"] or found["sh"]).rpartition("/")[2] in command


def text_reply(event_name: str, text: str) -> Reply:
    """What plain text on stdout means: context on some events, a path on one, nothing elsewhere."""
    said = text.strip()
    field = spec_of(event_name).stdout
    if not said or not field:
        return NOTHING
    if field == "context":
        return Reply(context=(said,))
    return specific(**{field: said.splitlines()[-1].strip()})
