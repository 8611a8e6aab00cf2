"""A set of hooks: registering, firing, closing."""

import asyncio
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from hookline import Hook, Hooks, Reply, allow, deny, hook, rewrite
from hookline.core.engine import Context, Engine
from hookline.core.engine import engine as engine_module
from hookline.core.engine.verdict import Status
from hookline.core.hooks import Command, Function, make_hook
from hookline.errors import Closed, DuplicateHook, EventError, HookError, UnknownEvent, UnknownHook
from hookline.events import Event, Notification, PreToolUse, SessionStart, Stop

BASH = PreToolUse(tool_name="Bash", tool_input={"command": "ls"})


async def nothing(event: Any) -> None:
    return None


async def no(event: Any) -> Reply:
    return deny("no")


# -- registering ---------------------------------------------------------------------------------------------------


def test_hooks_run_by_priority_then_in_the_order_they_were_added() -> None:
    """Higher priority first."""
    hooks = Hooks()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1)):
        hooks.add(PreToolUse, nothing, name=name, priority=priority)

    assert [each.name for each in hooks.hooks] == ["b", "a", "c", "d"]


def test_a_name_is_unique() -> None:
    """A chosen name that is taken is refused; a function's own name gets a number; the same hook twice is refused."""
    hooks = Hooks()
    hooks.on(PreToolUse)(nothing)
    hooks.on(PreToolUse, match="Bash")(nothing)
    hooks.on(Stop)(nothing)

    assert [each.name for each in hooks.hooks] == ["nothing", "nothing#2", "nothing#3"]
    with pytest.raises(DuplicateHook, match="`nothing` is already registered"):
        hooks.on(PreToolUse)(nothing)
    with pytest.raises(DuplicateHook, match="`nothing#2`"):
        hooks.on(PreToolUse, name="nothing#2")(no)


def test_of_several_hooks_added_together_all_or_none_are_registered() -> None:
    """One that is refused leaves the set as it was."""
    made = Hook(name="x", events=(PreToolUse,), action=Function(nothing, is_async=True))
    hooks = Hooks()

    with pytest.raises(DuplicateHook):
        hooks.add(made, made)

    assert hooks.hooks == ()


async def test_a_removed_hook_is_gone_and_its_name_is_free_again() -> None:
    """A `once` hook that is registered anew runs anew."""
    hooks = Hooks()
    hooks.on(PreToolUse, once=True)(no)

    assert (await hooks.fire(BASH)).blocked
    assert not (await hooks.fire(BASH)).blocked
    assert hooks.remove("no").name == "no"
    hooks.on(PreToolUse, once=True)(no)
    assert (await hooks.fire(BASH)).blocked
    with pytest.raises(UnknownHook, match="did you mean `no`"):
        hooks.remove("nos")


def test_classes_and_objects_can_be_added() -> None:
    """`add` takes hooks, objects with marked methods, and an event with what to run."""

    class Policy:
        @hook(PreToolUse, match="Bash")
        async def check(self, event: Any) -> None:
            return None

    hooks = Hooks()
    added = hooks.add(Policy()) + hooks.add("Stop", Command(command="true"))

    assert [each.name for each in added] == ["Policy.check", "true"]


def test_a_set_refuses_what_it_cannot_be() -> None:
    """Order and timeout are checked at once."""
    with pytest.raises(HookError, match="order must be"):
        Hooks(order="random")  # type: ignore[arg-type]
    with pytest.raises(HookError, match="timeout must be more than 0"):
        Hooks(timeout=0)
    with pytest.raises(HookError, match="timeout must be more than 0"):
        Hooks().on(PreToolUse, timeout=-1)(nothing)


async def test_a_change_counts_for_the_next_event_not_for_the_running_one() -> None:
    """A running `fire` keeps the set it started with."""
    hooks, going, go_on = Hooks(), asyncio.Event(), asyncio.Event()

    @hooks.on(PreToolUse)
    async def waits(event: Any) -> None:
        going.set()
        await go_on.wait()

    hooks.on(PreToolUse)(nothing)
    running = asyncio.create_task(hooks.fire(BASH))
    await going.wait()
    hooks.remove("nothing")
    hooks.on(PreToolUse)(no)
    go_on.set()

    assert [o.hook for o in (await running).outcomes] == ["waits", "nothing"]
    assert [o.hook for o in (await hooks.fire(BASH)).outcomes] == ["waits", "no"]


def test_hooks_are_registered_from_several_threads_while_events_fire() -> None:
    """No event is lost, no hook is forgotten, whatever meets whatever."""
    hooks, verdicts = Hooks(), []
    begun, done = threading.Event(), threading.Event()

    def register(thread: int) -> None:
        begun.wait(60)  # else all of them may be there before the first event
        for number in range(100):
            hooks.add(PreToolUse, nothing, name=f"{thread}.{number}", match="Bash" if number % 2 else None)
            if number % 10 == 0:
                hooks.remove(f"{thread}.{number}")

    def fire() -> None:
        async def run() -> None:
            while not done.is_set():
                verdicts.append(len((await hooks.fire(BASH)).outcomes))
                begun.set()
                await asyncio.sleep(0)

        asyncio.run(run())

    firing = [threading.Thread(target=fire) for _ in range(2)]
    registering = [threading.Thread(target=register, args=(number,)) for number in range(3)]
    for thread in firing + registering:
        thread.start()
    for thread in registering:
        thread.join()
    done.set()
    for thread in firing:
        thread.join()

    assert len(hooks.hooks) == 270
    assert verdicts
    assert all(0 <= count <= 270 for count in verdicts)
    assert len(asyncio.run(hooks.fire(BASH)).outcomes) == 270


def test_one_set_serves_several_event_loops() -> None:
    """Each thread with a loop of its own fires through the same hooks; those that wait, wait on their own loop."""
    hooks, reasons = Hooks(), []

    @hooks.on(PreToolUse, timeout=20)
    async def waits(event: Any) -> Reply:
        await asyncio.sleep(0.001)
        return deny(event.session_id)

    @hooks.on(Notification, timeout=20)
    def blocks(event: Any) -> None:
        return None

    async def run(name: str) -> None:
        for _ in range(20):
            verdict, seen = await asyncio.gather(
                hooks.fire(PreToolUse(tool_name="Bash", session_id=name)), hooks.fire(Notification())
            )
            assert seen.outcomes[0].status is Status.OK
            reasons.append((name, verdict.reason))

    threads = [threading.Thread(target=asyncio.run, args=(run(str(number)),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(reasons) == 80
    assert all(name == reason for name, reason in reasons)
    asyncio.run(hooks.aclose())


# -- firing --------------------------------------------------------------------------------------------------------


async def test_a_set_without_hooks_has_nothing_to_say() -> None:
    """Again and again."""
    hooks = Hooks()

    for _ in range(2):
        verdict = await hooks.fire(BASH)
        assert (str(verdict), verdict.outcomes) == ("PreToolUse(Bash) → PASS (no hook applies)", ())


async def test_only_events_can_be_fired() -> None:
    """What is no event is refused, and so is an event nobody knows."""

    class Mine(Event, frozen=True, kw_only=True, eq=False, tag="Mine"):
        event_name = "Mine"

    with pytest.raises(EventError, match="expected an event such as"):
        await Hooks().fire("PreToolUse")  # type: ignore[arg-type]
    with pytest.raises(UnknownEvent, match="unknown event `Mine`"):
        await Hooks().fire(Mine())


async def test_a_subclass_of_an_event_is_that_event() -> None:
    """A host's own class of PreToolUse does not slip past the hooks of PreToolUse."""

    class MyPreToolUse(PreToolUse, frozen=True, kw_only=True, eq=False, tag="PreToolUse"):
        mine: int = 0

    hooks = Hooks()
    hooks.on(PreToolUse, match="Bash")(no)

    for _ in range(2):
        assert (await hooks.fire(MyPreToolUse(tool_name="Bash"))).blocked
        assert not (await hooks.fire(MyPreToolUse(tool_name="Read"))).blocked


async def test_a_quick_way_is_found_for_each_subject() -> None:
    """More subjects than are remembered make no difference to who is asked."""
    hooks = Hooks()
    hooks.on(PreToolUse, match="t1.*")(no)

    for number in [*range(600), *range(20)]:
        verdict = await hooks.fire(PreToolUse(tool_name=f"t{number}"))
        assert verdict.blocked is str(number).startswith("1")


async def test_a_predicate_that_raises_selects_its_hook() -> None:
    """Whoever cannot say no gets asked: as matcher, as predicate, as condition."""

    def broken(thing: Any) -> bool:
        raise ValueError

    for options in ({"match": broken}, {"when": broken}):
        hooks = Hooks()
        hooks.on(PreToolUse, **options)(no)  # type: ignore[arg-type, call-arg]
        assert (await hooks.fire(BASH)).blocked


async def test_only_one_hook_is_asked_on_demand() -> None:
    """`only` names it; a name that is not there is an error, not a pass."""
    hooks = Hooks()
    hooks.on(PreToolUse)(no)
    hooks.on(PreToolUse)(nothing)
    hooks.on(Stop, name="elsewhere")(nothing)

    assert [o.hook for o in (await hooks.fire(BASH, only="nothing")).outcomes] == ["nothing"]
    assert (await hooks.fire(BASH, only="elsewhere")).outcomes == ()
    with pytest.raises(UnknownHook, match="did you mean `nothing`"):
        await hooks.fire(BASH, only="nothin")


async def test_a_deadline_bounds_all_hooks_together() -> None:
    """The hook that runs when it is over times out; those after it are not even asked, which closes a gate."""

    async def slow(event: Any, ctx: Context) -> None:
        assert ctx.fire_deadline is not None
        assert ctx.deadline <= ctx.fire_deadline
        await asyncio.Event().wait()

    hooks = Hooks()
    hooks.on(PreToolUse, on_failure="continue")(slow)
    hooks.on(PreToolUse)(nothing)
    verdict = await hooks.fire(BASH, deadline=0.02)

    assert [outcome.status for outcome in verdict.outcomes] == [Status.TIMEOUT, Status.TIMEOUT]
    assert verdict.outcomes[1].error == "was not asked: the deadline had passed"
    assert verdict.blocked


async def test_once_means_once_however_many_events_come_together() -> None:
    """One event gets it; the others that had chosen it say so."""
    runs: list[Any] = []

    async def first(event: Any) -> None:
        await asyncio.sleep(0)

    async def single(event: Any) -> None:
        runs.append(event)

    hooks = Hooks()
    hooks.on(PreToolUse)(first)
    hooks.on(PreToolUse, once=True)(single)
    verdicts = await asyncio.gather(*(hooks.fire(BASH) for _ in range(50)))

    assert len(runs) == 1
    notes = [verdict.outcomes[1].note for verdict in verdicts]
    assert sorted(map(str, notes)) == sorted(["None", *["it has run before"] * 49])
    assert len((await hooks.fire(BASH)).outcomes) == 1


async def test_a_once_hook_that_failed_runs_again() -> None:
    """Only a run that came to an end counts; a deny is one."""
    runs: list[Any] = []

    async def moody(event: Any) -> Reply:
        runs.append(event)
        if len(runs) == 1:
            raise ValueError("not yet")
        return deny("seen")

    hooks = Hooks()
    hooks.on(PreToolUse, once=True)(moody)
    verdicts = [await hooks.fire(BASH) for _ in range(3)]

    assert [verdict.blocked for verdict in verdicts] == [True, True, False]
    assert len(runs) == 2


async def test_a_once_hook_that_failed_is_not_forgotten_by_events_that_came_meanwhile() -> None:
    """While it runs, others find their way without it; that way is no longer theirs once it has failed."""
    running, fail = asyncio.Event(), asyncio.Event()

    async def guard(event: Any) -> Reply:
        if not running.is_set():
            running.set()
            await fail.wait()
            raise ValueError("not yet")
        return deny("seen")

    hooks = Hooks()
    hooks.on(PreToolUse, once=True)(guard)
    first = asyncio.create_task(hooks.fire(BASH))
    await running.wait()
    meanwhile = await hooks.fire(BASH)
    fail.set()

    assert (await first).failures
    assert meanwhile.outcomes == ()
    assert (await hooks.fire(BASH)).reason == "seen"


async def test_a_once_hook_that_was_skipped_has_not_run() -> None:
    """It keeps its turn."""
    hooks = Hooks()
    hooks.on(PreToolUse, match="Bash")(no)
    hooks.on(PreToolUse, once=True)(nothing)
    await hooks.fire(BASH)

    verdict = await hooks.fire(PreToolUse(tool_name="Read"))

    assert [(o.hook, o.status) for o in verdict.outcomes] == [("nothing", Status.OK)]


async def test_a_stop_ends_the_run_like_a_deny() -> None:
    """Hooks after it are recorded as skipped; whether on the quick way or not."""

    async def stops(event: Any) -> Any:
        return {"continue": False, "stopReason": "enough"}

    hooks = Hooks()
    hooks.on(PreToolUse)(stops)
    hooks.on(PreToolUse)(nothing)

    for _ in range(2):
        verdict = await hooks.fire(BASH)
        assert (verdict.blocked, verdict.reason, verdict.decided_by) == (True, "enough", "stops")
        assert verdict.outcomes[1].note == "`stops` stopped"


async def test_mappings_are_answers_too() -> None:
    """Right ones count, wrong ones are failures; on the quick way and off it."""

    async def denies(event: Any) -> Any:
        return {"decision": "block", "reason": "mapping"}

    async def wrong(event: Any) -> Any:
        return {"decision": "perhaps"}

    hooks = Hooks()
    hooks.on(PreToolUse, match="Bash")(denies)
    hooks.on(PreToolUse, match="Read")(wrong)

    for _ in range(3):
        assert (await hooks.fire(BASH)).reason == "mapping"
        assert (await hooks.fire(PreToolUse(tool_name="Read"))).failures[0].error is not None


async def test_a_single_rewriter_is_heard_and_others_see_its_input() -> None:
    """On the quick way a rewrite by the only hook is the last word; with others it goes the slow way."""
    seen: list[Any] = []

    async def rewriter(event: Any) -> Reply:
        return rewrite({"command": "cat"})

    async def sees(event: Any) -> Reply:
        seen.append(event.tool_input)
        return allow()

    hooks = Hooks()
    hooks.on(PreToolUse)(rewriter)
    for _ in range(2):
        assert (await hooks.fire(BASH)).input == {"command": "cat"}
    hooks.on(PreToolUse)(sees)
    for _ in range(2):
        assert (await hooks.fire(BASH)).input == {"command": "cat"}
    assert seen == [{"command": "cat"}] * 2


async def test_an_engine_without_runners_says_what_to_do() -> None:
    """Async functions need none; the rest does."""
    engine = Engine()
    engine.registry.add([make_hook([PreToolUse], no, match="Bash")], named=False)
    engine.registry.add([make_hook([PreToolUse], Command(command="true"), match="Read")], named=False)

    assert (await engine.fire(BASH)).reason == "no"
    assert "no runner for Command hooks" in (await engine.fire(PreToolUse(tool_name="Read"))).reason


# -- switched off, closed ------------------------------------------------------------------------------------------


async def test_hooks_can_be_switched_off_and_on() -> None:
    """Nothing is asked meanwhile."""
    hooks = Hooks()
    hooks.on(PreToolUse)(no)

    assert (await hooks.fire(BASH)).blocked
    hooks.engine.enabled = False
    assert not (await hooks.fire(BASH)).blocked
    assert not (await hooks.fire(BASH)).blocked
    hooks.engine.enabled = True
    assert (await hooks.fire(BASH)).blocked


def test_hookline_enabled_0_switches_hooks_off_with_one_warning() -> None:
    """Without any logging set up, the warning is on stderr, once for all sets."""
    script = (
        "import asyncio\nfrom hookline import Hooks, deny\nfrom hookline.events import PreToolUse\n"
        "for _ in range(3):\n    hooks = Hooks()\n"
        "@hooks.on(PreToolUse)\nasync def no(event): return deny('no')\n"
        "print(asyncio.run(hooks.fire(PreToolUse(tool_name='Bash'))).blocked)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env={"HOOKLINE_ENABLED": "0", "PATH": ""}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip

    assert ran.stdout == "False\n"
    assert ran.stderr == "hooks are switched off: HOOKLINE_ENABLED is 0, so nothing is judged or blocked\n"


async def test_the_warning_is_given_once_for_all_sets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any word for no will do."""
    monkeypatch.setattr(engine_module, "_warned_off", False)
    monkeypatch.setenv("HOOKLINE_ENABLED", " Off")
    hooks = [Hooks(), Hooks()]

    assert not any(each.engine.enabled for each in hooks)
    assert len(caplog.records) == 1


async def test_runners_that_need_no_closing_are_left_alone() -> None:
    """A runner may have `aclose`; it need not."""

    class Runs:
        async def run(self, hook: Hook, event: Event, ctx: Context) -> Reply:
            return deny("ran")

    hooks = Hooks(runners=lambda kind, services: Runs())
    hooks.add(PreToolUse, Command(command="true"))

    assert (await hooks.fire(BASH)).reason == "ran"
    assert await hooks.aclose() == []


async def test_a_crash_among_several_hooks_is_found_on_the_quick_way_too() -> None:
    """With the hook's name and time, before and after the way is known."""

    async def crashes(event: Any) -> None:
        raise ValueError("late")

    hooks = Hooks()
    for call in (nothing, crashes, no):
        hooks.on(PreToolUse)(call)

    for _ in range(2):
        verdict = await hooks.fire(BASH)
        assert [(o.hook, o.status) for o in verdict.outcomes] == [
            ("nothing", Status.OK), ("crashes", Status.FAILED), ("no", Status.SKIPPED),
        ]  # fmt: skip


async def test_a_closed_set_judges_nothing_any_more() -> None:
    """Firing is an error, never a silent pass; closing twice is fine."""
    hooks = Hooks()
    hooks.on(PreToolUse)(no)
    await hooks.fire(BASH)
    async with hooks:
        pass
    await hooks.aclose()

    for _ in range(2):
        with pytest.raises(Closed):
            await hooks.fire(BASH)


async def test_what_concerns_a_hook() -> None:
    """Its events, its matcher and its condition."""
    hooks = Hooks()
    (made,) = hooks.add(PreToolUse, nothing, match="Bash", when="Bash(ls*)")

    assert hooks.engine.applies_to(made, BASH)
    assert not hooks.engine.applies_to(made, PreToolUse(tool_name="Bash", tool_input={"command": "cat"}))
    assert not hooks.engine.applies_to(made, SessionStart())


async def test_an_if_never_holds_on_an_event_without_a_tool() -> None:
    """There is nothing it could look at."""
    hooks = Hooks()
    hooks.on(Stop, when="Bash(ls*)")(nothing)

    assert (await hooks.fire(Stop())).outcomes == ()


async def test_a_function_that_cannot_even_be_called_closes_the_gate() -> None:
    """What is wrong with the call itself is the hook's failure, not the caller's."""

    async def waiting(event: Event) -> None:
        await asyncio.sleep(0)

    async with Hooks() as hooks:
        hooks.add(PreToolUse, partial(waiting, nobody_knows=1), name="wrong")  # type: ignore[call-arg]
        verdicts = [await hooks.fire(PreToolUse(tool_name="Bash")) for _ in range(2)]

    assert [verdict.blocked for verdict in verdicts] == [True, True]
    assert "nobody_knows" in verdicts[1].reason


async def test_a_set_that_follows_its_files_looks_before_every_event() -> None:
    """Also before an event that nobody has a hook on."""
    hooks = Hooks()
    looked: list[int] = []
    hooks.engine.refresh_with(lambda: looked.append(1))

    await hooks.fire(PreToolUse(tool_name="Bash"))
    await hooks.fire(PreToolUse(tool_name="Read"))

    assert looked == [1, 1]


def test_a_numbered_name_that_is_taken_is_passed_over() -> None:
    """Somebody may have chosen `guard#2` for a hook of their own."""
    hooks = Hooks()

    def guard(event: object) -> None:
        return None

    hooks.on(PreToolUse)(guard)
    hooks.on(PreToolUse, name="guard#2")(lambda event: None)
    hooks.on(PreToolUse, match="Bash")(guard)

    assert [hook.name for hook in hooks.hooks] == ["guard", "guard#2", "guard#3"]
