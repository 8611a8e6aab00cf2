"""Where the CLI is found, and what its version means."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hookline.errors import CliNotFound
from hookline.hosts.claude_code import process
from hookline.hosts.claude_code.process import Cli, bundled_cli, find_cli, too_old, version_of


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    script = tmp_path / "claude"
    script.write_text("#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    script.chmod(0o755)
    return script


def test_the_argument_comes_first(claude: Path) -> None:
    """Whoever names a CLI gets that one, as a path or as a command of several words."""
    env = {"HOOKLINE_CLAUDE": "/elsewhere", "PATH": ""}

    assert find_cli(claude, env) == find_cli(str(claude), env) == Cli((str(claude),), "the argument")
    assert find_cli(f"{claude} run", env).command == (str(claude), "run")
    assert find_cli([sys.executable, "-m", "x"], env).command == (sys.executable, "-m", "x")


def test_then_the_environment_then_the_path(claude: Path) -> None:
    """$HOOKLINE_CLAUDE beats the PATH."""
    path = {"PATH": str(claude.parent)}

    assert find_cli(None, {"HOOKLINE_CLAUDE": f"{claude} --debug", **path}).command == (str(claude), "--debug")
    assert find_cli(None, path) == Cli((str(claude),), "PATH")


def test_then_the_copy_in_the_official_sdk() -> None:
    """An installed claude-agent-sdk brings one along."""
    bundled = bundled_cli()
    if bundled is None:
        pytest.skip("no claude-agent-sdk with a bundled CLI")

    assert find_cli(None, {"PATH": ""}) == Cli((str(bundled),), "the installed claude-agent-sdk")


def test_none_at_all_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists where it looked and how to get one."""
    monkeypatch.setattr(process, "find_spec", lambda name: None)

    with pytest.raises(CliNotFound, match=r"npm install.*pip install claude-agent-sdk.*cli="):
        find_cli(None, {"PATH": ""})


def test_a_program_that_cannot_be_started_is_refused_early(tmp_path: Path) -> None:
    """A file that is not executable is no CLI."""
    plain = tmp_path / "claude"
    plain.write_text("")

    with pytest.raises(CliNotFound, match="not a program"):
        find_cli(plain)
    with pytest.raises(CliNotFound, match="not a program"):
        find_cli([])


@pytest.mark.parametrize(
    "text, recent",
    [
        ("2.1.325 (Claude Code)", True),
        ("claude 2.0.0", True),
        ("10.0.0", True),
        ("1.99.5", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_versions_are_read(text: str, recent: bool) -> None:
    """Three numbers, wherever they stand."""
    assert (too_old(text) is None) is recent


def test_an_old_version_is_told() -> None:
    """Too old, or unknown: the message says what is needed."""
    assert too_old("2.1.325 (Claude Code)") is None
    assert "2.0.0 or later" in (too_old("1.0.5") or "")
    assert "`unknown`" in (too_old("") or "")


async def test_the_version_is_asked_for(claude: Path, tmp_path: Path) -> None:
    """`--version` is run; a CLI that hangs is given up on."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)

    assert await version_of(Cli((str(claude),), "")) == "2.1.325 (Claude Code)"
    assert await version_of(Cli((str(slow),), ""), within=0.1) == ""
