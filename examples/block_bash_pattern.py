"""Block commands that contain a forbidden text: by hand, then with the guards that do it better.

    python examples/block_bash_pattern.py

The first hook looks for the text as it stands. `commands.containing` also sees through quotes and spaces, and
`commands.block` reads the line as a shell would: it finds the command, and leaves alone what only mentions it.
"""

import asyncio

from hookline import Hooks, Reply, deny
from hookline.events import PreToolUse
from hookline.guards import commands
from hookline.testing import bash

FORBIDDEN = ["rm -rf", "sudo"]
LINES = ["ls -la", "rm -rf /", "rm  -rf /", "rm -r -f /", "bash -c 'sudo id'", 'git commit -m "no more rm -rf"']

by_hand = Hooks()


@by_hand.on(PreToolUse, match="Bash")
async def no_forbidden_text(event: PreToolUse) -> Reply | None:
    """Deny the call if the command contains one of the texts."""
    for text in FORBIDDEN:
        if text in event.tool_input["command"]:
            return deny(f"command contains forbidden pattern: {text}")
    return None


containing = Hooks()
containing.add(commands.containing(FORBIDDEN))

block = Hooks()
block.add(commands.block(["rm -rf *", "sudo *"]))


async def main() -> None:
    print(f"{'':32} {'by hand':9} {'containing':11} block")
    for line in LINES:
        verdicts = [await hooks.fire(bash(line)) for hooks in (by_hand, containing, block)]
        print(f"{line:32} {verdicts[0].decision!s:9} {verdicts[1].decision!s:11} {verdicts[2].decision!s}")


if __name__ == "__main__":
    asyncio.run(main())
