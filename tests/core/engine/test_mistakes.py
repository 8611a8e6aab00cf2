"""Ways to register or answer wrongly: each gives one line that says what to write, and no gate opens."""

import re
from functools import partial
from typing import Any

import pytest

from hookline import Command, Context, Hooks, Reply, deny, hook
from hookline.errors import HookError
from hookline.events import PostToolUse, PreToolUse, UserPromptSubmit
from hookline.events.kinds import ToolEvent

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "ls", "edits": [{"a": 1}]})


async def silent(event: Any) -> None:
    return None


async def needs_more(event: Any, *, more: int) -> None:
    return None


async def yields(event: Any) -> Any:
    yield deny("no")


class Guard:
    async def check(self, event: Any) -> None:
        return None


REGISTERED_WRONGLY: list[tuple[str, Any, str]] = [
    ("a number is not a hook", lambda hooks: hooks.add(PreToolUse, 3), "`3` cannot be run; pass a function"),
    ("nothing at all", lambda hooks: hooks.add(), r"nothing to add; write `hooks\.add\(PreToolUse, function\)`"),
    ("an event alone", lambda hooks: hooks.add(PreToolUse), "nothing to run on"),
    ("no event, no annotation", lambda hooks: hooks.on(silent), "names no event; write `@hooks.on"),
    ("no event, with parentheses", lambda hooks: hooks.on()(silent), "names no event; write `@hooks.on"),
    ("a class for a function", lambda hooks: hooks.add(PreToolUse, dict), "`dict` cannot be run"),
    ("a misspelled event", lambda hooks: hooks.on("PreTooluse")(silent), "did you mean `PreToolUse`"),
    ("a number for an event", lambda hooks: hooks.on(3)(silent), "`3` is not an event"),
    ("an event for its class", lambda hooks: hooks.on(CALL)(silent), "is not an event; write its class"),
    ("a list of events", lambda hooks: hooks.on([PreToolUse])(silent), "is not an event; write its class"),
    ("a text as priority", lambda hooks: hooks.on(PreToolUse, priority="10")(silent), "whole number such as `10`, got"),
    ("no priority", lambda hooks: hooks.on(PreToolUse, priority=None)(silent), "whole number"),
    ("half a priority", lambda hooks: hooks.on(PreToolUse, priority=1.5)(silent), "whole number"),
    ("a truth as priority", lambda hooks: hooks.on(PreToolUse, priority=True)(silent), "whole number"),
    ("a text as timeout", lambda hooks: hooks.on(PreToolUse, timeout="5")(silent), "number of seconds, got `'5'`"),
    ("no time", lambda hooks: hooks.on(PreToolUse, timeout=0)(silent), "more than 0 seconds"),
    ("not a time", lambda hooks: hooks.on(PreToolUse, timeout=float("nan"))(silent), "more than 0 seconds"),
    ("a set's own time", lambda hooks: Hooks(timeout="5"), "number of seconds"),  # type: ignore[arg-type]
    ("two matchers", lambda hooks: hooks.on(PreToolUse, match="A", matcher="B")(silent), "are the same; keep one"),
    ("a misspelled option", lambda hooks: hooks.on(PreToolUse, prioriy=1)(silent), "did you mean `priority`"),
    ("a word for a flag", lambda hooks: hooks.on(PreToolUse, once="yes")(silent), "True or False"),
    ("numbers as conditions", lambda hooks: hooks.on(PreToolUse, when=[3])(silent), "a list of rules or a function"),
    ("no conditions", lambda hooks: hooks.on(PreToolUse, when=[])(silent), "a list of rules or a function"),
    ("a broken condition", lambda hooks: hooks.on(PreToolUse, when=["Bash("])(silent), "never closed"),
    ("a number as matcher", lambda hooks: hooks.on(PreToolUse, match=3)(silent), "expected text, got int"),
    ("a failure policy", lambda hooks: hooks.on(PreToolUse, on_failure="deny")(silent), "`block` or `continue`"),
    ("a required keyword", lambda hooks: hooks.on(PreToolUse)(needs_more), "needs `more=`, which is never passed"),
    ("a generator", lambda hooks: hooks.on(PreToolUse)(yields), "is a generator; return its answer"),
    ("a method without its object", lambda hooks: hooks.on(PreToolUse)(Guard.check), "a method without its object"),
    ("a time of 401 digits", lambda hooks: hooks.on(PreToolUse, timeout=10**400)(silent), "got one of 401 digits"),
    ("a set's grace", lambda hooks: Hooks(grace="1"), "grace must be a number of seconds"),  # type: ignore[arg-type]
    ("nobody as observer", lambda hooks: hooks.observe(None), "must be a function that takes a notice"),
    ("listed events", lambda hooks: hooks.add([PreToolUse, PostToolUse], silent), "name events one by one"),
    ("a union of events", lambda hooks: hooks.add(PreToolUse | PostToolUse, silent), "name events one by one"),
    ("a number as command", lambda hooks: hooks.add(PreToolUse, Command(command=5)), "`command` must be a text"),  # type: ignore[arg-type]
    ("an empty command", lambda hooks: hooks.add(PreToolUse, Command(command=" ")), "`command` must be a text"),
    ("options without events", lambda hooks: hooks.add(silent, timeout=3), "only with events and a function"),
]  # fmt: skip


@pytest.mark.parametrize(
    "register, says", [row[1:] for row in REGISTERED_WRONGLY], ids=[r[0] for r in REGISTERED_WRONGLY]
)
async def test_a_hook_that_is_registered_wrongly_is_refused_at_once(register: Any, says: str) -> None:
    """The message is one line, and the set works as before."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("still here"), name="guard")

    with pytest.raises(Exception, match=says) as caught:
        register(hooks)

    assert str(caught.value).count("\n") == 0
    assert (await hooks.fire(CALL)).reason == "still here"


def own(body: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **body}}


ANSWERED_WRONGLY: list[tuple[str, Any, str]] = [
    ("a misspelled key", {"decison": "block"}, "did you mean `decision`"),
    ("ok", {"ok": False}, 'write `{"decision": "block"'),
    ("deny", {"deny": True}, 'write `{"decision": "block"'),
    ("a wrong word", {"decision": "deny"}, "expected one of `approve`, `block`"),
    ("a misspelled own key", own({"permisionDecision": "deny"}), "did you mean `permissionDecision`"),
    ("an unknown own key", own({"colour": "red"}), "`colour` is not known; write one of `hookEventName`"),
    ("no event name", {"hookSpecificOutput": {"permissionDecision": "deny"}}, "write `PreToolUse`"),
    ("a key that is no text", {3: 4}, "`3` is not known"),
    ("twice", {"continue": True, "continue_": False}, "given twice"),
    ("twice, once inside", {**own({"permissionDecision": "allow"}), "permissionDecision": "deny"}, "given twice"),
    ("a truth", True, "answered with `bool`; return None to say nothing"),
    ("a text", "no", 'return `deny("…")` to block'),
    ("the constructor", deny, "answered with `deny` itself; call it"),
    ("a pair", (deny("a"), deny("b")), "answered with `tuple`"),
    ("an error as reason", deny(ValueError("x")), "expected texts, got `ValueError`"),  # type: ignore[arg-type]
    ("a snake key", {"continue_execution": False, "stop_resaon": "x"}, "did you mean `stop_reason`"),
]  # fmt: skip


@pytest.mark.parametrize(
    "answer, says", [row[1:] for row in ANSWERED_WRONGLY], ids=[row[0] for row in ANSWERED_WRONGLY]
)
async def test_an_answer_that_nobody_understands_closes_the_gate(answer: Any, says: str) -> None:
    """One line in the outcome says what to write."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: answer, name="odd")

    verdict = await hooks.fire(CALL)

    [outcome] = verdict.outcomes
    assert verdict.blocked
    assert says in (outcome.error or "")
    assert (outcome.error or "").count("\n") == 0


@pytest.mark.parametrize("answer, says", [row[1:] for row in ANSWERED_WRONGLY[:2]])
async def test_on_an_observer_it_is_logged(answer: Any, says: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is denied anything, so the log is where it can be seen: in one line."""
    hooks = Hooks()
    hooks.add(PostToolUse, lambda event: answer, name="odd")

    verdict = await hooks.fire(PostToolUse(tool_name="Bash"))

    assert not verdict.blocked
    [record] = caplog.records
    assert says in record.getMessage()
    assert record.exc_info is None


SAID_IN_ANOTHER_SPELLING: list[tuple[str, Any, bool]] = [
    ("the SDK's continue", {"continue_": False, "stopReason": "x"}, True),
    ("snake case", {"continue": False, "stop_reason": "x"}, True),
    ("top-level permission", {"permissionDecision": "deny", "permissionDecisionReason": "x"}, True),
    ("top-level permission in snake case", {"permission_decision": "deny"}, True),
    ("an own part in snake case", {"hook_specific_output": {"hook_event_name": "PreToolUse"}}, False),
    ("seeds/002", {"continue_execution": False, "stop_reason": "x"}, True),
    ("the wire's own", {"decision": "block", "reason": "x"}, True),
    ("nothing", {}, False),
    ("an approval", {"permissionDecision": "allow"}, False),
]  # fmt: skip


@pytest.mark.parametrize(
    "answer, blocked", [row[1:] for row in SAID_IN_ANOTHER_SPELLING], ids=[row[0] for row in SAID_IN_ANOTHER_SPELLING]
)
async def test_known_spellings_are_honoured(answer: Any, blocked: bool) -> None:
    """What can be understood is."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: answer)

    verdict = await hooks.fire(CALL)

    assert (verdict.blocked, verdict.failures) == (blocked, ())


async def test_the_sdks_async_goes_on_in_the_background() -> None:
    """`async_` is what a Python dict literal of the official SDK has to write."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: {"async_": True})

    assert [one.status for one in (await hooks.fire(CALL)).outcomes] == ["background"]
    await hooks.aclose()


async def test_a_bare_decorator_takes_the_events_of_the_annotation() -> None:
    """With or without parentheses, unions and bases included; and on methods."""
    hooks = Hooks()

    @hooks.on
    async def first(event: PreToolUse) -> Reply:
        return deny("no")

    @hooks.on(priority=-1)
    async def second(event: "PreToolUse | UserPromptSubmit") -> None:
        return None

    @hooks.on
    def third(event: ToolEvent, ctx: Context) -> None:
        return None

    class Team:
        @hook
        async def guard(self, event: UserPromptSubmit) -> None:
            return None

    hooks.add(Team)
    by_name = {one.name: [cls.__name__ for cls in one.events] for one in hooks.hooks}
    assert by_name["first"] == ["PreToolUse"]
    assert by_name["second"] == ["PreToolUse", "UserPromptSubmit"]
    assert "PostToolUseFailure" in by_name["third"]
    assert by_name["Team.guard"] == ["UserPromptSubmit"]
    assert (await hooks.fire(CALL)).blocked


def test_matcher_is_match() -> None:
    """Settings files call it that."""
    hooks = Hooks()
    hooks.on(PreToolUse, matcher="Bash|Write")(silent)

    assert hooks.hooks[0].matcher.pattern == "Bash|Write"


async def test_a_condition_may_name_several_tools() -> None:
    """In a list, or joined by `|`; a `|` inside parentheses belongs to the pattern."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("list"), when=["Bash(git *)", "Write"], name="list")
    hooks.add(PreToolUse, lambda event: deny("joined"), when="Edit(src/**) | Bash(a | b)", name="joined")

    async def decided(tool: str, **given: str) -> str | None:
        return (await hooks.fire(PreToolUse(tool_name=tool, tool_input=given, cwd="/p"))).decided_by

    assert await decided("Bash", command="git push") == "list"
    assert await decided("Write", file_path="/p/x") == "list"
    assert await decided("Edit", file_path="/p/src/x") == "joined"
    assert await decided("Bash", command="ls") is None


DEFAULTS: list[Any] = []


async def _own_default(event: Any, name: str = "mine") -> None:
    DEFAULTS.append(name)


async def _called_ctx(event: Any, ctx: Any = None) -> None:
    DEFAULTS.append(type(ctx))


async def _annotated(event: Any, where: Context | None = None) -> None:
    DEFAULTS.append(type(where))


async def _no_default(event: Any, anything: Any) -> None:
    DEFAULTS.append(type(anything))


class _Bound:
    async def method(self, event: Any, name: str = "mine") -> None:
        DEFAULTS.append(name)


@pytest.mark.parametrize("call, got", [
    (_own_default, "mine"),
    (partial(_own_default, name="bound"), "bound"),
    (_Bound().method, "mine"),
    (_called_ctx, Context),
    (_annotated, Context),
    (_no_default, Context),
])  # fmt: skip
async def test_a_second_parameter_with_a_default_of_its_own_keeps_it(call: Any, got: Any) -> None:
    """`async def f(event, name=name)` in a loop is how people bind a value."""
    DEFAULTS.clear()
    hooks = Hooks()
    hooks.add(PreToolUse, call)

    assert not (await hooks.fire(CALL)).failures
    assert [got] == DEFAULTS


class Security:
    """As seeds/002 writes a hook: everything is a method."""

    def name(self) -> str:
        return "security-hook"

    def events(self) -> list[Any]:
        return ["PreToolUse"]

    def priority(self) -> int:
        return 100

    def timeout_secs(self) -> int:
        return 7

    def tool_matcher(self) -> "re.Pattern[str] | None":
        return re.compile("^Bash$")

    async def execute(self, event: PreToolUse, ctx: Context) -> Reply:
        return deny(f"no {event.tool_name}")


async def test_a_hook_object_may_have_methods_for_attributes() -> None:
    """Name, events, priority, matcher and timeout are called if they are methods."""
    hooks = Hooks()
    [made] = hooks.add(Security())

    assert (made.name, made.priority, made.timeout) == ("security-hook", 100, 7)
    assert (await hooks.fire(CALL)).reason == "no Bash"
    assert not (await hooks.fire(PreToolUse(tool_name="Write"))).blocked


def test_a_command_is_still_an_action() -> None:
    """What was right stays right."""
    hooks = Hooks()

    assert hooks.add(PreToolUse, Command(command="true"))[0].name == "true"
    with pytest.raises(HookError, match="is not a hook"):
        hooks.add(object())
