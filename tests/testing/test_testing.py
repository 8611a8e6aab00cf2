"""What users get for their own tests."""

import asyncio
import doctest
import functools
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import hookline.testing
from hookline import Command, Context, Decision, Hooks, Verdict, allow, ask, context, deny, hook, keep_going, rewrite
from hookline.core.engine.composition import merge
from hookline.core.engine.loop_thread import run_sync
from hookline.errors import HookError, HookFailed, HooklineError
from hookline.events import (
    CATALOG,
    Event,
    Notification,
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Stop,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
)
from hookline.replies import NOTHING
from hookline.testing import (
    FakeClock,
    FakeRunner,
    Recorder,
    announced,
    asking,
    assert_allowed,
    assert_asked,
    assert_context,
    assert_denied,
    assert_kept_going,
    assert_passed,
    assert_rewrote,
    bash,
    edit,
    failed,
    fire,
    fire_sync,
    make_outcome,
    mcp,
    prompt,
    read,
    register,
    session_end,
    session_start,
    stop,
    subagent_start,
    subagent_stop,
    succeeded,
    tool,
    write,
)

SESSION: dict[str, Any] = {
    "session_id": "test-session",
    "cwd": "/project",
    "permission_mode": "default",
    "transcript_path": "/project/.transcripts/test-session.jsonl",
}


def no_rm(event: PreToolUse) -> Any:
    return deny("never") if event.tool_input.get("command", "").startswith("rm ") else None


def test_the_example_in_the_docstring_is_true() -> None:
    """Three lines are enough to test a hook."""
    results = doctest.testmod(hookline.testing)

    assert (results.failed, results.attempted) == (0, 5)


def test_every_public_name_is_there() -> None:
    """`__all__` says what the package has."""
    assert [name for name in hookline.testing.__all__ if not hasattr(hookline.testing, name)] == []


# -- events ------------------------------------------------------------------------------------------------------

CALL = {**SESSION, "tool_use_id": "toolu_test"}
LS = bash("ls")

MADE: list[tuple[Event, Event]] = [
    (LS, PreToolUse(**CALL, tool_name="Bash", tool_input={"command": "ls"})),
    (read("a"), PreToolUse(**CALL, tool_name="Read", tool_input={"file_path": "a"})),
    (write("a", "x"), PreToolUse(**CALL, tool_name="Write", tool_input={"file_path": "a", "content": "x"})),
    (edit("a"), PreToolUse(**CALL, tool_name="Edit",
                           tool_input={"file_path": "a", "old_string": "old", "new_string": "new"})),
    (tool("Any"), PreToolUse(**CALL, tool_name="Any")),
    (mcp("files", "delete", {"path": "a"}),
     PreToolUse(**CALL, tool_name="mcp__files__delete", tool_input={"path": "a"},
                mcp_server={"name": "files", "source": "project"})),
    (succeeded(LS, "a\n"), PostToolUse(**CALL, tool_name="Bash", tool_input={"command": "ls"}, tool_response="a\n",
                                       duration_ms=1)),
    (failed(LS, "no"), PostToolUseFailure(**CALL, tool_name="Bash", tool_input={"command": "ls"}, error="no",
                                          duration_ms=1)),
    (asking(LS), PermissionRequest(**CALL, tool_name="Bash", tool_input={"command": "ls"})),
    (prompt("hi"), UserPromptSubmit(**SESSION, prompt="hi")),
    (stop(again=True), Stop(**SESSION, last_assistant_message="done", stop_hook_active=True)),
    (session_start(), SessionStart(**SESSION, source="startup")),
    (session_end("clear"), SessionEnd(**SESSION, reason="clear")),
    (subagent_start("explore"), SubagentStart(**SESSION, agent_id="agent_test", agent_type="explore")),
    (subagent_stop(), SubagentStop(**SESSION, agent_id="agent_test", agent_type="general-purpose")),
    (announced(Notification, message="hi"), Notification(**SESSION, message="hi")),
]  # fmt: skip


@pytest.mark.parametrize("made, meant", MADE, ids=[type(meant).__name__ + str(i) for i, (_, meant) in enumerate(MADE)])
def test_a_factory_makes_the_event_a_session_would(made: Event, meant: Event) -> None:
    """One word, and everything else has a sensible value."""
    assert made == meant


@pytest.mark.parametrize("name", CATALOG)
def test_any_event_can_be_announced(name: str) -> None:
    """By its name, with the session the other factories share."""
    event = announced(name, cwd="/elsewhere")

    assert (type(event), event.session_id, event.cwd) == (CATALOG[name].cls, "test-session", "/elsewhere")


def test_what_the_test_says_beats_what_the_factory_knows() -> None:
    """Every field can be given by name."""
    assert (bash("ls", cwd="/srv", tool_use_id="t9").cwd, bash("ls", tool_use_id="t9").tool_use_id) == ("/srv", "t9")
    assert succeeded(bash("ls", tool_use_id="t9"), duration_ms=7).tool_use_id == "t9"


# -- firing ------------------------------------------------------------------------------------------------------


class Guard:
    """A class whose methods are hooks."""

    @hook(PreToolUse, match="Bash")
    def look(self, event: PreToolUse) -> Any:
        return no_rm(event)


class Called:
    """An object that can be called."""

    async def __call__(self, event: PreToolUse, ctx: Context) -> Any:
        return no_rm(event)


class Old:
    """An object with a name, events and `execute`."""

    name = "old"
    events = (PreToolUse,)

    def execute(self, event: PreToolUse, ctx: Context) -> Any:
        return no_rm(event)


def registered() -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse)(no_rm)
    return hooks


THINGS: list[Callable[[], Any]] = [
    lambda: no_rm, registered, Guard, lambda: Guard, Called, Old, lambda: functools.partial(no_rm),
    lambda: [Old()],
]  # fmt: skip


@pytest.mark.parametrize("make", THINGS)
def test_whatever_can_be_a_hook_can_be_fired(make: Callable[[], Any]) -> None:
    """A function, a set, a class, an object, a list: one call, in a test that is not `async`."""
    thing = make()

    assert_denied(fire_sync(thing, bash("rm -rf /")), reason="never")
    assert_passed(fire_sync(thing, bash("ls")))


@pytest.mark.parametrize("make", THINGS)
async def test_the_same_in_an_async_test(make: Callable[[], Any]) -> None:
    """`await fire(…)` takes what `fire_sync` takes."""
    assert_denied(await fire(make(), bash("rm -rf /")), reason="never")


def test_options_are_those_of_on() -> None:
    """A function may be fired with a matcher, a priority, a timeout …"""
    assert_passed(fire_sync(no_rm, bash("rm -rf /"), match="Write"))
    with pytest.raises(HookError) as raised:
        fire_sync(Guard(), bash("ls"), match="Write")

    assert str(raised.value) == "match: a hook that names its own events has its own options; set them there"


async def test_an_action_is_asked_about_the_kind_of_event_it_is_given() -> None:
    """As a function is; here the command itself is faked."""
    async with Hooks(runners=FakeRunner(default=deny("no"))) as hooks:
        register(hooks, Command(command="check.sh"), bash("ls"), match="Bash")

        assert_denied(await hooks.fire(bash("ls")), by="check.sh")


async def test_fire_sync_in_an_async_test_says_what_to_write() -> None:
    """Two loops cannot run in one thread."""
    with pytest.raises(HooklineError) as raised:
        fire_sync(no_rm, bash("ls"))

    assert str(raised.value) == "`fire_sync` was called where an event loop runs; write `await fire(…)` instead"


def test_the_loop_stays_between_calls() -> None:
    """What a hook left running goes on with the next event."""
    hooks = Hooks()
    loops: list[asyncio.AbstractEventLoop] = []

    @hooks.on(PreToolUse)
    async def look(event: PreToolUse) -> None:
        loops.append(asyncio.get_running_loop())

    fire_sync(hooks, bash("ls"))
    fire_sync(hooks, bash("ls"))

    assert loops[0] is loops[1]
    assert not loops[0].is_closed()
    run_sync(hooks.aclose())


# -- fakes -------------------------------------------------------------------------------------------------------


def test_a_fake_clock_goes_only_when_told() -> None:
    """Time is what the test says it is."""
    clock = FakeClock(10.0)
    clock.advance(2.5)

    assert (clock(), clock()) == (12.5, 12.5)


def test_with_a_step_every_hook_takes_the_same_time() -> None:
    """Durations in a verdict become exact."""
    hooks = Hooks(clock=FakeClock(step=0.25))

    @hooks.on(PreToolUse)
    async def look(event: PreToolUse) -> None: ...

    assert [outcome.ms for outcome in fire_sync(hooks, bash("ls")).outcomes] == [250.0]


def test_a_recorder_remembers_what_hooks_did() -> None:
    """Who started, how it ended, and what came of it, in order."""
    hooks, recorder = registered(), Recorder()
    hooks.observe(recorder, inline=True)
    verdict = fire_sync(hooks, bash("rm -rf /"))
    fire_sync(hooks, prompt("hi"))

    assert recorder.started == ["no_rm"]
    assert [(r.hook, r.outcome) for r in recorder.responses] == [("no_rm", "success")]
    assert recorder.events == ["PreToolUse", "UserPromptSubmit"]
    assert recorder.verdicts[0].reply == verdict.reply
    run_sync(hooks.aclose())


async def test_a_fake_runner_answers_for_commands() -> None:
    """No process is started; who was asked is remembered; Python functions still run."""
    runner = FakeRunner(
        {"check": deny("no"), "crash": HookFailed("broke", exit_code=1), "look": lambda e: context(e.event_name)}
    )
    async with Hooks(runners=runner) as hooks:
        hooks.add(PreToolUse, Command(command="look.sh"), name="look")
        hooks.add(PreToolUse, Command(command="other.sh"), name="other")
        hooks.add(PreToolUse, Command(command="crash.sh"), name="crash", on_failure="continue")
        hooks.add(PreToolUse, lambda event: context("ran"), name="python")
        hooks.add(PreToolUse, Command(command="check.sh"), name="check")
        verdict = await hooks.fire(bash("ls"))

    assert_denied(verdict, by="check", reason="no")
    assert verdict.context == ("PreToolUse", "ran")
    assert [outcome.error for outcome in verdict.failures] == ["broke"]
    assert [name for name, _ in runner.calls] == ["look", "other", "crash", "check"]


def test_replied_makes_outcomes() -> None:
    """For tests of what is made of them."""
    verdict = merge(bash("rm -rf /"), [make_outcome(allow()), make_outcome(deny("no"), "b"), make_outcome()])

    assert (verdict.reply, verdict.decided_by) == (deny("no"), "b")


# -- checks ------------------------------------------------------------------------------------------------------


def verdict(reply: Any, event: Event | None = None) -> Verdict:
    return merge(event or bash("ls"), [make_outcome(reply, "h")])


def test_checks_pass_where_they_should() -> None:
    """Each on the verdict it is for."""
    assert_denied(verdict(deny("because")), by="h", reason=re.compile("^bec"))
    assert_denied(verdict(hookline.stop("enough")), by="h", reason="enough")
    assert_allowed(verdict(allow("fine")), by="h", reason="fine")
    assert_asked(verdict(ask("sure?")), reason="sure")
    assert_passed(verdict(NOTHING))
    assert_kept_going(verdict(keep_going("more"), stop()), by="h", reason="more")
    assert_rewrote(verdict(rewrite({"command": "true"})), {"command": "true"})
    assert_context(verdict(context("be careful")), "careful")


FAILS: list[tuple[Callable[[], None], str]] = [
    (lambda: assert_denied(verdict(allow())), "expected to be denied"),
    (lambda: assert_denied(verdict(deny("no")), by="x"), "expected `x` to decide, but it was h"),
    (lambda: assert_denied(verdict(deny("no")), reason="yes"), "expected the reason to contain `yes`"),
    (lambda: assert_denied(verdict(deny("no")), reason=re.compile("^yes$")), "expected the reason to contain `^yes$`"),
    (lambda: assert_allowed(verdict(NOTHING)), "expected to be allowed"),
    (lambda: assert_allowed(verdict(allow() | hookline.stop())), "expected to be allowed"),
    (lambda: assert_asked(verdict(allow())), "expected that a person is asked"),
    (lambda: assert_passed(verdict(allow())), "expected that no hook objects or fails"),
    (lambda: assert_kept_going(verdict(allow(), stop())), "expected that the agent keeps going"),
    (lambda: assert_rewrote(verdict(allow()), {"a": 1}), "expected the input to become {'a': 1}"),
    (lambda: assert_context(verdict(context("a")), "b"), "expected that the model is told `b`"),
]


@pytest.mark.parametrize("check, expected", FAILS, ids=[f"{i} {text}" for i, (_, text) in enumerate(FAILS)])
def test_a_failing_check_explains_itself(check: Callable[[], None], expected: str) -> None:
    """What was expected comes first, then every hook and what it said."""
    with pytest.raises(AssertionError) as raised:
        check()

    headline, _, explained = str(raised.value).partition("\n\n")
    assert headline == expected
    assert re.match(r"(PreToolUse\(Bash\)|Stop) → ", explained)


# -- the fixtures ------------------------------------------------------------------------------------------------


def test_the_fixtures_work_without_async(hooks: Hooks, fire: Callable[..., Verdict], recorder: Recorder) -> None:
    """`fire(hooks, event)` and `fire(function, event)`."""
    hooks.on(PreToolUse)(no_rm)

    assert_denied(fire(hooks, bash("rm -rf /")), by="no_rm")
    assert_passed(fire(no_rm, bash("ls")))
    assert recorder.started == ["no_rm"]


async def test_the_fixtures_work_with_async(hooks: Hooks, recorder: Recorder) -> None:
    """`await hooks.fire(event)`."""
    hooks.on(PreToolUse)(no_rm)

    assert (await hooks.fire(bash("rm -rf /"))).decision is Decision.DENY
    assert recorder.events == ["PreToolUse"]


pytest_plugins = ["pytester"]

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""

SUITE = """
import asyncio
from hookline.events import PreToolUse
from hookline.testing import bash
kept = []
loose = []

def remember(hooks):
    @hooks.on(PreToolUse, background=True)
    async def forever(event):
        loose.append(asyncio.current_task())
        await asyncio.sleep(0)
    kept.append(hooks)

def test_sync(hooks, fire):
    remember(hooks)
    fire(hooks, bash("ls"))

async def test_async(hooks):
    remember(hooks)
    await hooks.fire(bash("ls"))

class TestMethod:
    async def test_async(self, hooks):
        remember(hooks)
        await hooks.fire(bash("ls"))

def test_closed():
    assert [hooks.engine._closed for hooks in kept] == [True, True, True]
    assert [task.done() for task in loose] == [True, True, True]
    assert len(set(map(id, kept))) == 3

def test_failing(hooks, fire):
    from hookline.testing import assert_denied
    assert_denied(fire(hooks, bash("ls")))
"""


def test_the_plugin_closes_every_set(pytester: pytest.Pytester) -> None:
    """In a suite of a user's own: fresh hooks per test, closed after it, and a readable failure."""
    pytester.makepyfile(SUITE)
    pytester.makeini(INI)
    result = pytester.runpytest_subprocess("-p", "hookline.testing.fixtures")

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: expected to be denied", "E*PreToolUse(Bash) → PASS*"])


def test_no_thread_is_left() -> None:
    """Closing a set that nothing was fired through is quick and leaves nothing."""
    before = threading.active_count()
    run_sync(Hooks().aclose())

    assert threading.active_count() <= before  # an idle one of an earlier test may end meanwhile


def test_the_plugin_s_own_names_collide_with_nobody_s(pytester: pytest.Pytester) -> None:
    """A project's own `hooks` and `fire` stay its own; the short names are for those who ask for them."""
    pytester.makepyfile(
        test_long="""
        import pytest
        from hookline import deny
        from hookline.testing import bash

        @pytest.fixture
        def fire(): return "mine"

        def test_it(hookline_hooks, hookline_recorder, hookline_fire, fire):
            hookline_hooks.add("PreToolUse", lambda event: deny("no"), name="a")
            assert hookline_fire(hookline_hooks, bash("ls")).blocked
            assert (hookline_recorder.started, fire) == (["a"], "mine")
        """,
        test_short="def test_it(recorder): ...",
    )
    done, opted = pytester.runpytest_subprocess(), pytester.runpytest_subprocess("-p", "hookline.testing.fixtures")

    done.assert_outcomes(passed=1, errors=1)
    opted.assert_outcomes(passed=2)


def test_a_set_that_is_not_closed_ends_quietly_with_the_program() -> None:
    """Python 3.12 starts no thread any more when it ends, and must not be asked to."""
    imports = "from hookline import Hooks\nfrom hookline.testing import bash, fire_sync\n"
    code = f"{imports}hooks = Hooks()\nfire_sync(hooks, bash('ls'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
