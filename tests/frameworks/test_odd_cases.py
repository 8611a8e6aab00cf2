"""Cases that strangers try first, and those that are one framework's own, each on the real framework."""

from typing import Any

import pytest

from tests.frameworks.abilities import AGAIN, EARLY, ENDINGS, MCP_ERROR, WORDLESS
from tests.frameworks.plays import played
from tools.frameworks import is_ready

FRAMEWORKS = ("agent-framework", "crewai", "google-adk", "langchain", "openai-agents", "pydantic-ai", "strands")


def case(framework: str, name: str) -> dict[str, Any]:
    if not is_ready(framework):
        pytest.skip(f"the environment `{framework}` is not there; run `make frameworks`")
    facts: dict[str, Any] = played(framework, f"odd_{framework.replace('-', '_')}")[name]
    return facts


def names(facts: dict[str, Any], number: int = 0) -> list[str]:
    return [event["event"] for event in facts["events"][number]]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_sets_of_hooks_govern_one_agent(framework: str) -> None:
    """Either can refuse, and each sees one session from start to end, which is no other set's."""
    facts = case(framework, "two_sets")

    assert (facts["calls"], facts["answer"], facts["error"]) == (["ls"], "done", "")
    assert any("NO_X\\nand a second line" in one or "NO_X\nand a second line" in one for one in facts["requests"])
    assert names(facts, 1).count("PreToolUse") == 2
    for number, events in enumerate(facts["events"]):
        assert names(facts, number)[:2] == ["SessionStart", "UserPromptSubmit"]
        assert names(facts, number)[-2:] == ["Stop", "SessionEnd"]
        assert len({event["session_id"] for event in events}) == 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_rewrite_that_does_not_fit_the_tool_runs_nothing(framework: str) -> None:
    """The model is told, and the agent goes on."""
    facts = case(framework, "misfitting_rewrite")

    assert (facts["calls"], facts["answer"], facts["error"]) == ([], "done", "")


@pytest.mark.parametrize("name", ["tool_added_later", "handoff_added_later", "cloned"])
def test_what_an_openai_agent_is_given_later_is_guarded(name: str) -> None:
    """Tools and handoffs may be added after `guarded`, and agents cloned."""
    facts = case("openai-agents", name)

    assert (facts["calls"], facts["answer"], facts["error"]) == ([], "done", "")
    assert "PreToolUse" in names(facts)


def test_the_prompts_of_a_clone_with_guardrails_of_its_own_are_judged() -> None:
    """`clone()` replaces what it is given; the gate and the session's events stay."""
    facts = case("openai-agents", "cloned_with_other_guardrails")

    assert facts["error"].startswith("InputGuardrailTripwireTriggered")
    assert facts["requests"] == []
    assert names(facts) == ["SessionStart", "UserPromptSubmit", "SessionEnd"]


@pytest.mark.parametrize("name", ["stop_on_first_tool", "stop_on_first_tool_streamed"])
def test_an_openai_run_that_ends_with_a_tool_stops(name: str) -> None:
    """The model gives no last answer there; hooks hear of the end all the same."""
    facts = case("openai-agents", name)

    assert (facts["answer"], names(facts)[-3:]) == ("out:ls", ["PostToolUse", "Stop", "SessionEnd"])


@pytest.mark.parametrize("name", ["refused_prompt_in_a_session", "refused_prompt_in_a_session_streamed"])
def test_a_refused_prompt_does_not_stay_in_an_openai_session(name: str) -> None:
    """The next prompt is judged without it, and the model never reads it."""
    facts = case("openai-agents", name)

    assert (facts["answer"], facts["error"]) == (["second", ["hello", "go on"]], "")
    assert not any("secret" in request for request in facts["requests"])


@pytest.mark.parametrize("framework", ENDINGS[MCP_ERROR])
def test_an_error_of_an_mcp_server_is_a_failure(framework: str) -> None:
    """`isError` in the result; the model reads its text."""
    facts = case(framework, "mcp_error")

    assert (facts["calls"], facts["answer"], facts["error"]) == (["fail", "ls"], "done", "")
    assert names(facts)[2:] == ["PreToolUse", "PostToolUseFailure", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
    assert any("the disk is full" in request for request in facts["requests"])


@pytest.mark.parametrize("framework", ["openai-agents", "strands"])
def test_the_tools_of_mcp_servers_are_judged(framework: str) -> None:
    """Under the name that the framework gives them."""
    facts = case(framework, "mcp_tools")

    assert (facts["calls"], facts["answer"], facts["error"]) == (["ls"], "done", "")
    assert [event["tool_name"] for event in facts["events"][0] if event["event"] == "PreToolUse"] == ["shell"] * 2


def test_an_unguarded_openai_agent_as_a_tool_is_refused_early() -> None:
    """Nobody would judge what it does."""
    facts = case("openai-agents", "unguarded_agent_as_a_tool")

    assert (facts["calls"], facts["requests"]) == ([], [])
    assert facts["error"].startswith("HookError: `delegate` is an agent whose own tools would not be judged")


def test_a_call_of_a_guarded_openai_tool_compiles_nothing() -> None:
    """The SDK resolves what a tool's function says it takes, each time; as texts that cost more than the hooks."""
    five, one = case("openai-agents", "calls_compile_nothing")["counts"]

    assert five == one


def test_a_failure_that_the_openai_sdk_makes_a_text_of_is_a_failure() -> None:
    """The SDK's default answer to an exception is a text for the model; hooks see that the tool failed."""
    assert names(case("openai-agents", "failure_made_a_text"))[2:4] == ["PreToolUse", "PostToolUseFailure"]


def test_an_input_that_is_not_an_object_is_judged() -> None:
    """Hooks see what the tool would get."""
    facts = case("strands", "input_that_is_no_object")

    assert facts["events"][0][2]["tool_input"] == {"input": ["rm"]}
    assert "PostToolUseFailure" not in names(facts)


def test_results_belong_to_their_calls_though_a_model_repeats_ids() -> None:
    """PostToolUse has the input of the call whose result it shows."""
    facts = case("strands", "ids_repeated")
    after = [event for event in facts["events"][0] if event["event"] == "PostToolUse"]

    assert sorted(facts["calls"]) == ["ls", "pwd"]
    assert sorted((event["tool_input"]["command"], event["tool_response"]) for event in after) == [
        ("ls", "out:ls"),
        ("pwd", "out:pwd"),
    ]


def test_a_langchain_run_that_resumes_can_be_stopped_and_ends() -> None:
    """After an interrupt the graph has forgotten the run; a hook's `stop` counts all the same."""
    facts = case("langchain", "stop_after_an_interrupt")

    assert (facts["calls"], facts["answer"]) == ([], "STOP_X")
    assert names(facts)[-1] == "SessionEnd"


@pytest.mark.parametrize("framework", ENDINGS[EARLY])
def test_a_run_that_ends_early_ends_its_session(framework: str) -> None:
    """A limit, a cancellation or a consumer that leaves: StopFailure and SessionEnd come last, and once."""
    for name in ENDINGS[EARLY][framework]:
        events = names(case(framework, name))
        assert events[-2:] == ["StopFailure", "SessionEnd"], (name, events)
        assert "Stop" not in events, (name, events)
        assert case(framework, name)["answer"] != "went on", name
        assert events.count("SessionEnd") == events.count("SessionStart") == 1, (name, events)


@pytest.mark.parametrize("framework", ENDINGS[AGAIN])
def test_a_session_goes_on_while_the_framework_tries_again(framework: str) -> None:
    """Neither a model nor a tool that failed once ends the session, in which order the middleware may stand."""
    for name in ENDINGS[AGAIN][framework]:
        facts = case(framework, name)
        events = names(facts)
        assert (facts["answer"], facts["error"]) == ("done", ""), name
        assert "StopFailure" not in events, (name, events)
        assert events[-2:] == ["Stop", "SessionEnd"], (name, events)
        assert events.count("SessionEnd") == 1, (name, events)


@pytest.mark.parametrize("name", ["deep_agent", "deep_agent_async", "deep_agent_guarded", "deep_agent_two_sets"])
def test_the_tools_of_deepagents_own_subagent_are_judged(name: str) -> None:
    """Its `general-purpose` subagent has no middleware of ours; its calls are judged all the same, and once."""
    facts = case("langchain", name)
    tools = [event["tool_name"] for event in facts["events"][0] if event["event"] == "PreToolUse"]
    inner = [event["event"] for event in facts["events"][0] if "agent_id" in event]

    assert (facts["calls"], facts["answer"], facts["error"]) == (["ls"], "done", "")
    assert tools == ["task", "shell", "shell"]
    assert any("NO_X" in request for request in facts["requests"])
    assert inner == ["SubagentStart", "PreToolUse", "PreToolUse", "PostToolUse", "SubagentStop"]
    assert names(facts)[-3:] == ["PostToolUse", "Stop", "SessionEnd"]
    if name == "deep_agent_two_sets":
        assert names(facts, 1).count("PreToolUse") == 2  # not of what the other set refused


def test_a_tool_that_asks_for_another_try_has_failed() -> None:
    """pydantic-ai's `ModelRetry` is a failure for hooks, too."""
    facts = case("pydantic-ai", "another_try")
    [failure] = [event for event in facts["events"][0] if event["event"] == "PostToolUseFailure"]

    assert "TRY_X" in failure["error"]


@pytest.mark.parametrize("name", ["structured_output", "structured_output_streamed"])
def test_a_strands_run_that_ends_with_structured_output_stops(name: str) -> None:
    """Its last turn is the call of a tool."""
    facts = case("strands", name)

    assert (facts["answer"], names(facts)[-3:]) == ("x", ["PostToolUse", "Stop", "SessionEnd"])


def test_the_spans_of_a_strands_run_are_in_its_requests_trace() -> None:
    """Each of three requests has the spans of its own run, and no span has none."""
    facts = case("strands", "traced")

    assert facts["orphans"] == []
    assert len(facts["traces"]) == 3
    for request, spans in facts["traces"].items():
        assert {request, "execute_tool shell", "hookline PreToolUse", "hookline SessionEnd"} < set(spans), request
        assert spans.count("execute_tool shell") == 1, request


@pytest.mark.parametrize("framework", ENDINGS[WORDLESS])
def test_a_run_without_a_last_answer_stops(framework: str) -> None:
    """It ended with a tool, a function or an agent that asks no model: Stop comes once, then SessionEnd."""
    for name in ENDINGS[WORDLESS][framework]:
        events = names(case(framework, name))
        assert events[-2:] == ["Stop", "SessionEnd"], (name, events)
        assert events.count("Stop") == 1, (name, events)


def test_an_adk_loop_starts_and_stops_its_agent_each_time() -> None:
    """Every round is a subagent of its own, and the loop itself stops once."""
    facts = case("google-adk", "loop")
    ids = [event["agent_id"] for event in facts["events"][0] if "agent_id" in event]

    assert names(facts) == [
        "SessionStart", "UserPromptSubmit", *["SubagentStart", "SubagentStop"] * 3, "Stop", "SessionEnd",
    ]  # fmt: skip
    assert [ids[0::2], len(set(ids))] == [ids[1::2], 3]


@pytest.mark.parametrize("order", ["before", "after"])
def test_other_adk_plugins_change_nothing_unseen(order: str) -> None:
    """Wherever the plugin stands: what others make of a prompt or a call is judged, and results are as they were."""
    kinds = ("call", "prompt", "picture")
    calls, prompts, picture = (case("google-adk", f"{name}_{order}_another_plugin") for name in kinds)
    after = [event["tool_response"] for event in calls["events"][0] if event["event"] == "PostToolUse"]

    assert (calls["calls"], calls["error"], after) == (["ls"], "", ["out:ls"])
    assert (prompts["requests"], prompts["answer"]) == ([], "The prompt was refused: NO_X")
    assert names(prompts).count("SessionStart") == names(prompts).count("SessionEnd") == 1
    assert [names(picture)[:2], names(picture)[-1]] == [["SessionStart", "UserPromptSubmit"], "SessionEnd"]


@pytest.mark.parametrize("kind", ["arguments", "model", "text", "tool"])
def test_an_output_function_of_pydantic_ai_is_judged(kind: str) -> None:
    """The model's last answer is its argument: refused, the model reads why and answers again."""
    facts = case("pydantic-ai", f"output_{kind}")
    given = [event["tool_input"] for event in facts["events"][0] if event["event"] == "PreToolUse"]

    assert (facts["calls"], facts["answer"], facts["error"]) == (["ls"], "out:ls", "")
    assert given == [{"output" if kind == "text" else "command": command} for command in ("rm -rf /", "ls")]
    assert names(facts)[2:] == ["PreToolUse", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
    assert "NO_X" in facts["requests"][1]


@pytest.mark.parametrize("name", ["denied", "rewritten", "stopped", "arguments_streamed", "text_streamed"])
def test_an_output_function_that_stays_refused_never_runs(name: str) -> None:
    """The run fails with what pydantic-ai says to that, or with the hook's `stop`."""
    facts = case("pydantic-ai", f"output_{name}")

    assert facts["calls"] == []
    assert facts["error"].startswith("RunStopped: STOP_X" if name == "stopped" else "UnexpectedModelBehavior")
    assert names(facts)[-1] == "SessionEnd"


def test_native_calls_of_crewai_are_judged_one_by_one() -> None:
    """A model with function calling makes several at once, in threads."""
    facts = case("crewai", "calls_at_once")

    assert (sorted(facts["calls"]), facts["answer"]) == (["ls", "pwd"], "done")
    assert "NO_X" in facts["requests"][1]


@pytest.mark.parametrize(
    "name", ["crew_again_after_a_failure", "agent_again_after_a_failure", "inputs_outside_of_descriptions"]
)
def test_every_prompt_of_a_crew_or_agent_is_judged(name: str) -> None:
    """A kickoff that failed leaves nothing behind that would let the next one's prompt through unseen."""
    facts = case("crewai", name)

    assert facts["error"].startswith("HookAborted: The prompt was refused: NO_X")
    assert not any("secret" in request for request in facts["requests"])
