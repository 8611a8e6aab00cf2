"""What every adapter is made of: a run of an agent, whose steps ask hooks and say what to do.

The steps wait for the hooks alone, and not even for these where an adapter asks with `SyncHookClient`: so the same
steps serve frameworks that call their extensions with `await` and those that do not.
"""

import dataclasses
import logging
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import Any, Self, TypeVar
from uuid import uuid4

import msgspec

from hookline import events
from hookline.core.engine import Verdict
from hookline.core.engine.composition import OnAsk, Resolution
from hookline.core.engine.engine import Fires, ask_people, has_no_listeners
from hookline.core.engine.loop_thread import run_sync
from hookline.errors import RunStopped
from hookline.events.base import freeze, thaw
from hookline.replies import NOTHING, Decision, Reply, deny

T = TypeVar("T")
log: logging.Logger = logging.getLogger("hookline.adapters")
UNSET = msgspec.UNSET
_PLAIN = frozenset((str, int, float, bool, type(None)))
_NO_RUNS: Mapping[int, "AgentRun | None"] = {}  # as a dict, which is quickest to copy
_current: ContextVar[Mapping[int, "AgentRun | None"]] = ContextVar("hookline_runs", default=_NO_RUNS)
"""The runs whose tools are being called here: an agent with several sets of hooks has one for each."""


class HookClient:
    """A set of hooks as one adapter sees it: it never raises where a gate has to be closed."""

    def __init__(self, hooks: Fires, on_ask: OnAsk | None = None) -> None:
        self.hooks = hooks
        self.on_ask = on_ask

    def new_run(self, *, session_id: str | None = None, agent: str | None = None) -> "AgentRun":
        """A run that starts here and now: a subagent's if a tool of another run is being called."""
        return AgentRun(self, session_id=session_id, agent=agent, parent=current_run(self.hooks))

    async def fire(self, event: events.Event) -> Verdict:
        """The verdict on one event; a gate whose hooks cannot be asked is closed."""
        try:
            return await self._verdict(event)
        except (Exception, SystemExit) as problem:
            log.exception("hooks on %s could not be asked", event.event_name)
            why = f"hooks could not be asked: {type(problem).__name__}: {problem}; {event.event_name} fails closed"
            return Verdict(event, deny(why) if events.spec_of(event).gate else NOTHING)

    def _verdict(self, event: events.Event) -> Coroutine[Any, Any, Verdict]:
        return self.hooks.fire(event)

    async def ask(self, verdict: Verdict) -> Resolution:
        """The answer to a verdict of `ask`; `None` if there is no one to ask."""
        try:
            return await ask_people(self.hooks, verdict, self.on_ask)
        except (Exception, SystemExit) as problem:
            log.exception("on_ask failed")
            return deny(f"on_ask failed: {type(problem).__name__}: {problem}")


class SyncHookClient(HookClient):
    """The same for a caller that cannot await: nothing here waits, and so no step that asks this way does."""

    async def _verdict(self, event: events.Event) -> Verdict:
        return self.hooks.fire_sync(event)

    async def ask(self, verdict: Verdict) -> Resolution:
        return run_sync(super().ask(verdict))


def done(step: Coroutine[Any, Any, T]) -> T:
    """The answer of a step that asks a `SyncHookClient`."""
    try:
        step.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a step that waits for nothing waited")


def plain(value: Any) -> Any:
    """The value as JSON has it: models and dataclasses become objects, what has no JSON form becomes its text."""
    if type(value) is dict:  # a call's arguments: what is common comes first
        return {str(key): item if type(item) in _PLAIN else plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return plain(dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value)


def text_of(value: Any) -> str:
    """The value as a model would read it: texts as they are, the texts of content blocks, else JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value:
        texts = [block if isinstance(block, str) else field_of(block, "text") for block in value]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(texts)
    return msgspec.json.encode(plain(value)).decode()


def field_of(value: Any, name: str) -> Any:
    """A field of an object, or of a mapping."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


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
        return "\n\n".join((text_of(self.output if self.replaces else own), *self.notes))


class AgentRun:
    """One run of one agent: who it is, what its model has yet to be told, and whether it has to end.

    A run that starts inside a tool call of another run is a subagent: it shares the other's session.
    """

    def __init__(
        self, client: HookClient, *, session_id: str | None = None, agent: str | None = None,
        parent: "AgentRun | None" = None,
    ) -> None:  # fmt: skip
        self.client, self.hooks = client, client.hooks
        self.parent = parent
        self.session_id: str = parent.session_id if parent else session_id or str(uuid4())
        self.cwd: str = parent.cwd if parent else str(Path.cwd())
        self.agent_id: str | None = uuid4().hex[:16] if parent else None
        self.agent_type = agent
        self.prompt_id: str = parent.prompt_id if parent else str(uuid4())
        self.prompt = ""  # as hooks judged it
        self.notes: list[str] = []
        self.stopped: str | None = None
        self.refused = False
        self.continued = 0
        self.open = False
        self.finished = False  # whether hooks have heard that the agent wants to stop
        self.agents: dict[str, AgentRun] = {}  # this one, and those that it hands over to, by name

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that all events of this run carry."""
        return {
            "session_id": self.session_id, "cwd": self.cwd, "prompt_id": self.prompt_id,
            "agent_id": self.agent_id, "agent_type": self.agent_type,
        }  # fmt: skip

    def pop_notes(self) -> str:
        """What hooks want the model to know, once."""
        notes, self.notes = self.notes, []
        return "\n\n".join(notes)

    def enter(self) -> "AgentRun | None":
        """From here on, whatever starts belongs to this run; returns the run it would have belonged to."""
        around = _current.get()
        _current.set({**around, id(self.hooks): self})
        return around.get(id(self.hooks))

    def leave(self, outer: "AgentRun | None") -> None:
        """From here on, whatever starts belongs to the `outer` run again; other sets of hooks may come and go."""
        _current.set({**_current.get(), id(self.hooks): outer})

    async def fire(self, kind: type[events.Event], **fields: Any) -> Verdict:
        """The verdict on an event of this run; the first hook that ends the run says why."""
        return _heeded(self, await self.client.fire(kind(**self.identity, **fields)))

    async def begin(self, prompt: Any, *, resumed: bool = False, model: str | None = None) -> bool:
        """Whether the run may start and its prompt reach the model.

        If not, `refused` is set and `stopped` is what the user is told instead; what hooks add is in `notes`.
        Of a run that has begun, a prompt that came in place of the first is judged.
        """
        has_begun, self.open, self.prompt = self.open, True, text_of(prompt)
        if self.parent is not None:
            return await self._admitted("The subagent", events.SubagentStart)
        source = "resume" if resumed else "startup"
        if not has_begun and not await self._admitted("The session", events.SessionStart, source=source, model=model):
            return False
        return await self._admitted("The prompt", events.UserPromptSubmit, prompt=self.prompt)

    async def _admitted(self, what: str, kind: type[events.Event], **fields: Any) -> bool:
        verdict = await self.fire(kind, **fields)
        if verdict.blocked:
            self.refused = True
            self.stopped = f"{what} was refused: {verdict.reason or 'a hook denied it'}"
        self.notes += verdict.context
        return self.stopped is None

    async def finish(self, message: str | None) -> str | None:
        """The agent thinks it is done; returns what to say to it if it has to keep going."""
        self.finished = True
        if self.stopped is not None:
            return None
        kind = events.Stop if self.parent is None else events.SubagentStop
        verdict = await self.fire(kind, stop_hook_active=self.continued > 0, last_assistant_message=message)
        feedback = [*verdict.context]
        if verdict.keep_going:
            feedback += verdict.reply.keep_going_reasons or ("A hook asked you to keep going.",)
        if verdict.stop or not feedback:
            return None
        self.finished = False
        self.continued += 1
        return "\n\n".join(feedback)

    async def end(self, error: BaseException | None = None) -> None:
        """The run is over; a second call says nothing."""
        if not self.open:
            return
        self.open = False
        if error is not None:
            details = f"{type(error).__name__}: {error}"
            await self.client.fire(events.StopFailure(**self.identity, error_details=details))
        if self.parent is None:
            await self.client.fire(events.SessionEnd(**self.identity, reason="other"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """The run ends with the block; that a hook stopped it is not an error."""
        await self.end(None if isinstance(error, RunStopped) and self.stopped is not None else error)

    def end_now(self, error: BaseException | None = None) -> None:
        """`end`, where nothing can be awaited."""
        self.client = SyncHookClient(self.hooks)
        done(self.end(error))

    async def judge(self, name: str, arguments: Any, id: str = "") -> "ToolCall":
        """Whether this tool may be called, and with which arguments; a run that a hook stopped calls none any more."""
        given = freeze(plain(arguments))
        self.finished = False
        if self.stopped is not None:
            return ToolCall(self, name, given, id, refused=f"`{name}` was denied: {self.stopped}")
        event = events.PreToolUse(  # for every call, so without the detour over `identity`
            session_id=self.session_id, cwd=self.cwd, prompt_id=self.prompt_id, agent_id=self.agent_id,
            agent_type=self.agent_type, tool_name=name, tool_input=given, tool_use_id=id,
        )  # fmt: skip
        verdict = await self.client.fire(event)
        if verdict.reply is NOTHING:  # as most often
            return ToolCall(self, name, given, id, started=perf_counter())
        refused, changed = None, _heeded(self, verdict).reply.input
        if verdict.blocked or verdict.decision is Decision.DEFER:
            refused = f"`{name}` was denied: {verdict.reason or 'a hook denied it'}"
        elif verdict.decision is Decision.ASK:
            refused, changed = await self._approved(name, verdict)
        if refused is not None:
            return ToolCall(self, name, given, id, refused="\n\n".join((refused, *verdict.context)))
        return ToolCall(
            self, name, given if changed is None else thaw(changed), id, rewritten=changed is not None,
            notes=verdict.context, started=perf_counter(),
        )  # fmt: skip

    async def _approved(self, name: str, verdict: Verdict) -> tuple[str | None, dict[str, Any] | None]:
        """Why a call is not approved, if so, and its new input: PermissionRequest hooks decide, else `on_ask`."""
        permission = await self.fire(events.PermissionRequest, tool_name=name, tool_input=verdict.input or {})
        is_open = permission.decision is Decision.PASS and not permission.stop
        answer = await self.client.ask(verdict) if is_open else permission.reply
        why, changed = verdict.reason or "a hook wants an approval", verdict.reply.input
        if answer is None:
            return f"`{name}` needs approval, and there was no one to ask: {why}", None
        if isinstance(answer, Reply):
            approved, why = answer.decision is Decision.ALLOW and not answer.stop, answer.reason or why
            changed = changed if answer.input is None else answer.input
        else:
            approved = answer is True
        return None if approved else f"`{name}` was not approved: {why}", changed


def _heeded(run: AgentRun, verdict: Verdict) -> Verdict:
    if verdict.stop and run.stopped is None:
        run.stopped = verdict.stop_reason or "a hook stopped the agent"
    return verdict


class ToolCall(msgspec.Struct):
    """A call that hooks have judged.

    `refused` is what the model reads instead of a result; without it, the tool runs with `arguments`, which are a copy
    that can be changed only if they were `rewritten`.
    """

    run: AgentRun
    name: str
    arguments: dict[str, Any]
    id: str = ""
    refused: str | None = None
    rewritten: bool = False
    notes: tuple[str, ...] = ()
    started: float = 0.0

    async def succeeded(self, result: Any, output_of: Callable[[Any], Any] = plain) -> CallResult:
        """The tool returned; hooks may replace that, or add to it. `output_of` reads the framework's result."""
        if has_no_listeners(self.run.hooks, events.PostToolUse):
            return CallResult(notes=self.notes)
        return await self._told(events.PostToolUse, tool_response=plain(output_of(result)))

    async def failed(self, error: BaseException | str) -> CallResult:
        """The tool raised, or answered with an error; hooks may add to what the model reads."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return await self._told(events.PostToolUseFailure, error=text, is_interrupt=False)

    async def raised(self, error: BaseException) -> None:
        """The same where the framework itself tells the model: what hooks add goes into the next request."""
        self.run.notes += (await self.failed(error)).notes

    async def _told(self, kind: type[events.Event], **fields: Any) -> CallResult:
        """What the model is told beside a result: objections first, then context."""
        call = {"tool_name": self.name, "tool_input": self.arguments, "tool_use_id": self.id}
        verdict = await self.run.fire(kind, **call, **fields, duration_ms=(perf_counter() - self.started) * 1000)
        objections = verdict.reply.reasons if verdict.decision is Decision.DENY else ()
        return CallResult(output=verdict.reply.output, notes=(*self.notes, *objections, *verdict.context))

    # -- in a loop of one's own: `hookline.frameworks.loops` -------------------------------------------------------

    async def afinish(self, output: Any) -> str:
        """What the model is told of what the tool returned."""
        return (await self.succeeded(output)).text(output)

    async def afail(self, error: BaseException | str) -> str:
        """What the model is told of what the tool raised."""
        return (await self.failed(error)).text(str(error))

    def finish(self, output: Any) -> str:
        """`afinish`, for a loop that cannot await."""
        return done(self.afinish(output))

    def fail(self, error: BaseException | str) -> str:
        """`afail`, for a loop that cannot await."""
        return done(self.afail(error))


class PendingCalls:
    """The calls that were let through and have not returned, where a framework says before and after, not around."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[object, ToolCall, AgentRun | None]] = {}

    def enter(self, use: object, call: ToolCall) -> None:
        """A call begins; `use` is the object that the framework shows again when it is over: a model may repeat ids."""
        self._found[id(use)] = (use, call, call.run.enter())

    def leave(self, use: object) -> ToolCall | None:
        """The call that is over; none if it was refused."""
        _, call, outer = self._found.pop(id(use), (None, None, None))
        if call is not None:
            call.run.leave(outer)
        return call

    def forget(self, runs: Collection[AgentRun]) -> None:
        """The calls of these runs never returned: they were cancelled, or wait for an approval."""
        self._found = {key: found for key, found in self._found.items() if found[1].run not in runs}


def run_of(run: AgentRun, agent: str) -> AgentRun:
    """The run of an agent that this one handed over to; itself if the agent has none of its own."""
    return run.agents.get(agent, run)


def current_run(hooks: object) -> AgentRun | None:
    """The run whose tool is being called here, in whatever framework, as these hooks know it."""
    return _current.get().get(id(hooks))


@contextmanager
def inside(run: AgentRun) -> Iterator[None]:
    """Whatever starts in here belongs to `run`."""
    around = _current.get()
    run.enter()
    try:
        yield
    finally:
        _current.set(around)
