"""An agent whose every step passes the engine: `Agent`, `Result`, and who may be asked for permission."""

from hookline.agent.agent import Agent
from hookline.agent.messages import Result
from hookline.agent.session.session import CanUseTool, PermissionQuestion

__all__ = ["Agent", "CanUseTool", "PermissionQuestion", "Result"]
