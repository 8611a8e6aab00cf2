"""For your own tests: events in one word, hooks fired in one line, failures that explain themselves.

>>> from hookline import deny
>>> from hookline.testing import assert_denied, assert_passed, bash, fire_sync
>>> def no_rm(event):
...     return deny("never") if event.tool_input["command"].startswith("rm ") else None
>>> assert_denied(fire_sync(no_rm, bash("rm -rf /")), by="no_rm", reason="never")
>>> assert_passed(fire_sync(no_rm, bash("ls")))

In an `async def` test write `await fire(no_rm, bash("ls"))`. The pytest plugin, which comes with the package, has the
fixtures `hooks` (a fresh set, closed after the test), `fire` and `recorder`.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, Unpack, get_args

from hookline.api import Hooks
from hookline.core.engine import Answer, Context, HookResponse, HookStarted, Notice, Outcome, Runner, Verdict
from hookline.core.engine.loop_thread import run_sync
from hookline.core.hooks.declare import Options, is_hook_object
from hookline.core.hooks.hook import Action, Function, Hook
from hookline.errors import HookError, HooklineError
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
from hookline.events.kinds import ToolEvent
from hookline.replies import NOTHING, Decision, Reply
from hookline.runners.function import FunctionRunner

__all__ = [
    "FakeClock", "FakeRunner", "Recorder", "announced", "asking", "assert_allowed", "assert_asked", "assert_context",
    "assert_denied", "assert_kept_going", "assert_passed", "assert_rewrote", "bash", "edit", "failed", "fire",
    "fire_sync", "make_outcome", "mcp", "prompt", "read", "session_end", "session_start", "stop", "subagent_start",
    "subagent_stop", "succeeded", "tool", "write",
]  # fmt: skip

__tracebackhide__ = True  # a failed assertion is shown where the test makes it
E = TypeVar("E", bound=Event)
T = TypeVar("T", bound=ToolEvent)


async def fire(what: Any, event: Event, **options: Unpack[Options]) -> Verdict:
    """Send `event` through a set of hooks, or through a hook that is not registered anywhere yet.

    `what` is a `Hooks`, a function or an action such as `Command(…)`, or whatever `hooks.add` takes. A function or an
    action is asked about every event of the given kind, unless `options` (those of `hooks.on`) say otherwise.
    """
    if isinstance(what, Hooks):
        return await what.fire(event)
    async with Hooks() as hooks:
        register(hooks, what, event, **options)
        return await hooks.fire(event)


def register(hooks: Hooks, what: Any, event: Event, **options: Unpack[Options]) -> None:
    """Add whatever a test calls a hook; what does not name its events gets those of `event`'s kind."""
    named = inspect.isclass(what) or hasattr(what, "hooks") or is_hook_object(what)
    if isinstance(what, get_args(Action)) or (callable(what) and not named):  # only something to run
        hooks.add(type(event), what, **options)
    elif options:
        raise HookError(f"{', '.join(options)}: a hook that names its own events has its own options; set them there")
    else:
        hooks.add(what)


def fire_sync(what: Any, event: Event, **options: Unpack[Options]) -> Verdict:
    """As `fire`, for tests that are not `async`: on the loop of `Hooks.fire_sync`, which stays from call to call."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise HooklineError("`fire_sync` was called where an event loop runs; write `await fire(…)` instead")
    return run_sync(fire(what, event, **options))


# -- assert what came of it: a failure says what was expected, then the whole verdict ---------------------------------

Text = str | re.Pattern[str]
"""A piece of the text, or a regular expression to be found in it."""


def assert_denied(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """What the event announced must not happen; `by` names the hook that said so, `reason` is a part of why."""
    _check(verdict, verdict.blocked, "to be denied", by, reason)


def assert_allowed(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """Some hook said yes, and none said anything stricter."""
    _check(verdict, verdict.decision is Decision.ALLOW and not verdict.blocked, "to be allowed", by, reason)


def assert_asked(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """A person has to say yes."""
    _check(verdict, verdict.decision is Decision.ASK and not verdict.blocked, "that a person is asked", by, reason)


def assert_passed(verdict: Verdict) -> None:
    """No hook decided, stopped the agent, sent it back to work or failed."""
    quiet = verdict.decision is Decision.PASS and not (verdict.stop or verdict.keep_going or verdict.failures)
    _check(verdict, quiet, "that no hook objects or fails")


def assert_kept_going(verdict: Verdict, *, by: str | None = None, reason: Text | None = None) -> None:
    """The agent is sent back to work."""
    _check(verdict, verdict.keep_going, "that the agent keeps going", by, reason)


def assert_rewrote(verdict: Verdict, input: Mapping[str, Any]) -> None:
    """The tool is called with exactly this input instead."""
    _check(verdict, verdict.reply.input == input, f"the input to become {dict(input)}")


def assert_context(verdict: Verdict, text: Text) -> None:
    """The model is told something that contains `text`."""
    _check(verdict, any(_has(said, text) for said in verdict.context), f"that the model is told {_shown(text)}")


def _check(
    verdict: Verdict, holds: bool, expected: str, by: str | None = None, reason: Text | None = None  # noqa: FBT001 - a condition is what it checks
) -> None:  # fmt: skip
    deciders = (verdict.decided_by or "no hook").split(", ")
    for is_so, wanted in (
        (holds, expected),
        (by is None or by in deciders, f"`{by}` to decide, but it was {', '.join(deciders)}"),
        (reason is None or _has(verdict.reason, reason), f"the reason to contain {_shown(reason)}"),
    ):
        if not is_so:
            raise AssertionError(f"expected {wanted}\n\n{verdict.explain()}")


def _has(said: str, text: Text) -> bool:
    return text in said if isinstance(text, str) else text.search(said) is not None


def _shown(text: Text | None) -> str:
    return f"`{text.pattern}`" if isinstance(text, re.Pattern) else f"`{text}`"


# -- events in one word; everything else has a value that a real session would have, and can be given by name --------


def announced(event: type[Event] | str, **fields: Any) -> Event:
    """Any event, by its class or its name, in the session all these factories share."""
    return _made(spec_of(event).cls, fields)


def _made(cls: type[E], fields: dict[str, Any], **given: Any) -> E:
    """An event with the session's fields, then what the factory knows, then what the test says."""
    session = {"session_id": "test-session", "transcript_path": "/project/.transcripts/test-session.jsonl",
               "cwd": "/project", "permission_mode": "default"}  # fmt: skip
    call = {"tool_use_id": "toolu_test"} if "tool_use_id" in cls.__struct_fields__ else {}
    return cls(**{**session, **call, **given, **fields})


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
    return tool(f"mcp__{server}__{name}", input, **{"mcp_server": {"name": server, "source": "project"}, **fields})


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


class FakeClock:
    """A clock that goes only when told: `Hooks(clock=FakeClock())`, then `clock.advance(3)`.

    With `step` each look at it takes that long, so that every hook takes the same known time.
    """

    def __init__(self, start: float = 0.0, step: float = 0.0) -> None:
        self.now: float = start
        self.step = step

    def __call__(self) -> float:
        now = self.now
        self.now += self.step
        return now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class Recorder:
    """Remembers everything that a set of hooks did: `hooks.observe(recorder, inline=True)`."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def __call__(self, notice: Notice) -> None:
        self.notices.append(notice)

    @property
    def started(self) -> list[str]:
        """The names of the hooks that began to run, in order."""
        return [notice.hook for notice in self.notices if isinstance(notice, HookStarted)]

    @property
    def responses(self) -> list[HookResponse]:
        """How each run ended."""
        return [notice for notice in self.notices if isinstance(notice, HookResponse)]

    @property
    def verdicts(self) -> list[Verdict]:
        """What came of each event."""
        return [notice for notice in self.notices if isinstance(notice, Verdict)]

    @property
    def events(self) -> list[str]:
        """The names of the events that were fired, in order."""
        return [verdict.event.event_name for verdict in self.verdicts]


Script = Answer | BaseException | Callable[[Event], Answer]


class FakeRunner:
    """Answers for commands, HTTP endpoints, prompts and MCP tools without running any: `Hooks(runners=FakeRunner(…))`.

    `answers` has one answer per hook name: what the hook would reply, an exception it would raise, or a function of the
    event. Hooks without one get `default`. `calls` remembers who was asked what. Python functions still run.
    """

    def __init__(self, answers: Mapping[str, Script] | None = None, default: Script = None) -> None:
        self.answers: dict[str, Script] = dict(answers or {})
        self.default = default
        self.calls: list[tuple[str, Event]] = []

    def __call__(self, kind: type[Any], services: object) -> Runner:
        return FunctionRunner() if kind is Function else self

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Answer:
        """Answer as scripted."""
        self.calls.append((hook.name, event))
        answer = self.answers.get(hook.name, self.default)
        if isinstance(answer, BaseException):
            raise answer
        return answer(event) if callable(answer) else answer


def make_outcome(reply: Reply = NOTHING, hook: str = "hook", **fields: Any) -> Outcome:
    """The outcome of a hook that answered, for tests of what is made of outcomes."""
    return Outcome(hook=hook, reply=reply, **fields)
