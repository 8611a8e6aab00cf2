"""Approving a safe-list without a prompt: part by part, and the rest left to the user or blocked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.errors import HookError
from hookline.events import PermissionRequest
from hookline.guards import approvals, sandboxing
from hookline.replies import Decision
from hookline.sandbox.policy import Policy
from tests.guards.test_commands import KNOWN, LISTED, STRANGE


async def decided(hook: Any, tool: str, given: dict[str, Any]) -> Decision:
    """What the guard answers to a request for permission."""
    hooks = Hooks()
    hooks.add(hook)
    return (await hooks.fire(PermissionRequest(cwd="/p", tool_name=tool, tool_input=given))).decision


@pytest.mark.parametrize(
    "line", ["ls", "ls -la | head -5", "git status && git diff", "cat x; wc -l x", "echo hi 2>/dev/null"]
)
async def test_a_line_of_safe_commands_is_approved(line: str) -> None:
    """Every part of it is on the list."""
    assert await decided(approvals.auto(), "Bash", {"command": line}) is Decision.ALLOW


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "ls; rm x",
        "ls $(rm x)",
        "ls `rm x`",
        "cat x > y",
        "cat <(rm x)",
        "git status | sh",
        "ls\nrm x",
        "$x",
        "eval ls",
        "git log --output=x; rm y",
        "./ls",
        "PATH=. ls",
        "sudo ls",
        "echo x | tee y",
        "ls & rm x",
        "cat <<E\n$(rm x)\nE",
        "",
    ],
)
async def test_anything_more_is_left_to_the_user_or_blocked(line: str) -> None:
    """One part that is not on the list, and the list says nothing."""
    left = await decided(approvals.auto(), "Bash", {"command": line})
    blocked = await decided(approvals.auto(otherwise="block"), "Bash", {"command": line})

    assert (left, blocked) == (Decision.PASS, Decision.DENY)


@pytest.mark.parametrize(
    "tool,given,expected",
    [
        ("Read", {"file_path": "/p/src/a.py"}, Decision.ALLOW),
        ("Read", {"file_path": "/p/src/../../etc/x"}, Decision.PASS),
        ("Read", {"file_path": "/etc/x"}, Decision.PASS),
        ("mcp__docs__search", {"q": "x"}, Decision.ALLOW),
        ("mcp__docs__delete", {"q": "x"}, Decision.PASS),
        ("Bash", {"command": "make test"}, Decision.ALLOW),
        ("Bash", {"command": ["make", "test"]}, Decision.PASS),
        ("Write", {"file_path": "/p/src/a.py"}, Decision.PASS),
    ],
)
async def test_rules_for_other_tools_work_too(tool: str, given: dict[str, Any], expected: Decision) -> None:
    """Files by pattern, MCP tools by name."""
    hook = approvals.auto(["make test", "Read(src/**)", "mcp__docs__search"])

    assert await decided(hook, tool, given) is expected


def test_otherwise_is_block_or_leave() -> None:
    """There is no third way."""
    with pytest.raises(HookError):
        approvals.auto(otherwise="allow")  # type: ignore[arg-type]


LOOKS = [
    ("cat notes.txt", True),
    ("ls -la src", True),
    ("git log --oneline HEAD~3..HEAD", True),
    ("echo /etc/shadow", True),
    ("cat /etc/shadow", False),
    ("head -n1 ../outside", False),
    ("cat ~/.ssh/id_rsa", False),
    ("cat link", False),
    ("cat lin?", False),
    ("ls src; tail /var/log/syslog", False),
    ("git -C/etc status", False),
    ("git diff --no-index /etc/shadow notes.txt", False),
]


@pytest.mark.parametrize("line, approved", LOOKS)
async def test_without_a_list_looking_is_approved_inside_the_project_only(
    line: str, approved: bool, tmp_path: Path
) -> None:
    """However the place is spelt; a list of your own says what it says."""
    (tmp_path / "link").symlink_to("/etc/shadow")
    hooks = Hooks()
    hooks.add(approvals.auto())
    request = PermissionRequest(cwd=str(tmp_path), tool_name="Bash", tool_input={"command": line})

    assert ((await hooks.fire(request)).decision is Decision.ALLOW) is approved


@pytest.mark.skipif(bool(sandboxing.unavailable()), reason=sandboxing.unavailable() or "lines can be held")
async def test_a_confined_line_is_approved_for_what_it_runs(tmp_path: Path) -> None:
    """What a guard put around it is not on anybody's list."""
    hooks = Hooks()
    hooks.add(approvals.auto(["ls *"]))
    lines = [sandboxing.wrapped(line, Policy((str(tmp_path),))) for line in ("ls -la", "touch x")]
    requests = [PermissionRequest(cwd=str(tmp_path), tool_name="Bash", tool_input={"command": line}) for line in lines]

    assert [(await hooks.fire(request)).decision for request in requests] == [Decision.ALLOW, Decision.PASS]


@pytest.mark.parametrize("line", STRANGE)
async def test_a_list_of_one_s_own_approves_known_forms_only(line: str) -> None:
    """What is not known is left to whoever is asked."""
    hooks = Hooks()
    hooks.add(approvals.auto(LISTED))
    known = [
        await hooks.fire(PermissionRequest(tool_name="Bash", tool_input={"command": one}, cwd="/")) for one in KNOWN
    ]
    strange = await hooks.fire(PermissionRequest(tool_name="Bash", tool_input={"command": line}, cwd="/"))

    assert {verdict.decision for verdict in known} == {Decision.ALLOW}
    assert strange.decision is Decision.PASS
