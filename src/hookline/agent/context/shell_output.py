"""`` !`command` `` in the body of a command or a skill: its output stands there when the model reads it.

Each is a call of Bash like any other: PreToolUse hooks see it, and rules, the mode or the host permit it.
One that is not permitted, or fails, ends the whole command: a prompt with holes in it says something else. What a
header allows by `allowed-tools` counts here too, once its file is trusted.
"""

from __future__ import annotations

import re
from uuid import uuid4

from msgspec import structs

from hookline.agent import hook_messages
from hookline.agent.authorization import may_run
from hookline.agent.messages import ToolUse
from hookline.agent.session.session import Conversation
from hookline.agent.tools import Tool, default_tools
from hookline.errors import AgentError, ToolInputInvalid
from hookline.events import PreToolUse
from hookline.replies import Decision

__all__ = ["filled_in"]

#: a line of its own between fences, or a piece within a line
COMMANDS = re.compile(r"^```!\s*\n(.*?)\n```[ \t]*$|(?:^|(?<=\s))!`([^`\n]+)`", re.DOTALL | re.MULTILINE)


async def filled_in(conversation: Conversation, text: str) -> str:
    """The text with the output of its commands in their places; raises `AgentError` for one that may not run."""
    pieces, at = [], 0
    for found in COMMANDS.finditer(text):
        pieces += [text[at : found.start()], await _output(conversation, found[0], (found[1] or found[2]).strip())]
        at = found.end()
    return "".join([*pieces, text[at:]])


async def _output(conversation: Conversation, pattern: str, command: str) -> str:
    tool = conversation.tool_set.get("Bash") or default_tools()["Bash"]
    given = await _permitted(conversation, pattern, tool, command)
    result = await tool.run(given, conversation.tool_env(""))
    told = result.content if isinstance(result.content, str) else str(result.response)
    if result.is_error:
        raise AgentError(f'Shell command failed for pattern "{pattern}": {told}')
    return told


async def _permitted(conversation: Conversation, pattern: str, tool: Tool, command: str) -> dict[str, object]:
    """The call to make; a no ends the command with the reason."""
    refused = f'Shell command permission check failed for pattern "{pattern}"'
    use = ToolUse(f"toolu_{uuid4().hex}", tool.name, {"command": command})
    try:
        given = tool.validate(use.input)
    except ToolInputInvalid as problem:
        raise AgentError(f"{refused}: {problem}") from None
    verdict = await conversation.fire(PreToolUse, tool_name=tool.name, tool_input=given, tool_use_id=use.id)
    if verdict.decision in (Decision.DENY, Decision.DEFER) or verdict.stop:
        raise AgentError(f"{refused}: {hook_messages.reason_of(verdict)}")
    if verdict.reply.input is not None:
        given = tool.rewritten(verdict.reply.input)
    permitted = await may_run(conversation, tool, structs.replace(use, input=given), given, verdict)
    if permitted.input is None:
        raise AgentError(f"{refused}: {permitted.why}")
    return permitted.input
