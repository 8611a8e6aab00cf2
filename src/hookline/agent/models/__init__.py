"""Models the agent can talk to: `choose("anthropic:…")`, or anything with the `Model` protocol's one method."""

from hookline.agent.models.base import Delta, Model, ModelRequest, ModelResponse, OnDelta, ToolSpec
from hookline.agent.models.choose import choose

__all__ = ["Delta", "Model", "ModelRequest", "ModelResponse", "OnDelta", "ToolSpec", "choose"]
