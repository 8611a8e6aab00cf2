"""opencode: a plugin in JavaScript, which asks Hookline and throws what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts.answer_shapes import GLOB
from hookline.hosts.host import MARGIN, TEXT, VALUE, Config, ConfigFormat, HookEntry, Host, Tool, mcp_name
from hookline.hosts.mcp_entries import ServerFile
from hookline.hosts.proof_recipe import NAME, FileEdit, ProofRecipe, World, command_call, file_call, prompt_call

_PATH = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}


def _unwrap(payload: dict[str, Any]) -> dict[str, Any]:
    """A plugin's hook gets `input` and `output`; what is to be judged is in one or the other."""
    given, made = payload.pop("input", None), payload.pop("output", None)
    given, made = given if isinstance(given, dict) else {}, made if isinstance(made, dict) else {}
    found = {
        "session_id": given.get("sessionID"),
        "tool_name": given.get("tool"),
        "tool_use_id": given.get("callID"),
        "tool_input": given.get("args") or made.get("args"),
        "tool_response": made.get("output"),
        "prompt": _prompt(made.get("parts")),
        "mcp_servers": payload.pop("servers", None),
    }
    return {**payload, **{name: value for name, value in found.items() if value is not None}}


def _mcp(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """A tool's name begins with its server's, signs replaced; the plugin knows the servers."""
    given = fields.get("mcp_servers")
    servers = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    starts = [(server, re.sub(r"[^a-zA-Z0-9_-]", "_", server) + "_") for server in servers]
    return tuple(mcp_name(server, name.removeprefix(start)) for server, start in starts if name.startswith(start))


def _prompt(parts: Any) -> str | None:
    if not isinstance(parts, list):
        return None
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


_HEAD = """// hookline: `hookline uninstall opencode` takes this out
import { spawn } from "node:child_process";

const commands = new Map(/*commands*/%s/*end*/);
const patience = %d; // ms; hookline itself answers earlier

const ask = (hook, cwd, input, output) =>
  new Promise((resolve) => {
    const refuse = (why) => resolve({ deny: `hookline ${why}; this fails closed` });
    const child = spawn("/bin/sh", ["-c", commands.get(hook)], { cwd, stdio: ["pipe", "pipe", "ignore"] });
    const timer = setTimeout(() => { refuse("gave no answer in time"); child.kill("SIGKILL"); }, patience);
    let said = "";
    child.stdout.on("data", (data) => { said += data; });
    child.on("error", (error) => { clearTimeout(timer); refuse(`could not be started: ${error.message}`); });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (said.trim() === "" && code === 0) return resolve({});
      try { resolve(JSON.parse(said)); } catch { refuse(`could not be asked (exit code ${code})`); }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify({ hook, cwd, input, output, servers }));
  });

let servers = []; // whose tools are called SERVER_TOOL

export const Hookline = async ({ directory }) => ({
  config: async (config) => { servers = Object.keys(config.mcp ?? {}); },
"""

_PARTS = {
    "tool.execute.before": """  "tool.execute.before": async (input, output) => {
    const answer = await ask("tool.execute.before", directory, input, output);
    if (answer.deny) throw new Error(answer.deny);
    if (answer.args) {
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, answer.args);
    }
  },
""",
    "tool.execute.after": """  "tool.execute.after": async (input, output) => {
    const answer = await ask("tool.execute.after", directory, input, output);
    if (answer.output !== undefined) output.output = answer.output;
    if (answer.append) output.output = `${output.output}\\n${answer.append}`;
  },
""",
    "chat.message": """  "chat.message": async (input, output) => {
    const answer = await ask("chat.message", directory, input, output);
    if (answer.deny) throw new Error(answer.deny);
    const part = output.parts.find((one) => one.type === "text");
    if (answer.append && part) part.text = `${part.text}\\n${answer.append}`;
  },
""",
}


def _plugin(entries: list[HookEntry]) -> str:
    """The JavaScript that asks Hookline, for the events that the hooks listen to."""
    import json  # no answer needs it

    longest = max((entry.timeout for entry in entries), default=0) + MARGIN
    commands = json.dumps([[entry.event, entry.command] for entry in entries])
    parts = "".join(_PARTS[entry.event] for entry in entries if entry.event in _PARTS)
    return _HEAD % (commands, longest * 1000) + parts + "});\n"


def _env(world: World) -> dict[str, str]:
    home = world.home
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "XDG_CONFIG_HOME": str(home / ".config"), "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_CACHE_HOME": str(home / ".cache"), "XDG_STATE_HOME": str(home / ".local/state")}  # fmt: skip


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
    commands=("opencode",),
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
           "read": Tool("Read", _PATH), "grep": Tool("Grep", {"include": "glob"}), "glob": GLOB,
           "list": Tool("LS"), "webfetch": Tool("WebFetch"),
           "apply_patch": Tool("Edit", patch="patchText"), "patch": Tool("Edit", patch="patchText"),
           "task": Tool("Agent"), "todowrite": Tool("TodoWrite"), "skill": Tool("Skill", {"name": "skill"}),
           "websearch": Tool("WebSearch"), "question": Tool("AskUserQuestion")},
    other_tools=frozenset({"invalid", "plan_exit", "todoread"}),
    servers=ServerFile(user=".config/opencode/opencode.json", project="opencode.json", key="mcp", as_list=True,
                       env="environment", marks={"type": "local"}),
    config=Config(user=".config/opencode/plugin/hookline.js", project=".opencode/plugin/hookline.js",
                  home_env="XDG_CONFIG_HOME", own_file=True, longest=490,
                  format=ConfigFormat(kind="plugin", plugin=_plugin)),
    subagents=True,
    notes=(
        "there is no timeout of its own: the plugin waits for Hookline, which always answers",
        "a refused prompt ends the run with exit code 1",
    ),
    proof=ProofRecipe(
        argv=lambda world, prompt: ["run", prompt], env=_env, edits=_edits,
        bash=command_call("bash", description="x"), write=file_call("write", "filePath"),
        copies=(_SETTINGS, ".config/opencode/plugin"), project_copies=(".opencode/plugin",),
        spawn=prompt_call("task", description="x", subagent_type="general"), servers=_SETTINGS,
        to_the_model=180.0),  # it installs its plugins' packages first
)  # fmt: skip
