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

    hooks: Fires
    function: Callable[..., Any]
    name: str
    signature: inspect.Signature
    is_async: bool
    exclude: Collection[str] = ()
    on_deny: OnDeny = "raise"
    approve: Approve | None = None
    on_verdict: Callable[[Verdict], Any] | None = None
    session_id: str = ""
    cwd: str | None = None


class _Call:
    """One call of a tool: what is announced, and with what arguments it is made in the end."""

    def __init__(self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._tool = tool
        self._bound = tool.signature.bind(*args, **kwargs)
        self._bound.apply_defaults()
        self._variadic = {p.name for p in tool.signature.parameters.values() if p.kind is p.VAR_KEYWORD}
        self._input = self._visible()
        self._id = f"toolu_{uuid.uuid4().hex}"

    async def make(self) -> Any:
        """The tool's result; of a plain function's call, nothing is waited for."""
        denied = await self._denial()
        if denied is None:
            started = perf_counter()
            try:
                result = self._tool.function(*self._bound.args, **self._bound.kwargs)
                result = await result if self._tool.is_async else result
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                await self._fire(PostToolUseFailure, error=text, duration_ms=_ms(started))
                raise
            verdict = await self._fire(PostToolUse, tool_response=result, duration_ms=_ms(started))
            if not (verdict.blocked or verdict.stop):
                return result if verdict.reply.output is msgspec.UNSET else verdict.reply.output
            denied = self._denied(verdict)
        if self._tool.on_deny == "return":
            return denied.reason
        raise denied

    async def _denial(self) -> ToolDenied | None:
        """Why the call must not be made; where a hook asks, PermissionRequest hooks decide, else `approve`, else no."""
        verdict = await self._fire(PreToolUse)
        denied = self._heed(verdict)
        if denied is not None or verdict.decision not in (Decision.ASK, Decision.DEFER):
            return denied
        no_approver = "this call needs an approval, and there is no one to ask here; pass approve= to `wrap_tool`"
        unapproved = self._denied(verdict, verdict.reason or no_approver)
        if verdict.decision is Decision.DEFER:
            return unapproved
        answer = await self._fire(PermissionRequest)
        denied = self._heed(answer)
        if denied is not None or answer.decision is Decision.ALLOW:
            return denied
        approved = self._tool.approve(verdict) if self._tool.approve is not None else None
        if inspect.isawaitable(approved) and self._tool.is_async:
            approved = await approved
        elif inspect.iscoroutine(approved):
            approved.close()
            raise HookError(f"`{self._tool.name}` is a plain function, so approve= must be one too")
        return None if approved is True else unapproved

    def _heed(self, verdict: Verdict) -> ToolDenied | None:
        """Why a verdict denies the call; else the call has the input that it wants."""
        if verdict.blocked:
            return self._denied(verdict)
        try:
            if verdict.reply.input is not None:
                self._rewrite(verdict.reply.input)
        except TypeError as error:
            reason = f"a hook rewrote the input of `{self._tool.name}` to what it does not take: {error}"
            denied = self._denied(verdict, reason)
            denied.__cause__ = error
            return denied
        return None

    def _denied(self, verdict: Verdict, reason: str = "") -> ToolDenied:
        return ToolDenied(self._tool.name, reason or verdict.reason, verdict)

    async def _fire(self, cls: Callable[..., Event], **fields: Any) -> Verdict:
        """The verdict on an event about this call, with the input as it is now, once its observers know of it."""
        tool = self._tool
        if cls is not PermissionRequest:
            fields["tool_use_id"] = self._id
        event = cls(
            session_id=tool.session_id, cwd=tool.cwd or str(Path.cwd()), tool_name=tool.name, tool_input=self._input,
            **fields,
        )  # fmt: skip
        verdict = await tool.hooks.fire(event) if tool.is_async else tool.hooks.fire_sync(event)
        if tool.on_verdict is not None:
            tool.on_verdict(verdict)
        return verdict

    def _visible(self) -> dict[str, Any]:
        """The arguments that hooks see, by name; `**options` are arguments like all others."""
        seen: dict[str, Any] = {}
        for name, value in self._bound.arguments.items():
            if name in self._variadic:
                seen.update(value)
            elif name not in self._tool.exclude:
                seen[name] = list(value) if isinstance(value, tuple) else value
        return seen

    def _rewrite(self, given: Mapping[str, Any]) -> None:
        """Make the call with other arguments; those that hooks do not see stay as they are."""
        self._input = dict(given)
        rest = dict(given)
        hidden = {name: value for name, value in self._bound.arguments.items() if name in self._tool.exclude}
        bound = inspect.BoundArguments(self._tool.signature, {})
        for name, parameter in self._tool.signature.parameters.items():
            if name in hidden:
                bound.arguments[name] = hidden[name]
            elif name in self._variadic:
                bound.arguments[name], rest = rest, {}
            elif name in rest:
                value = rest.pop(name)
                bound.arguments[name] = tuple(value) if parameter.kind is parameter.VAR_POSITIONAL else value
        if rest:
            raise TypeError(f"it has no parameter `{next(iter(rest))}`")
        self._tool.signature.bind(*bound.args, **bound.kwargs)
        self._bound = bound


def _ms(started: float) -> float:
    return (perf_counter() - started) * 1000


def wrap_tool(hooks: Fires, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function under its own name and signature, with hooks around every call."""
    if not callable(function):
        raise HookError(f"wrap_tool takes a function, got `{type(function).__name__}`")
    name = options.pop("name", None) or getattr(function, "__name__", None) or type(function).__name__
    called = getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    signature = inspect.signature(function)
    tool = Tool(hooks=hooks, function=function, name=name, signature=signature, is_async=is_async, **options)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise HookError(f"`{name}` is a generator; wrap_tool takes a function that returns its result")
    if tool.on_deny not in ("raise", "return"):
        raise HookError(f"on_deny must be `raise` or `return`, got `{tool.on_deny}`")

    async def call_later(*args: Any, **kwargs: Any) -> Any:
        return await _Call(tool, args, kwargs).make()

    def call_now(*args: Any, **kwargs: Any) -> Any:
        try:
            _Call(tool, args, kwargs).make().send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a plain function has nothing to wait for")  # pragma: no cover - `make` awaits nothing

    call_tool: Callable[..., Any] = call_later if is_async else call_now
    functools.update_wrapper(call_tool, function)
    call_tool.__name__ = call_tool.__name__ if hasattr(function, "__name__") else name
    call_tool.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` looks at first
    return call_tool
