"""Around a call of the model: PreModelCall, PostModelCall, and PreOutput before the answer is returned.

These are Hookline's own events; they are fired only if some hook listens.
"""

from __future__ import annotations

from msgspec import UNSET, structs

from hookline.agent import hook_messages
from hookline.agent.messages import Assistant, Message, Text, ToolOutput
from hookline.agent.models import ModelResponse
from hookline.agent.session.results import TurnEnd
from hookline.agent.session.session import Conversation
from hookline.core.engine import Verdict
from hookline.events import Event, PostModelCall, PreModelCall, PreOutput


async def may_ask(conversation: Conversation) -> TurnEnd | None:
    """PreModelCall: why the model is not asked, if a hook says so; what hooks add goes into the request."""
    if not _listens(conversation, PreModelCall):
        return None
    verdict = await conversation.fire(
        PreModelCall,
        model=_model(conversation),
        messages=[_plain(message) for message in (*conversation.messages, *conversation.waiting)],
        tools=sorted(conversation.tool_set),
    )
    if verdict.blocked:
        return _withheld(verdict)
    if verdict.context:
        conversation.remind(hook_messages.additional_context(verdict.event, verdict.context))
    return None


async def judged(conversation: Conversation, response: ModelResponse) -> ModelResponse | TurnEnd:
    """PostModelCall: the answer as hooks leave it; one that is denied never becomes part of the conversation."""
    if not _listens(conversation, PostModelCall):
        return response
    message = response.message
    calls = [{"id": use.id, "name": use.name, "args": use.input} for use in message.tool_uses]
    verdict = await conversation.fire(
        PostModelCall,
        model=message.model or _model(conversation),
        text=message.text,
        tool_calls=calls,
        stop_reason=message.stop_reason,
    )
    if verdict.blocked:
        return _withheld(verdict)
    if verdict.reply.output is UNSET:
        return response
    rest = tuple(block for block in message.content if not isinstance(block, Text))
    changed = structs.replace(message, content=(Text(str(verdict.output)), *rest))
    return structs.replace(response, message=changed)


async def may_return(conversation: Conversation, done: TurnEnd) -> TurnEnd:
    """PreOutput: the answer as hooks leave it; a subagent's answer is a tool's result and judged as that."""
    if conversation.agent_id is not None or not _listens(conversation, PreOutput):
        return done
    verdict = await conversation.fire(PreOutput, text=done.text or "")
    if verdict.blocked:
        return _withheld(verdict)
    return done if verdict.reply.output is UNSET else structs.replace(done, text=str(verdict.output))


def _listens(conversation: Conversation, kind: type[Event]) -> bool:
    return any(kind in hook.events for hook in conversation.session.hooks.hooks)


def _model(conversation: Conversation) -> str:
    return conversation.model or conversation.session.model.name


def _plain(message: Message) -> dict[str, str]:
    """A message as `{role, content}`: its text, and the texts of tool results."""
    role = "assistant" if isinstance(message, Assistant) else "user"
    text = getattr(message, "text", "")
    results = [str(block.content) for block in getattr(message, "content", ()) if isinstance(block, ToolOutput)]
    return {"role": "tool" if results else role, "content": "\n".join([*results, text] if text else results) or text}


def _withheld(verdict: Verdict) -> TurnEnd:
    why = verdict.reason or f"a hook refused {verdict.event.event_name}"
    return TurnEnd(reason="hook_stopped", subtype="error_during_execution", text=why, is_error=True, errors=(why,))
