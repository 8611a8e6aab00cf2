"""Events in one word: `bash("rm -rf /")`, `write("/etc/passwd")`, `prompt("hello")`.

Everything else has a value that a real session would have, and can be given by name: `bash("ls", cwd="/srv")`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hookline.events import (
    Event,
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Stop,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
    spec_of,
)
from hookline.events.tools import ToolEvent

E = TypeVar("E", bound=Event)
T = TypeVar("T", bound=ToolEvent)
SESSION = "test-session"
PROJECT = "/project"
TRANSCRIPT = "/project/.transcripts/test-session.jsonl"
CALL = "toolu_test"


def announced(event: type[Event] | str, **fields: Any) -> Event:
    """Any event, by its class or its name, in the session all these factories share."""
    return _made(spec_of(event).cls, fields)


def _made(cls: type[E], fields: dict[str, Any], **given: Any) -> E:
    """An event with the session's fields, then what the factory knows, then what the test says."""
    session = {"session_id": SESSION, "transcript_path": TRANSCRIPT, "cwd": PROJECT, "permission_mode": "default"}
    call = {"tool_use_id": CALL} if "tool_use_id" in cls.__struct_fields__ else {}
    return cls(**{**session, **call, **given, **fields})


# -- before a tool runs ------------------------------------------------------------------------------------------


def tool(name: str, input: dict[str, Any] | None = None, **fields: Any) -> PreToolUse:
    """The agent is about to call any tool."""
    return _made(PreToolUse, fields, tool_name=name, tool_input=input or {})


def bash(command: str, **fields: Any) -> PreToolUse:
    """The agent is about to run a command."""
    return tool("Bash", {"command": command}, **fields)


def read(file_path: str, **fields: Any) -> PreToolUse:
    """The agent is about to read a file."""
    return tool("Read", {"file_path": file_path}, **fields)


def write(file_path: str, content: str = "some text\n", **fields: Any) -> PreToolUse:
    """The agent is about to write a file."""
    return tool("Write", {"file_path": file_path, "content": content}, **fields)


def edit(file_path: str, old: str = "old", new: str = "new", **fields: Any) -> PreToolUse:
    """The agent is about to replace some text of a file."""
    return tool("Edit", {"file_path": file_path, "old_string": old, "new_string": new}, **fields)


def mcp(server: str, name: str, input: dict[str, Any] | None = None, **fields: Any) -> PreToolUse:
    """The agent is about to call a tool of an MCP server: `mcp("files", "delete", {"path": "a"})`."""
    origin = {"name": server, "source": "project"}
    return tool(f"mcp__{server}__{name}", input, **{"mcp_server": origin, **fields})


# -- what becomes of it ------------------------------------------------------------------------------------------


def _of(cls: type[T], call: PreToolUse, fields: dict[str, Any], **given: Any) -> T:
    """Another event about the same tool call."""
    shared = {name: getattr(call, name) for name in cls.__struct_fields__ if name in PreToolUse.__struct_fields__}
    return cls(**{**shared, **given, **fields})


def succeeded(call: PreToolUse, response: Any = "", **fields: Any) -> PostToolUse:
    """The tool call went well: `succeeded(bash("ls"), {"stdout": "a"})`."""
    return _of(PostToolUse, call, fields, tool_response=response, duration_ms=1)


def failed(call: PreToolUse, error: str = "it failed", **fields: Any) -> PostToolUseFailure:
    """The tool call failed: `failed(bash("false"), "exit code 1")`."""
    return _of(PostToolUseFailure, call, fields, error=error, duration_ms=1)


def asking(call: PreToolUse, **fields: Any) -> PermissionRequest:
    """Nothing has allowed the tool call yet: `asking(bash("ls"))`."""
    return _of(PermissionRequest, call, fields)


# -- the session -------------------------------------------------------------------------------------------------


def prompt(text: str, **fields: Any) -> UserPromptSubmit:
    """The user gave a prompt."""
    return _made(UserPromptSubmit, fields, prompt=text)


def stop(last_message: str = "done", *, again: bool = False, **fields: Any) -> Stop:
    """The agent thinks it is done; `again` if a hook has sent it back before."""
    return _made(Stop, fields, last_assistant_message=last_message, stop_hook_active=again)


def session_start(source: str = "startup", **fields: Any) -> SessionStart:
    """A session begins."""
    return _made(SessionStart, fields, source=source)


def session_end(reason: str = "other", **fields: Any) -> SessionEnd:
    """A session is over."""
    return _made(SessionEnd, fields, reason=reason)


def subagent_start(kind: str = "general-purpose", **fields: Any) -> SubagentStart:
    """A subagent is about to start."""
    return _made(SubagentStart, fields, agent_type=kind, agent_id="agent_test")


def subagent_stop(kind: str = "general-purpose", *, again: bool = False, **fields: Any) -> SubagentStop:
    """A subagent thinks it is done; `again` if a hook has sent it back before."""
    return _made(SubagentStop, fields, agent_type=kind, agent_id="agent_test", stop_hook_active=again)
