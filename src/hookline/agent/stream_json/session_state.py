"""What a host is told of the session itself: where it works and with what, and whether it works or rests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.agent.run_options import CLAUDE_CODE_VERSION

if TYPE_CHECKING:
    from hookline.agent.agent import Agent
    from hookline.agent.factory import AgentBundle
    from hookline.api import Hooks

#: a host asks for the messages with one of these; with the second it does not pass them on to its own user
WANTED, HOST_ONLY = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_SDK_READS_SESSION_STATE"
OFF = ("", "0", "false")


def output_style(hooks: Hooks) -> str:
    """The `outputStyle` of the settings, by name."""
    stated = hooks.settings.loaded.raw.get("outputStyle") if hooks.settings else None
    return stated if isinstance(stated, str) and stated else "default"


def plugins(hooks: Hooks) -> list[dict[str, str]]:
    """The plugins in use, each with its folder."""
    found = hooks.settings.loaded.plugins if hooks.settings else {}
    return [{"name": name.partition("@")[0], "path": path, "source": name} for name, path in found.items()]


def write_init_message(made: AgentBundle) -> None:
    """The first message: where, with what, under which rules."""
    session = made.agent.session
    made.agent.output.system(
        "init",
        cwd=session.project_dir,
        tools=list(session.tools),
        mcp_servers=made.servers.statuses() if made.servers else [],
        model=session.model_name,
        permissionMode=str(session.policy.mode),
        slash_commands=[*session.skills, "compact", "clear", "context", "cost"],
        apiKeySource="ANTHROPIC_API_KEY",
        agents=list(session.agents),
        skills=[skill.name for skill in session.skills.values() if skill.kind == "skill"],
        output_style=output_style(made.hooks),
        plugins=plugins(made.hooks),
        claude_code_version=CLAUDE_CODE_VERSION,
    )


class SessionStates:
    """Tells when the session begins to work, and when nothing is left: no turn, no subagent, no word of one."""

    def __init__(self, agent: Agent) -> None:
        environ = agent.session.environ
        self._agent = agent
        self._wanted = environ.get(WANTED, "") not in OFF
        self._host_only = environ.get(HOST_ONLY, "") not in OFF
        self._told = ""

    def running(self) -> None:
        """A turn begins."""
        self._tell("running")

    def rests(self) -> None:
        """A turn is over; the session is idle unless something in the background will wake it."""
        session = self._agent.session
        if session.inbox.empty() and not session.working:
            self._tell("idle")

    def _tell(self, state: str) -> None:
        if state == self._told or not (self._wanted or self._host_only):
            return
        self._told = state
        quiet = {} if self._wanted else {"sdk_host_only": True}
        self._agent.output.system("session_state_changed", state=state, **quiet)
