"""A Python function as a tool that hooks govern: asked about before it runs, told about afterwards."""

from __future__ import annotations

import functools
import inspect
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import msgspec

from hookline.core.engine.engine import Fires
from hookline.core.engine.verdict import Verdict
from hookline.errors import HookError, ToolDenied
from hookline.events import Event, PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse
from hookline.replies import Decision

OnDeny = Literal["raise", "return"]
Approve = Callable[[Verdict], bool | Awaitable[bool]]
"""What can say yes to a call that a hook wants a person to be asked about."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that is about to be wrapped, and how its calls are announced."""

    function: Callable[..., Any]
    name: str
    signature: inspect.Signature
    exclude: Collection[str] = ()
    on_deny: OnDeny = "raise"
    approve: Approve | None = None
    on_verdict: Callable[[Verdict], Any] | None = None
    session_id: str = ""
    cwd: str | None = None


_Take = Callable[["_Call", Any], Awaitable[Any]]


class _Call:
    """One call of a tool: what is announced, and with what arguments it is made in the end."""

    def __init__(self, tool: Tool, take: _Take, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tool = tool
        self._take = take
        self.bound = tool.signature.bind(*args, **kwargs)
        self.bound.apply_defaults()
        self._variadic = {p.name for p in tool.signature.parameters.values() if p.kind is p.VAR_KEYWORD}
        self.input = self._visible()
        self._id = f"toolu_{uuid.uuid4().hex}"

    def take(self, step: Any) -> Awaitable[Any]:
        """Take one step of the call."""
        return self._take(self, step)

    async def fire(self, cls: Callable[..., Event], **fields: Any) -> Verdict:
        """The verdict on an event about this call, with the input as it is now, once its observers know of it."""
        tool = self.tool
        if cls is not PermissionRequest:
            fields["tool_use_id"] = self._id
        verdict: Verdict = await self.take(cls(
            session_id=tool.session_id, cwd=tool.cwd or str(Path.cwd()), tool_name=tool.name, tool_input=self.input,
            **fields,
        ))  # fmt: skip
        if tool.on_verdict is not None:
            tool.on_verdict(verdict)
        return verdict

    def _visible(self) -> dict[str, Any]:
        """The arguments that hooks see, by name; `**options` are arguments like all others."""
        seen: dict[str, Any] = {}
        for name, value in self.bound.arguments.items():
            if name in self._variadic:
                seen.update(value)
            elif name not in self.tool.exclude:
                seen[name] = list(value) if isinstance(value, tuple) else value
        return seen

    def rewrite(self, given: Mapping[str, Any]) -> None:
        """Make the call with other arguments; those that hooks do not see stay as they are."""
        self.input = dict(given)
        rest = dict(given)
        hidden = {name: value for name, value in self.bound.arguments.items() if name in self.tool.exclude}
        bound = inspect.BoundArguments(self.tool.signature, {})
        for name, parameter in self.tool.signature.parameters.items():
            if name in hidden:
                bound.arguments[name] = hidden[name]
            elif name in self._variadic:
                bound.arguments[name], rest = rest, {}
            elif name in rest:
                value = rest.pop(name)
                bound.arguments[name] = tuple(value) if parameter.kind is parameter.VAR_POSITIONAL else value
        if rest:
            raise TypeError(f"it has no parameter `{next(iter(rest))}`")
        self.tool.signature.bind(*bound.args, **bound.kwargs)
        self.bound = bound


class _Stopped(Exception):
    """The call ends here, with what the caller is told: a `ToolDenied`."""


_NO_APPROVER = "this call needs an approval, and there is no one to ask here; pass approve= to `wrap_tool`"
_RUN = object()
"""The step of a call that calls the function; the others are events to fire, and what `approve` answered."""


async def _make(call: _Call) -> Any:
    try:
        await _before(call)
        started = perf_counter()
        try:
            result = await call.take(_RUN)
        except Exception as error:
            await call.fire(PostToolUseFailure, error=f"{type(error).__name__}: {error}", duration_ms=_ms(started))
            raise
        verdict = await call.fire(PostToolUse, tool_response=result, duration_ms=_ms(started))
        if verdict.blocked or verdict.stop:
            raise _stopped(call, verdict)
    except _Stopped as stopped:
        [denied] = stopped.args
        if call.tool.on_deny == "return":
            return denied.reason
        raise denied from stopped.__cause__
    return result if verdict.reply.output is msgspec.UNSET else verdict.reply.output


async def _before(call: _Call) -> None:
    """Ask whether the call may be made, and with what."""
    verdict = await call.fire(PreToolUse)
    if verdict.blocked:
        raise _stopped(call, verdict)
    _apply(call, verdict)
    if verdict.decision in (Decision.ASK, Decision.DEFER) and not await _approved(call, verdict):
        raise _stopped(call, verdict, verdict.reason or _NO_APPROVER)


async def _approved(call: _Call, verdict: Verdict) -> bool:
    """Hooks on PermissionRequest decide first, then what was handed in as `approve`; else the answer is no."""
    if verdict.decision is Decision.DEFER:
        return False
    answer = await call.fire(PermissionRequest)
    if answer.blocked:
        raise _stopped(call, answer)
    _apply(call, answer)
    if answer.decision is Decision.ALLOW:
        return True
    approve = call.tool.approve
    return approve is not None and await call.take(approve(verdict)) is True


def _apply(call: _Call, verdict: Verdict) -> None:
    if verdict.reply.input is None:
        return
    try:
        call.rewrite(verdict.reply.input)
    except TypeError as error:
        reason = f"a hook rewrote the input of `{call.tool.name}` to what it does not take: {error}"
        raise _stopped(call, verdict, reason) from error


def _stopped(call: _Call, verdict: Verdict, reason: str = "") -> _Stopped:
    return _Stopped(ToolDenied(call.tool.name, reason or verdict.reason, verdict))


def _ms(started: float) -> float:
    return (perf_counter() - started) * 1000


def _async(hooks: Fires, tool: Tool) -> Callable[..., Any]:
    async def take(call: _Call, step: Any) -> Any:
        if isinstance(step, Event):
            return await hooks.fire(step)
        if step is _RUN:
            return await tool.function(*call.bound.args, **call.bound.kwargs)
        return await step if inspect.isawaitable(step) else step

    async def call_tool(*args: Any, **kwargs: Any) -> Any:
        return await _make(_Call(tool, take, args, kwargs))

    return call_tool


def _sync(hooks: Fires, tool: Tool) -> Callable[..., Any]:
    async def take(call: _Call, step: Any) -> Any:  # awaits nothing
        if isinstance(step, Event):
            return hooks.fire_sync(step)
        if step is _RUN:
            return tool.function(*call.bound.args, **call.bound.kwargs)
        if inspect.iscoroutine(step):
            step.close()
            raise HookError(f"`{tool.name}` is a plain function, so approve= must be one too")
        return step

    def call_tool(*args: Any, **kwargs: Any) -> Any:
        try:
            _make(_Call(tool, take, args, kwargs)).send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a plain function has nothing to wait for")  # pragma: no cover - `take` awaits nothing

    return call_tool


def wrap_tool(hooks: Fires, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function under its own name and signature, with hooks around every call."""
    if not callable(function):
        raise HookError(f"wrap_tool takes a function, got `{type(function).__name__}`")
    name = options.pop("name", None) or getattr(function, "__name__", None) or type(function).__name__
    tool = Tool(function=function, name=name, signature=inspect.signature(function), **options)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise HookError(f"`{name}` is a generator; wrap_tool takes a function that returns its result")
    if tool.on_deny not in ("raise", "return"):
        raise HookError(f"on_deny must be `raise` or `return`, got `{tool.on_deny}`")
    called = getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    call_tool = (_async if is_async else _sync)(hooks, tool)
    functools.update_wrapper(call_tool, function)
    call_tool.__name__ = call_tool.__name__ if hasattr(function, "__name__") else name
    call_tool.__signature__ = tool.signature  # type: ignore[attr-defined]  # what `inspect` looks at first
    return call_tool
