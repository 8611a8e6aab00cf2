"""The wire format of Claude Code's hooks (`contract/events.json`): events and replies, both ways. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from hookline.errors import EventError, ReplyError, ReplyMismatch
from hookline.events import CATALOG, Event, spec_of
from hookline.replies import NOTHING, Decision, Reply, Specific
from hookline.wire.text import parse_object

_NOT_ON_THE_WIRE = ("timestamp", "extra")
_NULL_IS_SAID = {"PreCompact": ("custom_instructions",), "PreModelSwitch": ("requested_model",),
                 "PostModelSwitch": ("requested_model",), "PostToolUse": ("tool_response",)}  # fmt: skip


# -- events ------------------------------------------------------------------------------------------------------


def decode_event(data: bytes | str | Mapping[str, Any]) -> Event:
    """The event that a JSON object describes; fields it does not know stay readable in `event.extra`."""
    return event_from(parse_object(data))


def event_from(payload: dict[str, Any]) -> Event:
    """The event of an object that was parsed already."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str):
        raise EventError("event: `hook_event_name` is missing; write the event's name, such as `PreToolUse`")
    cls = spec_of(name).cls
    known = cls.__struct_fields__
    extra = {key: v for key, v in payload.items() if key not in known or key in _NOT_ON_THE_WIRE}
    fields = {key: v for key, v in payload.items() if key not in extra}
    extra.pop("hook_event_name", None)
    try:
        event = msgspec.convert(fields, cls)
    except msgspec.ValidationError as problem:
        raise EventError(f"{name}: {_where(str(problem))}") from None
    return msgspec.structs.replace(event, extra=extra) if extra else event


def event_object(event: Event) -> dict[str, Any]:
    """The event as the object that goes over the wire."""
    said = _NULL_IS_SAID.get(event.event_name, ())
    body: dict[str, Any] = {}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if (value is not None or name in said) and name not in _NOT_ON_THE_WIRE:
            body[name] = value
    body["hook_event_name"] = event.event_name
    return {**body, **event.extra}


def encode_event(event: Event) -> bytes:
    """The event as one line of JSON, without the newline."""
    return msgspec.json.encode(event_object(event))


def encoded(value: Any) -> str:
    """Any JSON value as text."""
    return msgspec.json.encode(value).decode()


def _where(problem: str) -> str:
    """msgspec's words with the path first: ``tool_input`: expected `object`, got `array``."""
    text, _, path = problem.partition(" - at `$")
    place = path.rstrip("`").lstrip(".")
    return f"{f'`{place}`: ' if place else ''}{text[:1].lower()}{text[1:]}"


# -- replies -----------------------------------------------------------------------------------------------------


class _Output(msgspec.Struct, rename="camel"):
    """What every event's output may say; `None` is not one of the values."""

    continue_: bool | UnsetType = msgspec.field(default=UNSET, name="continue")
    suppress_output: bool | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET
    decision: Literal["approve", "block"] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    system_message: str | UnsetType = UNSET
    terminal_sequence: str | UnsetType = UNSET
    async_: bool | UnsetType = msgspec.field(default=UNSET, name="async")
    async_timeout: float | UnsetType = UNSET
    hook_specific_output: dict[str, Any] | UnsetType = UNSET


class _Allow(msgspec.Struct, rename="camel", tag_field="behavior", tag="allow"):
    updated_input: dict[str, Any] | UnsetType = UNSET
    updated_permissions: list[dict[str, Any]] | UnsetType = UNSET


class _Deny(msgspec.Struct, rename="camel", tag_field="behavior", tag="deny"):
    message: str | UnsetType = UNSET
    interrupt: bool | UnsetType = UNSET


class _SpecificOutput(msgspec.Struct, rename="camel"):
    """Every field some event's specific output has; which ones an event has is `_SPECIFIC`."""

    permission_decision: Literal["allow", "deny", "ask", "defer"] | UnsetType = UNSET
    permission_decision_reason: str | UnsetType = UNSET
    updated_input: dict[str, Any] | UnsetType = UNSET
    additional_context: str | UnsetType = UNSET
    classifier_context: str | UnsetType = UNSET
    updated_tool_output: Any = UNSET
    updated_mcp_tool_output: Any = msgspec.field(default=UNSET, name="updatedMCPToolOutput")
    session_title: str | UnsetType = UNSET
    suppress_original_prompt: bool | UnsetType = UNSET
    initial_user_message: str | UnsetType = UNSET
    watch_paths: tuple[str, ...] | UnsetType = UNSET
    reload_skills: bool | UnsetType = UNSET
    decision: _Allow | _Deny | UnsetType = UNSET
    retry: bool | UnsetType = UNSET
    action: Literal["accept", "decline", "cancel"] | UnsetType = UNSET
    content: dict[str, Any] | UnsetType = UNSET
    worktree_path: str | UnsetType = UNSET
    display_content: str | UnsetType = UNSET


_CONTEXT = ("additional_context",)
_SPECIFIC: dict[str, tuple[str, ...]] = {
    "PreToolUse": ("permission_decision", "permission_decision_reason", "updated_input", *_CONTEXT),
    "PostToolUse": (*_CONTEXT, "classifier_context", "updated_tool_output", "updated_mcp_tool_output"),
    "PostToolUseFailure": _CONTEXT,
    "PostToolBatch": _CONTEXT,
    "Notification": _CONTEXT,
    "UserPromptSubmit": (*_CONTEXT, "session_title", "suppress_original_prompt"),
    "UserPromptExpansion": (*_CONTEXT, "suppress_original_prompt"),
    "SessionStart": (*_CONTEXT, "initial_user_message", "session_title", "watch_paths", "reload_skills"),
    "Stop": _CONTEXT,
    "SubagentStart": _CONTEXT,
    "SubagentStop": _CONTEXT,
    "PreModelSwitch": ("permission_decision", "permission_decision_reason"),
    "PostModelSwitch": _CONTEXT,
    "PermissionRequest": ("decision",),
    "PermissionDenied": ("retry",),
    "Setup": _CONTEXT,
    "Elicitation": ("action", "content"),
    "ElicitationResult": ("action", "content"),
    "WorktreeCreate": ("worktree_path",),
    "CwdChanged": ("watch_paths",),
    "FileChanged": ("watch_paths",),
    "MessageDisplay": ("display_content",),
}
SENT_BACK = frozenset({"Stop", "SubagentStop", "TeammateIdle"})
"""Where `decision: "block"` means: do not stop yet."""

_SAME_NAME = ("classifier_context", "session_title", "suppress_original_prompt", "initial_user_message", "watch_paths",
              "reload_skills", "retry", "action", "content", "worktree_path", "display_content")  # fmt: skip
_WORDS = {"approve": Decision.ALLOW, "block": Decision.DENY, "allow": Decision.ALLOW, "ask": Decision.ASK,
          "defer": Decision.DEFER, "deny": Decision.DENY}  # fmt: skip


def decode_reply(data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply:
    """The reply that a hook's JSON output means on `event`; unknown keys are ignored, wrong values are not."""
    name = event if isinstance(event, str) else event.event_name
    payload = parse_object(data, "reply", ReplyError)
    if not payload:
        return NOTHING
    output = _typed(payload, _Output, "")
    return _plain(output, name) | _specific(output, name)


def _typed(payload: dict[str, Any], cls: type[Any], prefix: str) -> Any:
    try:
        return msgspec.convert(payload, cls)
    except msgspec.ValidationError as problem:
        raise ReplyError(f"reply does not fit the wire format: {prefix}{_where(str(problem))}") from None


def _or(value: Any, default: Any) -> Any:
    return default if value is UNSET else value


def _plain(output: _Output, name: str) -> Reply:
    """The fields every event knows."""
    blocks = output.decision == "block"
    reasons = _some(output.reason) if output.decision is not UNSET else ()
    back = blocks and name in SENT_BACK
    sequence = _or(output.terminal_sequence, None)
    stops = output.continue_ is False
    return Reply(
        decision=Decision.PASS if back or output.decision is UNSET else _WORDS[output.decision],
        reasons=() if back else reasons,
        keep_going=back,
        keep_going_reasons=reasons if back else (),
        messages=_some(output.system_message),
        stop=stops,
        stop_reason=_or(output.stop_reason, None) if stops else None,
        suppress_output=_or(output.suppress_output, False),
        background=output.async_ is True,
        background_timeout=_or(output.async_timeout, None),
        specific=Specific(terminal_sequence=sequence) if sequence else None,
    )


def _some(text: str | UnsetType) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) and text else ()


def _specific(output: _Output, name: str) -> Reply:
    """The fields of `hookSpecificOutput`."""
    body = output.hook_specific_output
    if isinstance(body, UnsetType):
        return NOTHING
    _check_event_name(body.get("hookEventName", UNSET), name)
    said = _typed(body, _SpecificOutput, "hookSpecificOutput.")
    given = [f for f in _SPECIFIC.get(name, ()) if getattr(said, f) is not UNSET]
    reply = NOTHING
    for field in given:
        if field not in _SAME_NAME:
            reply = reply | _READ[field](said, output)
    same = {field: getattr(said, field) for field in given if field in _SAME_NAME}
    return reply | Reply(specific=Specific(**same)) if same else reply


def _check_event_name(said: Any, name: str) -> None:
    if not isinstance(said, str) or said not in CATALOG:
        raise ReplyError(f"hookSpecificOutput.hookEventName: expected `{name}`, got `{_or(said, 'nothing')}`")
    if said != name:
        raise ReplyMismatch(f"hookSpecificOutput.hookEventName: an answer to `{said}` was given to `{name}`")


def _permission(said: _SpecificOutput, output: _Output) -> Reply:
    reason = _some(said.permission_decision_reason) or _some(output.reason)
    return Reply(decision=_WORDS[str(said.permission_decision)], reasons=reason)


def _request(said: _SpecificOutput, output: _Output) -> Reply:
    choice = said.decision
    if isinstance(choice, _Allow):
        permissions = tuple(_or(choice.updated_permissions, ()))
        specific = Specific(updated_permissions=permissions) if permissions else None
        return Reply(decision=Decision.ALLOW, input=_or(choice.updated_input, None), specific=specific)
    assert isinstance(choice, _Deny)
    specific = Specific(interrupt=True) if choice.interrupt is True else None
    return Reply(decision=Decision.DENY, reasons=_some(choice.message), specific=specific)


_READ: dict[str, Callable[[Any, _Output], Reply]] = {
    "permission_decision": _permission,
    "permission_decision_reason": lambda said, output: NOTHING,
    "updated_input": lambda said, output: Reply(input=said.updated_input),
    "additional_context": lambda said, output: Reply(context=_some(said.additional_context)),
    "updated_tool_output": lambda said, output: Reply(output=said.updated_tool_output),
    "updated_mcp_tool_output": lambda said, output: Reply(specific=Specific(mcp_output=said.updated_mcp_tool_output)),
    "decision": _request,
}


# -- replies, the other way --------------------------------------------------------------------------------------


def reply_object(reply: Reply, event: Event | str) -> dict[str, Any]:
    """The reply as the object a hook would have printed; saying nothing is `{}`."""
    name = event if isinstance(event, str) else event.event_name
    body: dict[str, Any] = {}
    if reply.background:
        body["async"] = True
        if reply.background_timeout is not None:
            body["asyncTimeout"] = reply.background_timeout
        return body
    if reply.stop:
        body["continue"] = False
        if reply.stop_reason is not None:
            body["stopReason"] = reply.stop_reason
    if reply.suppress_output:
        body["suppressOutput"] = True
    if reply.messages:
        body["systemMessage"] = "\n".join(reply.messages)
    body.update(_top_decision(reply, name))
    specific = _specific_object(reply, name)
    if specific:
        body["hookSpecificOutput"] = {"hookEventName": name, **specific}
    if reply.specific is not None and reply.specific.terminal_sequence is not None:
        body["terminalSequence"] = reply.specific.terminal_sequence
    return body


def encode_reply(reply: Reply, event: Event | str) -> bytes:
    """The reply as one line of JSON, without the newline."""
    return msgspec.json.encode(reply_object(reply, event))


def _top_decision(reply: Reply, name: str) -> dict[str, Any]:
    if reply.keep_going:
        return {"decision": "block", "reason": "\n".join(reply.keep_going_reasons)}
    if (
        reply.decision is Decision.PASS
        or "permission_decision" in _SPECIFIC.get(name, ())
        or name == "PermissionRequest"
    ):
        return {}
    word = {"decision": "approve" if reply.decision is Decision.ALLOW else "block"}
    return {**word, "reason": reply.reason} if reply.reasons else word


def _specific_object(reply: Reply, name: str) -> dict[str, Any]:
    fields = _SPECIFIC.get(name, ())
    said: dict[str, Any] = {}
    if "permission_decision" in fields and reply.decision is not Decision.PASS:
        said["permissionDecision"] = str(reply.decision)
        if reply.reasons:
            said["permissionDecisionReason"] = reply.reason
    if name == "PermissionRequest" and reply.decision is not Decision.PASS:
        said["decision"] = _decision_object(reply)
    if "updated_input" in fields and reply.input is not None:
        said["updatedInput"] = reply.input
    if "updated_tool_output" in fields and reply.output is not UNSET:
        said["updatedToolOutput"] = reply.output
    if "additional_context" in fields and reply.context:
        said["additionalContext"] = "\n".join(reply.context)
    return {**said, **_same_names(reply.specific, fields)}


def _decision_object(reply: Reply) -> dict[str, Any]:
    more = reply.specific or Specific()
    if reply.decision is Decision.ALLOW:
        allowed: dict[str, Any] = {"behavior": "allow"}
        if reply.input is not None:
            allowed["updatedInput"] = reply.input
        if more.updated_permissions:
            allowed["updatedPermissions"] = list(more.updated_permissions)
        return allowed
    denied: dict[str, Any] = {"behavior": "deny"}
    if reply.reasons:
        denied["message"] = reply.reason
    return {**denied, "interrupt": True} if more.interrupt else denied


def _same_names(specific: Specific | None, fields: tuple[str, ...]) -> dict[str, Any]:
    if specific is None:
        return {}
    said = {}
    for field in fields:
        value = getattr(specific, "mcp_output" if field == "updated_mcp_tool_output" else field, None)
        if value is not None and value is not UNSET and value is not False and value != ():
            said[_WIRE_NAMES[field]] = value
    return said


_WIRE_NAMES = dict(zip(_SpecificOutput.__struct_fields__, _SpecificOutput.__struct_encode_fields__, strict=True))
