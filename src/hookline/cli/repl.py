"""The agent on a terminal: it asks before it does what nobody has allowed, and takes one prompt after another."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from hookline.display import lines, one_line
from hookline.replies import EventFields, Reply, allow, deny

if TYPE_CHECKING:
    from hookline.agent import Ask
    from hookline.agent.factory import Made

ANSWERS = "[y]es, [a]lways, or no and why: "


def is_terminal() -> bool:
    """Whether somebody sits there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def permit(ask: Ask) -> Reply:
    """Ask whether a call may be made; anything but yes or always is a no, and its words are the reason."""
    shown = one_line(msgspec.json.encode(ask.input).decode())
    why = "\n".join(f"  │ {line}" for line in lines(ask.reason))
    print(f"\n{one_line(ask.tool_name)} {shown}\n{why}", file=sys.stderr)
    said = (await _line(f"  may it? {ANSWERS}") or "no").strip()
    if said.lower() in ("y", "yes"):
        return allow()
    if said.lower() in ("a", "always"):
        return allow() | Reply(specific=EventFields(updated_permissions=tuple(ask.suggestions)))
    return deny("the user said no" if said.lower() in ("n", "no") else f"the user said: {said}")


async def converse(made: Made) -> int:
    """One prompt after another, until the end of the input."""
    code = 0
    await made.agent.start()
    while (prompt := await _line("\n> ")) is not None:
        if prompt.strip():
            code = 1 if (await made.agent.run(prompt.strip(), mentions=True)).is_error else 0
            while (later := await made.agent.background()) is not None:
                code = 1 if later.is_error else 0
    return code


async def _line(prompt: str) -> str | None:
    """One line from the terminal, without holding the agent up; None at the end of the input.

    The terminal is read only once it has a line, so that whoever stops waiting leaves no thread behind that would take
    the next one, or keep the program from ending.
    """
    print(prompt, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline() or None
