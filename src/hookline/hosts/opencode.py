"""opencode: a plugin in JavaScript (`opencode.js`), which asks Hookline and throws what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts import shapes
from hookline.hosts.host import MARGIN, Config, FileEdit, HookEntry, Host, ProofRecipe, ServerFile, Tool, World
from hookline.hosts.shapes import NAME, TEXT, VALUE

_PATH = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A plugin's hook gets `input` and `output`; what is to be judged is in one or the other."""
    given, made = payload.pop("input", None), payload.pop("output", None)
    given, made = given if isinstance(given, dict) else {}, made if isinstance(made, dict) else {}
    parts = made.get("parts")
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else None
    found = {
        "session_id": given.get("sessionID"),
        "tool_name": given.get("tool"),
        "tool_use_id": given.get("callID"),
        "tool_input": given.get("args") or made.get("args"),
        "tool_response": made.get("output"),
        "prompt": None if texts is None else "\n".join(texts),
        "mcp_servers": payload.pop("servers", None),
    }
    return {**payload, **{name: value for name, value in found.items() if value is not None}}


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """A tool's name begins with its server's, signs replaced; the plugin knows the servers."""
    given = fields.get("mcp_servers")
    servers = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    starts = [(server, re.sub(r"[^a-zA-Z0-9_-]", "_", server) + "_") for server in servers]
    return tuple(f"mcp__{server}__{name.removeprefix(start)}" for server, start in starts if name.startswith(start))


def _plugin(entries: list[HookEntry]) -> str:
    """The JavaScript that asks Hookline, for the events that the hooks listen to."""
    import json  # no answer needs them
    from pathlib import Path

    text = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").removesuffix("});\n")
    head, *parts = text.split("  // on ")
    texts = dict(part.split("\n", 1) for part in parts)
    longest = max((entry.timeout for entry in entries), default=0) + MARGIN
    commands = json.dumps([[entry.event, entry.command] for entry in entries])
    head = head.replace("patience = 0", f"patience = {longest * 1000:.0f}").replace("[]/*end*/", f"{commands}/*end*/")
    return head + "".join(texts.get(entry.event, "") for entry in entries) + "});\n"


_SETTINGS = ".config/opencode/opencode.json"


def _edits(world: World) -> list[FileEdit]:
    options = {"baseURL": f"{world.url}/v1", "apiKey": "none"}
    models = {"fake-model": {"name": "fake-model", "tool_call": True, "limit": {"context": 100000, "output": 8000}}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": NAME, "options": options, "models": models}
    values = {("provider", NAME): provider, ("model",): f"{NAME}/fake-model", ("small_model",): f"{NAME}/fake-model",
              ("autoupdate",): False, ("share",): "disabled", ("permission",): "allow"}  # fmt: skip
    return [FileEdit(_SETTINGS, values)]


OPENCODE = Host(
    name="opencode",
    title="opencode",
    verified="1.18.33",
    events={"tool.execute.before": "PreToolUse", "tool.execute.after": "PostToolUse",
            "chat.message": "UserPromptSubmit"},
    says={
        "PreToolUse": {"deny": {"deny": TEXT}, "rewrite": {"args": VALUE}},
        "PostToolUse": {"deny": {"append": TEXT}, "context": {"append": TEXT}, "replace": {"output": TEXT}},
        "UserPromptSubmit": {"deny": {"deny": TEXT}, "context": {"append": TEXT}},
    },
    event_field="hook",
    unwrap=_unwrap,
    unjudged=frozenset({"INIT", "system.transform", "messages.transform", "text.complete", "chat.params",
                        "chat.headers", "tool.definition", "shell.env", "permission.ask", "compacting",
                        "command.execute.before"}),
    mcp=_mcp,
    tools={"bash": Tool("Bash", {"workdir": "cwd"}), "write": Tool("Write", _PATH), "edit": Tool("Edit", _PATH),
           "read": Tool("Read", _PATH), "grep": Tool("Grep", {"include": "glob"}), "glob": shapes.GLOB,
           "list": shapes.LIST, "webfetch": shapes.FETCH, "apply_patch": Tool("Edit", patch="patchText"),
           "patch": Tool("Edit", patch="patchText"), "task": shapes.AGENT, "todowrite": Tool("TodoWrite"),
           "skill": Tool("Skill", {"name": "skill"}), "websearch": shapes.SEARCH, "question": Tool("AskUserQuestion")},
    other_tools=frozenset({"invalid", "plan_exit", "todoread"}),
    servers=ServerFile(user=".config/opencode/opencode.json", project="opencode.json", key="mcp", as_list=True,
                       env="environment", marks={"type": "local"}),
    config=Config(user=".config/opencode/plugin/hookline.js", project=".opencode/plugin/hookline.js",
                  home_env="XDG_CONFIG_HOME", own_file=True, longest=490, kind="plugin", plugin=_plugin),
    subagents=True,
    notes=(
        "there is no timeout of its own: the plugin waits for Hookline, which always answers",
        "a refused prompt ends the run with exit code 1",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["run", prompt], edits=_edits,
        env=lambda world: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                           "XDG_CONFIG_HOME": str(world.home / ".config"),
                           "XDG_DATA_HOME": str(world.home / ".local/share"),
                           "XDG_CACHE_HOME": str(world.home / ".cache"),
                           "XDG_STATE_HOME": str(world.home / ".local/state")},
        bash=shapes.command_call("bash", description="x"), write=shapes.file_call("write", "filePath"),
        copies=(_SETTINGS, ".config/opencode/plugin"), project_copies=(".opencode/plugin",),
        spawn=shapes.prompt_call("task", description="x", subagent_type="general"), servers=_SETTINGS,
        to_the_model=180.0),  # it installs its plugins' packages first
)  # fmt: skip
