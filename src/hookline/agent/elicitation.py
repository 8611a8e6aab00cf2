"""An MCP server asks the user something: hooks may answer first, and have the last word.

Elicitation (may answer, may decline) → the host → ElicitationResult (may change the answer)
"""

from __future__ import annotations

from typing import Any

from hookline.agent.session.session import Conversation
from hookline.core.engine import Verdict
from hookline.events import Elicitation, ElicitationResult, Notification


async def elicit(conversation: Conversation, server: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a server's question; without a host it is cancelled."""
    mode = str(request.get("mode") or "form")
    verdict = await conversation.fire(
        Elicitation,
        mcp_server_name=server,
        message=str(request.get("message") or ""),
        mode=mode,
        url=request.get("url"),
        requested_schema=request.get("requestedSchema"),
    )
    answer = _said(verdict)
    if answer is not None:
        return answer
    ask = conversation.session.elicit
    answer = {"action": "cancel"} if ask is None else await ask(server, request)
    action = str(answer.get("action") or "cancel")
    verdict = await conversation.fire(
        ElicitationResult, mcp_server_name=server, mode=mode, action=action, content=answer.get("content")
    )
    final = _said(verdict) or answer
    message = f'Elicitation response for server "{server}": {final["action"]}'
    conversation.remind_of_context(
        await conversation.fire(Notification, message=message, notification_type="elicitation_response")
    )
    return final


def _said(verdict: Verdict) -> dict[str, Any] | None:
    """What hooks answer in the user's place."""
    if verdict.blocked:
        return {"action": "decline"}
    more = verdict.reply.specific
    if more is None or more.action is None:
        return None
    return {"action": more.action, "content": more.content} if more.content is not None else {"action": more.action}
