"""Kimi Code: hooks in TOML; only gates are listened to, and a prompt is refused by exit code alone."""

from __future__ import annotations

from typing import Any

from hookline.hosts.answer_shapes import BASH, GLOB, GREP, permission, same
from hookline.hosts.host import Config, Exit, Host, Plain, Tool

_PRE = "PreToolUse"


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A prompt is a list of parts; the texts of it are the prompt."""
    prompt = payload.get("prompt")
    if isinstance(prompt, list):
        texts = [part.get("text", "") for part in prompt if isinstance(part, dict)]
        payload["prompt"] = "\n".join(text for text in texts if isinstance(text, str))
    return payload


KIMI = Host(
    name="kimi",
    title="Kimi Code",
    verified="2.1.0",
    commands=("kimi",),
    events=same(_PRE, "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd",
                "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "Notification"),
    says={
        _PRE: {"deny": permission(_PRE, "deny")},
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
    config=Config(user=".kimi-code/config.toml", home_env="KIMI_CODE_HOME", shape="toml", longest=580),
    subagents=True,
    notes=(
        "PostToolUse is started and not waited for: its answer is not read",
        "one unknown key in a hook's table makes it reject the whole file",
        "its hooks are the user's; a project cannot have its own",
    ),
)  # fmt: skip
