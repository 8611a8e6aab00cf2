"""What a function shows of itself: how it is called, whether it may ever wait, which events it names. Pure."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dis import opmap
from inspect import CO_COROUTINE, CO_VARARGS
from types import FunctionType, MethodType
from typing import Any, get_args, get_type_hints

import msgspec

from hookline.core.hooks.actions import Function
from hookline.errors import HookError
from hookline.events import CATALOG, Event
from hookline.events.frozen import thaw

_WRITE = "write `(event)`, `(event, ctx)` or the SDK's `(input, tool_use_id, context)`"


def function(call: Callable[..., Any]) -> Function:
    """Settle once whether `call` is async and whether it takes `(event)` or `(event, ctx)`."""
    target = call if inspect.isroutine(call) or inspect.isclass(call) else getattr(call, "__call__", call)  # noqa: B004
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (call, target)):
        raise HookError(f"hook `{name_of(call)}` is a generator; return its answer instead of yielding it")
    is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(target)
    try:
        given = _parameters(call)
    except (TypeError, ValueError):
        return Function(call, is_async, takes_context=False)
    optional = len(given.names) > 2 and (given.names[1] == "tool_use_id" or given.names[2] in _CONTEXT)
    if given.required == 3 or (given.required < 3 and optional):  # the official SDK's `(input, tool_use_id, context)`
        return Function(_sdk_callback(call), is_async, takes_context=True)
    return Function(call, is_async, _takes_context(name_of(call), given))


_CONTEXT = ("ctx", "context")


def _sdk_callback(call: Callable[..., Any]) -> Callable[..., Any]:
    """The callback as a hook: it is given the event as the mapping that the SDK hands over, a copy without nulls."""

    @functools.wraps(call)
    def ask(event: Event, ctx: Any) -> Any:
        fields = {name: getattr(event, name) for name in event.__struct_fields__ if name not in ("timestamp", "extra")}
        said = {"hook_event_name": event.event_name, **fields, **event.extra}
        given = {name: thaw(value) for name, value in said.items() if value is not None}
        return call(given, event.tool_use_id, SdkContext(ctx))

    return ask


class SdkContext(dict[str, Any]):
    """The SDK's context: a mapping with `signal`, which is set when the answer is no longer wanted.

    Its attributes are those of the hook's context.
    """

    def __init__(self, ctx: Any) -> None:
        super().__init__(signal=ctx.cancelled)
        self._ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return self["signal"] if name == "signal" else getattr(self._ctx, name)


def name_of(run: Any) -> str:
    """What a hook is called by default: its function's name, or its action's kind."""
    call = getattr(run, "func", run)
    return str(getattr(call, "__name__", None) or getattr(run, "command", None) or type(run).__name__)


class _Parameters(msgspec.Struct):
    """The positional parameters of a function: how many must be given, and what is known of the second."""

    names: tuple[str, ...]
    required: int
    variadic: bool
    annotation: Callable[[str], Any]
    keyword_only: str | None = None


def _takes_context(name: str, given: _Parameters) -> bool:
    """A second parameter gets the context unless its default is the author's own, as in `(event, name=name)`."""
    if given.required > 2:
        raise HookError(f"hook `{name}` takes {given.required} arguments; {_WRITE}")
    if not given.names and not given.variadic:
        raise HookError(f"hook `{name}` takes no argument; {_WRITE}")
    if given.keyword_only is not None:
        raise HookError(f"hook `{name}` needs `{given.keyword_only}=`, which is never passed; {_WRITE}")
    if given.names[:1] == ("self",):
        raise HookError(f"hook `{name}` is a method without its object; pass `thing.{name}` of an object")
    if len(given.names) < 2:
        return given.variadic
    if given.required == 2 or given.names[1] in _CONTEXT:
        return True
    hint = given.annotation(given.names[1])
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", None) or str(hint)
    return re.search(r"\bContext\b", text) is not None


def _parameters(call: Callable[..., Any]) -> _Parameters:
    own = call.__func__ if type(call) is MethodType else call
    bound = own is not call
    if type(own) is FunctionType and not hasattr(own, "__wrapped__") and own.__code__.co_argcount >= bound:
        return _parameters_of_code(own, bound=bound)  # a signature would fill its annotations in
    parameters = inspect.signature(call).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    needed = next((p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty), None)
    return _Parameters(
        tuple(p.name for p in positional),
        len(required),
        any(p.kind is p.VAR_POSITIONAL for p in parameters),
        lambda name: next(p.annotation for p in positional if p.name == name),
        needed,
    )


def _parameters_of_code(call: FunctionType, *, bound: bool) -> _Parameters:
    code, count = call.__code__, call.__code__.co_argcount
    only = code.co_varnames[count : count + code.co_kwonlyargcount]
    defaults = call.__kwdefaults__ or {}
    return _Parameters(
        code.co_varnames[bound:count],
        max(0, count - len(call.__defaults__ or ()) - bound),
        bool(code.co_flags & CO_VARARGS),
        lambda name: call.__annotations__.get(name),  # noqa: PLW0108 - only when asked: looking makes a dict that stays
        next((name for name in only if name not in defaults), None),
    )


_WAITS = frozenset(opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM", "SEND") if name in opmap)


def can_wait(call: Callable[..., Any]) -> bool:
    """Whether an async function may ever have to wait: its code has an `await` (or is not there to be looked at)."""
    call = call if inspect.isroutine(call) else getattr(type(call), "__call__", call)  # noqa: B004
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    if code is None or not code.co_flags & CO_COROUTINE:
        return True
    return not _WAITS.isdisjoint(code.co_code[::2])


def annotated_events(call: Any) -> tuple[type[Event], ...]:
    """The events that a function's first parameter is annotated with: `event: PreToolUse | PostToolUse`."""
    found = tuple(dict.fromkeys(cls for kind in _kinds(_first_annotation(call)) for cls in _events_of(kind)))
    if not found:
        where = f"hook `{name_of(call)}` names no event"
        raise HookError(f"{where}; write `@hooks.on(PreToolUse)`, or annotate its parameter: `event: PreToolUse`")
    return found


def _first_annotation(call: Any) -> Any:
    call = call if inspect.isroutine(call) else getattr(type(call), "__call__", call)  # noqa: B004
    names = [name for name in inspect.signature(call).parameters if name != "self"] if callable(call) else []
    try:
        hints = get_type_hints(call)
    except (NameError, TypeError, AttributeError, SyntaxError):  # a name that is only there for the type checker
        hints = getattr(call, "__annotations__", {})
    return hints.get(names[0]) if names else None


def _kinds(annotation: Any) -> Iterator[str]:
    """The class names in an annotation, unions and texts included."""
    if isinstance(annotation, str):
        yield from re.findall(r"\w+", annotation)
    elif isinstance(annotation, type):
        yield annotation.__name__
    else:
        for part in get_args(annotation):
            yield from _kinds(part)


def _events_of(kind: str) -> Iterator[type[Event]]:
    """The events of a class's name, ours or the SDK's; a base such as `ToolEvent` stands for all of its kind."""
    kind = kind.removesuffix("HookInput")
    for spec in CATALOG.values():
        bases = spec.cls.__mro__
        if kind in [base.__name__ for base in bases[: bases.index(Event) + 1]]:
            yield spec.cls
