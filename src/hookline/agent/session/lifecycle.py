"""How a session begins and ends: Setup, SessionStart, InstructionsLoaded, SessionEnd."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from hookline.agent.context.instructions import Instructions, discover, nested
from hookline.agent.messages import Reminder
from hookline.agent.session.session import Conversation
from hookline.core.engine import Verdict
from hookline.core.hooks.actions import Action, Function
from hookline.events import InstructionsLoaded, SessionEnd, SessionStart, Setup
from hookline.settings.live import loaded_by
from hookline.settings.load import trusted_imports


async def fire_setup(conversation: Conversation, trigger: str) -> None:
    """Setup: hooks prepare the project; their context is for the first request (seeds/003).

    In Claude Code's own dialect it is for the user, not the model (`setup_text`).
    """
    verdict = await conversation.fire(Setup, trigger=trigger)
    claude = {hook.name for hook in conversation.session.hooks.hooks if _claude_dialect(hook.action)}
    told = tuple(text for one in verdict.outcomes if one.hook not in claude for text in one.reply.context)
    conversation.remind_of_context(structs.replace(verdict, reply=structs.replace(verdict.reply, context=told)))
    for text in verdict.context:
        if text not in told:
            conversation.session.output.inform(f"Setup says: {text}")


def _claude_dialect(action: Action) -> bool:
    return not isinstance(action, Function) and getattr(action, "dialect", "claude") == "claude"


async def fire_session_start(conversation: Conversation, source: str, **about: Any) -> Verdict:
    """SessionStart: context for the first request, files to watch, a title; a block ends the session (seeds/002)."""
    if source == "compact":
        about.setdefault("model", conversation.session.model_name)
    verdict = await conversation.fire(SessionStart, source=source, **about)
    conversation.remind_of_context(_unheard(conversation, verdict))
    more = verdict.reply.specific
    if more is None:
        return verdict
    if more.session_title:
        conversation.session.output.system("session_title_changed", title=more.session_title)
    if more.watch_paths and conversation.session.watcher is not None:
        conversation.session.watcher.add(more.watch_paths)
    return verdict


def _unheard(conversation: Conversation, verdict: Verdict) -> Verdict:
    """The verdict without the context that a resumed conversation holds already, word for word."""
    heard = "\n".join(message.text for message in conversation.messages if isinstance(message, Reminder))
    fresh = tuple(text for text in verdict.context if text not in heard)
    return structs.replace(verdict, reply=structs.replace(verdict.reply, context=fresh))


async def fire_session_end(conversation: Conversation, reason: str) -> None:
    """SessionEnd: too late to change anything; what went wrong with a hook is told on stderr by the host."""
    await conversation.fire(SessionEnd, reason=reason)


async def load_instructions(conversation: Conversation, reason: str = "session_start") -> None:
    """Read CLAUDE.md and its kin into the conversation, each announced by InstructionsLoaded."""
    session = conversation.session
    loaded = loaded_by(session.hooks)
    outside = trusted_imports(loaded) if loaded is not None else frozenset()
    found = discover(session.project_dir, session.environ, sources=session.instructions, outside=outside)
    conversation.instructions_seen.update(one.file_path for one in found)
    conversation.instructions_seen.update(reminder.file for reminder in instructions_told(conversation))
    await _announce(
        conversation, [one if one.parent_file_path else structs.replace(one, load_reason=reason) for one in found]
    )


async def load_again(conversation: Conversation) -> None:
    """Read them once more if the conversation has lost them, to `/clear` or a compaction."""
    if conversation.forgot:
        reason, conversation.forgot = conversation.forgot, ""
        await load_instructions(conversation, reason)


def instructions_told(conversation: Conversation) -> list[Reminder]:
    """The instructions in the conversation, as the model was told them."""
    told = [message for message in conversation.messages if isinstance(message, Reminder)]
    return [reminder for reminder in (*told, *conversation.waiting) if reminder.file]


async def load_nested(conversation: Conversation, file_path: str) -> None:
    """Read what touching a file brings with it."""
    await _announce(conversation, nested(file_path, conversation.session.project_dir, conversation.instructions_seen))


async def _announce(conversation: Conversation, found: list[Instructions]) -> None:
    for one in found:
        about = structs.asdict(one) | {"globs": list(one.globs) if one.globs else None}
        del about["content"]
        await conversation.fire(InstructionsLoaded, **about)
        text = f"Contents of {one.file_path} ({one.memory_type} instructions):\n\n{one.content}"
        reminder = Reminder(text, one.file_path)
        if reminder not in instructions_told(conversation):  # a resumed conversation holds it already
            conversation.waiting.append(reminder)
