"""`@FILE` in a prompt: the file comes with it, if neither a hook nor a rule minds.

A file is read without a call of the model's, so the gates are asked all the same: PreToolUse as for the Read tool, and
the rules that deny reading.
"""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from hookline.agent.authorization import permission_of
from hookline.agent.session.session import Conversation
from hookline.agent.tools.files import Read
from hookline.core.paths import absolute
from hookline.events import PreToolUse
from hookline.replies import Decision

__all__ = ["attach"]

MENTION = re.compile(r'(?<!\S)@(?:"([^"]+)"|(\S+))')
MOST = 20
READ = Read()


async def attach(conversation: Conversation, prompt: str) -> None:
    """Let the files that a prompt mentions wait for the next request; what is not a file stays a word."""
    for path in _mentioned(prompt, conversation.state.cwd)[:MOST]:
        await _attach(conversation, path)


def _mentioned(prompt: str, cwd: str) -> list[str]:
    names = [quoted or word for quoted, word in MENTION.findall(prompt)]
    found = [_file(name, cwd) for name in names]
    return list(dict.fromkeys(path for path in found if path))


def _file(name: str, cwd: str) -> str:
    """The file a word names, with or without the full stop after it."""
    for word in (name, name.rstrip(".,;:!?)")):
        path = absolute(word, cwd, str(Path.home()))
        if word and Path(path).is_file():
            return path
    return ""


async def _attach(conversation: Conversation, path: str) -> None:
    given = READ.validate({"file_path": path})
    refused = await _refused(conversation, given)
    if refused:
        conversation.remind(f"The user mentioned {path}, which was not attached: {refused}")
        return
    result = await READ.run(given, conversation.tool_env(""))
    if result.is_error or not isinstance(result.content, str):
        return
    if conversation.transcript is not None:
        attachment = {"type": "file", "filename": path, "content": result.content}
        conversation.transcript.append({"type": "attachment", "attachment": attachment})
    conversation.remind(f"The user attached {path}:\n\n{conversation.bounded(result.content)}")


async def _refused(conversation: Conversation, given: dict[str, object]) -> str:
    """Why a file may not be read; nothing if it may."""
    verdict = await conversation.fire(PreToolUse, tool_name=READ.name, tool_input=given, tool_use_id=str(uuid4()))
    if verdict.stop or verdict.decision in (Decision.DENY, Decision.ASK, Decision.DEFER):
        return verdict.reason or "a hook refused it"
    permission = permission_of(conversation, READ, given, verdict)
    by_rule = permission.behaviour != "allow" and permission.reason_type == "rule"
    return permission.reason if permission.behaviour == "deny" or by_rule else ""
