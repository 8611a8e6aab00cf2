"""What all adapters share, without a framework."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from hookline import Hooks, stop
from hookline.core.engine.engine import has_no_listeners
from hookline.events import PostToolUse, PreToolUse
from hookline.frameworks.steps import AgentRun, HookClient, SyncHookClient, current_run, done, inside
from hookline.replies import context


@pytest.fixture
def hooks() -> Hooks:
    return Hooks()


def test_a_run_that_a_hook_stopped_calls_no_further_tool(hooks: Hooks) -> None:
    """Frameworks finish the calls of a turn; those that had not begun are refused, without asking again."""
    asked: list[str] = []

    @hooks.on(PreToolUse)
    async def judged(event: PreToolUse) -> object:
        asked.append(event.tool_name)
        return stop("STOP_X")

    run = SyncHookClient(hooks).new_run()
    calls = [done(run.judge(name, {})) for name in ("first", "second")]

    assert [call.refused for call in calls] == ["`first` was denied: STOP_X", "`second` was denied: STOP_X"]
    assert asked == ["first"]


def test_each_set_of_hooks_has_a_run_of_its_own(hooks: Hooks) -> None:
    """Two sets in one agent do not take each other's run for theirs, in whatever order they come and go."""
    other = Hooks()
    mine, theirs = HookClient(hooks).new_run(), HookClient(other).new_run()

    with inside(mine):
        before = theirs.enter()
        assert (current_run(hooks), current_run(other), before) == (mine, theirs, None)
    assert (current_run(hooks), current_run(other)) == (None, None)


@pytest.mark.parametrize(
    "given, judged",
    [
        ({"command": "ls", "n": 1}, {"command": "ls", "n": 1}),
        ({1: Path("/x")}, {"1": "/x"}),
        ({"deep": {"a": [Path("/x"), {2: None}]}}, {"deep": {"a": ["/x", {"2": None}]}}),
        (MappingProxyType({"a": ("b",)}), {"a": ["b"]}),
    ],
)
def test_a_call_is_judged_by_arguments_that_nobody_can_change(hooks: Hooks, given: Any, judged: object) -> None:
    """They are as JSON has them, and whoever holds the originals cannot change what hooks saw."""
    seen: list[PreToolUse] = []
    hooks.add(PreToolUse, seen.append)

    call = done(SyncHookClient(hooks).new_run().judge("shell", given))

    assert (call.arguments, seen[0].tool_input) == (judged, judged)
    with pytest.raises(TypeError, match="an event cannot be changed"):
        call.arguments["more"] = 1


def test_sets_of_hooks_may_leave_in_any_order(hooks: Hooks) -> None:
    """Frameworks call the extensions after a tool in the order of those before it, or the other way round."""
    other = Hooks()
    for first, second in ((0, 1), (1, 0)):
        runs = [AgentRun(HookClient(one)) for one in (hooks, other)]
        for _ in range(2):  # the second time round, what was current the first time is known
            outer = [run.enter() for run in runs]
            assert [current_run(hooks), current_run(other)] == runs
            runs[first].leave(outer[first])
            assert current_run(runs[first].hooks) is None
            assert current_run(runs[second].hooks) is runs[second]
            runs[second].leave(outer[second])
            assert [current_run(hooks), current_run(other)] == [None, None]


def test_a_run_inside_itself_leaves_to_itself(hooks: Hooks) -> None:
    """A tool of a run may call another tool of the same run; what it leaves to is what it came from."""
    run, another = HookClient(hooks).new_run(), HookClient(hooks).new_run()
    outermost = another.enter()
    outer = run.enter()
    inner = run.enter()
    found = [outermost, outer, inner, current_run(hooks)]
    for place in (inner, outer):
        run.leave(place)
        found.append(current_run(hooks))
    another.leave(outermost)

    assert [*found, current_run(hooks)] == [None, another, run, run, run, another, None]


def test_an_event_that_nobody_hears_of_is_not_made(hooks: Hooks) -> None:
    """Found out by the first of its kind; a hook or an observer that comes later hears of the next."""
    call = done(SyncHookClient(hooks).new_run().judge("shell", {}))

    def told() -> tuple[str, ...]:
        return done(call.succeeded("out")).notes

    assert (told(), has_no_listeners(hooks, PostToolUse)) == ((), True)

    @hooks.on(PostToolUse)
    async def speak(event: PostToolUse) -> object:
        return context("CTX_X")

    assert (has_no_listeners(hooks, PostToolUse), told()) == (False, ("CTX_X",))


def test_an_observer_hears_of_events_that_no_hook_is_for(hooks: Hooks) -> None:
    """An audit log is complete, whichever events have hooks, and whenever it was added."""
    heard: list[object] = []
    event = PostToolUse(tool_name="shell")
    for _ in range(2):
        hooks.fire_sync(event)
    hooks.observe(heard.append, inline=True)
    hooks.fire_sync(event)

    assert len(heard) == 1
    assert not has_no_listeners(hooks, PostToolUse)


async def test_closed_hooks_are_not_mistaken_for_silent_ones(hooks: Hooks) -> None:
    """A gate of a closed set stays closed, though nobody heard of its events before."""
    run = HookClient(hooks).new_run()
    assert (await run.judge("shell", {})).refused is None
    await hooks.aclose()

    assert "hooks could not be asked" in ((await run.judge("shell", {})).refused or "")
