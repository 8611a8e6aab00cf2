"""US-4 (seeds/004): commands on the safe-list run without a prompt, others are blocked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.guards import approvals
from tests.stories.playing import WAYS, Played, Story, command, play

SAFE, UNSAFE = "ls -la", "rm -rf /"


def approving(folder: Path) -> Hooks:
    hooks = Hooks()
    hooks.add(approvals.auto(["ls *"], otherwise="block"))
    return hooks


def in_settings(folder: Path) -> dict[str, Any]:
    guard = command("guard", "approvals", "--allow", "'ls *'", "--otherwise", "block")
    return {"PermissionRequest": [{"matcher": "Bash", "hooks": [guard]}]}


def harmless(folder: Path) -> None:
    """An `rm` that only says it was called: should a guard fail, this machine survives the test."""
    (folder / "bin").mkdir()
    (folder / "bin" / "rm").write_text(f'#!/bin/sh\ntouch "{folder}/rm-was-run"\n')
    (folder / "bin" / "rm").chmod(0o755)


@pytest.fixture(scope="module", params=WAYS)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Every command needs permission, and there is no user to ask."""
    folder = tmp_path_factory.mktemp("us4")
    harmless(folder)
    turns = [{"tools": [["Bash", {"command": line, "description": "d"}]]} for line in (SAFE, UNSAFE)]
    asking = {"ask": ["Bash"]}
    story = Story(turns=[*turns, {"text": "done"}], hooks=approving, settings=in_settings, permissions=asking)
    return play(request.param, story, folder)


def test_ls_is_approved_by_the_hook(story: Played) -> None:
    """Given a safe-list, when the agent runs `ls -la`, then the hook approves."""
    assert story.decision("PermissionRequest", "Bash", SAFE).decision == "allow"


def test_rm_rf_is_blocked_by_the_hook_and_not_run(story: Played) -> None:
    """Given a safe-list, when the agent runs `rm -rf /`, then the hook blocks and the model reads of it."""
    assert story.decision("PermissionRequest", "Bash", UNSAFE).decision == "deny"
    assert story.told[1].is_error
    assert not (story.folder / "rm-was-run").exists()


def test_an_approved_command_runs_without_a_prompt(story: Played) -> None:
    """Given the hook approves, then the tool runs although nobody is there to be asked."""
    assert not story.told[0].is_error
    assert "total" in story.told[0].text
    assert story.results == ["success"]
