"""US-2 (seeds/004): every tool execution is in the audit log, with time, user and result; so is the session itself."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.records.audit.log import AuditLog, read
from tests.stories.playing import WAYS, Played, Story, Turn, command, play

HOOKS_FILE = """
from hookline import Hooks
from hookline.records.audit.log import AuditLog

hooks = Hooks()
hooks.observe(AuditLog({path!r}, user="ada"))
"""
TOOLS = ("PostToolUse", "PostToolUseFailure")
SESSION = ("SessionStart", "SessionEnd")


def audited(folder: Path) -> Hooks:
    hooks = Hooks()
    hooks.observe(AuditLog(folder / "audit.jsonl", user="ada"))
    return hooks


def logged_by_command(*events: str) -> Any:
    """Settings that hand these events to a hooks file: the Claude CLI tells no host when a session begins and ends."""

    def settings(folder: Path) -> dict[str, Any]:
        (folder / "hooks.py").write_text(HOOKS_FILE.format(path=str(folder / "audit.jsonl")))
        entry = {"hooks": [command("pipe", "--hooks", f'"{folder / "hooks.py"}"')]}
        return {event: [entry] for event in events}

    return settings


@pytest.fixture(scope="module", params=WAYS)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Three tools run; the last one fails."""
    folder = tmp_path_factory.mktemp("us2")
    turns: list[Turn] = [
        {"tools": [["Write", {"file_path": str(folder / "project" / "notes.txt"), "content": "milk\n"}]]},
        {"tools": [["Bash", {"command": "cat notes.txt", "description": "d"}]]},
        {"tools": [["Bash", {"command": "echo no such thing >&2; exit 3", "description": "d"}]]},
        {"text": "done"},
    ]
    sessions = (lambda folder: {}) if request.param == "agent" else logged_by_command(*SESSION)
    return play(
        request.param,
        Story(
            turns=turns,
            hooks=audited,
            settings=logged_by_command(*TOOLS),
            session_settings=sessions,
            allowed=("Write", "Bash"),
        ),
        folder,
    )


def lines(story: Played, *events: str) -> list[dict[str, Any]]:
    return [dict(line) for line in read(story.folder / "audit.jsonl") if line["event"] in events]


def test_every_tool_that_succeeds_is_a_line_of_the_log(story: Played) -> None:
    """Given PostToolUse hooks, when a tool succeeds, then a structured entry has time, user, tool, input and result."""
    written, printed = lines(story, "PostToolUse")

    assert [(line["tool"], line["user"]) for line in (written, printed)] == [("Write", "ada"), ("Bash", "ada")]
    assert datetime.fromisoformat(printed["time"]).tzinfo is not None
    assert printed["input"]["command"] == "cat notes.txt"
    assert printed["result"]["stdout"] == "milk"


def test_every_tool_that_fails_is_a_line_with_its_error(story: Played) -> None:
    """Given PostToolUseFailure hooks, when a tool fails, then the failure is logged with error details."""
    (failed,) = lines(story, "PostToolUseFailure")

    assert (failed["tool"], failed["user"]) == ("Bash", "ada")
    assert failed["error"].splitlines() == ["Exit code 3", "no such thing"]


def test_the_session_s_beginning_and_end_are_lines_with_its_metadata(story: Played) -> None:
    """Given SessionStart and SessionEnd hooks, then which session, where, why it began and why it ended are logged."""
    began, ended = lines(story, *SESSION)

    assert (began["event"], began["source"]) == ("SessionStart", "startup")
    assert (ended["event"], ended["reason"]) == ("SessionEnd", "other")
    assert began["run"] == ended["run"] == lines(story, "PostToolUse")[0]["run"]
    assert began["cwd"] == str(story.folder / "project")


def test_the_log_is_whole_although_several_processes_wrote_it(story: Played) -> None:
    """The chain holds from the first line to the last, whoever wrote them."""
    assert AuditLog(story.folder / "audit.jsonl").file.verify() == []
