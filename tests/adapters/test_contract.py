"""What all adapters share, without a framework."""

import pytest

from hookline import Hooks, stop
from hookline.adapters.asking import Asking
from hookline.adapters.contract import AgentRun, current_run, enter, inside, judge, succeeded
from hookline.engine.fires import is_unheard
from hookline.events import PostToolUse, PreToolUse
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

    asking, run = Asking(hooks), AgentRun(hooks)
    calls = [asking.run_sync(judge(run, name, {})) for name in ("first", "second")]

    assert [call.refused for call in calls] == ["`first` was denied: STOP_X", "`second` was denied: STOP_X"]
    assert asked == ["first"]


def test_each_set_of_hooks_has_a_run_of_its_own(hooks: Hooks) -> None:
    """Two sets in one agent do not take each other's run for theirs, in whatever order they come and go."""
    other = Hooks()
    mine, theirs = AgentRun(hooks), AgentRun(other)

    with inside(mine):
        before = enter(other, theirs)
        assert (current_run(hooks), current_run(other), before) == (mine, theirs, None)
    assert (current_run(hooks), current_run(other)) == (None, None)


def test_an_event_that_nobody_hears_of_is_not_made(hooks: Hooks) -> None:
    """Found out by the first of its kind; a hook or an observer that comes later hears of the next."""
    asking, run = Asking(hooks), AgentRun(hooks)
    call = asking.run_sync(judge(run, "shell", {}))

    def told() -> tuple[str, ...]:
        return asking.run_sync(succeeded(run, call, "out")).notes

    assert (told(), is_unheard(hooks, PostToolUse)) == ((), True)

    @hooks.on(PostToolUse)
    async def speak(event: PostToolUse) -> object:
        return context("CTX_X")

    assert (is_unheard(hooks, PostToolUse), told()) == (False, ("CTX_X",))


def test_an_observer_hears_of_events_that_no_hook_is_for(hooks: Hooks) -> None:
    """An audit log is complete, whichever events have hooks, and whenever it was added."""
    heard: list[object] = []
    event = PostToolUse(tool_name="shell")
    for _ in range(2):
        hooks.fire_sync(event)
    hooks.observe(heard.append, inline=True)
    hooks.fire_sync(event)

    assert len(heard) == 1
    assert not is_unheard(hooks, PostToolUse)


async def test_closed_hooks_are_not_mistaken_for_silent_ones(hooks: Hooks) -> None:
    """A gate of a closed set stays closed, though nobody heard of its events before."""
    asking, run = Asking(hooks), AgentRun(hooks)
    assert (await asking.run(judge(run, "shell", {}))).refused is None
    await hooks.aclose()

    assert "hooks could not be asked" in ((await asking.run(judge(run, "shell", {}))).refused or "")
