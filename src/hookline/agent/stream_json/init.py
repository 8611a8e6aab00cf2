"""The first message of a stream: where the agent works, with what, under which rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.agent.run_options import CLAUDE_CODE_VERSION

if TYPE_CHECKING:
    from hookline.agent.factory import Made

__all__ = ["say_init"]


def say_init(made: Made) -> None:
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
        output_style="default",
        claude_code_version=CLAUDE_CODE_VERSION,
    )
