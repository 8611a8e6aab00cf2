"""The table of exit codes (FACTS §2)."""

from __future__ import annotations

import pytest

from hookline.core.wire.exit_codes import (
    End,
    ExitMeaning,
    end_of,
    exit_meaning,
    no,
    no_reason,
    recorded_code,
    script_missing,
    text_reply,
)
from hookline.events import CATALOG
from hookline.replies import NOTHING, context, deny, keep_going, specific

CANNOT_SAY_NO = {
    "SessionEnd", "Notification", "StopFailure", "PostCompact", "PostModelSwitch", "PermissionDenied", "Setup",
    "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay",
}  # fmt: skip


def test_every_end_has_a_meaning() -> None:
    """Nothing that can happen to a command is left out."""
    meanings = {end: exit_meaning(end, "PreToolUse") for end in End}

    assert meanings.pop(End.ZERO) is ExitMeaning.SAID
    assert meanings.pop(End.TWO) is ExitMeaning.NO
    assert set(meanings.values()) == {ExitMeaning.FAILED}


@pytest.mark.parametrize(
    "code, signal, end",
    [(0, None, End.ZERO), (2, None, End.TWO), (1, None, End.OTHER), (127, None, End.OTHER), (None, 9, End.SIGNAL)],
)
def test_how_a_command_ended(code: int | None, signal: int | None, end: End) -> None:
    """0, 2, other, signal."""
    assert end_of(code, signal) is end


@pytest.mark.parametrize("event", CATALOG)
def test_exit_two_says_no_wherever_no_can_be_said(event: str) -> None:
    """Elsewhere it is a failure like any other."""
    expected = ExitMeaning.FAILED if event in CANNOT_SAY_NO else ExitMeaning.NO

    assert exit_meaning(End.TWO, event) is expected


def test_no_means_back_to_work_for_those_who_stop() -> None:
    """Exit 2 on Stop keeps the agent going; on a tool it blocks."""
    assert (no("Stop", "r"), no("PreToolUse", "r"), no("SessionEnd", "r")) == (keep_going("r"), deny("r"), None)


def test_the_reason_names_the_command() -> None:
    """In Claude Code's words."""
    assert no_reason("x.sh", "why\n") == "[x.sh]: why"
    assert no_reason("x.sh", " \n") == "[x.sh]: No stderr output"


def test_plain_text_is_context_on_some_events_only() -> None:
    """Where a prompt, a session, a model or a summary begins; a path on WorktreeCreate; nothing elsewhere."""
    heard = {name for name in CATALOG if text_reply(name, " x \n") == context("x")}

    assert heard == {"UserPromptSubmit", "UserPromptExpansion", "SessionStart", "PreCompact", "PostModelSwitch"}
    assert text_reply("WorktreeCreate", "log\n/tree\n") == specific(worktree_path="/tree")
    assert text_reply("UserPromptSubmit", " \n") is NOTHING


def test_a_signal_is_recorded_as_a_shell_would() -> None:
    """128 and its number."""
    assert [recorded_code(3, None), recorded_code(None, 9), recorded_code(None, None)] == [3, 137, None]


PYTHON = "python3: can't open file '/p/check.py': [Errno 2] No such file or directory"


@pytest.mark.parametrize("event, command, stdout, stderr, missing", [
    ("Stop", "python3 check.py", "", PYTHON, True),
    ("Stop", "sh check.sh", "", "sh: 0: cannot open check.sh: No such file", True),
    ("Stop", "python3 other.py", "", PYTHON, False),
    ("Stop", "python3 check.py", "said", PYTHON, False),
    ("Stop", "python3 check.py", "", PYTHON + "\nmore", False),
    ("Stop", "python3 check.py", "", "tests fail", False),
    ("PreToolUse", "python3 check.py", "", PYTHON, False),
])  # fmt: skip
def test_a_script_that_is_not_there_sends_no_agent_back(
    event: str, command: str, stdout: str, stderr: str, *, missing: bool
) -> None:
    """An interpreter's exit code 2 for a missing file is nobody's opinion; where exit 2 only blocks, it blocks."""
    assert script_missing(event, command, stdout, stderr) is missing
