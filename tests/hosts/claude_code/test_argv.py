"""Options as flags."""

from __future__ import annotations

from pathlib import Path

from hookline.hosts.claude_code.launch import BASE, FLAGS, Options, argv


def test_nothing_said_is_the_bare_command() -> None:
    """Only what the control protocol needs is passed."""
    assert argv(["claude", "x"], Options()) == ["claude", "x", *BASE]


def test_every_option_has_a_row() -> None:
    """No option is silently dropped."""
    assert set(FLAGS) | {"extra_args"} == set(Options.__struct_fields__)


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
