"""What every adapter is made of: the steps of an agent's run, as events to fire and decisions to carry out.

A step is a generator: it yields an event, is sent the verdict, and returns a plain decision. Nothing in it waits or
blocks, so the same steps serve frameworks that call their extensions with `await` and those that do not.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

import msgspec

from hookline.adapters.values import plain, text_of
from hookline.engine import Verdict
from hookline.engine.fires import is_unheard
from hookline.events import (
    Event,
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
)
from hookline.replies import NOTHING, Decision, Reply

T = TypeVar("T")
UNSET = msgspec.UNSET


class Approval(msgspec.Struct, frozen=True):
    """A verdict of `ask`: somebody has to say yes."""

    verdict: Verdict


Steps: TypeAlias = Generator[Event | Approval, Any, T]
"""Yields events, is sent their verdicts; yields questions, is sent `True`, `False` or a reply."""


class AgentRun:
    """One run of one agent: who it is, what its model has yet to be told, and whether it has to end.

    A run that starts inside a tool call of another run is a subagent: it shares the other's session.
    """

    def __init__(
        self,
        hooks: object,
        *,
        session_id: str | None = None,
        agent: str | None = None,
        cwd: str | None = None,
        parent: AgentRun | None = None,
    ) -> None:
        self.hooks = hooks
        self.parent = parent
        self.session_id: str = parent.session_id if parent else session_id or str(uuid4())
        self.cwd: str = cwd or (parent.cwd if parent else str(Path.cwd()))
        self.agent_id: str | None = uuid4().hex[:16] if parent else None
        self.agent_type = agent
        self.prompt_id: str = parent.prompt_id if parent else str(uuid4())
        self.notes: list[str] = []
        self.stopped: str | None = None
        self.refused = False
        self.continued = 0
        self.open = False

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that all events of this run carry."""
        return {
            "session_id": self.session_id, "cwd": self.cwd, "prompt_id": self.prompt_id,
            "agent_id": self.agent_id, "agent_type": self.agent_type,
        }  # fmt: skip

    def take_notes(self) -> str:
        """What hooks want the model to know, once."""
        notes, self.notes = self.notes, []
        return "\n\n".join(notes)

    def stop(self, verdict: Verdict) -> None:
        """A hook ends the run: the first reason counts."""
        if verdict.stop and self.stopped is None:
            self.stopped = verdict.stop_reason or "a hook stopped the agent"


class ToolCall(msgspec.Struct):
    """A call that hooks have judged.

    `refused` is what the model reads instead of a result; without it, the tool runs with `arguments`.
    """

    name: str
    arguments: dict[str, Any]
    id: str = ""
    refused: str | None = None
    rewritten: bool = False
    notes: tuple[str, ...] = ()
    started: float = 0.0

    @property
    def ms(self) -> float:
        """Milliseconds since the call was let through."""
        return (perf_counter() - self.started) * 1000


class CallResult(msgspec.Struct, frozen=True):
    """What the model gets of a call: `output` replaces the tool's own unless it is `UNSET`; `notes` follow it."""

    output: Any = UNSET
    notes: tuple[str, ...] = ()

    @property
    def replaces(self) -> bool:
        """Whether hooks put another output in place of the tool's."""
        return self.output is not UNSET

    @property
    def changes(self) -> bool:
        """Whether the framework's own result has to be touched at all."""
        return self.replaces or bool(self.notes)

    def text(self, own: Any) -> str:
        """The result as one text, for frameworks whose results are texts."""
        body = text_of(own if self.output is UNSET else self.output)
        return "\n\n".join((body, *self.notes)) if self.notes else body


# -- the run -----------------------------------------------------------------------------------------------------

_current: ContextVar[Mapping[int, AgentRun | None]] = ContextVar("hookline_runs", default=MappingProxyType({}))
"""The runs whose tools are being called here: an agent with several sets of hooks has one for each."""


def current_run(hooks: object) -> AgentRun | None:
    """The run whose tool is being called here, in whatever framework, as these hooks know it."""
    return _current.get().get(id(hooks))


def enter(hooks: object, run: AgentRun | None) -> AgentRun | None:
    """From here on, whatever starts belongs to `run`; returns the run it would have belonged to."""
    runs = _current.get()
    _current.set({**runs, id(hooks): run})
    return runs.get(id(hooks))


class inside:  # noqa: N801 - read as a statement: `with inside(run):`
    """Whatever starts in here belongs to `run`."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._token = _current.set({**_current.get(), id(self._run.hooks): self._run})

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)


def begin(run: AgentRun, prompt: Any, *, resumed: bool = False, model: str | None = None) -> Steps[bool]:
    """Whether the run may start and its prompt reach the model.

    If not, `run.refused` is set and `run.stopped` is what the user is told instead; what hooks add is in `run.notes`.
    """
    run.open = True
    if run.parent is not None:
        return (yield from _admitted(run, SubagentStart(**run.identity), "The subagent"))
    source = "resume" if resumed else "startup"
    start = SessionStart(**run.identity, source=source, model=model)
    if not (yield from _admitted(run, start, "The session")):
        return False
    return (yield from _admitted(run, UserPromptSubmit(**run.identity, prompt=text_of(prompt)), "The prompt"))


def _admitted(run: AgentRun, event: Event, what: str) -> Steps[bool]:
    verdict: Verdict = yield event
    run.stop(verdict)
    if verdict.blocked:
        run.refused = True
        run.stopped = f"{what} was refused: {verdict.reason or 'a hook denied it'}"
    run.notes += verdict.context
    return run.stopped is None


def finish(run: AgentRun, message: str | None) -> Steps[str | None]:
    """The agent thinks it is done; returns what to say to it if it has to keep going."""
    if run.stopped is not None:
        return None
    kind = Stop if run.parent is None else SubagentStop
    verdict: Verdict = yield kind(**run.identity, stop_hook_active=run.continued > 0, last_assistant_message=message)
    run.stop(verdict)
    if verdict.stop:
        return None
    told = [*verdict.context]
    if verdict.keep_going:
        told += verdict.reply.keep_going_reasons or ("A hook asked you to keep going.",)
    if not told:
        return None
    run.continued += 1
    return "\n\n".join(told)


def end(run: AgentRun, error: BaseException | None = None) -> Steps[None]:
    """The run is over; a second call says nothing."""
    if not run.open:
        return
    run.open = False
    if error is not None:
        yield StopFailure(**run.identity, error_details=f"{type(error).__name__}: {error}")
    if run.parent is None:
        yield SessionEnd(**run.identity, reason="other")


# -- a tool call -------------------------------------------------------------------------------------------------


def judge(run: AgentRun, name: str, arguments: Mapping[str, Any], id: str = "") -> Steps[ToolCall]:
    """Whether this tool may be called, and with which arguments; a run that a hook stopped calls none any more."""
    given = plain(arguments)
    if run.stopped is not None:
        return ToolCall(name, given, id, refused=f"`{name}` was denied: {run.stopped}")
    verdict: Verdict = yield PreToolUse(**run.identity, tool_name=name, tool_input=given, tool_use_id=id)
    if verdict.reply is NOTHING:  # as most often
        return ToolCall(name, given, id, started=perf_counter())
    run.stop(verdict)
    refused = _refusal(name, verdict)
    if refused is None and verdict.decision is Decision.ASK:
        answer = yield from _asked(run, verdict)
        verdict, refused = _answered(name, verdict, answer)
    if refused is not None:
        text = "\n\n".join((refused, *verdict.context))
        return ToolCall(name, given, id, refused=text)
    rewritten = verdict.reply.input is not None
    judged = verdict.input if rewritten and verdict.input is not None else given
    return ToolCall(name, judged, id, rewritten=rewritten, notes=verdict.context, started=perf_counter())


def _asked(run: AgentRun, verdict: Verdict) -> Steps[Any]:
    """PermissionRequest hooks decide; if they leave it open, whoever can be asked does."""
    event = verdict.event
    assert isinstance(event, PreToolUse)
    request = PermissionRequest(**run.identity, tool_name=event.tool_name, tool_input=verdict.input or {})
    permission: Verdict = yield request
    run.stop(permission)
    if permission.decision is Decision.PASS and not permission.stop:
        return (yield Approval(verdict))
    return permission.reply


def _refusal(name: str, verdict: Verdict) -> str | None:
    if verdict.blocked or verdict.decision is Decision.DEFER:
        return f"`{name}` was denied: {verdict.reason or 'a hook denied it'}"
    return None


def _answered(name: str, verdict: Verdict, answer: Any) -> tuple[Verdict, str | None]:
    """What somebody said to a question: `None` means that nobody could be asked."""
    why = verdict.reason or "a hook wants somebody to say yes"
    if isinstance(answer, Reply):
        if answer.decision is Decision.ALLOW and not answer.stop:
            merged = (
                verdict.reply if answer.input is None else msgspec.structs.replace(verdict.reply, input=answer.input)
            )
            return msgspec.structs.replace(verdict, reply=merged), None
        return verdict, f"`{name}` was not approved: {answer.reason or why}"
    if answer is True:
        return verdict, None
    if answer is None:
        return verdict, f"`{name}` needs approval, and nobody could be asked: {why}"
    return verdict, f"`{name}` was not approved: {why}"


def succeeded(run: AgentRun, call: ToolCall, output: Any) -> Steps[CallResult]:
    """The tool returned; hooks may replace what it returned, or add to it."""
    if is_unheard(run.hooks, PostToolUse):
        return CallResult(notes=call.notes)
    verdict: Verdict = yield PostToolUse(
        **run.identity, tool_name=call.name, tool_input=call.arguments, tool_use_id=call.id,
        tool_response=plain(output), duration_ms=call.ms,
    )  # fmt: skip
    if verdict.reply is NOTHING:
        return CallResult(notes=call.notes)
    run.stop(verdict)
    return CallResult(output=verdict.reply.output, notes=(*call.notes, *_remarks(verdict)))


def failed(run: AgentRun, call: ToolCall, error: BaseException | str) -> Steps[CallResult]:
    """The tool raised, or answered with an error; hooks may add to what the model reads."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    verdict: Verdict = yield PostToolUseFailure(
        **run.identity, tool_name=call.name, tool_input=call.arguments, tool_use_id=call.id,
        error=text, is_interrupt=False, duration_ms=call.ms,
    )  # fmt: skip
    run.stop(verdict)
    return CallResult(notes=(*call.notes, *_remarks(verdict)))


def _remarks(verdict: Verdict) -> tuple[str, ...]:
    """What the model is told beside a result: objections first, then context."""
    objections = verdict.reply.reasons if verdict.decision is Decision.DENY else ()
    return (*objections, *verdict.context)
