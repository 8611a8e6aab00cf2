"""An agent whose every step passes the engine: `Agent`, `Team`, `Result`, and who may be asked for permission."""

from hookline.agent.agent import Agent
from hookline.agent.permission_policy import CanUseTool, PermissionQuestion
from hookline.agent.session.results import Result
from hookline.agent.subagents.team import Team

__all__ = ["Agent", "CanUseTool", "PermissionQuestion", "Result", "Team"]
