"""What is registered with the Claude CLI for a set of hooks and whoever watches them."""

from __future__ import annotations

from pathlib import Path

from hookline import Hooks
from hookline.events import PreToolUse, SessionStart
from hookline.guards import budget, paths
from hookline.hosts.claude_code.registration import plan, unsupported_features
from hookline.records.audit.log import AuditLog
from hookline.records.telemetry import TIMED, Metrics

HONOURED = {"hooks_applied": True, "hook_on_failure_supported": True}


async def nothing(event: object) -> None:
    return None


def test_an_audit_log_alone_is_told_of_every_tool_call(tmp_path: Path) -> None:
    """A set without hooks is still asked, because somebody watches; a failure to write blocks nothing by itself."""
    hooks = Hooks()
    hooks.observe(AuditLog(tmp_path / "audit.jsonl"))

    planned = plan(hooks).hooks

    assert {"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"} <= planned.keys()
    assert {entry.on_failure for entries in planned.values() for entry in entries} == {None}


def test_an_observer_hears_of_tools_no_hook_is_about() -> None:
    """The matcher of a hook on Bash does not keep the other tools from whoever times them."""
    hooks = Hooks()
    hooks.add(PreToolUse, nothing, match="Bash", name="one")
    assert plan(hooks).hooks["PreToolUse"][0].matcher == "Bash"

    hooks.observe(Metrics())

    planned = plan(hooks).hooks
    assert set(planned) == set(TIMED)
    assert planned["PreToolUse"][0].matcher is None


def test_hooks_on_the_session_s_start_cause_no_warning() -> None:
    """The CLI does not call them; the client fires them when it connects."""
    hooks = Hooks()
    hooks.add(*paths.stay_inside("/proj"), *budget.limit(tool_calls=5))
    hooks.add(SessionStart, nothing, name="greet")

    assert unsupported_features(plan(hooks), HONOURED) == []
    [warning] = unsupported_features(plan(hooks), {"hooks_applied": False})
    assert "did not register the hooks" in warning
