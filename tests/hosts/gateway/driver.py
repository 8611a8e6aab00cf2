"""The official client in front of the gateway, as a program that a test starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HOOKS = HERE / "judging.py"
SERVER = HERE / "server.py"


def gateway(home: Path, command: Sequence[str], *flags: str, name: str = "s", hooks: Path = HOOKS) -> Any:
    """How the client starts the gateway; its pins are in `home`."""
    from mcp import StdioServerParameters

    words = ["-m", "hookline.cli.main", "mcp", "--name", name, "--hooks", str(hooks), *flags, "--", *command]
    env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    return StdioServerParameters(command=sys.executable, args=words, env=env)


def bare(command: Sequence[str]) -> Any:
    """How the client starts the server itself."""
    from mcp import StdioServerParameters

    return StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))


def text(result: Any) -> str:
    """The texts of a result."""
    return "\n".join(getattr(part, "text", "") for part in result.content)


class Person:
    """Answers elicitations, and remembers what was asked."""

    def __init__(self, *, approves: bool = True) -> None:
        self.approves = approves
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: Any) -> Any:
        import mcp_types as types

        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"approve": self.approves})
