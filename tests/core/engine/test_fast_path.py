"""The fast path and the dispatcher come to the same, whatever hooks answer."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import Hooks, Verdict, allow, ask, background, context, deny, keep_going, message, rewrite, stop
from hookline.core.engine.fast_path import FastPaths
from hookline.events import Event, PreToolUse, Stop, UserPromptSubmit

ANSWERS: tuple[Any, ...] = (
    None, None, None, allow(), allow("a"), ask("b"), deny("c"), deny(), stop("d"), context("e"), message("f"),
    rewrite({"command": "g"}), keep_going("h"), allow() | context("i"), {}, {"decision": "block"}, {"decison": "block"},
    {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                            "permissionDecisionReason": "j"}},
    {"continue_": False}, True, "text", ValueError("k"), SystemExit(2), KeyError(), deny(3),  # type: ignore[arg-type]
)  # fmt: skip
EVENTS = (PreToolUse(tool_name="Bash", tool_input={"command": "ls"}), UserPromptSubmit(prompt="p"), Stop())


def answering(answer: Any, *, waits: bool) -> Any:
    async def at_once(event: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def later(event: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        return await at_once(event)

    return later if waits else at_once


def told(verdict: Verdict) -> Any:
    """Everything about a verdict but its times."""
    outcomes = [(one.hook, one.status, one.reply, one.error, one.note, one.exit_code) for one in verdict.outcomes]
    return verdict.reply, verdict.blocked, verdict.decided_by, verdict.reason, verdict.input, outcomes


async def fired(hooks: Hooks, event: Event) -> Verdict:
    return await hooks.fire(event)


@given(st.lists(st.tuples(st.sampled_from(range(len(ANSWERS))), st.booleans()), max_size=4), st.sampled_from(EVENTS))
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore")
def test_both_ways_come_to_the_same(answers: list[tuple[int, bool]], event: Event) -> None:
    """Somebody who watches single hooks keeps a set off the fast path; nothing else may differ."""
    fast, slow = Hooks(), Hooks()
    for hooks in (fast, slow):
        for number, (answer, waits) in enumerate(answers):
            hooks.add(type(event), answering(ANSWERS[answer], waits=waits), name=f"h{number}")
    slow.observe(lambda notice: None, inline=True)

    async def both() -> None:
        for _ in range(2):  # the second time the fast path is known
            assert told(await fast.fire(event)) == told(await slow.fire(event))
        assert type(event) in fast.engine.fast
        assert type(event) not in slow.engine.fast

    asyncio.run(both())


async def test_work_in_the_background_is_the_same_too() -> None:
    """Its late outcome is collected either way."""
    statuses = []
    for watched in (False, True):
        hooks = Hooks()
        hooks.add(PreToolUse, answering(background(asyncio.sleep(0)), waits=False), name="h")
        if watched:
            hooks.observe(lambda notice: None, inline=True)
        verdict = await hooks.fire(EVENTS[0])
        statuses.append([one.status for one in (*verdict.outcomes, *await hooks.drain())])

    assert statuses == [["background", "ok"]] * 2


async def test_ten_thousand_hooks_are_registered_and_asked_in_one_go() -> None:
    """Names that are taken get numbers without looking for a free one from the start each time."""
    hooks, asked = Hooks(), []

    def make(number: int) -> Any:
        async def hook(event: Any) -> None:
            asked.append(number)

        return hook

    for number in range(10_000):
        hooks.on(PreToolUse, priority=-number)(make(number))
    verdict = await hooks.fire(EVENTS[0])

    assert asked == list(range(10_000))
    assert (len(verdict.outcomes), hooks.hooks[-1].name) == (10_000, "hook#10000")


@pytest.mark.parametrize("declared", [{}, {"when": lambda event: True}])
async def test_hooks_that_have_no_fast_path_are_not_asked_for_one(
    declared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain function, or a hook with a condition, takes the dispatcher each time, and goes there at once."""
    hooks, asked = Hooks(), []
    hooks.add(PreToolUse, answering(None, waits=False) if declared else lambda event: None, name="h", **declared)
    monkeypatch.setattr(FastPaths, "remember", lambda *_: asked.append(1))
    verdicts = [await hooks.fire(EVENTS[0]) for _ in range(2)]

    assert ([len(verdict.outcomes) for verdict in verdicts], asked) == ([1, 1], [])
