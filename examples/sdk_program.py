"""Hooks for a program that already uses the official Claude Agent SDK: one line, the rest stays as it is.

    pip install claude-agent-sdk
    python examples/sdk_program.py

`for_sdk(hooks)` is what `ClaudeAgentOptions(hooks=…)` takes. The Claude CLI that comes with the SDK runs for real;
only the model is scripted, so that this needs no key (leave out `env` in a program of your own).
"""

import asyncio
import sys
import tempfile

from scripted_api import scripted_api

from hookline import Hooks
from hookline.core.engine import Notice, Verdict
from hookline.guards import commands, paths
from hookline.hosts.claude_code import for_sdk

try:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
except ImportError:
    print("this example needs the official SDK, which is not installed; run `pip install claude-agent-sdk`")
    sys.exit(0)

hooks = Hooks()
hooks.add(commands.block(["rm -rf *", "sudo *"]))
hooks.add(paths.stay_inside())


def say(notice: Notice) -> None:
    """Watch the verdicts."""
    if isinstance(notice, Verdict) and notice.event.event_name == "PreToolUse":
        print(notice)


async def main(address: str, folder: str) -> None:
    hooks.observe(say, inline=True)
    options = ClaudeAgentOptions(
        hooks=for_sdk(hooks),  # <- the one line
        allowed_tools=["Bash"],
        cwd=folder,
        setting_sources=[],
        env={"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none", "HOME": folder, "DISABLE_TELEMETRY": "1"},
    )
    async for message in query(prompt="clean up", options=options):
        if isinstance(message, ResultMessage):
            print("the agent says:", message.result)


if __name__ == "__main__":
    turns = (
        {"tools": [["Bash", {"command": "sudo rm -rf /tmp/nothing"}]]},
        {"tools": [["Bash", {"command": "echo hello"}]]},
        {"text": "I was not allowed to clean up."},
    )
    with scripted_api(*turns) as address, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        asyncio.run(main(address, folder))
