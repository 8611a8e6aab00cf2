"""Codex: Claude Code's nesting in a file of its own; hooks that were not trusted are skipped without a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hookline.hosts import shapes
from hookline.hosts.host import Config, FileEdit, HookTrust, Host, ProofRecipe, ServerFile, Tool, TrustedFolders, World
from hookline.hosts.shapes import NAME, prompt_call

_PRE = "PreToolUse"
_SHELL = Tool("Bash", command_line="command")
_AGENT = Tool("Agent", {"message": "prompt"})
_CUT_TO = {"SessionEnd": 3}


def _hashes(file: str, content: Any, ours: Callable[[Any], bool]) -> dict[str, str]:
    """The key and hash of each of our entries in `hooks.json`, whatever else the file holds."""
    found = {}
    events = content.get("hooks") if isinstance(content, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            listed = group.get("hooks") if isinstance(group, dict) else None
            for index, hook in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(hook, dict) and ours(hook.get("command")):
                    found[f"{file}:{name}:{number}:{index}"] = _hash(event, name, group.get("matcher"), hook)
    return found


def _hash(event: str, name: str, matcher: str | None, hook: dict[str, Any]) -> str:
    """SHA-256 of the normalised definition, which the tests compare with what `codex app-server` says."""
    import hashlib  # no answer needs them
    import json

    timeout = hook.get("timeout")
    if not isinstance(timeout, int):  # an entry that was edited: none of our hashes fits it
        return ""
    timeout = min(timeout, _CUT_TO.get(event, timeout))
    handler = {"type": "command", "command": hook["command"], "timeout": timeout, "async": False}
    definition = {"event_name": name, "hooks": [handler], **({} if matcher is None else {"matcher": matcher})}
    data = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def _edits(world: World) -> list[FileEdit]:
    provider = {"name": NAME, "base_url": f"{world.url}/v1", "wire_api": "responses", "env_key": "FAKE_KEY",
                "requires_openai_auth": False, "supports_websockets": False}  # fmt: skip
    values = {("model",): "fake-model", ("model_provider",): NAME, ("approval_policy",): "never",
              ("sandbox_mode",): "danger-full-access", ("model_providers", NAME): provider}  # fmt: skip
    return [FileEdit(".codex/config.toml", values, without=("profile",))]  # a profile would choose another model


_PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\nEOF"
_FILES = (".codex/hooks.json", ".codex/config.toml")

CODEX = Host(
    name="codex",
    title="Codex",
    verified="0.166.0",
    events=shapes.same(_PRE, "PermissionRequest", "PostToolUse", "SessionStart", "SessionEnd", "UserPromptSubmit",
                "SubagentStart", "SubagentStop", "Stop", "PreCompact", "PostCompact"),
    says={
        _PRE: {
            **shapes.permissions(_PRE, "deny"),
            "rewrite": shapes.rewritten(_PRE, permissionDecision="allow"),  # without the allow it is ignored
            "context": shapes.context(_PRE),
        },
        "PermissionRequest": shapes.REQUEST,
        # a block takes the place of the output: what the tool returned does not reach the model
        "PostToolUse": {"deny": shapes.BLOCK, "replace": shapes.BLOCK, "context": shapes.context("PostToolUse"),
                        "stop": shapes.BLOCK},
        "UserPromptSubmit": {"deny": shapes.BLOCK, "context": shapes.context("UserPromptSubmit")},
        "Stop": {"keep_going": shapes.BLOCK, "stop": shapes.END_TURN},
        "SubagentStop": {"keep_going": shapes.BLOCK},
        "SessionStart": {"context": shapes.context("SessionStart")},
    },
    message=shapes.SYSTEM_MESSAGE,
    tools={"Bash": _SHELL, "shell": _SHELL, "shell_command": _SHELL, "local_shell": _SHELL,
           "exec_command": Tool("Bash", {"cmd": "command", "workdir": "cwd"}, command_line="cmd"),
           "write_stdin": Tool("Bash", {"chars": "command"}, command_line="chars"),
           "apply_patch": Tool("Edit", patch="command"), "view_image": Tool("Read", {"path": "file_path"}),
           "spawn_agent": _AGENT, "collaborationspawn_agent": _AGENT, "web_search": Tool("WebSearch")},
    other_tools=frozenset({
        "exec", "wait", "tool_search", "update_plan", "request_user_input", "request_user_input_async", "sleep",
        "get_goal", "create_goal", "update_goal", "close_agent", "resume_agent", "send_input", "wait_agent",
        "followup_task", "interrupt_agent", "list_agents", "send_message"}),
    roams=True,
    servers=ServerFile(user=".codex/config.toml", project=".codex/config.toml", key="mcp_servers", kind="toml"),
    config=Config(user=".codex/hooks.json", project=".codex/hooks.json", home_env="CODEX_HOME", longest=590,
                  cut_to=_CUT_TO),
    subagents=True,
    notes=(
        "`features.hooks` in a project's `.codex/config.toml` turns hooks off: add `protect.own_files()`",
        "a hook runs only once its hash is trusted; in `codex exec` an untrusted one is skipped without a word",
        "what is typed into a running program (`write_stdin`) is shown to no hook: refuse lines that start a shell",
        "the timeout of SessionEnd hooks is cut to 3 s",
        "nothing limits how often a hook may send the agent back to work",
    ),
    hook_trust=HookTrust("config.toml", lambda key: ("hooks", "state", key, "trusted_hash"), _hashes),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["exec", "--skip-git-repo-check", prompt],
        env=lambda world: {"FAKE_KEY": "none", "CODEX_HOME": str(world.home / ".codex")},
        edits=_edits, bash=lambda command: ("exec_command", {"cmd": command}),
        write=lambda file: ("exec_command", {"cmd": _PATCH.format(file)}),
        copies=_FILES, project_copies=_FILES, spawn=prompt_call("multi_agent_v1::spawn_agent", "message"),
        trust=TrustedFolders(".codex/config.toml", "table", ("projects", "trust_level"), "trusted", inherits=False,
                             unlisted=True)),
)  # fmt: skip
