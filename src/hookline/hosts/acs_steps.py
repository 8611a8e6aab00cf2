"""ACS's steps as our events. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from hookline.events import (
    Event,
    PostCompact,
    PostToolUse,
    PostToolUseFailure,
    PreCompact,
    PreOutput,
    PreToolUse,
    SessionEnd,
    SessionStart,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
)  # fmt: skip
from hookline.hosts.claude import CLAUDE
from hookline.hosts.decode import knows_tool
from hookline.hosts.unknown_tools import calls_inside

Object = dict[str, Any]


class Refused(Exception):
    """A request that is not judged at all."""

    def __init__(self, code: int, why: str, **data: object) -> None:
        super().__init__(why)
        self.code, self.data = code, {"reason": why, **data}


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    words = (str(one.get("value", one.get("text", ""))) if isinstance(one, dict) else str(one or "") for one in parts)
    return "\n".join(words)


def _about_tool(params: Object, payload: Object) -> tuple[str, str]:
    tool = payload.get("tool") or {}
    name = str(tool.get("name") or tool.get("id") or payload.get("name") or "")
    return name, str(payload.get("execution_id") or params["request_id"])


def _call(who: Object, params: Object, payload: Object, *, server: str = "") -> PreToolUse:
    (name, use), given = _about_tool(params, payload), payload.get("arguments") or {}
    if not name:
        raise Refused(-32602, "a call of a tool without a name cannot be judged")
    values = {key: one.get("value", one) if isinstance(one, dict) else one for key, one in given.items()}
    return PreToolUse(**who, tool_name=f"mcp__{server}__{name}" if server else name, tool_input=values, tool_use_id=use)


def _result(who: Object, params: Object, payload: Object) -> Event:
    name, use = _about_tool(params, payload)
    done = {**who, "tool_name": name or "unknown", "tool_input": {}, "tool_use_id": use}
    if payload.get("exit_status", "success") == "success":
        return PostToolUse(**done, tool_response=payload.get("outputs"))
    return PostToolUseFailure(**done, error=str(payload.get("outputs")))


def _subagent(kind: type[Event], who: Object, payload: Object) -> Event:
    return kind(session_id=who["session_id"], agent_id=str(payload.get("subagent_session_id", "")))


def _prompt(who: Object, _: Object, payload: Object) -> Event:
    return UserPromptSubmit(**who, prompt=_text(payload.get("content")) or json.dumps(payload))


STEPS: dict[str, Callable[[Object, Object, Object], Event]] = {
    "steps/sessionStart": lambda who, _, __: SessionStart(**who),
    "steps/sessionEnd": lambda who, _, __: SessionEnd(**who, reason="other"),
    "steps/userMessage": _prompt,
    "steps/agentTrigger": _prompt,
    "steps/toolCallRequest": _call,
    "steps/toolCallResult": _result,
    "steps/agentResponse": lambda who, _, payload: PreOutput(**who, text=_text(payload.get("content"))),
    "steps/preCompact": lambda who, _, __: PreCompact(**who),
    "steps/postCompact": lambda who, _, payload: PostCompact(**who, compact_summary=str(payload.get("summary", ""))),
    "steps/subagentStart": lambda who, _, payload: _subagent(SubagentStart, who, payload),
    "steps/subagentStop": lambda who, _, payload: _subagent(SubagentStop, who, payload),
}
"""ACS's steps as our events; any other is a tool called `acs:STEP` or `mcp:METHOD`, but turns, which pass."""


def event_of(method: str, params: Object) -> Event | None:
    """The event that a step is; `None` where there is nothing to judge."""
    payload, meta = params["payload"], params["metadata"]
    who = {"session_id": meta["session_id"], "agent_id": str(meta.get("agent_id") or "")}
    if method in STEPS:
        return STEPS[method](who, params, payload)
    if method == "protocols/MCP/tools/call":
        shell = (payload.get("tool") or {}).get("name") == "Bash"  # judged as what it is, whoever carries it
        return _call(who, params, payload, server="" if shell else str(payload.get("server") or "server"))
    room, _, step = method.partition("/")
    if step in ("turnStart", "turnEnd"):
        return None
    name = f"mcp:{method.removeprefix('protocols/MCP/')}" if room == "protocols" else f"acs:{step}"
    return PreToolUse(**who, tool_name=name, tool_input=payload, tool_use_id=params["request_id"])


def calls_in(event: Event) -> Iterator[PreToolUse]:
    """What a tool of an unknown name may do, told by what it is given: a shell line, a patch, a path."""
    if isinstance(event, PreToolUse) and not knows_tool(CLAUDE, event.tool_name, event.tool_input):
        for name, given in calls_inside(event.tool_name, event.tool_input):
            yield msgspec.structs.replace(event, tool_name=name, tool_input=given)
