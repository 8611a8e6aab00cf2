"""An agent whose every step passes the engine: `Agent`, `Team`, `Result`, and who may be asked for permission."""

from hookline.agent.asking import Ask, CanUseTool
from hookline.agent.loop import Agent
from hookline.agent.results import Result
from hookline.agent.team import Team

__all__ = ["Agent", "Ask", "CanUseTool", "Result", "Team"]
