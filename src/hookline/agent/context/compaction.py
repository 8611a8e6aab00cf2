"""Making room: the conversation so far becomes a summary, with hooks before and after.

PreCompact (may block, may add instructions) → summary → SessionStart(compact) → PostCompact
"""

from __future__ import annotations

import re

from hookline.agent.hook_messages import ran, reason_of, said
from hookline.agent.messages import Assistant, User
from hookline.agent.models import ModelRequest
from hookline.agent.session.lifecycle import fire_session_start, instructions_told
from hookline.agent.session.session import Conversation
from hookline.core.engine import Verdict
from hookline.events import PostCompact, PreCompact, SubagentStop
from hookline.replies import Decision

#: part of the context window that may fill before the conversation is summarised
DEFAULT_THRESHOLD = 160_000
REQUEST = (
    "Your task is to create a detailed summary of this conversation, so that the work can go on from it alone. "
    "Say what the user asked for, what was done and decided, which files matter and what is in them, what went wrong "
    "and how it was fixed, and what comes next. Use no tools. Put the summary between <summary> and </summary>."
)
SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
OPENING = "This session goes on from an earlier conversation, which is summarised here:\n\n"


async def compact_if_full(conversation: Conversation) -> None:
    """Compact once the conversation fills its share of the context window; a hook's block leaves it as it is."""
    limit = conversation.session.compact_at or DEFAULT_THRESHOLD
    if conversation.context_tokens >= limit and conversation.agent_id is None:
        conversation.context_tokens = 0
        await compact(conversation, "auto")


async def compact(conversation: Conversation, trigger: str, instructions: str = "") -> str:
    """Replace the conversation by a summary, unless a hook blocks it; what came of it, with what the hooks said.

    A conversation in which the model has said nothing, or nothing since the last summary, stays as it is.

    `continue: false` does not block here: it is about the turn, and there is none (FACTS.md §3).
    """
    verdict = await conversation.fire(PreCompact, trigger=trigger, custom_instructions=instructions or None)
    if verdict.decision is Decision.DENY:
        return f"Compaction blocked by PreCompact hook: {reason_of(verdict)}"
    if not any(isinstance(message, Assistant) for message in conversation.messages):
        return "There is nothing to compact."
    summary = await _summary(conversation, _instructions(instructions, verdict))
    await conversation.fire(SubagentStop, agent_id=conversation.session.id, agent_type="", stop_hook_active=False,
                    agent_transcript_path=str(conversation.transcript.path) if conversation.transcript else "",
                    last_assistant_message=summary)  # fmt: skip
    _replace(conversation, summary, trigger)
    await fire_session_start(conversation, "compact")
    after = await conversation.fire(PostCompact, trigger=trigger, compact_summary=summary)
    return "\n".join(["Compacted", *ran(verdict), *ran(after)])


def _instructions(given: str, verdict: Verdict) -> str:
    """The user's wishes and whatever hooks printed, JSON too, as in Claude Code."""
    return "\n\n".join(part for part in (given, *(said(one) for one in verdict.outcomes if one.ok)) if part)


async def _summary(conversation: Conversation, instructions: str) -> str:
    text = f"{REQUEST}\n\nAdditional Instructions:\n{instructions}" if instructions else REQUEST
    conversation.deliver()
    request = ModelRequest(
        messages=(*conversation.messages, User.of(text, synthetic=True)), system=conversation.session.system
    )
    response = await conversation.session.model.respond(request)
    conversation.session.usage = conversation.session.usage + response.usage
    found = SUMMARY.search(response.text)
    return (found[1] if found else response.text).strip()


def _replace(conversation: Conversation, summary: str, trigger: str) -> None:
    before = conversation.context_tokens
    conversation.waiting += instructions_told(conversation)
    conversation.forgot = "compact"
    conversation.messages[:] = [User.of(OPENING + summary, synthetic=True)]
    if conversation.transcript is not None:
        conversation.transcript.compacted(OPENING + summary, trigger)
    conversation.session.output.system("compact_boundary", compact_metadata={"trigger": trigger, "pre_tokens": before})
