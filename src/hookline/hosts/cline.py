"""Cline: one executable per event, and no reply that refuses one call.

`cancel` ends the whole run, and the model never learns why. So a command that is refused is replaced by one that says
so and fails; any other call that is refused does end the run.
"""

from __future__ import annotations

from shlex import quote
from typing import Any

from hookline.events import Event
from hookline.hosts.host import Config, Host, ProofRecipe, ServerFile, Tool
from hookline.hosts.shapes import TEXT, VALUE, file_call, joined_by, prompt_call, same

_AGENT = Tool("Agent", {"task": "prompt"})
_MESSAGE = Tool("Agent", {"body": "prompt"})
_NAMES = {"tool_call": "PreToolUse", "tool_result": "PostToolUse", "agent_start": "TaskStart",
          "agent_resume": "TaskResume", "agent_abort": "TaskCancel", "agent_end": "TaskComplete",
          "agent_error": "TaskError", "prompt_submit": "UserPromptSubmit",
          "session_shutdown": "SessionShutdown"}  # fmt: skip


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """Bring the call out of `tool_call` or `tool_result`, and the session and its folder to where others have them."""
    call = payload.pop("tool_call", None) or payload.pop("tool_result", None)
    if isinstance(call, dict):
        payload |= {"tool_name": call.get("name"), "tool_input": call.get("input"), "tool_use_id": call.get("id"),
                    "tool_response": call.get("output"), "duration_ms": call.get("durationMs")}  # fmt: skip
    roots = payload.get("workspaceRoots")
    if isinstance(roots, list) and roots:
        payload["cwd"] = roots[0]
    submitted = payload.get("userPromptSubmit")
    if isinstance(submitted, dict):
        payload["prompt"] = submitted.get("prompt")
    turn = payload.get("turn")
    if isinstance(turn, dict):
        payload["last_assistant_message"] = turn.get("outputText")
    payload["hook_event_name"] = _NAMES.get(payload.get("hookName", ""), payload.get("hookName"))
    return payload


def _refused(reason: str, event: Event | None) -> dict[str, Any]:
    """Instead of the command, one that says why it was refused and fails; any other call ends the run."""
    if event is not None and event.subject == "Bash":
        said = f"printf '%s\\n' {quote(f'denied: {reason}')}; exit 1"
        return {"cancel": False, "overrideInput": {"commands": [said]}}
    return {"cancel": True, "errorMessage": reason}


CLINE = Host(
    name="cline",
    title="Cline",
    verified="3.0.65",
    events={**same("PreToolUse", "PostToolUse", "UserPromptSubmit"), "TaskStart": "SessionStart",
            "TaskResume": "SessionStart", "TaskComplete": "Stop", "SessionShutdown": "SessionEnd"},
    says={
        "PreToolUse": {"deny": _refused, "rewrite": {"cancel": False, "overrideInput": VALUE}},
        "PostToolUse": {"context": {"contextModification": TEXT}, "deny": {"contextModification": TEXT}},
    },
    names={"taskId": "session_id"},
    refuses_commands_only=True,
    unwrap=_unwrap,
    tools={"run_commands": Tool("Bash", lines="commands"),
           "editor": Tool("Edit", {"path": "file_path", "old_text": "old_string", "new_text": "new_string"}),
           "read_files": Tool("Read", {"path": "file_path", "files": "file_path"}, each="files"),
           "search_codebase": Tool("Grep", {"queries": "pattern"}, each="queries"),
           "fetch_web_content": Tool("WebFetch", {"requests": "url"}, each="requests"),
           "apply_patch": Tool("Edit", patch="input"), "skills": Tool("Skill"),
           "spawn_agent": _AGENT, "team_run_task": _AGENT, "team_task": Tool("Agent", {"description": "prompt"}),
           "team_spawn_teammate": Tool("Agent", {"rolePrompt": "prompt"}),
           "team_send_message": _MESSAGE, "team_broadcast": _MESSAGE},
    other_tools=frozenset({
        "ask_question", "submit_and_exit", "team_attach_outcome_fragment", "team_await_runs", "team_cancel_run",
        "team_cleanup", "team_create_outcome", "team_finalize_outcome", "team_list_outcomes", "team_list_runs",
        "team_mission_log", "team_read_mailbox", "team_review_outcome_fragment", "team_shutdown_teammate",
        "team_status"}),
    mcp=joined_by("__"),
    servers=ServerFile(user=".cline/data/settings/cline_mcp_settings.json"),
    config=Config(user=".cline/hooks", project=".cline/hooks", kind="scripts", longest=100),
    unjudged=frozenset({"TaskCancel", "TaskError"}),
    subagents=True,
    notes=(
        "a refused command is replaced by one that prints the reason; any other refused call ends the run",
        "it gives up on a hook after 120 s and runs the tool: Hookline denies before that",
        "UserPromptSubmit never fired in the CLI",
        "one executable per event: another one's is kept and asked after ours",
    ),
    # its launcher leaves a daemon behind that the binary alone does not need
    binaries=("cli/cline/node_modules/@cline/cli-linux-*/bin/cline",),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["-P", "openai-compatible", "-m", "fake-model", "--json", "-t", "300", prompt],
        env=lambda world: {"CLINE_TELEMETRY_DISABLED": "1"},
        setup=lambda world: ["auth", "-p", "openai-compatible", "-k", "none", "-m", "fake-model", "-b",
                             f"{world.url}/v1"],
        bash=lambda command: ("run_commands", {"commands": [command]}), write=file_call("editor", "path", "new_text"),
        copies=(".cline/hooks",), project_copies=(".cline/hooks",),
        spawn=prompt_call("spawn_agent", "task", systemPrompt="x")),
)  # fmt: skip
