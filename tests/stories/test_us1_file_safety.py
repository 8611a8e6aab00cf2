"""US-1 (seeds/004): no writes outside the project, whoever runs the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.guards import paths
from tests.stories.playing import WAYS, Played, Story, Turn, command, play

OUTSIDE = "/etc/passwd"


def guarded(folder: Path) -> Hooks:
    hooks = Hooks()
    hooks.add(*paths.stay_inside(folder / "project"))
    return hooks


def in_settings(folder: Path) -> dict[str, Any]:
    guard = command("guard", "paths", "--root", str(folder / "project"), onFailure="block")
    return {"PreToolUse": [{"matcher": "Write|Edit|MultiEdit", "hooks": [guard]}]}


@pytest.fixture(scope="module", params=WAYS)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The agent reads a system file, tries to write it (its own content, in case it succeeds), then a project file."""
    folder = tmp_path_factory.mktemp("us1")
    inside = str(folder / "project" / "file.go")
    turns: list[Turn] = [
        {"tools": [["Read", {"file_path": OUTSIDE}]]},
        {"tools": [["Write", {"file_path": OUTSIDE, "content": Path(OUTSIDE).read_text()}]]},
        {"tools": [["Write", {"file_path": inside, "content": "package main\n"}]]},
        {"text": "done"},
    ]
    allowed = ("Read", "Write")
    return play(request.param, Story(turns=turns, hooks=guarded, settings=in_settings, allowed=allowed), folder)


def test_a_write_to_etc_passwd_is_blocked_by_the_hook(story: Played) -> None:
    """Given a PreToolUse hook, when the agent attempts to write `/etc/passwd`, then the hook blocks."""
    decided = story.decision("PreToolUse", "Write", OUTSIDE)

    assert decided.decision == "deny"
    assert "outside" in decided.reason


def test_a_write_inside_the_project_goes_on(story: Played) -> None:
    """Given a PreToolUse hook, when the agent writes a file of the project, then the hook lets it and it is written."""
    inside = story.folder / "project" / "file.go"

    assert story.decision("PreToolUse", "Write", str(inside)).decision in ("pass", "allow")
    assert inside.read_text() == "package main\n"


def test_a_blocked_write_is_skipped_and_the_agent_reads_why(story: Played) -> None:
    """Given the hook blocks, then the tool is not run and its result is an error with the hook's reason."""
    read, refused, written = story.told

    assert [one.is_error for one in (read, refused, written)] == [False, True, False]
    assert "outside" in refused.text
    assert story.results == ["success"]
