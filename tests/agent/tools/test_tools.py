"""What holds for every tool: schemas, defaults, and the words for arguments that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.tools import ToolEnv, ToolResult, default_tools
from hookline.errors import ToolInputInvalid
from tests.agent.tools.hosting import hosted

TOOLS = default_tools()


@pytest.mark.parametrize(
    "name,given,issues",
    [
        (
            "Bash",
            {"cmd": "x"},
            ["The required parameter `command` is missing", "An unexpected parameter `cmd` was provided"],
        ),
        ("Bash", {"command": 5}, ["The parameter `command` type is expected as `string` but provided as `number`"]),
        (
            "Bash",
            {"command": "x", "timeout": "9"},
            ["The parameter `timeout` type is expected as `number` but provided as `string`"],
        ),
        ("Bash", {"command": None}, ["The parameter `command` type is expected as `string` but provided as `null`"]),
        ("Bash", ["ls"], ["The input is expected as `object` but provided as `array`"]),
        ("Bash", "ls", ["The input is expected as `object` but provided as `string`"]),
    ],
)
def test_arguments_that_do_not_fit_are_told_all_at_once(name: str, given: Any, issues: list[str]) -> None:
    """In Claude Code's own words, which its models know how to mend."""
    with pytest.raises(ToolInputInvalid) as caught:
        TOOLS[name].validate(given)

    noun = "issue" if len(issues) == 1 else "issues"
    assert str(caught.value) == f"{name} failed due to the following {noun}:\n" + "\n".join(issues)


def test_numbers_out_of_range_and_unknown_words_are_refused() -> None:
    """Limits of the schema are checked too."""
    for name, given in [("Read", {"file_path": "f", "limit": 0}), ("Grep", {"pattern": "x", "output_mode": "all"})]:
        with pytest.raises(ToolInputInvalid, match="is invalid"):
            TOOLS[name].validate(given)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_schema_is_a_closed_object_without_references(name: str) -> None:
    """As the APIs want it."""
    spec = TOOLS[name].spec

    assert (spec.input_schema["type"], spec.input_schema["additionalProperties"]) == ("object", False)
    assert "$ref" not in json.dumps(spec.input_schema)
    assert spec.description


def test_every_call_of_the_contract_is_accepted(contract: Path) -> None:
    """Each tool the recorded models call exists and takes their arguments, but for two that are wrong on purpose."""
    refused = []
    for path in sorted((contract / "cases").glob("*.json")):
        case = json.loads(path.read_text())
        lanes = [lane["turns"] for lane in case.get("lanes", {}).values()]
        for name, given in [
            tool for turns in (case["model"], *lanes) for turn in turns for tool in turn.get("tools", [])
        ]:
            if name.startswith("mcp__") or name == "StructuredOutput":
                continue
            try:
                TOOLS[name].validate(given)
            except (KeyError, ToolInputInvalid):
                refused.append((name, given))

    assert refused == [("Bash", {"cmd": "x"}), ("Nope", {"a": 1})]


async def test_agents_and_skills_are_the_loops(env: ToolEnv) -> None:
    """The tools hand over; without a loop they say so."""

    async def spawn(given: dict[str, Any], tool_use_id: str) -> ToolResult:
        return ToolResult(given["prompt"])

    given = {"description": "d", "prompt": "p"}

    assert (await TOOLS["Agent"].run(given, hosted(env, spawn_agent=spawn))).content == "p"
    assert (await TOOLS["Agent"].run(given, env)).is_error
    assert (await TOOLS["Skill"].run({"skill": "s"}, env)).is_error


async def test_tools_can_be_searched_for(env: ToolEnv) -> None:
    """By name, or by what they do."""
    env = hosted(env, tools=lambda: TOOLS)
    search = TOOLS["ToolSearch"]

    by_name = await search.run(search.validate({"query": "select:TaskCreate,Nope,TaskUpdate"}), env)
    by_words = await search.run({"query": "regular expression", "max_results": 1}, env)

    assert by_name.response["matches"] == ["TaskCreate", "TaskUpdate"]
    assert by_words.response["matches"] == ["Grep"]


def test_a_subagent_shares_tasks_but_not_its_directory(env: ToolEnv) -> None:
    """Its `cd` moves nobody else."""
    inner = env.state.fork()
    inner.cwd = "/elsewhere"
    inner.tasks.put(inner.tasks.draft("a", ""))

    assert env.cwd != "/elsewhere"
    assert [task.subject for task in env.state.tasks.all()] == ["a"]
