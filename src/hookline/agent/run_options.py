"""What a run of the agent can be asked for, as a value: `factory.make` takes it, `hookline run` reads it from flags."""

from dataclasses import dataclass

from hookline.guards.permissions import Mode

#: the Claude Code whose flags, messages and hooks are spoken here; drivers look at it before they go on
CLAUDE_CODE_VERSION = "2.1.325"


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
