"""The laws of DESIGN, each as a property."""

import asyncio
import gc
import itertools
import logging
import warnings
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline import Decision, Hooks, Reply, allow, ask, context, defer, deny, message, rewrite, stop
from hookline.core.engine.composition import second_judgement
from hookline.core.engine.context import Context
from hookline.core.engine.verdict import Status
from hookline.events import CATALOG, Event, Notification, PostToolUse, PreToolUse
from hookline.replies import NOTHING, EventFields, background

FAST = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine proves nothing wrong
SLOW = settings(FAST, max_examples=40)

decided = st.builds(lambda make, why: make(why), st.sampled_from([allow, ask, defer, deny]), st.sampled_from("abc"))
specifics = st.builds(
    EventFields,
    updated_permissions=st.sampled_from([(), ({"a": 1},)]),
    session_title=st.sampled_from([None, "t"]),
    interrupt=st.booleans(),
    content=st.sampled_from([None, {}, {"x": 1}]),
    mcp_output=st.sampled_from([EventFields().mcp_output, None, 1]),
)
replies = st.builds(
    Reply,
    decision=st.sampled_from(Decision),
    reasons=st.lists(st.sampled_from("abc"), max_size=2).map(tuple),
    input=st.sampled_from([None, {}, {"command": "ls"}, {"command": "rm"}]),
    output=st.sampled_from([NOTHING.output, None, "text"]),
    context=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
    messages=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
    stop=st.booleans(),
    stop_reason=st.sampled_from([None, "p", "q"]),
    keep_going=st.booleans(),
    keep_going_reasons=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
    suppress_output=st.booleans(),
    background=st.booleans(),
    background_timeout=st.sampled_from([None, 1.0, 2.0]),
    specific=st.none() | specifics,
)


def bash(command: str = "ls") -> PreToolUse:
    return PreToolUse(tool_name="Bash", tool_input={"command": command})


def fired(hooks: Hooks, event: Event, **options: Any) -> Any:
    async def run() -> Any:
        async with hooks:
            return await hooks.fire(event, **options)

    return asyncio.run(run())


# -- law 1: strictest wins -----------------------------------------------------------------------------------------


@FAST
@given(st.lists(replies, max_size=5).flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_no_order_of_replies_changes_the_decision(both: tuple[list[Reply], list[Reply]]) -> None:
    """Merging is `max` of the decisions."""
    some, shuffled = both

    assert (
        reduce(or_, some, NOTHING).decision
        is reduce(or_, shuffled, NOTHING).decision
        is max((reply.decision for reply in some), default=Decision.PASS)
    )


@SLOW
@given(
    answers=st.lists(st.tuples(decided | st.none(), st.integers(0, 3)), min_size=1, max_size=5),
    order=st.sampled_from(["sequential", "parallel"]),
)
def test_no_order_of_finishing_changes_the_decision(answers: list[tuple[Reply | None, int]], order: Any) -> None:
    """A hook that takes longer is heard all the same."""
    hooks = Hooks(order=order)
    for number, (answer, turns) in enumerate(answers):
        hooks.on(PreToolUse, name=f"h{number}", timeout=20)(_answering(answer, turns))

    verdict = fired(hooks, bash())

    strictest = max((answer.decision for answer, _ in answers if answer), default=Decision.PASS)
    assert verdict.decision is strictest
    assert verdict.blocked is (strictest is Decision.DENY)
    assert len(verdict.outcomes) == len(answers)


def _answering(answer: Any, turns: int) -> Callable[[Any], Any]:
    async def hook(event: Any) -> Any:
        for _ in range(turns):
            await asyncio.sleep(0)
        return answer

    return hook


# -- law 2: merging is a monoid ------------------------------------------------------------------------------------


@FAST
@given(replies, replies, replies)
def test_joining_is_associative(a: Reply, b: Reply, c: Reply) -> None:
    """However replies are grouped, the result is the same."""
    assert (a | b) | c == a | (b | c)


@FAST
@given(replies)
def test_saying_nothing_is_the_identity(reply: Reply) -> None:
    """`Reply()` changes nothing, on either side, whether it is the shared one or not."""
    assert reply | Reply() == Reply() | reply == reply | NOTHING == NOTHING | reply == reply


@SLOW
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), min_size=2, max_size=5))
def test_later_means_configured_order_never_who_finished_last(texts: list[tuple[str, int]]) -> None:
    """Contexts come in the order of registration, whatever the hooks' speed."""
    hooks = Hooks(order="parallel")
    for number, (text, turns) in enumerate(texts):
        hooks.on(PreToolUse, name=f"h{number}", timeout=20)(_answering(context(text), turns))

    assert fired(hooks, bash()).context == tuple(text for text, _ in texts)


@SLOW
@given(
    answers=st.lists(
        st.sampled_from([None, allow("a"), ask("b"), context("c"), message("d"), deny("e"), stop("f")]), max_size=5
    ),
    turns=st.lists(st.integers(0, 2), min_size=5, max_size=5),
)
def test_the_quick_way_and_the_slow_way_give_the_same_verdict(answers: list[Any], turns: list[int]) -> None:
    """Whether hooks wait, and whether somebody watches, changes nothing but the time."""
    quick, slow = Hooks(), Hooks()
    slow.observe(lambda notice: None, inline=True)
    for number, answer in enumerate(answers):
        quick.on(PreToolUse, name=f"h{number}")(_answering(answer, turns[number]))
        slow.on(PreToolUse, name=f"h{number}")(_answering(answer, turns[number]))

    async def run() -> list[Any]:
        async with quick, slow:
            return [await quick.fire(bash()), await quick.fire(bash()), await slow.fire(bash())]

    def seen(verdict: Any) -> Any:
        return verdict.reply, [(o.hook, o.status, o.reply, o.note, o.error) for o in verdict.outcomes]

    first, second, watched = asyncio.run(run())
    assert seen(first) == seen(second) == seen(watched)


# -- law 3: a gate fails closed ------------------------------------------------------------------------------------


async def raises(event: Any) -> Any:
    raise ValueError("broken")


async def raises_later(event: Any) -> Any:
    await asyncio.sleep(0)
    raise ValueError("broken")


async def hangs(event: Any) -> Any:
    await asyncio.Event().wait()


async def cancels_itself(event: Any) -> Any:
    raise asyncio.CancelledError


async def waits_for_something_cancelled(event: Any) -> Any:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    await future


async def answers_a_number(event: Any) -> Any:
    return 42


async def answers_a_coroutine(event: Any) -> Any:
    return raises(event)


async def answers_for_another_event(event: Any) -> Any:
    return {"hookSpecificOutput": {"hookEventName": "Setup" if event.event_name == "Stop" else "Stop"}}


async def answers_a_wrong_mapping(event: Any) -> Any:
    return {"decision": 7}


async def answers_what_does_not_fit(event: Any) -> Any:
    return Reply(keep_going=True)


async def answers_with_an_exception(event: Any) -> Any:
    return deny(ValueError("not a text"))  # type: ignore[arg-type]


async def answers_text_for_a_tuple(event: Any) -> Any:
    return Reply(context="text")  # type: ignore[arg-type]


async def answers_text_for_a_decision(event: Any) -> Any:
    return Reply(decision="deny")  # type: ignore[arg-type]


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def raises_what_cannot_be_shown(event: Any) -> Any:
    raise Unshowable


async def recurses(event: Any, ctx: Context) -> Any:
    return await ctx.fire(event)


def raises_in_a_thread(event: Any) -> Any:
    raise StopIteration("odd")


BROKEN: dict[Callable[..., Any], Status] = {
    raises: Status.FAILED,
    raises_later: Status.FAILED,
    hangs: Status.TIMEOUT,
    cancels_itself: Status.CANCELLED,
    waits_for_something_cancelled: Status.CANCELLED,
    answers_a_number: Status.FAILED,
    answers_a_coroutine: Status.FAILED,
    answers_for_another_event: Status.FAILED,
    answers_a_wrong_mapping: Status.FAILED,
    answers_what_does_not_fit: Status.FAILED,
    answers_with_an_exception: Status.FAILED,
    answers_text_for_a_tuple: Status.FAILED,
    answers_text_for_a_decision: Status.FAILED,
    raises_what_cannot_be_shown: Status.FAILED,
    raises_in_a_thread: Status.FAILED,
}
GATES = [spec.cls for spec in CATALOG.values() if spec.gate]
WATCHES = [spec.cls for spec in CATALOG.values() if not spec.gate]


@SLOW
@given(
    broken=st.lists(st.sampled_from(sorted(BROKEN, key=lambda f: f.__name__)), min_size=1, max_size=3, unique=True),
    cls=st.sampled_from(GATES),
    order=st.sampled_from(["sequential", "parallel"]),
    watched=st.booleans(),
)
def test_whatever_goes_wrong_a_gate_is_closed(broken: list[Any], cls: Any, order: Any, watched: bool) -> None:
    """Raising, hanging, being cancelled or answering nonsense is a deny, on record, with the hook's name."""
    hooks = Hooks(order=order)
    if watched:
        hooks.observe(lambda notice: None, inline=True)
    for number, hook in enumerate(broken):
        hooks.on(cls, name=f"{hook.__name__}{number}", timeout=0.02 if hook is hangs else 20)(hook)

    verdict = fired(hooks, cls())

    first = verdict.outcomes[0]
    assert verdict.blocked
    assert first.status is BROKEN[broken[0]]
    assert first.error
    assert f"hook `{first.hook}` {first.error}; it fails closed" in verdict.reason
    assert verdict.explain().count(" → deny: ") >= 1


@SLOW
@given(
    broken=st.sampled_from(sorted(BROKEN, key=lambda f: f.__name__)),
    cls=st.sampled_from(WATCHES),
    order=st.sampled_from(["sequential", "parallel"]),
)
def test_what_goes_wrong_on_an_event_that_only_watches_is_recorded_and_the_rest_goes_on(
    broken: Any, cls: Any, order: Any
) -> None:
    """An observer's failure hurts nobody else."""
    hooks = Hooks(order=order)
    hooks.on(cls, timeout=0.02 if broken is hangs else 20)(broken)
    hooks.on(cls, name="other")(_answering(message("heard"), 0))

    verdict = fired(hooks, cls())

    fits = broken is answers_what_does_not_fit and "keep_going" in CATALOG[cls.event_name].fields
    assert verdict.outcomes[0].status is (Status.OK if fits else BROKEN[broken])
    assert not verdict.blocked
    assert verdict.messages == ("heard",)


def test_on_failure_says_otherwise() -> None:
    """`continue` opens a gate for a failing hook, `block` closes an observer's event where it can be closed."""
    hooks = Hooks()
    hooks.on(PreToolUse, on_failure="continue")(raises)
    hooks.on(PostToolUse, on_failure="block", name="strict")(raises)
    hooks.on(Notification, on_failure="block", name="cannot")(raises)

    async def run() -> list[Any]:
        async with hooks:
            return [await hooks.fire(cls()) for cls in (PreToolUse, PostToolUse, Notification)]

    opened, closed, cannot = asyncio.run(run())
    assert (opened.blocked, opened.failures[0].error) == (False, "raised ValueError: broken")
    assert closed.blocked
    assert not cannot.blocked


def test_hooks_that_fire_events_for_ever_end_as_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Endless recursion is a crash like any other."""
    caplog.set_level(logging.CRITICAL, logger="hookline")  # a thousand tracebacks are not wanted
    hooks = Hooks()
    hooks.on(PreToolUse)(recurses)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the stack may end between making a coroutine and starting it
        blocked = fired(hooks, bash()).blocked
        gc.collect()

    assert blocked


# -- law 4: what runs is what was judged ---------------------------------------------------------------------------


def _guard(seen: list[str]) -> Callable[[PreToolUse], Any]:
    async def guard(event: PreToolUse) -> Reply:
        seen.append(event.tool_input["command"])
        return deny("no rm") if "rm" in event.tool_input["command"] else allow("fine")

    return guard


def _rewriter(command: str, decide: Reply = NOTHING) -> Callable[[Any], Any]:
    async def rewriter(event: Any) -> Reply:
        return rewrite({"command": command}) | decide

    return rewriter


commands = st.sampled_from(["ls", "rm x", "cat", "rm y"])


@SLOW
@given(
    rewrites=st.lists(commands, max_size=3),
    place=st.integers(0, 3),
    order=st.sampled_from(["sequential", "parallel"]),
    before=commands,
)
def test_a_guard_has_judged_what_runs(rewrites: list[str], place: int, order: Any, before: str) -> None:
    """Wherever a guard stands among rewriters, nothing it forbids runs, and its allow is for what runs."""
    hooks = Hooks(order=order)
    seen: list[str] = []
    names = [f"r{number}" for number in range(len(rewrites))]
    todo: list[tuple[str, Any]] = list(zip(names, map(_rewriter, rewrites), strict=True))
    todo.insert(min(place, len(todo)), ("guard", _guard(seen)))
    for name, hook in todo:
        hooks.on(PreToolUse, name=name)(hook)

    verdict = fired(hooks, bash(before))

    command = verdict.input["command"]
    assert verdict.blocked or command == seen[-1]
    assert verdict.blocked or verdict.decision is Decision.ALLOW
    assert not ("rm" in command and not verdict.blocked)
    if order == "parallel":
        assert command == (rewrites[-1] if rewrites else before)


@FAST
@given(replies, replies)
def test_a_second_judgement_forgets_only_the_allow(first: Reply, second: Reply) -> None:
    """What was stricter than allow stays; an allow for the old input never survives by itself."""
    both = second_judgement(first, second)
    kept = first.decision if first.decision > Decision.ALLOW else Decision.PASS

    assert both.decision is max(kept, second.decision)
    assert both.input is None
    assert both.stop is (first.stop or second.stop)


def test_an_allow_of_a_hook_that_no_longer_applies_is_forgotten() -> None:
    """A hook with a condition allowed `ls`; that is no allow for what it was rewritten to."""
    for order in ("sequential", "parallel"):
        hooks = Hooks(order=order)
        hooks.on(PreToolUse, when="Bash(ls*)", name="listing")(_answering(allow("only ls"), 0))
        hooks.on(PreToolUse, name="rewriter")(_rewriter("rm -rf x"))

        verdict = fired(hooks, bash("ls"))

        assert verdict.decision is Decision.PASS
        assert verdict.outcomes[0].note == "judged an older input"


def test_an_allow_of_a_hook_that_only_watches_is_not_for_the_rewritten_input() -> None:
    """`rejudge=False` means not being asked again, not being right in advance."""
    hooks = Hooks()
    hooks.on(PreToolUse, rejudge=False, name="watch")(_answering(allow("old"), 0))
    hooks.on(PreToolUse, rejudge=False, name="silent")(_answering(None, 0))
    hooks.on(PreToolUse, name="rewriter")(_rewriter("rm"))

    verdict = fired(hooks, bash("ls"))

    assert verdict.decision is Decision.PASS
    assert [outcome.note for outcome in verdict.outcomes] == ["judged an older input", None, None]


def test_a_hook_whose_condition_holds_only_for_the_rewritten_input_is_asked() -> None:
    """A guard of `rm` sees the `rm` that another hook wrote, wherever it stands, and cannot rewrite it once more."""
    for order, place in itertools.product(("sequential", "parallel"), (10, -10)):
        hooks = Hooks(order=order)  # type: ignore[arg-type]
        hooks.on(PreToolUse, name="rewriter")(_rewriter("rm x"))
        hooks.on(PreToolUse, when="Bash(rm *)", priority=place, name="guard")(_answering(deny("no rm"), 0))
        hooks.on(PreToolUse, when="Bash(rm *)", priority=-20, name="other")(_rewriter("ls"))

        verdict = fired(hooks, bash("ls"))

        assert (verdict.decision, verdict.decided_by) == (Decision.DENY, "guard")
        assert verdict.input == {"command": "rm x"}
        names = ["guard", "rewriter", "other"] if place > 0 else ["rewriter", "guard", "other"]
        assert [outcome.hook for outcome in verdict.outcomes] == names
        assert verdict.outcomes[-1].note == "asked late; its own rewrite was not applied"


def test_a_hook_after_the_rewriter_that_no_longer_applies_is_left_out() -> None:
    """Its condition held for an input that nobody runs."""
    hooks = Hooks()
    hooks.on(PreToolUse, name="rewriter")(_rewriter("cat"))
    hooks.on(PreToolUse, when="Bash(ls*)", name="listing")(_answering(deny("never"), 0))

    verdict = fired(hooks, bash("ls"))

    assert verdict.decision is Decision.PASS
    assert verdict.outcomes[1].note == "does not apply to the rewritten input"


def test_hooks_that_went_to_the_background_or_ran_once_are_settled_too() -> None:
    """A background hook is not asked twice; a `once` hook is, because it is the same call."""
    asked: list[str] = []

    async def once(event: PreToolUse) -> None:
        asked.append(event.tool_input["command"])

    hooks = Hooks()
    hooks.on(PreToolUse, background=True, name="aside")(_answering(None, 0))
    hooks.on(PreToolUse, once=True)(once)
    hooks.on(PreToolUse, name="rewriter")(_rewriter("cat"))

    verdict = fired(hooks, bash("ls"))

    assert asked == ["ls", "cat"]
    assert [o.status for o in verdict.outcomes] == [Status.BACKGROUND, Status.OK, Status.OK]
    assert verdict.outcomes[1].note == "judged the rewritten input too"


def test_permissions_granted_with_a_forgotten_allow_are_forgotten_too() -> None:
    """What came with the allow goes with it; said again, it counts once."""
    granted = allow("old") | Reply(specific=EventFields(updated_permissions=({"rule": 1},), interrupt=True))

    assert second_judgement(granted, NOTHING) == Reply(specific=EventFields(interrupt=True))
    assert second_judgement(granted, granted) == granted


# -- law 5: nothing is swallowed -----------------------------------------------------------------------------------


def test_a_failure_of_the_first_judgement_stays_on_record_when_the_second_succeeds() -> None:
    """The hook failed once, whatever came after."""

    async def flaky(event: PreToolUse) -> None:
        if event.tool_input["command"] == "ls":
            raise ValueError("first")

    hooks = Hooks()
    hooks.on(PreToolUse, on_failure="continue")(flaky)
    hooks.on(PreToolUse, name="rewriter")(_rewriter("cat"))

    verdict = fired(hooks, bash("ls"))

    assert verdict.outcomes[0].status is Status.FAILED
    assert verdict.outcomes[0].error == "raised ValueError: first"


@SLOW
@given(
    st.lists(st.sampled_from(sorted(BROKEN, key=lambda f: f.__name__)), min_size=1, max_size=4),
    st.sampled_from(["sequential", "parallel"]),
)
def test_every_failure_is_an_outcome_and_is_explained(broken: list[Any], order: Any) -> None:
    """On an event that only watches, all hooks run and all failures are listed."""
    hooks = Hooks(order=order)
    for number, hook in enumerate(broken):
        hooks.on(PostToolUse, name=f"h{number}", timeout=0.02 if hook is hangs else 20)(hook)

    verdict = fired(hooks, PostToolUse(tool_name="Bash"))

    assert [outcome.hook for outcome in verdict.failures] == [f"h{number}" for number in range(len(broken))]
    assert [outcome.status for outcome in verdict.failures] == [BROKEN[hook] for hook in broken]
    assert verdict.explain().count("✗") == len(broken)


def test_what_a_background_reply_says_besides_counts_at_once() -> None:
    """`deny(…) | background(work)` denies now and works later."""
    hooks = Hooks()
    hooks.on(PreToolUse)(_answering(deny("now") | background(), 0))

    verdict = fired(hooks, bash())

    assert verdict.reply == deny("now")
    assert verdict.outcomes[0].status is Status.BACKGROUND
