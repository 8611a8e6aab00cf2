"""From flags and settings files to an agent: its hooks, model, tools, rules, and what it may read."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from hookline.agent import Agent
from hookline.agent.context.definitions import BUILT_IN_AGENTS, AgentDefinition, Skill, find_agents, find_skills
from hookline.agent.hook_messages import TEXTS
from hookline.agent.models import Model, choose
from hookline.agent.models.base import DEFAULT_MAX_TOKENS, has_price
from hookline.agent.session.transcript import find, latest
from hookline.agent.tools import Tool, default_tools
from hookline.agent.tools.delegate import read_schema
from hookline.agent.tools.mcp import McpServers, ServerConfig, read_config
from hookline.api import Hooks
from hookline.errors import ConfigError, TranscriptError
from hookline.events import ConfigChange
from hookline.guards.permissions import Mode, Rules, read_rules, removed_tools
from hookline.runners.command import new_env_file
from hookline.settings import LoadedSettings, parse_hooks
from hookline.settings.files import Problem
from hookline.settings.hook_names import with_free_names
from hookline.settings.sources import SettingsFolders, SettingsSource
from hookline.settings.trust.store import Policy as Trusting
from hookline.settings.watcher import signature

log: logging.Logger = logging.getLogger("hookline.agent")
CLAUDE_CODE_VERSION = "2.1.325"  # whose flags, messages and hooks are spoken; drivers look at it before they go on
NEWER = ("claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-haiku-5")
DEFAULT_EFFORT = "medium"
LEAST_THINKING = 1024
NO_AGENT = AgentDefinition(name="")
LAST_MOMENT = 0.25  # seconds that hooks in the background are given to have begun when the work is over
INTERVAL = 0.5  # seconds between two looks at the settings files
#: what each kind of settings file is called in a ConfigChange event
SOURCES = {"user": "user_settings", "project": "project_settings", "local": "local_settings",
           "managed": "policy_settings"}  # fmt: skip
HooksFor: TypeAlias = Callable[[Mapping[str, str]], Hooks]  # makes the hooks of a run for the environment they will see


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of one run; each is a flag of `hookline run`, whose help says what it does."""

    prompt: str | None = None
    print: bool = False
    output_format: str = "text"
    input_format: str = "text"
    verbose: bool = False
    include_hook_events: bool = False
    include_partial_messages: bool = False
    replay_user_messages: bool = False
    settings: str | None = None
    setting_sources: str | None = None
    hooks: str | None = None
    trust: bool = False
    bare: bool = False
    permission_mode: Mode | None = None
    permission_prompt_tool: str | None = None
    permission_prompts: str | None = None
    skip_permissions: bool = False
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    model: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    json_schema: str | None = None
    max_thinking_tokens: int | None = None
    autocompact: int | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    mcp_config: tuple[str, ...] = ()
    strict_mcp_config: bool = False
    plugin_dir: tuple[str, ...] = ()
    plugin_dir_no_mcp: tuple[str, ...] = ()
    add_dir: tuple[str, ...] = ()
    agents: str | None = None
    agent: str | None = None
    resume: str | None = None
    continue_last: bool = False
    fork_session: bool = False
    session_id: str | None = None
    no_session_persistence: bool = False
    resume_session_at: str | None = None
    resume_drops_turn: str | None = None
    session_mirror: bool = False
    confine: bool | None = None
    no_confine: bool = False
    sandbox: bool = False
    init: bool = False
    init_only: bool = False
    maintenance: bool = False
    worktree: str | None = None
    audit: str | None = None
    cwd: str | None = None

    @property
    def driven(self) -> bool:
        """Whether a host drives the run over the control protocol."""
        return self.input_format == "stream-json"

    @property
    def sources(self) -> tuple[str, ...]:
        """The scopes whose settings, agents, skills and instructions count."""
        stated = "user,project,local" if self.setting_sources is None else self.setting_sources
        return tuple(word.strip() for word in stated.split(","))


@dataclass
class AgentBundle:
    """An agent and what has to be ended after it."""

    agent: Agent
    hooks: Hooks
    ending: ExitStack = field(default_factory=ExitStack)

    @property
    def output_style(self) -> str:
        stated = _settings(self.hooks).raw.get("outputStyle")
        return stated if isinstance(stated, str) and stated else "default"

    def write_init_message(self) -> None:
        """The first message: where, with what, under which rules."""
        session = self.agent.session
        plugins = _settings(self.hooks).plugins.items()
        self.agent.output.system(
            "init",
            cwd=session.project_dir,
            tools=list(session.tools),
            mcp_servers=session.servers.statuses(),
            model=session.model.name,
            permissionMode=str(session.policy.mode),
            slash_commands=[*session.skills, "compact", "clear", "context", "cost"],
            apiKeySource="ANTHROPIC_API_KEY",
            agents=list(session.agents),
            skills=[skill.name for skill in session.skills.values() if skill.kind == "skill"],
            output_style=self.output_style,
            plugins=[{"name": name.partition("@")[0], "path": path, "source": name} for name, path in plugins],
            claude_code_version=CLAUDE_CODE_VERSION,
        )

    async def aclose(self) -> None:
        """End everything, in order; what still runs in the background goes first, then what SessionEnd started."""
        await self.hooks.engine.end_background(LAST_MOMENT)
        await self.agent.aclose()
        await self.hooks.aclose()
        await self.agent.session.servers.aclose()
        close = getattr(self.agent.session.model, "aclose", None)
        if close is not None:
            await close()
        self.ending.close()


def _settings(hooks: Hooks) -> LoadedSettings:
    """What the settings files say; hooks that were made from none have none."""
    if hooks.settings is not None:
        return hooks.settings.loaded
    config, none = Path("~/.claude").expanduser(), Path()
    return LoadedSettings(places=SettingsFolders(project_dir=none, home=none, config_dir=config, managed=none))


async def make(options: RunOptions, cwd: str, hooks_for: HooksFor) -> AgentBundle:
    """Everything a run needs, nothing of it started yet but MCP servers.

    Where hooks come from, and who trusts them, is for the caller to say: `hooks_for` is given the environment.
    """
    env_file = new_env_file()
    hooks = hooks_for({**os.environ, "CLAUDE_ENV_FILE": str(env_file)})
    if options.audit:
        from hookline.records.audit.log import AuditLog

        hooks.observe(AuditLog(options.audit), inline=True)
    with ExitStack() as ending:
        ending.callback(env_file.unlink, missing_ok=True)
        ending.enter_context(_environ(_settings(hooks).env))  # keys, endpoints, retries
        made = await _make_agent(options, cwd, hooks)
        made.agent.conversation.state.env_files.append(env_file)
        made.ending = ending.pop_all()
    return made


@contextmanager
def _environ(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables that settings state are for a while in the process's environment, where SDKs and TLS look."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)


async def _make_agent(options: RunOptions, cwd: str, hooks: Hooks) -> AgentBundle:
    agents, skills = definitions(options, cwd, hooks)
    itself = session_agent(options, agents)
    # the model of the flag, else of `--agent`, else of the settings, else the default
    own = itself.model if itself.model != "inherit" else ""
    model = choose(options.model or own or _settings(hooks).model or "")
    if options.max_budget_usd is not None and not has_price(model.name):
        why = f"the price of model `{model.name}` is not known, so no budget can be kept; use --max-turns"
        raise ConfigError("--max-budget-usd", why)
    rules, dirs, mode = permissions(options, hooks)
    servers = make_servers(options, hooks)
    agent = Agent(
        model=model,
        hooks=hooks,
        cwd=cwd,
        tools=itself.allowed(await make_tools(options, rules, servers)),
        permission_mode=mode,
        rules=rules,
        dirs=dirs,
        system=system_prompt(options, itself),
        environ=dict(os.environ),
        session_id=options.session_id or None,
        resume=resumed(options, cwd),
        fork=options.fork_session,
        upto=options.resume_session_at,
        drops=options.resume_drops_turn,
        setup="init" if options.init or options.init_only else "maintenance" if options.maintenance else None,
        agents=agents,
        skills=skills,
        instructions=frozenset() if options.bare else frozenset(word.capitalize() for word in options.sources),
        max_turns=options.max_turns,
        compact_at=options.autocompact,
        effort=effort(options, model),
        thinking=thinking(options, model),
        agent_type=options.agent or None,
        persist=not options.no_session_persistence,
        confine=False if options.no_confine else options.confine,
        budget=options.max_budget_usd,
        schema=read_schema(options.json_schema) if options.json_schema else None,
    )
    agent.session.servers = servers
    return AgentBundle(agent, hooks)


def settings_hooks(
    options: RunOptions, cwd: str, env: Mapping[str, str], *, trust: Trusting, on_problem: Callable[[Problem], Any]
) -> Hooks:
    """The hooks of the settings files, once they are trusted.

    A file of the project may be broken; `--settings` and `--setting-sources` are this run's own words, so they may not.
    """
    hooks = Hooks.from_settings(
        cwd,
        settings=options.settings or None,
        setting_sources=options.setting_sources,
        plugin_dirs=(*options.plugin_dir, *options.plugin_dir_no_mcp),
        bare=options.bare,
        trust=trust,
        watch=False,
        on_problem=on_problem,
        env=env,
    )
    loaded = _settings(hooks)
    broken = [problem for file in loaded.broken if file.source.kind == "flag" for problem in file.problems]
    unknown = [problem for problem in loaded.source_problems if problem.where == "--setting-sources"]
    for problem in (*unknown, *broken):
        raise ConfigError(problem.where, problem.message)
    return hooks


def effort(options: RunOptions, model: Model) -> str | None:
    """How hard the model should think; older ones are not asked."""
    return options.effort or (DEFAULT_EFFORT if model.name.startswith(NEWER) else None)


def thinking(options: RunOptions, model: Model) -> dict[str, Any] | None:
    """How much the model may think: the flag, else `MAX_THINKING_TOKENS`; newer models are told how hard instead."""
    stated = os.environ.get("MAX_THINKING_TOKENS", "")
    given = int(stated) if stated.isdigit() else None
    budget = given if options.max_thinking_tokens is None else options.max_thinking_tokens
    if not budget or not model.name.startswith("claude-") or model.name.startswith(NEWER):
        return None
    return {"type": "enabled", "budget_tokens": max(LEAST_THINKING, min(budget, DEFAULT_MAX_TOKENS - 1))}


def permissions(options: RunOptions, hooks: Hooks) -> tuple[Rules, tuple[str, ...], str]:
    """Rules, working folders and the mode of settings and flags together."""
    rules = read_rules({}, allowed=options.allowed_tools, disallowed=options.disallowed_tools)
    dirs, mode = options.add_dir, "default"
    for row in _settings(hooks).permissions:
        rules = rules | read_rules({"allow": row.allow, "ask": row.ask, "deny": row.deny})
        dirs += row.additional_directories
        mode = row.default_mode or mode
    if options.skip_permissions:
        mode = "bypassPermissions"
    return rules, dirs, str(options.permission_mode or mode)


def make_servers(options: RunOptions, hooks: Hooks) -> McpServers:
    """The MCP servers of `--mcp-config`, and of a trusted `.mcp.json` unless `--strict-mcp-config` leaves it out."""
    named = [file for file in _settings(hooks).files if file.source.kind == "mcp" and not options.strict_mcp_config]
    configs: dict[str, ServerConfig] = {}
    without = {os.path.realpath(folder) for folder in options.plugin_dir_no_mcp}
    for file in named:
        if file.source.path in _settings(hooks).refused:
            log.warning("%s is not trusted: its MCP servers are not started; run `hookline trust`", file.source.label)
            continue
        if file.source.root in without:
            continue
        own = {"CLAUDE_PLUGIN_ROOT": file.source.plugin_root, "CLAUDE_PLUGIN_DATA": file.source.plugin_data}
        environ = {**os.environ, **{name: value for name, value in own.items() if value}}
        prefix = f"plugin:{file.source.plugin.partition('@')[0]}:" if file.source.plugin else ""
        text = msgspec.json.encode(file.raw).decode() if file.source.plugin else file.source.path
        configs |= {prefix + name: config for name, config in read_config(text, environ).items()}
    configs |= {name: config for source in options.mcp_config for name, config in read_config(source).items()}
    return McpServers(configs)


async def make_tools(options: RunOptions, rules: Rules, servers: McpServers) -> dict[str, Tool]:
    """The tools the model is offered: built in or from MCP servers, less those that a bare deny rule takes away."""
    tools: dict[str, Tool] = default_tools()
    names = [name.strip() for text in options.tools for name in text.split(",")]
    if names and "default" not in names:
        tools = {name: tool for name, tool in tools.items() if name in names}
    tools |= await servers.connect()
    for name, problem in servers.failures.items():
        log.warning("MCP server `%s`: %s", name, problem)
    gone = removed_tools(rules, tools)
    return {name: tool for name, tool in tools.items() if name not in gone}


def definitions(options: RunOptions, cwd: str, hooks: Hooks) -> tuple[dict[str, AgentDefinition], dict[str, Skill]]:
    """Agents, skills and commands: the user's, the project's, plugins', and the flag's."""
    if options.bare:
        return {}, {}
    wanted, settings = options.sources, _settings(hooks)
    own = [(settings.places.config_dir, "userSettings")] if "user" in wanted else []
    project = [(Path(cwd, ".claude"), "projectSettings")] if "project" in wanted else []
    skills = find_skills([*own, *project])
    agents = find_agents([folder for folder, _ in (*own, *project)])
    for plugin, folder in settings.plugins.items():
        prefix = f"{plugin.partition('@')[0]}:"
        skills |= find_skills([(Path(folder), "plugin")], prefix)
        agents |= find_agents([Path(folder)], prefix)
    # a skill whose file is not trusted allows nothing, such an agent brings neither hooks nor a model of its own;
    # a file that lies so deep that the settings did not look at it is not trusted either
    no = set(settings.refused)
    if hooks.settings is not None and not options.trust:
        found = {one.path for one in skills.values()} | {one.path for one in agents.values()}
        no |= found - {file.source.path for file in settings.files}
    skills |= {name: structs.replace(one, allowed=()) for name, one in skills.items() if one.path in no}
    agents |= {name: structs.replace(one, hooks={}, model="") for name, one in agents.items() if one.path in no}
    if options.agents:
        try:
            table = msgspec.json.decode(options.agents)
        except msgspec.DecodeError as problem:
            why = f'expected JSON such as {{"reviewer": {{"prompt": "…"}}}}: {problem}'
            raise ConfigError("--agents", why) from None
        agents |= add_agents(table, hooks)
    return agents, skills


def add_agents(table: Mapping[str, Any], hooks: Hooks) -> dict[str, AgentDefinition]:
    """Agents described by a host or a flag; hooks in the description hold while that agent runs."""
    found = {name: AgentDefinition.read(name, entry) for name, entry in table.items() if isinstance(entry, dict)}
    for name, agent in found.items():
        if agent.hooks:
            source = SettingsSource(kind="agent", label=f"--agents: {name}", owner=name)
            parsed = parse_hooks(agent.hooks, source)
            hooks.add(*with_free_names(parsed.hooks, [hook.name for hook in hooks.hooks]))
    return found


def session_agent(options: RunOptions, agents: Mapping[str, AgentDefinition]) -> AgentDefinition:
    """The agent of `--agent`: its prompt, tools, model and hooks are the session's; a host may describe it later."""
    known = {**BUILT_IN_AGENTS, **agents}
    if options.agent and options.agent not in known and not options.driven:
        raise ConfigError("--agent", f"`{options.agent}` not found; write one of {', '.join(sorted(known))}")
    return known.get(options.agent, NO_AGENT) if options.agent else NO_AGENT


def system_prompt(options: RunOptions, itself: AgentDefinition = NO_AGENT) -> tuple[str, ...]:
    """The system prompt: the flag's, the one of `--agent` or our own, with what is to be added."""
    texts = (options.system_prompt or itself.prompt or TEXTS["system"], options.append_system_prompt)
    return tuple(text for text in texts if text)


def resumed(options: RunOptions, cwd: str) -> Path | None:
    """The transcript to go on with; `--continue` where nothing was said yet begins."""
    if options.continue_last:
        with suppress(TranscriptError):
            return latest(cwd)
        return None
    return None if options.resume is None else find(options.resume, cwd) if options.resume else latest(cwd)


async def keep_up(made: AgentBundle, options: RunOptions) -> None:
    """Look at the settings files again and again, until cancelled; a change that ConfigChange hooks let pass holds."""
    if made.hooks.settings is None:
        return
    files = [file.source for file in made.hooks.settings.loaded.files]
    kinds = {file.path: SOURCES[file.kind] for file in files if file.path and file.kind in SOURCES}
    before = signature(list(kinds))
    while True:
        await asyncio.sleep(INTERVAL)
        now = signature(list(kinds))
        changed = [path for path, old, new in zip(kinds, before, now, strict=True) if old != new]
        before = now
        refused = False
        for path in changed:
            verdict = await made.agent.conversation.fire(ConfigChange, source=kinds[path], file_path=path)
            if verdict.blocked:
                refused = True
                made.agent.output.inform(f"{path}: the change is not applied: {verdict.reason}", level="warning")
        change = made.hooks.settings.refresh() if changed and not refused else None
        if change is not None:
            made.ending.enter_context(_environ(change.loaded.env))
            session = made.agent.session
            session.environ = dict(os.environ)
            session.policy.rules, session.policy.dirs, _ = permissions(options, made.hooks)
