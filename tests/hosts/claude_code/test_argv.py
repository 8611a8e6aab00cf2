"""Options as flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hookline.hosts.claude_code.process import BASE, Options, argv


def test_nothing_said_is_the_bare_command() -> None:
    """Only what the control protocol needs is passed."""
    assert argv(["claude", "x"], Options()) == ["claude", "x", *BASE]


VALUES: dict[str, tuple[Any, list[str]]] = {
    "model": ("m", ["--model", "m"]),
    "fallback_model": ("m", ["--fallback-model", "m"]),
    "effort": ("low", ["--effort", "low"]),
    "permission_mode": ("plan", ["--permission-mode", "plan"]),
    "permission_prompt_tool": ("stdio", ["--permission-prompt-tool", "stdio"]),
    "system_prompt": ("-", ["--system-prompt=-"]),
    "append_system_prompt": ("", ["--append-system-prompt="]),
    "tools": ([], ["--tools="]),
    "allowed_tools": (["A", "B"], ["--allowedTools=A,B"]),
    "disallowed_tools": (("A",), ["--disallowedTools=A"]),
    "max_turns": (3, ["--max-turns", "3"]),
    "max_budget_usd": (0.5, ["--max-budget-usd", "0.5"]),
    "settings": ({"a": 1}, ["--settings", '{"a":1}']),
    "setting_sources": (["user"], ["--setting-sources=user"]),
    "mcp_servers": ({}, ["--mcp-config", '{"mcpServers":{}}']),
    "strict_mcp_config": (True, ["--strict-mcp-config"]),
    "agents": ({"a": {}}, ["--agents", '{"a":{}}']),
    "plugin_dirs": (["a", "b"], ["--plugin-dir", "a", "--plugin-dir", "b"]),
    "add_dirs": (["a"], ["--add-dir", "a"]),
    "json_schema": ({}, ["--json-schema", "{}"]),
    "resume": ("-r", ["--resume=-r"]),
    "continue_conversation": (True, ["--continue"]),
    "fork_session": (True, ["--fork-session"]),
    "session_id": ("s", ["--session-id=s"]),
    "include_partial_messages": (True, ["--include-partial-messages"]),
    "include_hook_events": (True, ["--include-hook-events"]),
    "extra_args": (["--new"], ["--new"]),
}


def test_every_option_is_passed() -> None:
    """No option is silently dropped, and each has the flag that the CLI knows."""
    made = {name: argv([], Options(**{name: value}))[len(BASE) :] for name, (value, _) in VALUES.items()}

    assert list(VALUES) == list(Options.__struct_fields__)
    assert made == {name: words for name, (_, words) in VALUES.items()}


def test_settings_may_be_a_path() -> None:
    """A text is passed as it is."""
    assert argv([], Options(settings="a.json"))[len(BASE) :] == ["--settings", "a.json"]


def test_options_become_flags() -> None:
    """Each in the form the CLI reads: glued where a value may be empty or begin with a dash."""
    options = Options(
        model="m",
        system_prompt="",
        allowed_tools=["Bash", "Read"],
        setting_sources=[],
        mcp_servers={"s": {"type": "sdk", "name": "s"}},
        add_dirs=[Path("/a"), "/b"],
        strict_mcp_config=True,
        max_turns=3,
        extra_args=["--new", "flag"],
    )

    assert argv(["claude"], options)[len(BASE) + 1 :] == [
        "--model",
        "m",
        "--system-prompt=",
        "--allowedTools=Bash,Read",
        "--max-turns",
        "3",
        "--setting-sources=",
        "--mcp-config",
        '{"mcpServers":{"s":{"type":"sdk","name":"s"}}}',
        "--strict-mcp-config",
        "--add-dir",
        "/a",
        "--add-dir",
        "/b",
        "--new",
        "flag",
    ]
