"""The table of exit codes (FACTS §2)."""

from __future__ import annotations

import pytest

from hookline.core.wire.output_types import no, script_missing, text_reply
from hookline.events import CATALOG
from hookline.replies import NOTHING, context, deny, keep_going, specific

CANNOT_SAY_NO = {
    "SessionEnd", "Notification", "StopFailure", "PostCompact", "PostModelSwitch", "PermissionDenied", "Setup",
    "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay",
}  # fmt: skip


@pytest.mark.parametrize("event", CATALOG)
def test_exit_two_says_no_wherever_no_can_be_said(event: str) -> None:
    """Elsewhere it is a failure like any other."""
    assert (no(event, "") is None) is (event in CANNOT_SAY_NO)


def test_no_means_back_to_work_for_those_who_stop() -> None:
    """Exit 2 on Stop keeps the agent going; on a tool it blocks."""
    assert (no("Stop", "r"), no("PreToolUse", "r"), no("SessionEnd", "r")) == (keep_going("r"), deny("r"), None)


def test_plain_text_is_context_on_some_events_only() -> None:
    """Where a prompt, a session, a model or a summary begins; a path on WorktreeCreate; nothing elsewhere."""
    heard = {name for name in CATALOG if text_reply(name, " x \n") == context("x")}

    assert heard == {"UserPromptSubmit", "UserPromptExpansion", "SessionStart", "PreCompact", "PostModelSwitch"}
    assert text_reply("WorktreeCreate", "log\n/tree\n") == specific(worktree_path="/tree")
    assert text_reply("UserPromptSubmit", " \n") is NOTHING


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
