"""What every adapter is made of: the steps of an agent's run, which ask hooks and say what to do.

They wait for the hooks alone, and not even for these where an adapter asks with `SyncHookClient`: so the same steps
serve frameworks that call their extensions with `await` and those that do not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import msgspec

from hookline.core.engine import Verdict
from hookline.core.engine.composition import Resolution
from hookline.core.engine.engine import has_no_listeners
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
from hookline.events.frozen import FrozenDict, freeze
from hookline.frameworks.agent_runs import AgentRun, HookClient
from hookline.replies import NOTHING, Decision, Reply

UNSET = msgspec.UNSET
_PLAIN = (str, int, float, bool, type(None))
_EXACTLY_PLAIN = frozenset(_PLAIN)


def plain(value: Any) -> Any:
    """The value as JSON has it: models and dataclasses become objects, what has no JSON form becomes its text."""
    if type(value) is dict:  # as most often
        return {
            key if type(key) is str else str(key): item if type(item) in _EXACTLY_PLAIN else plain(item)
            for key, item in value.items()
        }
    if isinstance(value, _PLAIN):
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


def plain_input(arguments: Any) -> dict[str, Any]:
    """The arguments of a call as JSON has them, as an event keeps them, unchangeable."""
    if type(arguments) is dict:
        for key, item in arguments.items():
            if type(item) not in _EXACTLY_PLAIN or type(key) is not str:
                break
        else:  # as most often
            return FrozenDict(arguments)
    return freeze(plain(arguments))


def text_of(value: Any) -> str:
    """The value as a model would read it: texts as they are, the texts of content blocks, else JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value:
        texts = [_block_text(block) for block in value]
        if all(text is not None for text in texts):
            return "\n".join(text for text in texts if text is not None)
    return msgspec.json.encode(plain(value)).decode()


def _block_text(block: Any) -> str | None:
    """The text of a content block, `{"type": "text", "text": …}` and its relatives."""
    text = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
    return text if isinstance(text, str) else block if isinstance(block, str) else None


class ToolCall(msgspec.Struct):
    """A call that hooks have judged.

    `refused` is what the model reads instead of a result; without it, the tool runs with `arguments`, which are a copy
    that can be changed only if they were `rewritten`.
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
        return self.output is not UNSET or bool(self.notes)

    def text(self, own: Any) -> str:
        """The result as one text, for frameworks whose results are texts."""
        body = text_of(own if self.output is UNSET else self.output)
        return "\n\n".join((body, *self.notes)) if self.notes else body


_AS_IT_IS = CallResult()


# -- the run -----------------------------------------------------------------------------------------------------


async def begin(
    asking: HookClient, run: AgentRun, prompt: Any, *, resumed: bool = False, model: str | None = None
) -> bool:
    """Whether the run may start and its prompt reach the model.

    If not, `run.refused` is set and `run.stopped` is what the user is told instead; what hooks add is in `run.notes`.
    Of a run that has begun, a prompt that came in place of the first is judged.
    """
    has_begun, run.open = run.open, True
    if run.parent is not None:
        return await _check_admission(asking, run, SubagentStart(**run.identity), "The subagent")
    source = "resume" if resumed else "startup"
    start = SessionStart(**run.identity, source=source, model=model)
    if not has_begun and not await _check_admission(asking, run, start, "The session"):
        return False
    return await _check_admission(asking, run, UserPromptSubmit(**run.identity, prompt=text_of(prompt)), "The prompt")


async def _check_admission(asking: HookClient, run: AgentRun, event: Event, what: str) -> bool:
    verdict = await asking.fire(event)
    run.stop(verdict)
    if verdict.blocked:
        run.refused = True
        run.stopped = f"{what} was refused: {verdict.reason or 'a hook denied it'}"
    run.notes += verdict.context
    return run.stopped is None


async def finish(asking: HookClient, run: AgentRun, message: str | None) -> str | None:
    """The agent thinks it is done; returns what to say to it if it has to keep going."""
    run.finished = True
    if run.stopped is not None:
        return None
    kind = Stop if run.parent is None else SubagentStop
    event = kind(**run.identity, stop_hook_active=run.continued > 0, last_assistant_message=message)
    verdict = await asking.fire(event)
    run.stop(verdict)
    if verdict.stop:
        return None
    feedback = [*verdict.context]
    if verdict.keep_going:
        feedback += verdict.reply.keep_going_reasons or ("A hook asked you to keep going.",)
    if not feedback:
        return None
    run.finished = False
    run.continued += 1
    return "\n\n".join(feedback)


async def end(asking: HookClient, run: AgentRun, error: BaseException | None = None) -> None:
    """The run is over; a second call says nothing."""
    if not run.open:
        return
    run.open = False
    if error is not None:
        await asking.fire(StopFailure(**run.identity, error_details=f"{type(error).__name__}: {error}"))
    if run.parent is None:
        await asking.fire(SessionEnd(**run.identity, reason="other"))


# -- a tool call -------------------------------------------------------------------------------------------------


async def judge(asking: HookClient, run: AgentRun, name: str, arguments: Any, id: str = "") -> ToolCall:
    """Whether this tool may be called, and with which arguments; a run that a hook stopped calls none any more."""
    given = plain_input(arguments)
    run.finished = False
    if run.stopped is not None:
        return ToolCall(name, given, id, refused=f"`{name}` was denied: {run.stopped}")
    event = PreToolUse(  # for every call, so in the way that is quickest
        session_id=run.session_id, cwd=run.cwd, prompt_id=run.prompt_id, agent_id=run.agent_id,
        agent_type=run.agent_type, tool_name=name, tool_input=given, tool_use_id=id,
    )  # fmt: skip
    verdict = await asking.fire(event)
    if verdict.reply is NOTHING:  # as most often
        return ToolCall(name, given, id, started=perf_counter())
    run.stop(verdict)
    refused = _refusal(name, verdict)
    if refused is None and verdict.decision is Decision.ASK:
        verdict, refused = _answered(name, verdict, await _asked(asking, run, verdict))
    if refused is not None:
        text = "\n\n".join((refused, *verdict.context))
        return ToolCall(name, given, id, refused=text)
    rewritten = verdict.reply.input is not None
    judged = verdict.input if rewritten and verdict.input is not None else given
    return ToolCall(name, judged, id, rewritten=rewritten, notes=verdict.context, started=perf_counter())


async def _asked(asking: HookClient, run: AgentRun, verdict: Verdict) -> Resolution:
    """PermissionRequest hooks decide; if they leave it open, `on_ask` does."""
    event = verdict.event
    assert isinstance(event, PreToolUse)
    request = PermissionRequest(**run.identity, tool_name=event.tool_name, tool_input=verdict.input or {})
    permission = await asking.fire(request)
    run.stop(permission)
    if permission.decision is Decision.PASS and not permission.stop:
        return await asking.ask(verdict)
    return permission.reply


def _refusal(name: str, verdict: Verdict) -> str | None:
    if verdict.blocked or verdict.decision is Decision.DEFER:
        return f"`{name}` was denied: {verdict.reason or 'a hook denied it'}"
    return None


def _answered(name: str, verdict: Verdict, answer: Resolution) -> tuple[Verdict, str | None]:
    """The answer to a question: `None` means that there was no one to ask."""
    why = verdict.reason or "a hook wants an approval"
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
        return verdict, f"`{name}` needs approval, and there was no one to ask: {why}"
    return verdict, f"`{name}` was not approved: {why}"


async def succeeded(
    asking: HookClient, run: AgentRun, call: ToolCall, result: Any, output_of: Callable[[Any], Any] = plain
) -> CallResult:
    """The tool returned; hooks may replace what it returned, or add to it. `output_of` reads the framework's result."""
    if has_no_listeners(run.hooks, PostToolUse):
        return CallResult(notes=call.notes) if call.notes else _AS_IT_IS
    event = PostToolUse(
        **run.identity, tool_name=call.name, tool_input=call.arguments, tool_use_id=call.id,
        tool_response=plain(output_of(result)), duration_ms=call.ms,
    )  # fmt: skip
    verdict = await asking.fire(event)
    run.stop(verdict)
    return CallResult(output=verdict.reply.output, notes=(*call.notes, *_remarks(verdict)))


async def failed(asking: HookClient, run: AgentRun, call: ToolCall, error: BaseException | str) -> CallResult:
    """The tool raised, or answered with an error; hooks may add to what the model reads."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    event = PostToolUseFailure(
        **run.identity, tool_name=call.name, tool_input=call.arguments, tool_use_id=call.id,
        error=text, is_interrupt=False, duration_ms=call.ms,
    )  # fmt: skip
    verdict = await asking.fire(event)
    run.stop(verdict)
    return CallResult(notes=(*call.notes, *_remarks(verdict)))


def _remarks(verdict: Verdict) -> tuple[str, ...]:
    """What the model is told beside a result: objections first, then context."""
    objections = verdict.reply.reasons if verdict.decision is Decision.DENY else ()
    return (*objections, *verdict.context)
