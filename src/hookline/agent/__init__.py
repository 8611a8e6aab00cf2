"""An agent whose every step passes the engine: `Agent`, `Result`, and who may be asked for permission."""

from hookline.agent.asking import Ask, CanUseTool
from hookline.agent.loop import Agent
from hookline.agent.results import Result

__all__ = ["Agent", "Ask", "CanUseTool", "Result"]
