"""How each agent CLI is run headless on the scripted model: what its configuration needs, its flags, its shell tool."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.installed import Binary, lab
from hookline.hosts.prove.protocols import ModelTurn

ToolCall = tuple[str, dict[str, Any]]


NAME = "hookline-proof"
"""What the scripted model and its provider are called; a user's own may have any other name."""
_NONE: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


class World(NamedTuple):
    """Where one run takes place: folders of its own, and the model's address."""

    home: Path
    project: Path
    url: str
    binary: Binary


class Agent(NamedTuple):
    """One agent CLI, as it is run for a proof."""

    argv: Callable[[World, str], list[str]]
    env: Callable[[World], dict[str, str]]
    prepare: Callable[[World], None]
    shell: Callable[[str], ToolCall]
    """The call of its shell tool for a command."""
    write: Callable[[str], ToolCall]
    """The call that writes a file."""
    copies: tuple[str, ...]
    """What of the user's home it reads: files and folders, relative to it."""
    project_copies: tuple[str, ...] = ()
    ending: tuple[ModelTurn, ...] = ()
    """Turns that end the run, for an agent that must be told."""
    spawn: Callable[[str], ToolCall] | None = None
    """The call that has another agent work on a prompt; none if it offers no such tool."""


def _json(path: Path, *puts: tuple[tuple[str, ...], Any]) -> None:
    """Set values in a JSON file that may be the user's, comments and all."""
    text = path.read_text() if path.exists() else ""
    for key, value in puts:
        text = jsonc.put(text, key, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _toml(path: Path, *puts: tuple[tuple[str, ...], Any], rows: Mapping[str, Mapping[str, Any]] = _NONE) -> None:
    """Set values in a TOML file that may be the user's, and one row in each of these arrays of tables."""
    text = path.read_text() if path.exists() else ""
    for key, value in puts:
        text = toml_edit.set_value(text, key, value)
    for array, row in rows.items():
        text = toml_edit.remove_rows(text, array, lambda one, row=row: one.get("name") == row["name"])  # type: ignore[misc]
        text = toml_edit.add_row(text, array, row)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


_RISK = {"security_risk": "LOW", "summary": "x"}


def _command(name: str, **more: Any) -> Callable[[str], ToolCall]:
    return lambda command: (name, {"command": command, **more})


def _file(name: str, path: str = "file_path", text: str = "content", **more: Any) -> Callable[[str], ToolCall]:
    return lambda file: (name, {path: file, text: "x\n", **more})


def _prompt(tool: str, field: str = "prompt", /, **more: Any) -> Callable[[str], ToolCall]:
    return lambda prompt: (tool, {field: prompt, **more})


_GENERAL = {"description": "x", "subagent_type": "general-purpose"}


def _no_preparation(world: World) -> None:
    pass


# -- the rows -------------------------------------------------------------------------------------------------------


def _claude_env(world: World) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": world.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CONFIG_DIR": str(world.home / ".claude")}  # fmt: skip


def _codex_prepare(world: World) -> None:
    provider = {"name": NAME, "base_url": f"{world.url}/v1", "wire_api": "responses", "env_key": "FAKE_KEY",
                "requires_openai_auth": False, "supports_websockets": False}  # fmt: skip
    path = world.home / ".codex/config.toml"
    if path.exists():
        path.write_text(toml_edit.remove_value(path.read_text(), ("profile",)))  # it would choose another model
    _toml(path, (("model",), "fake-model"), (("model_provider",), NAME), (("approval_policy",), "never"),
          (("sandbox_mode",), "danger-full-access"), (("model_providers", NAME), provider))  # fmt: skip


def _codex_write(file: str) -> ToolCall:
    patch = f"*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch"
    return "exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"}


def _gemini_prepare(world: World, folder: str = ".gemini", auth: str = "gemini-api-key") -> None:
    _json(world.home / folder / "settings.json", (("security", "auth", "selectedType"), auth),
          (("telemetry", "enabled"), False),
          (("privacy", "usageStatisticsEnabled"), False), (("general", "disableAutoUpdate"), True))  # fmt: skip


def _copilot_env(world: World) -> dict[str, str]:
    return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{world.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "fake-model",
            "COPILOT_HOME": str(world.home / ".copilot"), "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
            "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000"}  # fmt: skip


def _kimi_prepare(world: World) -> None:
    provider = {"type": "openai", "base_url": f"{world.url}/v1", "api_key": "none"}
    model = {"provider": NAME, "model": "fake-model", "max_context_size": 100000}
    _toml(world.home / ".kimi-code/config.toml", (("default_model",), NAME), (("providers", NAME), provider),
          (("models", NAME), model))  # fmt: skip


def _grok_prepare(world: World) -> None:
    model = {"model": "fake-model", "base_url": f"{world.url}/v1", "name": NAME, "api_key": "none"}
    _toml(world.home / ".grok/config.toml", (("model", NAME), model))


def _vibe_prepare(world: World) -> None:
    provider = {"name": NAME, "api_base": f"{world.url}/v1", "api_key_env_var": "FAKE_KEY", "backend": "generic"}
    model = {"name": "fake-model", "provider": NAME, "alias": NAME}
    _toml(world.home / ".vibe/config.toml", (("active_model",), NAME), (("enable_telemetry",), False),
          (("enable_update_checks",), False), rows={"providers": provider, "models": model})  # fmt: skip


def _openhands_env(world: World) -> dict[str, str]:
    return {"LLM_API_KEY": "none", "LLM_BASE_URL": f"{world.url}/v1", "LLM_MODEL": "openai/gpt-4.1",
            "OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # fmt: skip


def _cline_prepare(world: World) -> None:
    words = ["auth", "-p", "openai-compatible", "-k", "none", "-m", "fake-model", "-b", f"{world.url}/v1"]
    env = {"HOME": str(world.home), "PATH": os.environ.get("PATH", ""), "CLINE_TELEMETRY_DISABLED": "1"}
    subprocess.run(
        [world.binary.path, *words], env=env, cwd=world.project, capture_output=True, timeout=60, check=False
    )


def _opencode_env(world: World) -> dict[str, str]:
    home = world.home
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "XDG_CONFIG_HOME": str(home / ".config"), "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_CACHE_HOME": str(home / ".cache"), "XDG_STATE_HOME": str(home / ".local/state")}  # fmt: skip


def _opencode_prepare(world: World) -> None:
    options = {"baseURL": f"{world.url}/v1", "apiKey": "none"}
    models = {"fake-model": {"name": "fake-model", "tool_call": True, "limit": {"context": 100000, "output": 8000}}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": NAME, "options": options, "models": models}
    _json(world.home / ".config/opencode/opencode.json", (("provider", NAME), provider),
          (("model",), f"{NAME}/fake-model"), (("small_model",), f"{NAME}/fake-model"), (("autoupdate",), False),
          (("share",), "disabled"), (("permission",), "allow"))  # fmt: skip


AGENTS: Mapping[str, Agent] = MappingProxyType({
    "claude": Agent(lambda world, prompt: ["-p", prompt, "--allowedTools=Bash,Write,Read,Edit", "--model",
                                           "claude-sonnet-4-5"],
                    _claude_env, _no_preparation, _command("Bash", description="x"), _file("Write"),
                    (".claude/settings.json",), (".claude/settings.json", ".claude/settings.local.json"),
                    spawn=_prompt("Agent", run_in_background=False, **_GENERAL)),
    "codex": Agent(lambda world, prompt: ["exec", "--skip-git-repo-check", prompt],
                   lambda world: {"FAKE_KEY": "none", "CODEX_HOME": str(world.home / ".codex")},
                   _codex_prepare, lambda command: ("exec_command", {"cmd": command}), _codex_write,
                   (".codex/hooks.json", ".codex/config.toml"), (".codex/hooks.json", ".codex/config.toml"),
                   spawn=_prompt("multi_agent_v1::spawn_agent", "message")),
    "gemini": Agent(lambda world, prompt: ["-m", "gemini-2.5-flash", "--yolo", "-p", prompt],
                    lambda world: {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": world.url,
                                   "GEMINI_CLI_NO_RELAUNCH": "true"},
                    _gemini_prepare, _command("run_shell_command"), _file("write_file"),
                    (".gemini/settings.json",), (".gemini/settings.json",),
                    spawn=_prompt("invoke_agent", agent_name="generalist")),
    "qwen": Agent(lambda world, prompt: ["-m", "fake-model", "--yolo", "-p", prompt],
                  lambda world: {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{world.url}/v1",
                                 "OPENAI_MODEL": "fake-model"},
                  lambda world: _gemini_prepare(world, ".qwen", "openai"),
                  _command("run_shell_command", is_background=False, description="x"), _file("write_file"),
                  (".qwen/settings.json",), (".qwen/settings.json",),
                  spawn=_prompt("agent", run_in_background=False, **_GENERAL)),
    "copilot": Agent(lambda world, prompt: ["--allow-all-tools", "--no-auto-update", "-p", prompt],
                     _copilot_env, _no_preparation, _command("bash", description="x"),
                     _file("create", "path", "file_text"),
                     (".copilot/hooks",), (".github/hooks",),
                     spawn=_prompt("task", name="x", description="x", agent_type="general-purpose", mode="sync")),
    "kimi": Agent(lambda world, prompt: ["-p", prompt],
                  lambda world: {"KIMI_CODE_HOME": str(world.home / ".kimi-code")}, _kimi_prepare,
                  _command("Bash", description="x"), _file("Write", "path"), (".kimi-code/config.toml",),
                  spawn=_prompt("Agent", description="x", run_in_background=False)),
    "grok": Agent(lambda world, prompt: ["-m", NAME, "--always-approve", "-p", prompt],
                  lambda world: {"XAI_API_KEY": "none"}, _grok_prepare,
                  _command("run_terminal_command", description="x"), _file("write"),
                  (".grok/hooks", ".grok/config.toml", ".claude/settings.json", ".cursor/hooks.json"),
                  (".grok/hooks",), spawn=_prompt("spawn_subagent", description="x", background=False)),
    "vibe": Agent(lambda world, prompt: ["--auto-approve", "-p", prompt],
                  lambda world: {"FAKE_KEY": "none", "VIBE_HOME": str(world.home / ".vibe")}, _vibe_prepare,
                  _command("bash"), _file("write_file", "path"), (".vibe/config.toml", ".vibe/hooks.toml"),
                  (".vibe/hooks.toml",)),
    "openhands": Agent(lambda world, prompt: ["--headless", "--json", "--always-approve", "--override-with-envs", "-t",
                                              prompt], _openhands_env, _no_preparation, _command("terminal", **_RISK),
                       _file("file_editor", "path", "file_text", command="create", **_RISK), (".openhands/hooks.json",),
                       (".openhands/hooks.json",),
                       (ModelTurn(tools=(("finish", {"message": "all done", "summary": "x"}),)),),
                       spawn=_prompt("task", **_GENERAL, **_RISK)),
    "cline": Agent(lambda world, prompt: ["-P", "openai-compatible", "-m", "fake-model", "--json", "-t", "300", prompt],
                   lambda world: {"CLINE_TELEMETRY_DISABLED": "1"}, _cline_prepare,
                   lambda command: ("run_commands", {"commands": [command]}), _file("editor", "path", "new_text"),
                   (".cline/hooks",), (".cline/hooks",), spawn=_prompt("spawn_agent", "task", systemPrompt="x")),
    "opencode": Agent(lambda world, prompt: ["run", prompt], _opencode_env, _opencode_prepare,
                      _command("bash", description="x"), _file("write", "filePath"),
                      (".config/opencode/opencode.json", ".config/opencode/plugin"), (".opencode/plugin",),
                      spawn=_prompt("task", description="x", subagent_type="general")),
})  # fmt: skip
"""Every agent that a proof can be run on."""


def environment(world: World, agent: Agent, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """What the agent's process gets: a home of its own, the model, and nothing of the user's keys."""
    node = lab() / "node24" / "node_modules" / "node" / "bin"
    path = os.environ.get("PATH", "/usr/bin:/bin")
    if lab() in world.binary.path.parents and node.is_dir():
        path = f"{node}:{path}"
    base = {"PATH": path, "HOME": str(world.home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1", "TMUX_TMPDIR": str(world.home)}  # fmt: skip
    return {**base, **agent.env(world), **more}
