"""An agent for tools under test: it can do what the test gives it, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hookline.agent.tools import ToolEnv, ToolHost


def hosted(env: ToolEnv, **abilities: Any) -> ToolEnv:
    """The environment of a call that may ask an agent with these abilities."""
    host = ToolHost()
    for name, ability in abilities.items():
        assert hasattr(host, name), name
        setattr(host, name, ability)
    return replace(env, host=host)
