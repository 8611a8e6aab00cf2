"""From what a user writes to a hook."""

import asyncio
import functools
import inspect
import re
from typing import Any, ClassVar
from unittest.mock import AsyncMock

import pytest

from hookline import Command, Hook, Hooks, Prompt, hook
from hookline.core.hooks import Function, declared, make_hook
from hookline.core.hooks.declare import can_wait, function
from hookline.errors import HookError, HooklineError, UnknownEvent
from hookline.events import PreToolUse, Stop


async def one(event: Any) -> None:
    return None


async def two(event: Any, ctx: Any) -> None:
    await asyncio.sleep(0)


class Callable:
    async def __call__(self, event: Any) -> None:
        await asyncio.sleep(0)

    async def quick(self, event: Any, *more: Any) -> None:
        return None

    def both(self, event: Any, ctx: Any) -> None:
        return None

    def any_number(*given: Any) -> None:
        return None

    @classmethod
    def of_class(cls, event: Any, ctx: Any = None) -> None:
        return None

    def own_default(self, event: Any = None, name: str = "") -> None:
        return None


def can_be_read(call: Any) -> bool:
    """Whether this Python can read a signature; that of an `AsyncMock` Python 3.11.2 cannot."""
    try:
        return bool(inspect.signature(call))
    except TypeError:
        return False


SHAPES: list[tuple[Any, bool, bool, bool]] = [
    (one, True, False, False),
    (two, True, True, True),
    (lambda event: None, False, False, True),
    (lambda event, ctx=None: None, False, True, True),
    (Callable(), True, False, True),
    (Callable().quick, True, True, False),
    (Callable().both, False, True, True),
    (Callable().any_number, False, True, True),
    (Callable.of_class, False, True, True),
    (Callable().own_default, False, False, True),
    (functools.partial(two, ctx=None), True, False, True),
    (AsyncMock(), True, can_be_read(AsyncMock()), True),
    (print, False, True, True),
    (dict.fromkeys, False, False, True),
]


@pytest.mark.parametrize("call, is_async, takes_context, waits", SHAPES)
def test_how_a_function_is_called_is_settled_once(call: Any, is_async: bool, takes_context: bool, waits: bool) -> None:
    """Async or not, with a context or not, and whether it can ever have to wait."""
    assert function(call) == Function(call, is_async, takes_context)
    assert can_wait(call) is waits


def test_a_function_without_a_readable_signature_takes_the_event() -> None:
    """Some built-in ones hide theirs."""

    class Hidden:
        __signature__ = 7

        def __call__(self, event: Any, ctx: Any) -> None:
            return None

    assert not function(Hidden()).takes_context


def test_a_function_that_cannot_take_an_event_is_refused() -> None:
    """With no argument, or with more than there are."""
    with pytest.raises(HookError, match="takes no argument"):
        function(lambda: None)
    with pytest.raises(HookError, match="takes 4 arguments"):
        function(lambda a, b, c, d: None)


class HookMatcher:
    """As the official SDK has it."""

    def __init__(self, matcher: str | None, hooks: list[Any], timeout: float | None = None) -> None:
        self.matcher, self.hooks, self.timeout, self.on_failure = matcher, hooks, timeout, None


def test_what_the_official_sdk_takes_is_taken() -> None:
    """A matcher with hooks, a map of events to such matchers; the matcher, the limit and the policy hold for each."""

    async def annotated(event: PreToolUse) -> None:
        return None

    async def typed(input_data: "PreToolUseHookInput", tool_use_id: str, context: Any) -> None:  # type: ignore[name-defined]  # noqa: F821
        return None

    rows: list[tuple[tuple[Any, ...], list[Any]]] = [
        ((HookMatcher("Bash", [annotated], 3),), [("annotated", (PreToolUse,), "Bash", 3)]),
        ((HookMatcher("Bash", [typed]),), [("typed", (PreToolUse,), "Bash", None)]),
        (("Stop", HookMatcher(None, [one])), [("one", (Stop,), "", None)]),
        (({"Stop": [HookMatcher(None, [one])]},), [("one", (Stop,), "", None)]),
        (
            ({"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [one, two], "timeout": 5}], "Stop": one},),
            [
                ("one", (PreToolUse,), "Bash|Edit", 5),
                ("two", (PreToolUse,), "Bash|Edit", 5),
                ("one#2", (Stop,), "", None),
            ],
        ),
    ]
    for given, expected in rows:
        hooks = Hooks()
        hooks.add(*given)
        assert [(h.name, h.events, h.matcher.pattern, h.timeout) for h in hooks.hooks] == expected, given


def test_a_matcher_with_hooks_that_makes_no_sense_is_refused() -> None:
    """Nothing of it is dropped in silence."""
    rows: list[tuple[Any, str]] = [
        (HookMatcher("Bash", [one]), "names no event"),
        (HookMatcher("Bash", []), "needs `hooks`"),
        ({"PreToolUse": {"matcher": "Bash", "hooks": [one], "tiemout": 3}}, "no `tiemout`; did you mean `timeout`"),
        ({"PreToolUse": [Hook(name="h", events=(Stop,), action=function(one))]}, "has events of its own"),
        ({"PreToolUes": [one]}, "did you mean `PreToolUse`"),
    ]
    for thing, problem in rows:
        with pytest.raises(HooklineError, match=problem):
            Hooks().add(thing)


async def test_a_callback_of_the_sdk_is_given_what_the_sdk_gives() -> None:
    """The event as a mapping, the call's id, and a context with a signal."""
    seen: list[Any] = []

    async def required(input_data: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
        seen.append((input_data["tool_input"], tool_use_id, context["signal"].is_set(), context.session_id))
        return {"decision": "block", "reason": "no"}

    def optional(input_data: Any, tool_use_id: Any = None, context: Any = None) -> None:
        input_data["tool_input"]["command"] = "changed"  # a copy of its own
        seen.append((input_data["hook_event_name"], tool_use_id))

    hooks = Hooks()
    hooks.add(PreToolUse, optional)
    hooks.on(PreToolUse)(required)
    event = PreToolUse(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1", session_id="s1")

    verdict = await hooks.fire(event)

    assert (verdict.blocked, verdict.reason) == (True, "no")
    assert seen == [("PreToolUse", "t1"), ({"command": "ls"}, "t1", False, "s1")]


def test_a_matcher_may_be_a_compiled_expression() -> None:
    """It is searched in the subject, as a written one is."""
    hook = make_hook([PreToolUse], one, match=re.compile("^b", re.IGNORECASE))

    assert [name for name in ("Bash", "Edit", "bash") if hook.matcher.matches(name)] == ["Bash", "bash"]


def test_a_misspelt_attribute_of_a_hook_object_is_refused() -> None:
    """It would do nothing; one that is the object's own begins with an underscore."""

    class Good:
        name, events, priority, _timeouts = "good", [PreToolUse], 3, 0
        matcher = re.compile("Bash")

        async def execute(self, event: Any, ctx: Any) -> None:
            return None

    [made] = declared(Good())
    assert (made.priority, made.matcher.matches("Edit")) == (3, False)
    for wrong, meant in (("prioritty", "priority"), ("timout", "timeout"), ("onFailure", "on_failure")):
        with pytest.raises(HookError, match=f"no option `{wrong}`; did you mean `{meant}`"):
            declared(type("Bad", (Good,), {wrong: 5})())


def test_a_hook_is_named_after_what_it_runs() -> None:
    """The function's name, the command, or the kind."""
    named = [
        make_hook([Stop], run).name for run in (one, functools.partial(one), Command(command="ls"), Prompt(prompt="?"))
    ]

    assert named == ["one", "one", "ls", "Prompt"]


def test_events_are_given_by_class_or_name_and_count_once() -> None:
    """An unknown name is refused with the near ones."""
    assert make_hook([PreToolUse, "PreToolUse", "Stop"], one).events == (PreToolUse, Stop)
    with pytest.raises(UnknownEvent, match="did you mean `PreToolUse`"):
        make_hook(["pre_tool_use"], one)
    with pytest.raises(HookError, match="names no event"):
        make_hook([], one)


def test_when_is_a_rule_or_a_predicate() -> None:
    """Text is parsed; the empty one says nothing."""

    def short(event: Any) -> bool:
        return True

    assert make_hook([Stop], one, when=short).when is short
    assert make_hook([Stop], one, when="Bash(ls)").condition is not None
    assert make_hook([Stop], one, when="").condition is None


def test_wrong_limits_are_refused() -> None:
    """At registration, with the hook's name."""
    for timeout in (0, -1, float("nan")):
        with pytest.raises(HookError, match="hook `one`: timeout must be more than 0 seconds"):
            make_hook([Stop], one, timeout=timeout)
    with pytest.raises(HookError, match="on_failure must be `block` or `continue`"):
        make_hook([Stop], one, on_failure="explode")  # type: ignore[arg-type]


def test_a_class_and_its_objects_stand_for_their_marked_methods() -> None:
    """Each method may be marked more than once; options go along."""

    class Policy:
        @hook(PreToolUse, match="Bash", priority=3)
        @hook(Stop, name="at_the_end")
        async def check(self, event: Any) -> None:
            return None

    for thing in (Policy, Policy()):
        found = declared(thing)
        assert [(each.name, each.events, each.priority) for each in found] == [
            ("at_the_end", (Stop,), 0),
            ("Policy.check", (PreToolUse,), 3),
        ]


def test_an_object_stands_for_its_list_of_hooks() -> None:
    """Nested ones included; text is no list."""
    made = make_hook([Stop], one)

    class Holder:
        hooks: ClassVar[list[Any]] = [made]

    class Bad:
        hooks = "text"

    assert declared(Holder()) == [made]
    assert declared(made) == [made]
    assert declared([Holder(), [made]]) == [made, made]
    with pytest.raises(HookError, match="`Bad` is not a hook"):
        declared(Bad())


def test_an_object_that_looks_like_a_hook_is_one() -> None:
    """`name`, `events` and `execute` are enough; the rest is read if it is there."""

    class Mine:
        name = "mine"
        events: ClassVar[list[str]] = ["Stop"]
        priority = 4
        match = "x"

        async def execute(self, event: Any, ctx: Any) -> None:
            return None

    class Asked(Mine):
        name = "asked"

        def events(self) -> list[str]:  # type: ignore[override]
            return ["PreToolUse"]

    (mine,), (asked,) = declared(Mine()), declared(Asked())
    assert (mine.name, mine.events, mine.priority, mine.matcher.pattern) == ("mine", (Stop,), 4, "x")
    assert asked.events == (PreToolUse,)


def test_a_hooks_time_is_its_own_else_the_sets_else_its_kinds() -> None:
    """DESIGN, Order."""
    runs: list[Any] = [Command(command="x"), Prompt(prompt="x"), one]

    assert [make_hook([Stop], run).limit(None) for run in runs] == [60, 30, 30]
    assert make_hook([Stop], one).limit(7) == 7
    assert make_hook([Stop], one, timeout=5).limit(7) == 5


def test_only_simple_async_functions_take_the_quick_way() -> None:
    """Not commands, not `def`, nothing that runs once or aside."""
    plain = Hook(name="x", events=(Stop,), action=function(one))

    assert plain.plain
    assert not make_hook([Stop], one, once=True).plain
    assert not make_hook([Stop], one, background=True).plain
    assert not make_hook([Stop], print).plain
    assert not make_hook([Stop], Command(command="x")).plain


async def test_a_hook_that_cannot_wait_is_still_async() -> None:
    """Every shape of function works, on the quick way and off it."""
    hooks = Hooks()
    for number, (call, *_) in enumerate(SHAPES[:7]):
        hooks.on(PreToolUse, name=f"h{number}")(call)
    async with hooks:
        for _ in range(2):
            assert (await hooks.fire(PreToolUse(tool_name="x"))).failures == ()


def test_a_function_that_nobody_marked_is_a_hook_by_its_annotation() -> None:
    """Also when the annotation names something that only a type checker imports."""

    async def guard(event: PreToolUse) -> None: ...

    async def later(event: "PreToolUse | OnlyForTypes") -> None:  # type: ignore[name-defined]  # noqa: F821
        ...

    assert [one.events for one in (*declared(guard), *declared([later]))] == [(PreToolUse,), (PreToolUse,)]


def test_a_hook_without_an_event_is_refused() -> None:
    """Built by hand; the message says what to write."""
    with pytest.raises(HookError, match="names no event"):
        Hook(name="idle", events=(), action=function(one))
