"""Models the agent can talk to: `choose("anthropic:…")`, or anything with the `Model` protocol's one method."""

from hookline.agent.models.base import Model, ModelRequest, OnEvent, ToolSpec
from hookline.agent.models.choose import choose

__all__ = ["Model", "ModelRequest", "OnEvent", "ToolSpec", "choose"]
