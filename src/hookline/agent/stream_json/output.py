"""What the agent says to its host while it works: the messages of the `stream-json` format, as mappings.

`Agent.stream` yields them, `hookline run --output-format stream-json` prints them, text output is made from them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

import msgspec

from hookline.agent.messages import Assistant, Result, ToolUse, User, encode_block, encode_message
from hookline.agent.session.transcript import now
from hookline.core.engine import HookSet, Verdict
from hookline.core.engine.observers import HookProgress, HookResponse, HookStarted, Notice
from hookline.core.hooks.hook import Command, Hook, Http
from hookline.core.wire.json_text import read_object
from hookline.events import spec_of

SUPPRESSING = ("suppressOutput", "suppress_output", "suppress_logging")  # what was printed is not to be shown
Note: TypeAlias = dict[str, Any]
Tell: TypeAlias = Callable[[Note], None]


class StreamOutput:
    """Says what happens to its listeners; without one it costs nothing."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.listeners: list[Tell] = []
        self.partial = False  # whether answers are told piece by piece too
        self.subagent_text = False  # whether the words of subagents are told, too, while the agent waits for them

    def say(self, kind: str, **fields: Any) -> None:
        if not self.listeners:
            return
        note = {"type": kind, "uuid": str(uuid4()), **fields, "session_id": self.session_id}
        for listener in tuple(self.listeners):
            listener(note)

    def system(self, subtype: str, **fields: Any) -> None:
        """Something the agent itself reports."""
        self.say("system", subtype=subtype, **fields)

    def inform(self, text: str, level: str = "notice", **fields: Any) -> None:
        self.system("informational", content=text, level=level, **fields)

    def assistant(
        self,
        message: Assistant,
        parent: str | None,
        uuids: tuple[str, ...] = (),
        *,
        only_calls: bool = False,
        **more: Any,
    ) -> None:
        """What the model said, a message per block (or per tool call); `uuids` are those the transcript has."""
        about = {"id": message.id, "type": "message", "role": "assistant", "model": message.model}
        rest = {"stop_reason": None, "stop_sequence": None, "usage": msgspec.to_builtins(message.usage)}
        for at, block in enumerate(message.content):
            if only_calls and not isinstance(block, ToolUse):
                continue
            known = {"uuid": uuids[at]} if at < len(uuids) else {}
            body = {**about, "content": [encode_block(block)], **rest}
            self.say("assistant", message=body, parent_tool_use_id=parent, **more, **known)

    def piece(self, event: dict[str, Any], parent: str | None) -> None:
        """A piece of an answer while the model says it, as the Messages API tells it."""
        self.say("stream_event", event=event, parent_tool_use_id=parent)

    def user(self, message: User, parent: str | None = None, **more: Any) -> None:
        """What was said on the user's side."""
        if message.synthetic:
            more = {"isSynthetic": True, **more}
        self.say("user", message=encode_message(message), parent_tool_use_id=parent, timestamp=now(), **more)

    def result(self, result: Result) -> None:
        fields: Note = {
            "subtype": result.subtype,
            "is_error": result.is_error,
            "duration_ms": result.duration_ms,
            "duration_api_ms": result.api_ms,
            "num_turns": result.turns,
            "stop_reason": result.stop_reason,
            "terminal_reason": result.reason,
            "total_cost_usd": result.cost_usd,
            "usage": msgspec.to_builtins(result.usage),
            "modelUsage": result.model_usage,
            "permission_denials": list(result.denials),
        }
        if result.origin is not None:
            fields["origin"] = result.origin
        if result.structured is not msgspec.UNSET:
            fields["structured_output"] = result.structured
        if result.subtype == "success":
            fields["result"] = result.text
        else:
            fields["errors"] = list(result.errors)
        if result.deferred is not None:
            fields["deferred_tool_use"] = msgspec.to_builtins(result.deferred)
        self.say("result", **fields)

    def refuse_prompt(self, why: str) -> None:
        """The result of a prompt that cannot be worked on."""
        self.result(Result(subtype="error_during_execution", is_error=True, reason="error", errors=(why,)))


@dataclass(eq=False)
class HookReporter:
    """An observer that turns what hooks do (on `only` these events) into messages: started, progress, response."""

    output: StreamOutput
    hooks: HookSet
    only: frozenset[str] | None = None

    def __call__(self, notice: Notice) -> None:
        """Report a notice, if its event and its kind of hook are reported."""
        if isinstance(notice, Verdict) or not spec_of(notice.hook_event).reported:
            return
        hook = next((hook for hook in self.hooks.hooks if hook.name == notice.hook), None)
        other = hook is not None and not isinstance(hook.action, Command | Http)
        if other or (self.only is not None and notice.hook_event not in self.only):
            return
        names = {"hook_id": notice.hook_id, "hook_name": notice.hook_name, "hook_event": notice.hook_event}
        if isinstance(notice, HookStarted):
            self.output.system("hook_started", **names)
            return
        said = {"stdout": notice.stdout, "stderr": notice.stderr, "output": notice.output}
        printed = (read_object(notice.stdout) or {}) if "suppress" in notice.stdout else {}
        if any(printed.get(word) is True for word in SUPPRESSING):  # it asked that what it printed is not shown
            said = {**said, "stdout": "", "output": ""}
        kind, ended = ("progress", {}) if isinstance(notice, HookProgress) else ("response", _ended(notice, hook))
        self.output.system(f"hook_{kind}", **names, **said, **ended)


def _ended(notice: HookResponse, hook: Hook | None) -> Note:
    """How it ended, in Claude Code's words: there a command that says no by its exit code is an `error`, too."""
    code = 1 if notice.outcome == "cancelled" and notice.exit_code is None else notice.exit_code
    refused = notice.outcome == "success" and code and hook is not None and isinstance(hook.action, Command)
    return {"exit_code": code, "outcome": "error" if refused else notice.outcome}


def refuse(problem: str, lines: Iterable[bytes], write: Callable[[bytes], None]) -> None:
    """A run cannot begin: answer the first request or prompt with why, since a host would only see a process end."""
    output = StreamOutput(str(uuid4()))
    output.listeners.append(lambda note: write(msgspec.json.encode(note) + b"\n"))
    for line in lines:
        asked = read_object(line) or {}
        if asked.get("type") == "control_request":
            response = {"subtype": "error", "request_id": asked.get("request_id"), "error": problem}
            return write(msgspec.json.encode({"type": "control_response", "response": response}) + b"\n")
        if asked.get("type") == "user":
            return output.refuse_prompt(problem)
    return None
