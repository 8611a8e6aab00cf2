"""From what a user writes (a function, a class, an object) to `Hook`. Pure."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dis import opmap
from types import FunctionType, MethodType, UnionType
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, get_args, get_type_hints, overload

import msgspec

from hookline.core.hooks.condition import Condition, parse_condition
from hookline.core.hooks.hook import Action, Function, Hook, OnFailure, Test, parse_matcher
from hookline.errors import HookError, did_you_mean
from hookline.events import CATALOG, Event, spec_of
from hookline.events.base import thaw

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
    """The SDK's context: a mapping with `signal`, set when the answer is unwanted, and the attributes of ours."""

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
        bool(code.co_flags & inspect.CO_VARARGS),
        lambda name: call.__annotations__.get(name),  # noqa: PLW0108 - only when asked: looking makes a dict that stays
        next((name for name in only if name not in defaults), None),
    )


_WAITS = frozenset(opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM", "SEND") if name in opmap)


def can_wait(call: Callable[..., Any]) -> bool:
    """Whether an async function may ever have to wait: its code has an `await` (or is not there to be looked at)."""
    call = call if inspect.isroutine(call) else getattr(type(call), "__call__", call)  # noqa: B004
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    if code is None or not code.co_flags & inspect.CO_COROUTINE:
        return True
    return not _WAITS.isdisjoint(code.co_code[::2])


def annotated_events(call: Any) -> tuple[type[Event], ...]:
    """The events that a function's first parameter is annotated with: `event: PreToolUse | PostToolUse`."""
    target = call if inspect.isroutine(call) else getattr(type(call), "__call__", call)  # noqa: B004
    names = [name for name in inspect.signature(target).parameters if name != "self"] if callable(target) else []
    try:
        hints = get_type_hints(target)
    except (NameError, TypeError, AttributeError, SyntaxError):  # a name that is only there for the type checker
        hints = getattr(target, "__annotations__", {})
    kinds = _kinds(hints.get(names[0]) if names else None)
    found = tuple(dict.fromkeys(cls for kind in kinds for cls in _events_of(kind)))
    if not found:
        where = f"hook `{name_of(call)}` names no event"
        raise HookError(f"{where}; write `@hooks.on(PreToolUse)`, or annotate its parameter: `event: PreToolUse`")
    return found


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


F = TypeVar("F", bound=Callable[..., Any])
EventLike = type[Event] | str
When = Callable[[Any], bool] | str | Sequence[str] | None
"""A condition: a predicate over the event, a rule such as `Bash(git *)`, or several rules of which one must hold."""
_MARK = "__hookline_declarations__"


class Options(TypedDict, total=False):
    """What may be said of a hook besides its events and what it runs; `matcher` is another name for `match`."""

    match: str | re.Pattern[str] | Test | None
    matcher: str | re.Pattern[str] | Test | None
    when: When
    priority: int
    timeout: float | None
    on_failure: OnFailure | None
    background: bool
    once: bool
    rejudge: bool
    inline: bool
    mode: Literal["enforce", "evaluate_only"]
    name: str
    source: str
    status_message: str | None


def make_hook(events: Iterable[EventLike], run: Action | Callable[..., Any], **options: Unpack[Options]) -> Hook:
    """A hook of `events` that runs a function or an action; without events, of those the function is annotated with.

    Whatever is wrong with it is said here, in one line, and not when the first event fires.
    """
    action = _action(run)
    name, known = options.get("name") or name_of(run), Options.__annotations__
    for unknown in (key for key in options if key not in known):
        raise HookError(f"hook `{name}`: there is no option `{unknown}`{did_you_mean(unknown, known)}")
    if "match" in options and "matcher" in options:
        raise HookError(f"hook `{name}`: `match` and `matcher` are the same; keep one")
    condition, when = _condition(options.get("when"))
    given, read_here = tuple(events), ("name", "match", "matcher", "when")
    limits: dict[str, Any] = {key: value for key, value in options.items() if key not in read_here}
    return Hook(
        name=name, events=_classes(given) if given else annotated_events(run), action=action,
        matcher=parse_matcher(options.get("match", options.get("matcher"))), condition=condition, when=when, **limits,
    )  # fmt: skip


def _action(run: Any) -> Action:
    """What to run; an action has to have a text that says so."""
    if not isinstance(run, get_args(Action)):
        if callable(run) and not isinstance(run, type):
            return function(run)
        raise HookError(f"`{_shown(run)}` cannot be run; pass a function, or an action such as `Command(command=…)`")
    for name in ("command", "url", "prompt", "server", "tool", "policies"):
        text = getattr(run, name, None)
        if hasattr(run, name) and (not isinstance(text, str) or not text.strip() or "\0" in text):
            kind = type(run).__name__
            raise HookError(f"{kind}: `{name}` must be a text that says what to run, got `{_shown(text)}`")
    return cast("Action", run)


def _classes(events: tuple[Any, ...]) -> tuple[type[Event], ...]:
    for event in events:
        if not is_event(event):
            raise HookError(f"`{_shown(event)}` is not an event; write its class or its name, such as `PreToolUse`")
    return _known_classes(events)


@functools.lru_cache(maxsize=1024)
def _known_classes(events: tuple[EventLike, ...]) -> tuple[type[Event], ...]:
    """Each class once; hooks of the same events share one tuple."""
    return tuple(dict.fromkeys(spec_of(event).cls for event in events))


def is_event(thing: object) -> bool:
    """Whether this names an event: its class, or a text."""
    return isinstance(thing, str) or (isinstance(thing, type) and issubclass(thing, Event))


def _shown(thing: object) -> str:
    text = str(getattr(thing, "__name__", None) or repr(thing))
    text = type(thing).__name__ if text.startswith("<") else text
    return text if len(text) <= 40 else f"{text[:39]}…"


def _condition(when: When) -> tuple[Condition | None, Callable[[Any], bool] | None]:
    if when is None or callable(when):
        return None, when
    if isinstance(when, str):
        return (parse_condition(when) if when else None), None
    if isinstance(when, (list, tuple)) and when and all(isinstance(text, str) for text in when):
        return parse_condition(*when), None
    raise HookError(f"when must be a rule, a list of rules or a function of the event, got `{_shown(when)}`")


@overload
def hook(*events: EventLike, **options: Unpack[Options]) -> Callable[[F], F]: ...


@overload
def hook(call: F, /) -> F: ...


def hook(*events: Any, **options: Unpack[Options]) -> Any:
    """Mark a method as a hook; `hooks.add(object)` registers all marked methods of the object.

    Without parentheses, and without events, those count that the method's parameter is annotated with.
    """
    if is_bare(events):
        return hook(**options)(events[0])

    def mark(method: F) -> F:
        declared = [*getattr(method, _MARK, ()), (events, options)]
        setattr(method, _MARK, declared)
        return method

    return mark


def is_bare(events: Sequence[Any]) -> bool:
    """Whether a decorator was written without parentheses, so that what it got is the function."""
    return len(events) == 1 and inspect.isroutine(events[0])


def declared(thing: object) -> list[Hook]:
    """The hooks that an object stands for: itself, its `hooks` list, its marked methods, or its `execute`.

    A map of events to matchers, as the official SDK takes it, and a single `HookMatcher` of its stand for theirs.
    """
    if isinstance(thing, Hook):
        return [thing]
    if isinstance(thing, (list, tuple)):
        return [found for item in thing for found in declared(item)]
    if isinstance(thing, Mapping):
        return [hook for event, entry in thing.items() for hook in hooks_of_event((event,), entry)]
    if is_group(thing):
        return hooks_of_event((), thing)
    if inspect.isclass(thing) and not issubclass(thing, Event):
        return declared(thing())
    if inspect.isroutine(thing):
        return [make_hook((), thing)]
    if is_event(thing) or isinstance(thing, UnionType):
        raise HookError(f"`{_shown(thing)}` is not a hook; name events one by one: `hooks.add(PreToolUse, Stop, run)`")
    hooks = getattr(thing, "hooks", None)
    listed = hooks if isinstance(hooks, Iterable) and not isinstance(hooks, (str, bytes)) else ()
    found = [*(hook for item in listed for hook in declared(item)), *_marked(thing)]
    if not found and is_hook_object(thing):
        found = [_from_object(thing)]
    if not found:
        raise HookError(
            f"`{_shown(thing)}` is not a hook; mark its methods with `@hook(PreToolUse)`, give it a `hooks` list, or "
            "`name`, `events` and `execute(event, ctx)`"
        )
    return found


def is_group(thing: object) -> bool:
    """Whether it is hooks with a matcher in common: a `HookMatcher` of the SDK, or a mapping with the same keys."""
    plain = not isinstance(thing, (type, Hook))
    return plain and {"matcher", "hooks"}.issubset(thing if isinstance(thing, Mapping) else dir(thing))


def hooks_of_event(events: tuple[Any, ...], entry: Any, **options: Any) -> list[Hook]:
    """The hooks of one entry for events (none: each names its own): a function, an action, a group, or a list."""
    if isinstance(entry, (list, tuple)):
        return [hook for item in entry for hook in hooks_of_event(events, item, **options)]
    if isinstance(entry, Hook):
        raise HookError(f"hook `{entry.name}` has events of its own; add it by itself: `hooks.add(hook)`")
    if isinstance(entry, Mapping) or is_group(entry):
        hooks, shared = _group(entry)
        return hooks_of_event(events, hooks, **{**options, **shared})
    return [make_hook(events, entry, **options)]


_GROUP = {"matcher": "matcher", "timeout": "timeout", "on_failure": "on_failure", "onFailure": "on_failure"}


def _group(entry: Any) -> tuple[list[Any], dict[str, Any]]:
    """The hooks of a group, and the options that it has for all of them."""
    known = ("hooks", *_GROUP)
    fields = dict(entry) if isinstance(entry, Mapping) else {key: getattr(entry, key, None) for key in known}
    hooks = fields.pop("hooks", None)
    unknown = next((key for key in fields if key not in _GROUP), None)
    if unknown is not None:
        raise HookError(f"a matcher with hooks has no `{unknown}`{did_you_mean(str(unknown), known)}")
    if not isinstance(hooks, (list, tuple)) or not hooks:
        raise HookError(f"a matcher needs `hooks`, a list of functions, got `{_shown(hooks)}`")
    return list(hooks), {_GROUP[key]: value for key, value in fields.items() if value is not None}


def _marked(thing: object) -> Iterator[Hook]:
    prefix = type(thing).__name__
    for attribute, method in inspect.getmembers(type(thing), inspect.isroutine):
        for events, options in getattr(method, _MARK, ()):
            named: dict[str, Any] = {"name": f"{prefix}.{attribute}", **options}
            yield make_hook(events, getattr(thing, attribute), **named)


_READ = tuple(name for name in Options.__annotations__ if name not in ("name", "source", "matcher"))
_ALSO = {"matcher": "match", "tool_matcher": "match", "timeout_secs": "timeout"}
"""Other names that hook objects have for an option (seeds/002)."""


def is_hook_object(thing: object) -> bool:
    """Whether an object is a hook itself: it has a name and events, and answers them; each may be a method, too."""
    return all(hasattr(thing, name) for name in ("name", "events", "execute"))


def _from_object(thing: Any) -> Hook:
    """The hook that an object is; an attribute that is nearly an option would silently do nothing, so it is refused."""
    from difflib import get_close_matches  # start-up does without it

    known = (*_READ, *_ALSO, "name", "events", "execute", "hooks", "source")
    for name in dir(thing):
        near = get_close_matches(name, known, 1, cutoff=0.8)
        if near and name not in known and not name.startswith("_"):
            raise HookError(
                f"hook `{_shown(thing)}`: there is no option `{name}`; did you mean `{near[0]}`? "
                f"If it is your own, call it `_{name}`"
            )
    found = {_ALSO.get(key, key): _value(thing, key) for key in (*_ALSO, *_READ) if hasattr(thing, key)}
    options: dict[str, Any] = {key: value for key, value in found.items() if value is not None}
    events = _value(thing, "events")
    listed = (events,) if is_event(events) else tuple(events)
    return make_hook(listed, thing.execute, name=str(_value(thing, "name")), **options)


def _value(thing: object, key: str) -> Any:
    """An attribute, or what the method of that name returns; predicates (`match`, `when`) are values themselves."""
    value = getattr(thing, key)
    return value() if inspect.ismethod(value) and key not in ("match", "when") else value
