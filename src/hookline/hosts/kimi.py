"""Kimi Code: hooks in TOML; only gates are listened to, and a prompt is refused by exit code alone."""

from __future__ import annotations

from typing import Any

from hookline.hosts.host import Config, Exit, FileEdit, Host, Plain, ProofRecipe, ServerFile, Tool, World
from hookline.hosts.shapes import BASH, GLOB, GREP, NAME, command_call, file_call, flat, permissions, prompt_call, same

_PRE = "PreToolUse"


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A prompt is a list of parts; the texts of it are the prompt."""
    prompt = payload.get("prompt")
    if isinstance(prompt, list):
        texts = [part.get("text", "") for part in prompt if isinstance(part, dict)]
        payload["prompt"] = "\n".join(text for text in texts if isinstance(text, str))
    return payload


def _edits(world: World) -> list[FileEdit]:
    provider = {"type": "openai", "base_url": f"{world.url}/v1", "api_key": "none"}
    model = {"provider": NAME, "model": "fake-model", "max_context_size": 100000}
    values = {("default_model",): NAME, ("providers", NAME): provider, ("models", NAME): model}
    return [FileEdit(".kimi-code/config.toml", values)]


KIMI = Host(
    name="kimi",
    title="Kimi Code",
    verified="2.1.0",
    events=same(_PRE, "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd",
                "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "Notification"),
    says={
        _PRE: permissions(_PRE, "deny"),
        "UserPromptSubmit": {"deny": Exit(2), "context": Plain()},
        "Stop": {"keep_going": Exit(2)},
    },
    names={"tool_call_id": "tool_use_id", "tool_output": "tool_response"},
    unwrap=_unwrap,
    unjudged=frozenset({"TurnStarted", "TurnEnded"}),
    tools={"Bash": BASH, "Write": Tool("Write", {"path": "file_path"}), "Edit": Tool("Edit", {"path": "file_path"}),
           "Read": Tool("Read", {"path": "file_path"}), "FetchURL": Tool("WebFetch"), "TodoList": Tool("TodoWrite"),
           "Grep": GREP, "Glob": GLOB, "Agent": Tool("Agent"),
           "AgentSwarm": Tool("Agent", {"prompt_template": "prompt"}), "Skill": Tool("Skill"),
           "AskUserQuestion": Tool("AskUserQuestion")},
    other_tools=frozenset({
        "CreateGoal", "GetGoal", "UpdateGoal", "SetGoalBudget", "CronCreate", "CronDelete", "CronList", "EnterPlanMode",
        "ExitPlanMode", "TaskList", "TaskOutput", "TaskStop", "WaitFor"}),
    servers=ServerFile(user=".kimi-code/mcp.json", project=".kimi-code/mcp.json"),
    config=Config(user=".kimi-code/config.toml", home_env="KIMI_CODE_HOME", longest=580, kind="toml",
                  entry=lambda entry: {"event": entry.event, **flat(entry)}),
    subagents=True,
    notes=(
        "PostToolUse is started and not waited for: its answer is not read",
        "one unknown key in a hook's table makes it reject the whole file",
        "its hooks are the user's; a project cannot have its own",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["-p", prompt],
        env=lambda world: {"KIMI_CODE_HOME": str(world.home / ".kimi-code")}, edits=_edits,
        bash=command_call("Bash", description="x"), write=file_call("Write", "path"),
        copies=(".kimi-code/config.toml",), spawn=prompt_call("Agent", description="x", run_in_background=False)),
)  # fmt: skip
