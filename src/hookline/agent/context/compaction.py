"""Making room: the conversation so far becomes a summary, with hooks before and after.

PreCompact (may block, may add instructions) → summary → SessionStart(compact) → PostCompact
"""

from __future__ import annotations

import re

from hookline.agent.hook_messages import ran, reason_of, said
from hookline.agent.messages import Assistant, User
from hookline.agent.models import ModelRequest
from hookline.agent.session.lifecycle import instructions_told, session_starts
from hookline.agent.session.session import Conversation
from hookline.core.engine import Verdict
from hookline.events import PostCompact, PreCompact, SubagentStop
from hookline.replies import Decision

__all__ = ["compact", "compact_if_full"]

#: part of the context window that may fill before the conversation is summarised
DEFAULT_THRESHOLD = 160_000
REQUEST = (
    "Your task is to create a detailed summary of this conversation, so that the work can go on from it alone. "
    "Say what the user asked for, what was done and decided, which files matter and what is in them, what went wrong "
    "and how it was fixed, and what comes next. Use no tools. Put the summary between <summary> and </summary>."
)
SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
OPENING = "This session goes on from an earlier conversation, which is summarised here:\n\n"


async def compact_if_full(talk: Conversation) -> None:
    """Compact once the conversation fills its share of the context window; a hook's block leaves it as it is."""
    limit = talk.session.compact_at or DEFAULT_THRESHOLD
    if talk.context_tokens >= limit and talk.agent_id is None:
        talk.context_tokens = 0
        await compact(talk, "auto")


async def compact(talk: Conversation, trigger: str, instructions: str = "") -> str:
    """Replace the conversation by a summary, unless a hook blocks it; what came of it, with what the hooks said.

    A conversation in which the model has said nothing, or nothing since the last summary, stays as it is.

    `continue: false` is no block here: it is about the turn, and there is none (FACTS.md §3).
    """
    verdict = await talk.fire(PreCompact, trigger=trigger, custom_instructions=instructions or None)
    if verdict.decision is Decision.DENY:
        return f"Compaction blocked by PreCompact hook: {reason_of(verdict)}"
    if not any(isinstance(message, Assistant) for message in talk.messages):
        return "There is nothing to compact."
    summary = await _summary(talk, _instructions(instructions, verdict))
    await talk.fire(SubagentStop, agent_id=talk.session.id, agent_type="", stop_hook_active=False,
                    agent_transcript_path=str(talk.transcript.path) if talk.transcript else "",
                    last_assistant_message=summary)  # fmt: skip
    _replace(talk, summary, trigger)
    await session_starts(talk, "compact")
    after = await talk.fire(PostCompact, trigger=trigger, compact_summary=summary)
    return "\n".join(["Compacted", *ran(verdict), *ran(after)])


def _instructions(given: str, verdict: Verdict) -> str:
    """The user's wishes and whatever hooks printed, JSON too, as in Claude Code."""
    return "\n\n".join(part for part in (given, *(said(one) for one in verdict.outcomes if one.ok)) if part)


async def _summary(talk: Conversation, instructions: str) -> str:
    text = f"{REQUEST}\n\nAdditional Instructions:\n{instructions}" if instructions else REQUEST
    talk.deliver()
    request = ModelRequest(messages=(*talk.messages, User.of(text, synthetic=True)), system=talk.session.system)
    response = await talk.session.model.respond(request)
    talk.session.usage = talk.session.usage + response.usage
    found = SUMMARY.search(response.text)
    return (found[1] if found else response.text).strip()


def _replace(talk: Conversation, summary: str, trigger: str) -> None:
    before = talk.context_tokens
    talk.waiting += instructions_told(talk)
    talk.forgot = "compact"
    talk.messages[:] = [User.of(OPENING + summary, synthetic=True)]
    if talk.transcript is not None:
        talk.transcript.compacted(OPENING + summary, trigger)
    talk.session.output.system("compact_boundary", compact_metadata={"trigger": trigger, "pre_tokens": before})
