"""From what a user writes (a function, a class, an object) to `Hook`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dis import opmap
from functools import lru_cache
from inspect import CO_COROUTINE, CO_VARARGS
from types import FunctionType
from typing import Any, TypedDict, TypeVar, Unpack

from hookline.errors import HookError
from hookline.events import Event, spec_of
from hookline.hooks.actions import Action, Function
from hookline.hooks.condition import Rule, parse_rule
from hookline.hooks.hook import Hook, HookLike, OnFailure
from hookline.hooks.matcher import Test, parse_matcher

F = TypeVar("F", bound=Callable[..., Any])
EventLike = type[Event] | str
_MARK = "__hookline_declarations__"


class Options(TypedDict, total=False):
    """What may be said of a hook besides its events and what it runs."""

    match: str | Test | None
    when: Callable[[Any], bool] | str | None
    priority: int
    timeout: float | None
    on_failure: OnFailure | None
    background: bool
    once: bool
    rejudge: bool
    inline: bool
    name: str
    source: str
    status_message: str | None


def make_hook(events: Iterable[EventLike], run: Action | Callable[..., Any], **options: Unpack[Options]) -> Hook:
    """A hook of `events` that runs a function or another action."""
    action = function(run) if callable(run) else run
    name = options.get("name") or name_of(run)
    matcher = parse_matcher(options.get("match"))
    condition, when = _condition(options.get("when"))
    limits: dict[str, Any] = {key: value for key, value in options.items() if key not in ("name", "match", "when")}
    classes = _classes(tuple(events))
    return Hook(name=name, events=classes, action=action, matcher=matcher, condition=condition, when=when, **limits)


@lru_cache(maxsize=1024)
def _classes(events: tuple[EventLike, ...]) -> tuple[type[Event], ...]:
    """Each class once; hooks of the same events share one tuple."""
    return tuple(dict.fromkeys(spec_of(event).cls for event in events))


def _condition(when: Callable[[Any], bool] | str | None) -> tuple[Rule | None, Callable[[Any], bool] | None]:
    if isinstance(when, str):
        return (parse_rule(when) if when else None), None
    return None, when


def function(call: Callable[..., Any]) -> Function:
    """Settle once whether `call` is async and whether it takes `(event)` or `(event, ctx)`."""
    target = call if inspect.isroutine(call) or inspect.isclass(call) else getattr(call, "__call__", call)  # noqa: B004
    is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(target)
    return Function(call, is_async, _takes_context(call))


def _takes_context(call: Callable[..., Any]) -> bool:
    try:
        required, positional, variadic = _arguments(call)
    except (TypeError, ValueError):
        return False
    if required > 2:
        raise HookError(f"hook `{name_of(call)}` takes {required} arguments; write `(event)` or `(event, ctx)`")
    if not positional and not variadic:
        raise HookError(f"hook `{name_of(call)}` takes no argument; write `(event)` or `(event, ctx)`")
    return positional >= 2 or variadic


def _arguments(call: Callable[..., Any]) -> tuple[int, int, bool]:
    """How many positional arguments `call` must have and may have, and whether it takes any number of them."""
    if type(call) is FunctionType and not hasattr(call, "__wrapped__"):  # a signature would fill its annotations in
        code = call.__code__
        return code.co_argcount - len(call.__defaults__ or ()), code.co_argcount, bool(code.co_flags & CO_VARARGS)
    parameters = inspect.signature(call).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    return len(required), len(positional), any(p.kind is p.VAR_POSITIONAL for p in parameters)


_WAITS = frozenset(opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM", "SEND") if name in opmap)


def can_wait(call: Callable[..., Any]) -> bool:
    """Whether an async function may ever have to wait: its code has an `await` (or is not there to be looked at)."""
    call = call if inspect.isroutine(call) else getattr(type(call), "__call__", call)  # noqa: B004
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    if code is None or not code.co_flags & CO_COROUTINE:
        return True
    return not _WAITS.isdisjoint(code.co_code[::2])


def name_of(run: Any) -> str:
    """What a hook is called when nobody says: its function's name, or its action's kind."""
    call = getattr(run, "func", run)
    return str(getattr(call, "__name__", None) or getattr(run, "command", None) or type(run).__name__)


def hook(*events: EventLike, **options: Unpack[Options]) -> Callable[[F], F]:
    """Mark a method as a hook; `hooks.add(object)` registers all marked methods of the object."""

    def mark(method: F) -> F:
        declared = [*getattr(method, _MARK, ()), (events, options)]
        setattr(method, _MARK, declared)
        return method

    return mark


def declared(thing: object) -> list[Hook]:
    """The hooks that an object stands for: itself, its `hooks` list, its marked methods, or the `HookLike` it is."""
    if isinstance(thing, Hook):
        return [thing]
    if isinstance(thing, (list, tuple)):
        return [found for item in thing for found in declared(item)]
    if inspect.isclass(thing):
        return declared(thing())
    found = [*_listed(thing), *_marked(thing)]
    if not found and isinstance(thing, HookLike):
        found = [_from_object(thing)]
    if not found:
        raise HookError(
            f"`{name_of(thing)}` is no hook; mark its methods with `@hook(PreToolUse)`, give it a `hooks` list, or "
            "`name`, `events` and `execute(event, ctx)`"
        )
    return found


def _listed(thing: object) -> Iterator[Hook]:
    hooks = getattr(thing, "hooks", None)
    if isinstance(hooks, Iterable) and not isinstance(hooks, (str, bytes)):
        for item in hooks:
            yield from declared(item)


def _marked(thing: object) -> Iterator[Hook]:
    prefix = type(thing).__name__
    for attribute, method in inspect.getmembers(type(thing), inspect.isroutine):
        for events, options in getattr(method, _MARK, ()):
            named: dict[str, Any] = {"name": f"{prefix}.{attribute}", **options}
            yield make_hook(events, getattr(thing, attribute), **named)


_READ = ("priority", "timeout", "on_failure", "background", "once", "rejudge", "inline", "match", "when")


def _from_object(thing: HookLike) -> Hook:
    options: dict[str, Any] = {key: getattr(thing, key) for key in _READ if hasattr(thing, key)}
    events = thing.events() if callable(thing.events) else thing.events
    return make_hook(events, thing.execute, name=thing.name, **options)
