"""The first message of a stream: where the agent works, with what, under which rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.agent.run_options import CLAUDE_CODE_VERSION

if TYPE_CHECKING:
    from hookline.agent.factory import AgentBundle
    from hookline.api import Hooks


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
