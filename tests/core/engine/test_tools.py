"""`hooks.wrap_tool`: a Python function as a tool that hooks govern."""

import asyncio
import inspect
from typing import Any

import pytest

from hookline import Hooks, Reply, ToolDenied, Verdict, allow, ask, defer, deny, replace_output, rewrite, stop
from hookline.errors import HookError
from hookline.events import PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse

Seen = list[Any]


def note(path: str, text: str = "", *, mode: str = "w") -> str:
    """Write a note."""
    return f"{mode} {path} {text}"


async def note_later(path: str, text: str = "", *, mode: str = "w") -> str:
    """Write a note."""
    await asyncio.sleep(0)
    return f"{mode} {path} {text}"


async def called(tool: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a tool of either kind."""
    result = tool(*args, **kwargs)
    return await result if inspect.isawaitable(result) else result


BOTH = pytest.mark.parametrize("function", [note, note_later])


@BOTH
async def test_hooks_see_the_whole_input_by_name_and_the_result(function: Any) -> None:
    """Positional arguments and defaults are named; PostToolUse has what the function returned."""
    hooks, seen = Hooks(), []

    @hooks.on(PreToolUse, PostToolUse)
    async def watch(event: PreToolUse | PostToolUse) -> None:
        seen.append((event.event_name, event.tool_name, event.tool_input, getattr(event, "tool_response", None)))

    result = await called(hooks.wrap_tool(function), "a.txt", text="hi")

    given = {"path": "a.txt", "text": "hi", "mode": "w"}
    assert result == "w a.txt hi"
    assert seen == [("PreToolUse", function.__name__, given, None),
                    ("PostToolUse", function.__name__, given, "w a.txt hi")]  # fmt: skip


@BOTH
async def test_a_denied_call_is_not_made(function: Any) -> None:
    """By default it raises, with the reason and the verdict; on request the reason is returned instead."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("not there"), name="no")

    with pytest.raises(ToolDenied, match="not there") as caught:
        await called(hooks.wrap_tool(function), "a.txt")

    assert (caught.value.tool, caught.value.reason, caught.value.verdict.decided_by) == (function.__name__, "not there",
                                                                                        "no")  # fmt: skip
    assert await called(hooks.wrap_tool(function, on_deny="return"), "a.txt") == "not there"


@BOTH
async def test_a_stop_before_the_call_denies_it(function: Any) -> None:
    """What stops the agent stops the tool too."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: stop("enough"))

    with pytest.raises(ToolDenied, match="enough"):
        await called(hooks.wrap_tool(function), "a.txt")


@BOTH
async def test_a_rewritten_input_is_what_runs(function: Any) -> None:
    """The whole input is replaced, and PostToolUse hears of what ran."""
    hooks, seen = Hooks(), []
    hooks.add(PreToolUse, lambda event: rewrite({**event.tool_input, "path": "b.txt"}), name="move")
    hooks.add(PostToolUse, lambda event: seen.append(event.tool_input["path"]), name="watch")

    assert await called(hooks.wrap_tool(function), "a.txt", "hi") == "w b.txt hi"
    assert seen == ["b.txt"]


@BOTH
async def test_a_rewrite_that_does_not_fit_denies_the_call(function: Any) -> None:
    """A function is never called with half of what a hook wanted."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: rewrite({"file": "b.txt"}))

    with pytest.raises(ToolDenied, match="no parameter `file`"):
        await called(hooks.wrap_tool(function), "a.txt")


@BOTH
async def test_a_replaced_output_is_what_the_caller_gets(function: Any) -> None:
    """Even `None` is an output like any other."""
    hooks = Hooks()
    hooks.add(PostToolUse, lambda event: replace_output(None))

    assert await called(hooks.wrap_tool(function), "a.txt") is None


@BOTH
async def test_a_blocked_result_does_not_reach_the_caller(function: Any) -> None:
    """A PostToolUse hook's deny withholds what the tool returned."""
    hooks = Hooks()
    hooks.add(PostToolUse, lambda event: deny("secret"))

    assert await called(hooks.wrap_tool(function, on_deny="return"), "a.txt") == "secret"


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_failing_tool_is_told_of_and_raises(asynchronous: bool) -> None:
    """The function's own exception goes through, after PostToolUseFailure."""
    hooks, seen = Hooks(), []
    hooks.add(PostToolUseFailure, lambda event: seen.append(event.error), name="watch")

    def fail(x: int) -> None:
        raise ValueError(f"bad {x}")

    async def fail_later(x: int) -> None:
        raise ValueError(f"bad {x}")

    with pytest.raises(ValueError, match="bad 3"):
        await called(hooks.wrap_tool(fail_later if asynchronous else fail), 3)

    assert seen == ["ValueError: bad 3"]


@BOTH
@pytest.mark.parametrize("answer, approve, allowed", [
    (None, None, False),
    (allow(), None, True),
    (deny("no"), True, False),
    (None, True, True),
    (None, False, False),
])  # fmt: skip
async def test_when_a_hook_asks_somebody_has_to_say_yes(
    function: Any, answer: Reply | None, approve: bool | None, allowed: bool
) -> None:
    """PermissionRequest hooks decide first, then `approve`; nobody means no."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: ask("sure?"), name="asks")
    hooks.add(PermissionRequest, lambda event: answer, name="answers")
    tool = hooks.wrap_tool(function, approve=None if approve is None else lambda verdict: approve)

    if allowed:
        assert await called(tool, "a.txt") == "w a.txt "
    else:
        with pytest.raises(ToolDenied):
            await called(tool, "a.txt")


async def test_an_async_tool_may_await_its_approval() -> None:
    """`approve` may be a coroutine function where the tool is one."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: ask())

    async def approve(verdict: Verdict) -> bool:
        await asyncio.sleep(0)
        return True

    assert await hooks.wrap_tool(note_later, approve=approve)("a.txt") == "w a.txt "
    with pytest.raises(HookError, match="plain function"):
        hooks.wrap_tool(note, approve=approve)("a.txt")


def test_signature_name_and_documentation_stay() -> None:
    """Frameworks read a tool's schema from them."""
    tool = Hooks().wrap_tool(note)

    assert (tool.__name__, tool.__doc__, inspect.signature(tool)) == ("note", note.__doc__, inspect.signature(note))
    assert inspect.iscoroutinefunction(Hooks().wrap_tool(note_later))


def test_arguments_that_hooks_must_not_see_stay_as_they_are() -> None:
    """A framework's run context, say, is not part of the input, whatever a hook rewrites."""
    hooks, seen = Hooks(), []

    def tool(ctx: object, /, a: int, *rest: int, **options: int) -> Any:
        return ctx, a, rest, options

    async def more(event: PreToolUse) -> Reply:
        seen.append(event.tool_input)
        return rewrite({"a": 2, "rest": [3], "x": 4})

    hooks.add(PreToolUse, more)
    ctx = object()

    assert hooks.wrap_tool(tool, exclude=("ctx",))(ctx, 1, 7, x=8) == (ctx, 2, (3,), {"x": 4})
    assert seen == [{"a": 1, "rest": [7], "x": 8}]


def test_every_verdict_is_handed_to_who_wants_it() -> None:
    """So that a framework can pass context on to its model."""
    hooks = Hooks()
    told: list[str] = []

    hooks.wrap_tool(note, on_verdict=lambda verdict: told.append(verdict.event.event_name))("a.txt")

    assert told == ["PreToolUse", "PostToolUse"]


def test_a_denial_inside_a_tool_is_the_inner_tools() -> None:
    """`on_deny="return"` of the outer tool does not turn it into a result."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no"), match="note")
    inner = hooks.wrap_tool(note)

    def outer() -> str:
        return inner("a.txt")

    with pytest.raises(ToolDenied, match="no"):
        hooks.wrap_tool(outer, on_deny="return")()


@pytest.mark.parametrize("thing, options, problem", [
    (3, {}, "takes a function, got `int`"),
    (lambda: (yield), {}, "is a generator"),
    (note, {"on_deny": "ignore"}, "must be `raise` or `return`, got `ignore`"),
])  # fmt: skip
def test_what_cannot_be_wrapped_is_refused_at_once(thing: Any, options: Any, problem: str) -> None:
    """The message says what to write."""
    with pytest.raises(HookError, match=problem):
        Hooks().wrap_tool(thing, **options)


async def test_a_deferred_call_is_not_made() -> None:
    """Nobody else is asked: whoever deferred it goes on with it elsewhere."""
    hooks, asked = Hooks(), []
    hooks.on(PreToolUse)(lambda event: defer("later"))
    hooks.on(PermissionRequest)(lambda event: asked.append(1))

    with pytest.raises(ToolDenied, match="later"):
        await called(hooks.wrap_tool(note), "a.txt")
    assert asked == []
