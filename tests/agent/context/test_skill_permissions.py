"""What the header of a skill or command allows: for the prompt it is used in, and only if its file is trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline import Hooks
from hookline.agent.context.definitions import Skill
from hookline.agent.factory import RunOptions, definitions
from hookline.guards.permissions import read_rules
from tests.agent.driving import agent_on, bash

TOUCHER = Skill(name="greet", body="Greet", kind="command", allowed=("Bash(touch *)",))
USE = {"tools": [["Skill", {"skill": "greet"}]]}


@pytest.mark.parametrize("prompt, first", [("go", [USE]), ("/greet", [])], ids=["the model", "the user"])
async def test_a_skill_allows_what_its_header_says_until_the_next_prompt(
    prompt: str, first: list[object], tmp_path: Path
) -> None:
    """Nothing besides, and nothing of it before the skill is used or after the user has gone on."""
    turns = [
        bash("touch before"), "no",
        *first, bash("touch now"), bash("mkdir other"), "done",
        bash("touch later"), "no",
    ]  # fmt: skip
    rules = read_rules({}, allowed=["Skill"])
    async with agent_on(tmp_path, *turns, rules=rules, skills={"greet": TOUCHER}) as agent:
        for words in ("begin", prompt, "and then"):
            await agent.run(words)

    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["now"]


async def test_a_rule_that_denies_wins_over_what_a_skill_allows(tmp_path: Path) -> None:
    """As it wins over any other rule that allows."""
    rules = read_rules({"deny": ["Bash(touch *)"]}, allowed=["Skill"])
    async with agent_on(tmp_path, USE, bash("touch now"), "done", rules=rules, skills={"greet": TOUCHER}) as agent:
        await agent.run("go")

    assert not (tmp_path / "now").exists()


@pytest.mark.parametrize("file", ["commands/greet.md", "skills/greet/SKILL.md"])
@pytest.mark.parametrize("header", ["allowed-tools: Bash(touch *), Write", 'allowed-tools: ["Bash(touch *)", Write]'])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_file_that_nobody_trusts_allows_nothing(file: str, header: str, trusted: bool, tmp_path: Path) -> None:
    """A cloned repository must not permit itself anything; the skill itself is there."""
    project = tmp_path / "project"
    path = project / ".claude" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"---\ndescription: d\n{header}\n---\nGreet")
    said: list[str] = []
    hooks = Hooks.from_settings(
        project, home=tmp_path, trust="all" if trusted else "error", on_problem=lambda one: said.append(str(one))
    )

    _, skills = definitions(RunOptions(), str(project), hooks)

    assert skills["greet"].allowed == (("Bash(touch *)", "Write") if trusted else ())
    assert any("allowed-tools" in one and "hookline trust" in one for one in said) is not trusted
    assert skills["greet"].body == "Greet"


def test_a_file_that_the_settings_did_not_look_at_allows_nothing(tmp_path: Path) -> None:
    """They look a few folders deep; what lies deeper was never shown to anybody who trusts."""
    path = tmp_path / "project/.claude/commands/a/b/c/d/greet.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\ndescription: d\nallowed-tools: Bash(*)\n---\nGreet")
    hooks = Hooks.from_settings(tmp_path / "project", home=tmp_path, trust="error")

    _, skills = definitions(RunOptions(), str(tmp_path / "project"), hooks)

    assert [(name, skill.allowed) for name, skill in skills.items()] == [("a:b:c:d:greet", ())]
