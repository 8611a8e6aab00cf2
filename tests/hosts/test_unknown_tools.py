"""Tools that a host offers: all are known, and one that is not is judged by what it is given."""

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny, rewrite
from hookline.errors import EventError
from hookline.events import PreToolUse
from hookline.guards import paths
from hookline.hosts.answer import serve
from hookline.hosts.decode import decode, unknown_offers
from hookline.hosts.host import Host
from hookline.hosts.prove.model import offered_tools
from hookline.hosts.table import HOSTS, find

OFFERED: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "offered.json").read_text())
"""Per host and model family, the tools that its binary offered the model."""

PATCH = "*** Begin Patch\n*** Add File: /etc/x\n+x\n*** End Patch"


def payload(host: Host, tool: str, given: Any) -> dict[str, Any]:
    """A tool's call as a host sends it."""
    name = next(theirs for theirs, ours in host.events.items() if ours == "PreToolUse")
    if host.name == "cline":
        return {
            "hookName": "tool_call",
            "tool_call": {"id": "1", "name": tool, "input": given},
            "workspaceRoots": ["/p"],
        }
    if host.name == "opencode":
        return {"hook": name, "cwd": "/p", "input": {"tool": tool}, "output": {"args": given}}
    if host.name == "windsurf":
        return {"agent_action_name": "pre_mcp_tool_use", "tool_info": given}
    return {host.event_field: name, "cwd": "/p", "tool_name": tool, "tool_input": given}


def judged(host: Host, tool: str, given: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls that hooks are asked about."""
    return [(event.tool_name, event.tool_input) for event in decode(host, payload(host, tool, given))
            if isinstance(event, PreToolUse)]  # fmt: skip


def test_every_tool_that_a_host_offers_is_known() -> None:
    """Whatever the model family: Cline and opencode give GPT models other tools, Copilot and Codex newer ones, too."""
    found = {(host, family): unknown_offers(find(host), names)
             for host, families in OFFERED.items() for family, names in families.items()}  # fmt: skip

    assert {key: names for key, names in found.items() if names} == {}
    assert set(OFFERED) == {host.name for host in HOSTS.values() if host.verified}


def test_a_tool_that_a_host_does_not_offer_yet_is_noticed() -> None:
    """A new one is named; one of an MCP server is not."""
    assert unknown_offers(find("codex"), ["exec_command", "teleport", "mcp__demo::mark", "functions::exec"]) == [
        "teleport"
    ]
    assert unknown_offers(find("opencode"), ["bash", "demo_mark"], servers=["demo"]) == []
    assert unknown_offers(find("cline"), ["demo__mark", "team_status"]) == []


@pytest.mark.parametrize(
    "host", [host for host in HOSTS.values() if host.name != "windsurf"], ids=lambda host: host.name
)
def test_an_unknown_tool_is_judged_by_what_it_is_given(host: Host) -> None:
    """A patch, a shell line or a path in its input is judged as one, at any depth, beside the tool itself."""
    given: dict[str, Any] = {"what": {"patch": PATCH}}
    assert judged(host, "teleport", given) == [("teleport", given), ("Write", {"file_path": "/etc/x", "content": "x"})]
    given = {"steps": [{"command": "rm -rf x"}]}
    assert ("Bash", {"command": "rm -rf x"}) in judged(host, "teleport", given)
    given = {"target_path": "../x"}
    assert judged(host, "teleport", given) == [
        ("teleport", given), ("Read", {"file_path": "/x"}), ("Write", {"file_path": "/x", "content": ""}),
    ]  # fmt: skip
    assert ("Read", {"file_path": "/etc/x"}) in judged(host, "teleport", {"thing": "/etc/x"})
    assert ("Bash", {"command": "rm x"}) in judged(host, "run_anything", {"what": "rm x"})
    assert judged(host, "teleport", PATCH)[1:] == [("Write", {"file_path": "/etc/x", "content": "x"})]
    with pytest.raises(EventError, match="patch"):
        judged(host, "teleport", {"text": PATCH + "\nfoo"})


def test_a_known_tool_is_not_judged_by_its_texts() -> None:
    """A file about patches may be written; a question may name a path."""
    assert judged(find("claude"), "Write", {"file_path": "/p/a", "content": PATCH}) == [
        ("Write", {"file_path": "/p/a", "content": PATCH})
    ]
    assert len(judged(find("kimi"), "AskUserQuestion", {"questions": [{"path": "/etc"}]})) == 1


def test_tools_that_start_agents_are_agents() -> None:
    """So that a hook on `Agent` is asked before work goes to another agent, on every host."""
    found = {
        (host, tool): judged(find(host), tool, given)[0]
        for host, tool, given in (
            ("codex", "spawn_agent", {"message": "m"}), ("codex", "collaborationspawn_agent", {"message": "m"}),
            ("kimi", "AgentSwarm", {"prompt_template": "m"}), ("cline", "spawn_agent", {"task": "m"}),
            ("cline", "team_spawn_teammate", {"rolePrompt": "m"}), ("cline", "team_run_task", {"task": "m"}),
            ("copilot", "task", {"prompt": "m"}), ("grok", "spawn_subagent", {"prompt": "m"}),
            ("qwen", "agent", {"prompt": "m"}), ("opencode", "task", {"prompt": "m"}),
            ("openhands", "task", {"prompt": "m"}), ("gemini", "invoke_agent", {"prompt": "m"}),
        )
    }  # fmt: skip

    assert {key: call for key, call in found.items() if call != ("Agent", {"prompt": "m"})} == {}


async def test_a_hook_on_bash_is_asked_about_every_tool_that_runs_a_line() -> None:
    """Claude Code's `Monitor` too, and the terminals of others."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no") if "rm" in event.tool_input["command"] else None, match="Bash")
    for host, tool, field in (
        ("claude", "Monitor", "command"), ("claude", "Bash", "command"), ("grok", "monitor", "command"),
        ("qwen", "monitor", "command"), ("codex", "exec_command", "cmd"), ("codex", "write_stdin", "chars"),
        ("copilot", "bash", "command"),
    ):  # fmt: skip
        row = find(host)
        asked = json.dumps(payload(row, tool, {field: "rm x"})).encode()
        assert b"no" in (await serve(hooks, row, asked)).stdout, (host, tool)


def test_a_hooks_condition_on_bash_holds_for_monitor() -> None:
    """`if: Bash(rm *)` is asked about it as well."""
    from hookline.core.hooks.condition import PathContext, parse_rule

    rule = parse_rule("Bash(rm *)")
    assert rule.matches("Monitor", {"command": "rm x"}, PathContext())
    assert not rule.matches("Monitor", {"command": "ls"}, PathContext())


def test_a_text_as_input_is_a_patch_where_files_are_edited() -> None:
    """Copilot sends the patch itself, and calls the tool `Edit`; any other text there cannot be judged."""
    row = find("copilot")

    for tool in ("Edit", "apply_patch", "edit"):
        assert judged(row, tool, PATCH) == [("Write", {"file_path": "/etc/x", "content": "x"})], tool
    with pytest.raises(EventError, match="patch"):
        judged(row, "Edit", "hello")
    assert judged(row, "rg", {"pattern": "x", "paths": ["/etc", "b"]}) == [
        ("Grep", {"pattern": "x", "path": "/etc"}), ("Grep", {"pattern": "x", "path": "b"}),
    ]  # fmt: skip
    assert judged(row, "rg", {"pattern": "x"}) == [("Grep", {"pattern": "x"})]
    assert judged(row, "glob", {"pattern": "x", "paths": "/etc"}) == [("Glob", {"pattern": "x", "path": "/etc"})]


def test_the_words_of_a_command_are_a_line() -> None:
    """A list of words is what a shell would be given, also for the patch in it."""
    words = ["bash", "-lc", f"apply_patch <<'E'\n{PATCH}\nE"]

    (tool, call), *rest = judged(find("codex"), "shell", {"command": words})

    assert (tool, call["command"][:9]) == ("Bash", "bash -lc ")
    assert rest == [("Write", {"file_path": "/etc/x", "content": "x"})]


async def test_a_patch_in_a_linked_folder_goes_on(tmp_path: Path) -> None:
    """A guard that names the file by where its path leads does not make a change of it; another change is refused."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    inside = PATCH.replace("/etc/x", f"{tmp_path}/link/x")
    asked = json.dumps({**payload(find("codex"), "apply_patch", {"command": inside}), "cwd": str(tmp_path)}).encode()
    guarded, changed = Hooks(), Hooks()
    guarded.add(paths.stay_inside(tmp_path))
    changed.add(PreToolUse, lambda event: rewrite({**event.tool_input, "content": "y"}), match="Write")

    assert (await serve(guarded, find("codex"), asked)).stdout == b""
    assert b"a hook changed a part of this call" in (await serve(changed, find("codex"), asked)).stdout


def test_the_tools_of_a_request_are_read_in_every_protocol() -> None:
    """Functions, freeform tools, namespaces, declarations, and tools that come as an item of the input."""
    space = {"type": "namespace", "name": "team", "tools": [{"type": "function", "name": "spawn"}]}

    assert list(offered_tools({"tools": [{"type": "function", "function": {"name": "a"}}, {"name": "b"}]})) == [
        "a",
        "b",
    ]
    mixed = [{"type": "custom", "custom": {"name": "c"}}, {"type": "web_search"}, space]
    assert list(offered_tools({"tools": mixed})) == ["c", "web_search", "team::spawn"]
    assert list(offered_tools({"tools": [{"functionDeclarations": [{"name": "d"}, {"name": "e"}]}]})) == ["d", "e"]
    assert list(offered_tools({"input": [{"type": "additional_tools", "tools": [space]}, "text"]})) == ["team::spawn"]
    assert list(offered_tools({"input": "hello"})) == []
