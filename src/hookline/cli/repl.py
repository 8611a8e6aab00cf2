"""The agent on a terminal: it asks before it does what is not allowed, and takes one prompt after another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hookline.cli.call_preview import preview
from hookline.cli.line_editor import LineEditor, read_line
from hookline.display import lines, one_line
from hookline.replies import EventFields, Reply, allow, deny

if TYPE_CHECKING:
    from hookline.agent import PermissionQuestion
    from hookline.agent.factory import AgentBundle

ANSWERS = "[y]es, [a]lways, or no and why: "
HELP = {
    "/help": "this list",
    "/clear": "forget the conversation and begin again",
    "/compact [WISHES]": "summarise the conversation, to make room",
    "/context": "how full the context window is",
    "/cost": "what the session has used so far",
    "/exit": "end the session, as Ctrl-D does",
    "@FILE": "in a prompt: attach the file",
    "Ctrl-C": "end the run; SessionEnd hooks still run",
    "↑ ↓": "earlier prompts",
}
ENDS = ("/exit", "/quit")


def is_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def permit(ask: PermissionQuestion) -> Reply:
    """Ask whether a call may be made; anything but yes or always is a no, and its words are the reason."""
    print(file=sys.stderr)
    for line in preview(ask.tool_name, ask.input):
        print(line, file=sys.stderr)
    for line in lines(ask.reason):
        print(f"  │ {line}", file=sys.stderr)
    said = (await read_line(f"  Allow? {ANSWERS}") or "no").strip()
    if said.lower() in ("y", "yes"):
        return allow()
    if said.lower() in ("a", "always"):
        return allow() | Reply(specific=EventFields(updated_permissions=tuple(ask.suggestions)))
    return deny("the user said no" if said.lower() in ("n", "no") else f"the user said: {said}")


async def converse(made: AgentBundle) -> int:
    """One prompt after another, until the end of the input."""
    code = 0
    editor = LineEditor()
    await made.agent.start()
    while (prompt := await editor.read("> ")) is not None and prompt.strip() not in ENDS:
        if prompt.strip() == "/help":
            _help(made)
        elif prompt.strip():
            code = 1 if (await made.agent.run(prompt.strip(), mentions=True)).is_error else 0
            while (later := await made.agent.background()) is not None:
                code = 1 if later.is_error else 0
    return code


def _help(made: AgentBundle) -> None:
    """What can be typed: our own commands, then the session's."""
    own = {f"/{name}": one.description or one.kind for name, one in made.agent.session.skills.items()}
    rows = {**HELP, **own}
    column = min(max(map(len, rows)), 30) + 2
    for name, about in rows.items():
        print(f"  {one_line(name):<{column}}{one_line(about, 90)}", file=sys.stderr)
