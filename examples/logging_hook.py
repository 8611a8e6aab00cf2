"""Log every tool call with Python's own logging.

    python examples/logging_hook.py

A hook that only watches answers nothing. It says `rejudge=False`: it need not be asked again when another hook
rewrites the input, so that every call is logged once.
"""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from hookline import Hooks
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.events import PostToolUse, PostToolUseFailure, PreToolUse

log = logging.getLogger("my-agent")
hooks = Hooks()


@hooks.on(PreToolUse, PostToolUse, PostToolUseFailure, rejudge=False)
async def log_tools(event: PreToolUse | PostToolUse | PostToolUseFailure) -> None:
    """One function for three events; `event_name` says which it is."""
    log.info("%s %s", event.event_name, event.tool_name)


async def main(project: Path) -> None:
    model = Scripted.of(
        {"tools": [["Bash", {"command": "echo hello"}]]},
        {"tools": [["Bash", {"command": "exit 3"}]]},
        "Done.",
    )
    async with Agent(
        model=model, hooks=hooks, cwd=project, permission_mode="bypassPermissions", persist=False
    ) as agent:
        await agent.run("say hello")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s", stream=sys.stdout)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
