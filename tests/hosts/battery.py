"""The replies that were tried on every host, and what each host did with them.

`matrix.json` holds, per reply and host, `[ran, ran2, model_saw, model_calls, exit_code]`: whether the tool ran as
asked, whether a rewritten call ran instead, and whether the model read the reason.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from hookline.hosts.host import Host
from hookline.hosts.install.apply import all_commands
from hookline.hosts.install.commands import HookHashes
from hookline.hosts.install.entries import is_ours
from hookline.hosts.table import HOSTS

HERE = Path(__file__).parent
CODEX = HOSTS["codex"]
assert CODEX.hook_trust
CODEX_HASHES = HookHashes(CODEX, CODEX.hook_trust)
REASON = "REASON_X"


class Cell(NamedTuple):
    """What one host did with one reply."""

    ran: bool
    ran2: bool
    model_saw: bool
    model_calls: int
    exit_code: int | str


MATRIX: dict[str, dict[str, Cell]] = {
    case: {host: Cell(*cell) for host, cell in cells.items()}
    for case, cells in json.loads((HERE / "matrix.json").read_text()).items()
}
COLUMNS = {"copilot": "copilotP"}  # Hookline writes PascalCase event names, which is the second of Copilot's columns


def cell(case: str, host: str) -> Cell:
    """What a host did with a reply."""
    return MATRIX[case][COLUMNS.get(host, host)]


def recorded(host: str) -> list[dict[str, Any]]:
    """The payloads that were recorded from a host's binary."""
    found: list[dict[str, Any]] = json.loads((HERE / "recorded" / f"{host}.json").read_text())
    return found


def _specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def replies(host: str, rewritten: Any) -> dict[str, dict[str, Any]]:
    """The replies of the battery as they were sent to a host: `stdout`, `stderr`, `exit`."""
    gemini = host == "gemini"
    pre, post = ("BeforeTool", "AfterTool") if gemini else ("PreToolUse", "PostToolUse")
    prompt = "BeforeAgent" if gemini else "UserPromptSubmit"
    block, deny = {"decision": "block", "reason": REASON}, {"decision": "deny", "reason": REASON}
    decided = {"permissionDecision": "deny", "permissionDecisionReason": REASON}
    return {
        "pre:claude_deny": {"stdout": _specific(pre, **decided)},
        "pre:decision_block": {"stdout": block},
        "pre:decision_deny": {"stdout": deny},
        "pre:flat_deny": {"stdout": decided},
        "pre:cline_cancel": {"stdout": {"cancel": True, "errorMessage": REASON}},
        "pre:exit2_stderr": {"stderr": REASON, "exit": 2},
        "pre:allow_rewrite": {"stdout": _specific(pre, permissionDecision="allow", updatedInput=rewritten)},
        "pre:bare_rewrite": {"stdout": _specific(pre, updatedInput=rewritten)},
        "pre:modifiedArgs": {"stdout": {"modifiedArgs": rewritten}},
        "pre:gemini_rewrite": {"stdout": _specific(pre, tool_input=rewritten)},
        "pre:vibe_rewrite": {"stdout": {"hook_specific_output": {"tool_input": rewritten}}},
        "pre:cline_override": {"stdout": {"cancel": False, "overrideInput": rewritten}},
        "pre:ask": {"stdout": _specific(pre, permissionDecision="ask", permissionDecisionReason=REASON)},
        "pre:context": {"stdout": _specific(pre, additionalContext=REASON)},
        "post:context": {"stdout": _specific(post, additionalContext=REASON)},
        "post:block": {"stdout": block},
        "post:deny": {"stdout": deny},
        "prompt:block": {"stdout": block},
        "prompt:deny": {"stdout": deny},
        "prompt:exit2": {"stderr": REASON, "exit": 2},
        "prompt:context": {"stdout": _specific(prompt, additionalContext=REASON)},
        "prompt:text": {"stdout": REASON},
        "stop:block": {"stdout": block},
        "stop:deny": {"stdout": deny},
        "stop:exit2": {"stderr": REASON, "exit": 2},
        "start:context": {"stdout": _specific("SessionStart", additionalContext=REASON)},
        "start:flat_context": {"stdout": {"additionalContext": REASON}},
    }


def our_commands(host: Host, text: str) -> list[tuple[str, str]]:
    """Our entries in a configuration file: the host's event, and the command."""
    return [(event, command) for event, command in all_commands(host, text) if is_ours(command, host)]
