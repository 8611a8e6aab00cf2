"""What a plugin brings: agents, commands and skills under its name, servers, hooks that know its folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.agent.factory import AgentBundle, RunOptions, make, settings_hooks
from hookline.events import PreToolUse, SubagentStart
from hookline.settings import load
from tests.agent.driving import agent_on, reminders, requests_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, where nobody has trusted anything."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "project").mkdir()
    return tmp_path


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def plugin(home: Path, **more: Any) -> Path:
    note = 'echo "${CLAUDE_PLUGIN_ROOT} $(cat)" >> "$CLAUDE_PROJECT_DIR/note"'
    hooks = {"SubagentStart": [{"matcher": "tool-kit:rev", "hooks": [{"type": "command", "command": note}]}]}
    return write(home / "folder-name", {
        ".claude-plugin/plugin.json": {"name": "tool-kit", "version": "1.0.0"},
        "agents/rev.md": "---\nname: rev\ndescription: reviews\ntools: Read\n---\nYou review.",
        "commands/hello.md": "Hello $ARGUMENTS",
        "skills/sk/SKILL.md": "---\nname: sk\ndescription: s\n---\nBody",
        "hooks/hooks.json": {"hooks": hooks},
        **more,
    })  # fmt: skip


async def made(home: Path, *dirs: Path, turns: Any = ("done",), trust: Any = "all", **options: Any) -> AgentBundle:
    """A session with these plugins."""
    rows = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
    script = write(home, {"turns.json": rows}) / "turns.json"
    given = RunOptions(model=f"scripted:{script}", plugin_dir=tuple(map(str, dirs)), **options)
    project = str(home / "project")
    told: list[Any] = []
    return await make(
        given, project, lambda env: settings_hooks(given, project, env, trust=trust, on_problem=told.append)
    )


async def test_what_a_plugin_brings_is_called_after_it(home: Path) -> None:
    """By the name it gives itself, not by its folder's; matchers see that name."""
    folder = plugin(home)
    spawn = {"tools": [["Agent", {"subagent_type": "tool-kit:rev", "description": "d", "prompt": "x",
                                  "run_in_background": False}]]}  # fmt: skip
    session = await made(home, folder, turns=(spawn, "below", "done"), allowed_tools=("Agent",))
    notes: list[dict[str, Any]] = []
    about = session.agent.session

    assert list(about.agents) == ["tool-kit:rev"]
    assert list(about.skills) == ["tool-kit:hello", "tool-kit:sk"]
    session.agent.output.listeners.append(notes.append)
    session.write_init_message()
    assert notes[0]["plugins"] == [{"name": "tool-kit", "path": str(folder), "source": "tool-kit@inline"}]
    await session.agent.run("go")
    await session.aclose()
    note = (home / "project" / "note").read_text()
    assert note.startswith(f"{folder} ")
    assert json.loads(note.partition(" ")[2])["agent_type"] == "tool-kit:rev"


async def test_a_plugins_servers_start_with_trust(home: Path, contract: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named after the plugin, with its folder filled in; not before somebody trusts them, and not if unwanted."""
    monkeypatch.setenv("MCP_TIMEOUT", "120000")  # a busy machine takes its time to start a server
    server = {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"]}
    folder = plugin(home, **{".mcp.json": {"mcpServers": {"db": server}}, "hooks/hooks.json": {}})
    shutil.copy(contract / "mcp_server.py", folder / "server.py")

    untrusted = await made(home, folder, trust="error")
    await untrusted.aclose()
    session = await made(home, folder)
    (status,) = session.agent.session.servers.statuses()
    names = [name for name in session.agent.session.tools if name.startswith("mcp__")]
    await session.aclose()
    without = await made(home, plugin_dir_no_mcp=(str(folder),))
    await without.aclose()

    assert (status["name"], status["status"]) == ("plugin:tool-kit:db", "connected")
    assert names
    assert all(name.startswith("mcp__plugin_tool-kit_db__") for name in names)
    assert untrusted.agent.session.servers.statuses() == without.agent.session.servers.statuses() == []
    assert "tool-kit:rev" in without.agent.session.agents


INVALID = ['{"name": "x"', "{}", '{"name": 5}', '{"name": "has space"}', '{"name": "x", "version": 5}', "[]",
           '{"name": "x", "hooks": 3}', '{"name": "x", "commands": 5}', '{"name": "x", "agents": {}}']  # fmt: skip


@pytest.mark.parametrize("manifest", INVALID)
def test_a_plugin_whose_description_is_not_valid_is_not_used(home: Path, manifest: str) -> None:
    """None of it, as in Claude Code, and somebody is told."""
    folder = plugin(home, **{".claude-plugin/plugin.json": manifest})
    loaded = load(home / "project", plugin_dirs=[folder], env={"HOME": str(home)})

    assert (loaded.hooks, loaded.plugins) == ((), {})
    (problem,) = loaded.errors
    assert problem.where.endswith("plugin.json")
    assert "the plugin is not used" in problem.message


def test_a_plugin_needs_no_description_and_may_say_more_than_we_know(home: Path) -> None:
    """Without one it is called after its folder."""
    folder = plugin(home, **{".claude-plugin/plugin.json": {"name": "x", "extra": {}}})
    assert list(load(home / "project", plugin_dirs=[folder], env={"HOME": str(home)}).plugins) == ["x@inline"]
    (folder / ".claude-plugin" / "plugin.json").unlink()
    assert list(load(home / "project", plugin_dirs=[folder], env={"HOME": str(home)}).plugins) == ["folder-name@inline"]


# -- the folder of a plugin, a skill, and nobody -------------------------------------------------------------------


def header(line: str) -> str:
    return f"---\nname: s\ndescription: d\nhooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: {line}\n---\nBody"  # noqa: E501


def test_in_a_skill_the_plugins_folder_is_the_skills_own(home: Path) -> None:
    """Unless a plugin brought the skill."""
    line = "${CLAUDE_PLUGIN_ROOT}/check.sh"
    write(home / "project" / ".claude", {"skills/own/SKILL.md": header(line)})
    folder = plugin(home, **{"skills/sk/SKILL.md": header(line)})
    loaded = load(home / "project", plugin_dirs=[folder], env={"HOME": str(home)})
    commands = {hook.action.command for skill in loaded.skills for hook in skill.hooks}  # type: ignore[union-attr]

    assert commands == {f"{home}/project/.claude/skills/own/check.sh", f"{folder}/check.sh"}


async def test_elsewhere_it_is_an_error_and_nothing_runs(home: Path) -> None:
    """A shell would put nothing in its place, and run `/check.sh`."""
    command = "touch made; ${CLAUDE_PLUGIN_ROOT}/check.sh"
    entry = {"PreToolUse": [{"hooks": [{"type": "command", "command": command, "onFailure": "block"}]}]}
    write(home / "project" / ".claude", {"settings.json": {"hooks": entry}})
    loaded = load(home / "project", env={"HOME": str(home)})
    hooks = Hooks(project_dir=str(home / "project"))
    hooks.add(*loaded.hooks)
    verdict = await hooks.fire(PreToolUse(tool_name="Bash", cwd=str(home / "project")))
    await hooks.aclose()

    assert "no plugin brings this file" in loaded.errors[0].message
    assert verdict.blocked
    assert "names `${CLAUDE_PLUGIN_ROOT}`" in str(verdict.failures[0].error)
    assert not (home / "project" / "made").exists()


# -- what CLAUDE.md says -------------------------------------------------------------------------------------------


async def test_claude_md_reaches_subagents_but_for_those_that_only_look(home: Path) -> None:
    """As in Claude Code: general-purpose and agents of one's own, not Explore and Plan."""
    project = write(home / "project", {"CLAUDE.md": "the word is banana"})
    kinds = ("general-purpose", "Explore", "Plan")
    calls = [["Agent", {"subagent_type": kind, "description": "d", "prompt": f"sub {kind}",
                        "run_in_background": False}] for kind in kinds]  # fmt: skip
    lanes = {"sub": {"first": "^sub ", "turns": [{"text": "ok"}]}}
    hooks = Hooks()
    seen: list[str] = []

    @hooks.on(SubagentStart)
    async def started(event: SubagentStart) -> None:
        seen.append(event.agent_type)

    async with agent_on(project, {"tools": calls}, "done", hooks=hooks, lanes=lanes) as agent:
        await agent.run("go")
    told = {
        request.messages[0].text.removeprefix("sub "): "banana" in str(reminders(request))
        for request in requests_of(agent)
        if request.messages[0].text.startswith("sub ")
    }

    assert told == {"general-purpose": True, "Explore": False, "Plan": False}
    assert sorted(seen) == sorted(kinds)


# -- the first message ---------------------------------------------------------------------------------------------


async def test_the_first_message_names_style_plugins_agents_and_servers(home: Path) -> None:
    """What a host reads before anything else."""
    write(home / "project" / ".claude", {"settings.json": {"outputStyle": "terse"}})
    session = await made(home, plugin(home))
    notes: list[dict[str, Any]] = []
    session.agent.output.listeners.append(notes.append)
    session.write_init_message()
    await session.aclose()
    (first,) = [note for note in notes if note.get("subtype") == "init"]

    assert (first["output_style"], first["agents"]) == ("terse", ["tool-kit:rev"])
    assert [one["name"] for one in first["plugins"]] == ["tool-kit"]
    assert {"tool-kit:hello", "tool-kit:sk"} <= set(first["slash_commands"])
    assert {"WebFetch", "WebSearch", "NotebookEdit"} <= set(first["tools"])
