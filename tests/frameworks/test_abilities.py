"""Every adapter on its real framework: six abilities, and gates that stay closed whatever the framework does."""

from typing import Any

import pytest

from tests.frameworks.abilities import (
    ABILITIES,
    DRIVEN,
    TABLE,
    Driven,
    Facts,
    able,
    events,
    facts_of,
    names,
    table,
    told,
)
from tests.frameworks.plays import LEFT, played


@pytest.fixture(scope="module", params=DRIVEN, ids=lambda driven: driven.module)
def driven(request: pytest.FixtureRequest) -> Driven:
    if not request.param.ready:
        pytest.skip(f"the environment `{request.param.environment}` is not there; run `make frameworks`")
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def seen(driven: Driven) -> Facts:
    return facts_of(driven)


@pytest.mark.parametrize("ability", ABILITIES)
def test_the_adapter_is_able_to(ability: str, driven: Driven) -> None:
    """What the table promises is what the real framework did."""
    assert able(ability, driven)


@pytest.mark.parametrize(
    "scenario, reason",
    [
        ("hook_raises", "RuntimeError: boom"),
        ("hook_hangs", "0.2 s"),
        ("hook_hangs_in_a_thread", "0.2 s"),
        ("hook_answers_nonsense", "answered with `int`"),
    ],
)
def test_a_failing_gate_denies_and_the_model_reads_why(scenario: str, reason: str, seen: Facts) -> None:
    """However the framework treats exceptions, the tool does not run, and the agent can go on."""
    facts = seen[scenario]

    assert (facts["calls"], facts["answer"], facts["error"]) == ([], "done", "")
    assert told(facts, reason)


def test_a_hook_that_may_fail_lets_the_call_through(seen: Facts) -> None:
    """`on_failure="continue"` means the same here as anywhere."""
    assert seen["lenient_hook_raises"]["calls"] == ["ls"]
    assert seen["allow"]["calls"] == ["ls"]


def test_nothing_is_asked_of_hooks_that_are_closed(seen: Facts) -> None:
    """A set of hooks that cannot be asked refuses the run: the model is never called."""
    assert (seen["hooks_are_closed"]["requests"], seen["hooks_are_closed"]["calls"]) == ([], [])


def test_an_objection_to_a_result_reaches_the_model(seen: Facts) -> None:
    """`deny` after a tool call cannot undo it, but the model reads the reason beside the result."""
    facts = seen["object_after"]

    assert told(facts, "OBJECTION_X")
    assert told(facts, "out:ls")


def test_events_say_who_and_where(seen: Facts) -> None:
    """Session, folder, tool call and agent are filled in, and both events of a call carry the same id."""
    facts = seen["session"]
    [before], [after] = events(facts, "PreToolUse"), events(facts, "PostToolUse")

    assert {event["cwd"] for event in facts["events"]} == {facts["cwd"]}
    assert {event["agent_type"] for event in facts["events"]} == {"main"}
    assert {"agent_id"} & {key for event in facts["events"] for key in event} == set()
    assert before["tool_use_id"] == after["tool_use_id"] != ""
    assert (before["tool_name"], before["tool_input"], after["tool_response"]) == (
        "shell", {"command": "ls"}, "out:ls",
    )  # fmt: skip
    assert (events(facts, "UserPromptSubmit")[0]["prompt"], events(facts, "SessionStart")[0]["source"]) == (
        "hello", "startup",
    )  # fmt: skip
    assert "done" in events(facts, "Stop")[0]["last_assistant_message"]


def test_a_tool_that_fails_is_told(driven: Driven, seen: Facts) -> None:
    """The failure is an event of its own; CrewAI hands the error on as a result."""
    facts = seen["tool_fails"]
    name = "PostToolUse" if driven.environment == "crewai" else "PostToolUseFailure"
    [event] = events(facts, name)

    assert facts["calls"][0] == "fail"
    assert "the disk is full" in str(event.get("error") or event.get("tool_response"))


def test_a_model_that_fails_ends_the_session(seen: Facts) -> None:
    """The framework's own error comes out unchanged, after StopFailure and SessionEnd."""
    facts = seen["model_fails"]

    assert "model down" in facts["error"]
    assert names(facts) == ["SessionStart", "UserPromptSubmit", "StopFailure", "SessionEnd"]


def test_a_subagent_shares_its_parents_session(seen: Facts) -> None:
    """What a subagent does is told with its own id, in the session of the agent that started it."""
    facts = seen["subagent"]
    inner = [event["event"] for event in facts["events"] if "agent_id" in event]

    assert len({event["session_id"] for event in facts["events"]}) == 1
    assert inner == ["SubagentStart", "PreToolUse", "PostToolUse", "SubagentStop"]
    assert names(facts)[-2:] == ["Stop", "SessionEnd"]


def test_the_audit_log_has_every_verdict(seen: Facts) -> None:
    """The log of a framework's run reads like any other."""
    rows: list[dict[str, Any]] = seen["audit"]["audit"]

    assert [(row["event"], row["decision"]) for row in rows] == [
        ("SessionStart", "pass"),
        ("UserPromptSubmit", "pass"),
        ("PreToolUse", "deny"),
        ("PreToolUse", "pass"),
        ("PostToolUse", "pass"),
        ("Stop", "pass"),
        ("SessionEnd", "pass"),
    ]


def test_a_run_leaves_nothing_that_a_later_one_would_find(driven: Driven) -> None:
    """A log's head left behind is found by whoever gets the same process id, and says that records are missing."""
    left = played(driven.environment, LEFT)

    assert [name for name in left if not name.startswith("crewai:")] == []  # locks of CrewAI's own


def test_the_committed_table_is_what_was_seen() -> None:
    """docs/frameworks.md ticks nothing that the tests did not see; `python -m tests.frameworks.abilities` writes it."""
    missing = sorted({driven.environment for driven in DRIVEN if not driven.ready})
    if missing:
        pytest.skip(f"environments that are not there: {', '.join(missing)}; run `make frameworks`")

    assert TABLE.read_text() == table()
