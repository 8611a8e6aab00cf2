"""Commands in a command's text: their output stands there, if they may run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.agent.context.definitions import Skill
from hookline.events import PreToolUse
from hookline.guards.permissions import read_rules
from tests.agent.driving import agent_on, requests_of


async def prompted(folder: Path, skill: Skill, arguments: str = "", **options: Any) -> tuple[str, list[str]]:
    """What `/NAME` came to, and the texts that the model was asked with."""
    async with agent_on(folder, "done", skills={skill.name: skill}, **options) as agent:
        result = await agent.run(f"/{skill.name} {arguments}".strip())
    return result.text, [str(request.messages) for request in requests_of(agent)]


def command(body: str, **more: Any) -> Skill:
    return Skill(name="c", body=body, kind="command", **more)


ECHO = read_rules({}, allowed=["Bash(echo *)"])


async def test_the_output_stands_where_the_command_stood(tmp_path: Path) -> None:
    """Within a line and between fences, with the arguments filled in first."""
    body = "Now: !`echo one-$ARGUMENTS` end\n\n```!\necho two\necho three\n```\nCode: `not!`echo four`"
    _, (asked,) = await prompted(tmp_path, command(body), "x", rules=ECHO)

    assert "Now: one-x end" in asked
    assert "two\\nthree" in asked
    assert "not!`echo four`" in asked


@pytest.mark.parametrize("rules, mode", [({}, "default"), ({"deny": ["Bash(touch *)"]}, "bypassPermissions")])
async def test_one_that_is_not_permitted_ends_the_command(tmp_path: Path, rules: dict[str, Any], mode: str) -> None:
    """Nobody allows it, or a rule denies it: nothing runs, and the model is not asked."""
    said, asked = await prompted(tmp_path, command("Now: !`touch made`"), rules=read_rules(rules), permission_mode=mode)

    assert 'Shell command permission check failed for pattern "!`touch made`"' in said
    assert (asked, (tmp_path / "made").exists()) == ([], False)


async def test_a_hook_sees_it_like_every_call(tmp_path: Path) -> None:
    """And may refuse it."""
    hooks = Hooks()

    @hooks.on(PreToolUse, match="Bash")
    async def gate(event: PreToolUse) -> Any:
        return deny(f"not {event.tool_input['command']}")

    said, asked = await prompted(tmp_path, command("Now: !`echo hi`"), hooks=hooks, rules=ECHO)

    assert "not echo hi" in said
    assert asked == []


async def test_a_header_that_counts_allows_it(tmp_path: Path) -> None:
    """`allowed-tools`, and only what it says."""
    for body, ran in (("!`touch made`", True), ("!`touch made && touch other`", True), ("!`mkdir other`", False)):
        folder = tmp_path / str(len(body))
        folder.mkdir()
        said, _ = await prompted(folder, command(body, allowed=("Bash(touch *)",)), rules=read_rules({}))

        assert ("permission check failed" not in said) is ran
        assert any(folder.glob("made")) is ran


async def test_one_that_fails_ends_the_command(tmp_path: Path) -> None:
    """A prompt with a hole in it says something else."""
    said, asked = await prompted(tmp_path, command("Now: !`ls nowhere`"), rules=read_rules({}, allowed=["Bash"]))

    assert 'Shell command failed for pattern "!`ls nowhere`"' in said
    assert asked == []


async def test_a_skill_that_the_model_loads_has_its_commands_run_too(tmp_path: Path) -> None:
    """The model reads the output, or why there is none."""
    load = {"tools": [["Skill", {"skill": name}] for name in ("good", "bad")]}
    skills = {
        name: Skill(name=name, body=f"Now: !`{line}`", path=str(tmp_path / "SKILL.md"))
        for name, line in (("good", "echo hi-there"), ("bad", "touch made"))
    }
    rules = read_rules({}, allowed=["Bash(echo *)", "Skill"])
    async with agent_on(tmp_path, load, "done", skills=skills, rules=rules) as agent:
        await agent.run("go")
    asked = str(requests_of(agent)[1].messages)

    assert "Now: hi-there" in asked
    assert "permission check failed" in asked
