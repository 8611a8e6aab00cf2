"""What a Python hook can do to its host: nothing. Exits, blocked loops and changed payloads."""

import asyncio
import copy
import pickle
import sys
import time
from typing import Any

import pytest

from hookline import Hooks, Reply, deny, rewrite
from hookline.events import PostToolUse, PreToolUse, Stop

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "ls", "edits": [{"a": [1]}], "n": {"b": {"c": 1}}})


def exits(code: Any, *, asynchronous: bool, late: bool = False) -> Any:
    def leave(event: Any) -> None:
        sys.exit(code)

    async def leave_async(event: Any) -> None:
        if late:
            await asyncio.sleep(0)
        sys.exit(code)

    return leave_async if asynchronous else leave


KINDS = pytest.mark.parametrize(
    "kind",
    [{"asynchronous": False}, {"asynchronous": True}, {"asynchronous": True, "late": True}],
    ids=["def", "async def", "after an await"],
)
EXITS = [
    (None, "exited with code 0"),
    (0, "exited with code 0"),
    (1, "exited with code 1"),
    ("broken", "exited with code 1: broken"),
    (3, "exited with code 3"),
]
ORDERS = pytest.mark.parametrize("order", ["sequential", "parallel"])


@KINDS
@ORDERS
@pytest.mark.parametrize("code, says", EXITS)
async def test_an_exit_is_a_failure(kind: Any, order: Any, code: Any, says: str) -> None:
    """It never leaves `fire`, and a gate stays closed; even exit code 0 is no answer."""
    hooks = Hooks(order=order)
    hooks.add(PreToolUse, exits(code, **kind), name="leaver")
    hooks.add(PreToolUse, lambda event: None, name="other", priority=1)

    for _ in range(2):
        verdict = await hooks.fire(CALL)
        assert verdict.blocked
        assert says in verdict.outcomes[1].error  # type: ignore[operator]


@KINDS
@ORDERS
async def test_exit_code_2_says_no(kind: Any, order: Any) -> None:
    """With its message as the reason, as from a command; even where a failure would not close the gate."""
    hooks = Hooks(order=order)
    hooks.add(PreToolUse, exits((2, "no pushing"), **kind), name="leaver", on_failure="continue")

    verdict = await hooks.fire(CALL)

    assert (verdict.blocked, verdict.reason, verdict.outcomes[0].exit_code) == (True, "no pushing", 2)


@pytest.mark.parametrize("event, sent_back", [(Stop(), True), (PostToolUse(tool_name="Bash"), False)])
async def test_exit_code_2_means_what_it_means_of_a_command(event: Any, sent_back: bool) -> None:
    """Back to work on Stop, a block after a tool."""
    hooks = Hooks()
    hooks.add(type(event), exits(2, asynchronous=True))

    verdict = await hooks.fire(event)

    assert (verdict.keep_going, verdict.blocked) == (sent_back, not sent_back)


@pytest.mark.parametrize("raised", [KeyboardInterrupt("^C"), GeneratorExit("gone"), BaseException("odd")])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_whatever_is_raised_stays_in_its_hook(raised: BaseException, asynchronous: bool) -> None:
    """A hook cannot end its host by any exception."""

    def leave(event: Any) -> None:
        raise raised

    async def leave_async(event: Any) -> None:
        raise raised

    hooks = Hooks()
    hooks.add(PreToolUse, leave_async if asynchronous else leave)

    verdict = await hooks.fire(CALL)

    assert verdict.blocked
    assert f"raised {type(raised).__name__}" in verdict.reason


async def test_an_exit_in_a_predicate_or_an_observer_stays_there() -> None:
    """A predicate that cannot say no selects its hook; an observer's exit is logged."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("asked"), when=lambda event: sys.exit(0), name="a")
    hooks.observe(lambda notice: sys.exit(1), inline=True)

    assert (await hooks.fire(CALL)).reason == "asked"


async def test_an_exit_in_the_background_is_a_late_failure() -> None:
    """Nobody waits for it, and it ends nothing."""
    hooks = Hooks()
    hooks.add(PreToolUse, exits(1, asynchronous=True), background=True)
    await hooks.fire(CALL)

    [late] = await hooks.drain()

    assert late.error == "exited with code 1"


# -- blocking the loop ---------------------------------------------------------------------------------------------


def blocks(answer: Any) -> Any:
    async def block(event: Any) -> Any:
        time.sleep(0.05)  # noqa: ASYNC251 - that is the mistake
        return answer

    return block


@ORDERS
@pytest.mark.parametrize("after_await", [False, True])
@pytest.mark.parametrize("answer", [None, Reply(), {"continue": True}])
@pytest.mark.parametrize("beside", [0, 1])
async def test_a_hook_that_blocks_the_loop_past_its_time_timed_out(
    order: Any, after_await: bool, answer: Any, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it answers in the end; the outcome says what it did."""
    loop, passed = asyncio.get_running_loop(), [0.0]
    monkeypatch.setattr(loop, "time", lambda: time.monotonic() + passed[0])

    async def block(event: Any) -> Any:
        if after_await:  # on a busy machine it is long before it goes on, and still within its time
            await asyncio.sleep(0)
        passed[0] += 61
        return answer

    hooks = Hooks(order=order, clock=loop.time)
    hooks.add(PreToolUse, block, timeout=60, name="blocks")
    for number in range(beside):
        hooks.add(PreToolUse, blocks(None), timeout=600, priority=1, name=f"beside{number}")

    for _ in range(2):
        verdict = await hooks.fire(CALL)
        outcome = verdict.outcomes[-1]
        assert (verdict.blocked, outcome.status) == (True, "timeout")
        assert "blocked the event loop" in (outcome.error or "")


@pytest.mark.parametrize("answer", [None, Reply(), {"continue": True}])
async def test_a_hook_that_never_awaits_has_its_time_too(answer: Any) -> None:
    """Nobody can interrupt it; alone in its set it is still told from one that answered in time."""
    now = [0.0]

    async def dawdle(event: Any) -> Any:
        now[0] += 2
        return answer

    hooks = Hooks(clock=lambda: now[0])
    hooks.add(PreToolUse, dawdle, timeout=1)

    verdict = await hooks.fire(CALL)
    assert (verdict.blocked, verdict.outcomes[0].status) == (True, "timeout")


async def test_an_inline_function_blocks_the_loop_too() -> None:
    """`inline=True` runs a `def` on the loop."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: time.sleep(0.05), timeout=0.01, inline=True)

    assert (await hooks.fire(CALL)).outcomes[0].status == "timeout"


async def test_a_timeout_on_an_observer_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is denied, so the log has to tell."""
    hooks = Hooks()
    hooks.add(PostToolUse, blocks(None), timeout=0.01, name="slow")

    await hooks.fire(PostToolUse(tool_name="Bash"))

    [record] = caplog.records
    assert record.getMessage().startswith("hook `slow` on PostToolUse gave no reply within 0.01 s")
    assert record.exc_info is None


# -- changing the payload ------------------------------------------------------------------------------------------


def _set(tool_input: Any) -> None:
    tool_input["command"] = "rm -rf /"


def _ior(tool_input: Any) -> None:
    tool_input |= {"command": "rm"}


def _delete(tool_input: Any) -> None:
    del tool_input["command"]


def _iadd(tool_input: Any) -> None:
    tool_input["edits"] += [1]


CHANGES: list[Any] = [
    _set, _ior, _delete, _iadd,
    lambda given: given.update(command="rm"),
    lambda given: given.pop("command"),
    lambda given: given.popitem(),
    lambda given: given.clear(),
    lambda given: given.setdefault("x", 1),
    lambda given: given["edits"].append(1),
    lambda given: given["edits"].insert(0, 1),
    lambda given: given["edits"].extend([1]),
    lambda given: given["edits"].sort(),
    lambda given: given["edits"].reverse(),
    lambda given: given["edits"].remove({"a": [1]}),
    lambda given: given["edits"][0].update(a=2),
    lambda given: given["edits"][0]["a"].clear(),
    lambda given: given["n"]["b"].pop("c"),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
async def test_a_hook_cannot_change_what_was_judged(change: Any) -> None:
    """Trying is a failure that says what to do; what runs is what was there."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: change(event.tool_input), on_failure="continue", name="meddler")

    verdict = await hooks.fire(CALL)

    assert "an event cannot be changed" in (verdict.outcomes[0].error or "")
    assert verdict.input == {"command": "ls", "edits": [{"a": [1]}], "n": {"b": {"c": 1}}}


async def test_a_hook_that_keeps_its_rewrite_cannot_change_it_later() -> None:
    """What the others judged is what runs."""
    kept: list[dict[str, Any]] = []
    hooks = Hooks()

    async def rewrites(event: PreToolUse) -> Reply:
        kept.append({"command": "echo", "edits": [{"a": 1}]})
        return rewrite(kept[0])

    async def meddles(event: PreToolUse) -> None:
        kept[0]["command"] = "rm"
        kept[0]["edits"][0]["a"] = "rm"

    hooks.add(PreToolUse, rewrites, priority=1)
    hooks.add(PreToolUse, meddles)

    assert (await hooks.fire(CALL)).input == {"command": "echo", "edits": [{"a": 1}]}


async def test_the_hosts_own_dict_is_not_the_events() -> None:
    """A hook that has the host's dict from elsewhere changes nothing either."""
    given: dict[str, Any] = {"command": "ls", "n": {"x": 1}}
    hooks = Hooks()

    async def meddles(event: PreToolUse) -> None:
        given["command"] = given["n"]["x"] = "rm"

    hooks.add(PreToolUse, meddles)

    assert (await hooks.fire(PreToolUse(tool_name="Bash", tool_input=given))).input == {"command": "ls", "n": {"x": 1}}


async def test_copies_are_ordinary() -> None:
    """Whoever wants to change something takes a copy: shallow, deep, pickled, or the verdict's input."""
    given = CALL.tool_input
    verdict = await Hooks().fire(CALL)
    for made in (dict(given), {**given}, given.copy(), copy.copy(given), copy.deepcopy(given), verdict.input,
                 pickle.loads(pickle.dumps(given))):  # fmt: skip
        assert type(made) is dict
        made["command"] = "x"
    deep = copy.deepcopy(given)
    deep["edits"][0]["a"].append(2)
    deep["edits"].append(copy.copy(given["edits"]))

    assert given == {"command": "ls", "edits": [{"a": [1]}], "n": {"b": {"c": 1}}}


@pytest.mark.parametrize("event", [
    PostToolUse(tool_name="T", tool_response={"a": [{}]}),
    PreToolUse(tool_name="T", extra={"a": {"b": 1}}),
    Stop(background_tasks=[{"id": "1"}]),
])  # fmt: skip
def test_every_payload_is_frozen(event: Any) -> None:
    """Not only a tool's input."""
    value = getattr(event, "tool_response", None) or event.extra or event.background_tasks

    with pytest.raises(TypeError, match="cannot be changed"):
        value.clear()
