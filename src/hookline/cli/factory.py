"""From flags and settings files to an agent: its hooks, model, tools, rules, and what it may read."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.agent import Agent
from hookline.agent.context.definitions import (
    BUILT_IN_AGENTS,
    AgentDefinition,
    Skill,
    find_agents,
    find_skills,
    read_agents,
)
from hookline.agent.hook_services import inspector, judge, mcp_caller
from hookline.agent.models import Model, choose
from hookline.agent.session.transcript import find, latest
from hookline.agent.tools import Tool, default_tools
from hookline.cli.flags import Flags
from hookline.errors import ConfigError, TranscriptError
from hookline.hookset import Hooks
from hookline.permissions import Rules, read_rules, removed_tools
from hookline.runners.services import Services
from hookline.settings import parse_hooks
from hookline.settings.names import with_free_names
from hookline.settings.sources import Source

if TYPE_CHECKING:
    from hookline.agent.tools.mcp import McpServers

NEWER = ("claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-haiku-5")
DEFAULT_EFFORT = "medium"
NOBODY = AgentDefinition(name="")
LAST_MOMENT = 0.25
"""Seconds that hooks in the background are given when the work is over: enough to have begun, not to hold it up."""
SYSTEM = "You are an agent that works in a folder with tools. Do what the user asks, and say briefly what you did."


@dataclass
class Made:
    """An agent and what has to be ended after it."""

    agent: Agent
    hooks: Hooks
    servers: McpServers | None = None
    files: list[Path] = field(default_factory=list)

    async def aclose(self) -> None:
        """End everything, in order; what still runs in the background goes first, then what SessionEnd started."""
        await self.hooks.end_background(LAST_MOMENT)
        await self.agent.aclose()
        await self.hooks.aclose()
        if self.servers is not None:
            await self.servers.aclose()
        close = getattr(self.agent.session.model, "aclose", None)
        if close is not None:
            await close()
        for path in self.files:
            path.unlink(missing_ok=True)


async def make(flags: Flags, cwd: str) -> Made:
    """Everything a run needs, nothing of it started yet but MCP servers."""
    env_file = _env_file()
    hooks = make_hooks(flags, cwd, {**os.environ, "CLAUDE_ENV_FILE": str(env_file)})
    if flags.audit:
        from hookline.audit.log import AuditLog

        hooks.observe(AuditLog(flags.audit), inline=True)
    stated = dict(hooks.loaded.env) if hooks.loaded else {}
    os.environ.update(stated)  # settings' `env` holds for the agent itself too: keys, endpoints, retries
    agents, skills = definitions(flags, cwd, hooks)
    itself = session_agent(flags, agents)
    model = make_model(flags, hooks, itself)
    warm = getattr(model, "warm", None)
    if warm is not None:
        warm()
    rules, dirs, mode = permissions(flags, hooks)
    servers = make_servers(flags, cwd)
    tools = itself.allowed(await make_tools(flags, rules, servers))
    agent = Agent(
        model=model,
        hooks=hooks,
        cwd=cwd,
        tools=tools,
        permission_mode=mode,
        rules=rules,
        dirs=dirs,
        system=system_prompt(flags, itself),
        environ=dict(os.environ),
        session_id=flags.session_id or None,
        resume=resumed(flags, cwd),
        fork=bool(flags.fork_session),
        setup=_setup(flags),
        agents=agents,
        skills=skills,
        instructions=_instructions(flags),
        max_turns=int(flags.max_turns) if flags.max_turns else None,
        compact_at=_tokens(flags.autocompact),
        effort=effort(flags, model),
        agent_type=flags.agent or None,
        persist=not flags.no_session_persistence,
    )
    agent.talk.state.env_files.append(env_file)
    give_services(agent, hooks, servers)
    return Made(agent, hooks, servers, [env_file])


def _env_file() -> Path:
    """Where SessionStart hooks export variables for later commands to."""
    handle, name = tempfile.mkstemp(prefix="hookline-env-", suffix=".sh")
    os.close(handle)
    return Path(name)


def make_hooks(flags: Flags, cwd: str, env: Mapping[str, str]) -> Hooks:
    """The hooks of a Python file, or of the settings files once they are trusted."""
    from hookline.cli.options import ask, from_python, governed, warn

    if flags.hooks:
        return governed(from_python(flags.hooks))
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    hooks = Hooks.from_settings(
        cwd,
        settings=flags.settings or None,
        setting_sources=flags.setting_sources,
        plugin_dirs=flags.listed("plugin_dir"),
        bare=bool(flags.bare),
        trust="all" if flags.trust else ask if terminal else "error",
        watch=False,
        on_problem=warn,
        env=env,
    )
    _refuse_what_was_asked_for_and_is_not_there(hooks)
    return governed(hooks)


def _refuse_what_was_asked_for_and_is_not_there(hooks: Hooks) -> None:
    """A file of the project may be broken; `--settings` and `--setting-sources` are this run's own words."""
    assert hooks.loaded is not None
    broken = [problem for file in hooks.loaded.broken if file.source.kind == "flag" for problem in file.problems]
    unknown = [problem for problem in hooks.loaded.source_problems if problem.where == "--setting-sources"]
    for problem in (*unknown, *broken):
        raise ConfigError(problem.where, problem.message)


def make_model(flags: Flags, hooks: Hooks, itself: AgentDefinition = NOBODY) -> Model:
    """The model of the flag, else of `--agent`, else of the settings, else the default."""
    own = itself.model if itself.model != "inherit" else ""
    return choose(flags.model or own or (hooks.loaded.model if hooks.loaded else None) or "")


def effort(flags: Flags, model: Model) -> str | None:
    """How hard the model should think; older ones are not asked."""
    return flags.effort or (DEFAULT_EFFORT if model.name.startswith(NEWER) else None)


def permissions(flags: Flags, hooks: Hooks) -> tuple[Rules, tuple[str, ...], str]:
    """Rules, working folders and the mode of settings and flags together."""
    rows = hooks.loaded.permissions if hooks.loaded else ()
    rules = read_rules({}, allowed=flags.listed("allowed_tools"), disallowed=flags.listed("disallowed_tools"))
    dirs: tuple[str, ...] = tuple(flags.listed("add_dir"))
    mode = "default"
    for row in rows:
        rules = rules | read_rules({"allow": row.allow, "ask": row.ask, "deny": row.deny})
        dirs += row.additional_directories
        mode = row.default_mode or mode
    if flags.skip_permissions:
        mode = "bypassPermissions"
    return rules, dirs, flags.permission_mode or mode


def make_servers(flags: Flags, cwd: str) -> McpServers | None:
    """The MCP servers of `--mcp-config` and, unless `--strict-mcp-config` says otherwise, of `.mcp.json`."""
    sources = flags.listed("mcp_config")
    project = Path(cwd, ".mcp.json")
    if flags.trust and not flags.strict_mcp_config and not flags.bare and project.is_file():
        sources.insert(0, str(project))
    if not sources:
        return None
    from hookline.agent.tools.mcp import McpServers, read_config

    configs = {name: config for source in sources for name, config in read_config(source).items()}
    return McpServers(configs) if configs else None


async def make_tools(flags: Flags, rules: Rules, servers: McpServers | None) -> dict[str, Tool]:
    """The tools the model is offered: built in or from MCP servers, less those that a bare deny rule takes away."""
    tools: dict[str, Tool] = default_tools()
    names = [name.strip() for text in flags.listed("tools") for name in text.split(",")]
    if names and "default" not in names:
        tools = {name: tool for name, tool in tools.items() if name in names}
    if servers is not None:
        tools |= await servers.connect()
        for name, problem in servers.failures.items():
            print(f"hookline run: MCP server `{name}`: {problem}", file=sys.stderr)
    gone = removed_tools(rules)
    return {name: tool for name, tool in tools.items() if name not in gone}


def definitions(flags: Flags, cwd: str, hooks: Hooks) -> tuple[dict[str, AgentDefinition], dict[str, Skill]]:
    """Agents, skills and commands: the user's, the project's, plugins', and the flag's."""
    if flags.bare:
        return {}, {}
    wanted = (flags.setting_sources if flags.setting_sources is not None else "user,project,local").split(",")
    config = hooks.loaded.places.config_dir if hooks.loaded else Path("~/.claude").expanduser()
    own = [(config, "userSettings")] if "user" in wanted else []
    project = [(Path(cwd, ".claude"), "projectSettings")] if "project" in wanted else []
    skills = find_skills([*own, *project])
    for folder in flags.listed("plugin_dir"):
        skills |= find_skills([(Path(folder), "plugin")], prefix=f"{Path(folder).name}:")
    agents = find_agents([folder for folder, _ in (*own, *project)] + [Path(one) for one in flags.listed("plugin_dir")])
    return agents | flag_agents(flags, hooks), skills


def flag_agents(flags: Flags, hooks: Hooks) -> dict[str, AgentDefinition]:
    """The agents of `--agents`, their hooks registered for while they run."""
    if not flags.agents:
        return {}
    try:
        table = msgspec.json.decode(flags.agents)
    except msgspec.DecodeError as problem:
        raise ConfigError("--agents", f'expected JSON such as {{"reviewer": {{"prompt": "…"}}}}: {problem}') from None
    return add_agents(table, hooks)


def add_agents(table: Mapping[str, Any], hooks: Hooks) -> dict[str, AgentDefinition]:
    """Agents described by a host or a flag; hooks in the description hold while that agent runs."""
    found = read_agents(table)
    for name, agent in found.items():
        if agent.hooks:
            source = Source(kind="agent", label=f"--agents: {name}", owner=name)
            parsed = parse_hooks(agent.hooks, source)
            hooks.add(*with_free_names(parsed.hooks, [hook.name for hook in hooks.hooks]))
    return found


def session_agent(flags: Flags, agents: Mapping[str, AgentDefinition]) -> AgentDefinition:
    """The agent of `--agent`: its prompt, tools, model and hooks are the session's; a host may describe it later."""
    known = {**BUILT_IN_AGENTS, **agents}
    if not flags.agent or (flags.agent not in known and flags.input_format == "stream-json"):
        return NOBODY
    if flags.agent not in known:
        raise ConfigError("--agent", f"`{flags.agent}` not found; write one of {', '.join(sorted(known))}")
    return known[flags.agent]


def system_prompt(flags: Flags, itself: AgentDefinition = NOBODY) -> tuple[str, ...]:
    """The system prompt: the flag's, the one of `--agent` or our own, with what is to be added."""
    stated = flags.system_prompt or (Path(flags.system_prompt_file).read_text() if flags.system_prompt_file else "")
    base = stated or itself.prompt or SYSTEM
    more = flags.append_system_prompt
    if flags.append_system_prompt_file:
        more = Path(flags.append_system_prompt_file).read_text()
    return (base, more) if more else (base,)


def resumed(flags: Flags, cwd: str) -> Path | None:
    """The transcript to go on with; `--continue` where nothing was said yet begins."""
    if flags.continue_last:
        with suppress(TranscriptError):
            return latest(cwd)
        return None
    if flags.resume == "":
        return latest(cwd)
    return find(flags.resume, cwd) if flags.resume else None


def _setup(flags: Flags) -> str | None:
    if flags.init or flags.init_only:
        return "init"
    return "maintenance" if flags.maintenance else None


def _instructions(flags: Flags) -> frozenset[str]:
    wanted = (flags.setting_sources if flags.setting_sources is not None else "user,project,local").split(",")
    return frozenset() if flags.bare else frozenset(word.strip().capitalize() for word in wanted)


def _tokens(given: str | None) -> int | None:
    """`100k` or `100000` tokens."""
    if not given:
        return None
    number, scale = (given[:-1], 1000) if given[-1:] in "kK" else (given, 1)
    return int(float(number) * scale) if number.replace(".", "", 1).isdigit() else None


def give_services(agent: Agent, hooks: Hooks, servers: McpServers | None) -> None:
    """Let prompt, agent and MCP hooks use the session's model, tools and servers."""
    model = agent.session.model

    def env() -> Any:
        return agent.talk.tool_env("")

    hooks.services = Services(
        judge(model, agent.talk), inspector(model, lambda: agent.session.tools, env), mcp_caller(servers, env)
    )
