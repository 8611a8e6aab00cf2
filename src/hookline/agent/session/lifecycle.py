"""How a session begins and ends: Setup, SessionStart, InstructionsLoaded, SessionEnd."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from hookline.agent.context.instructions import Instructions, discover, nested
from hookline.agent.messages import Reminder
from hookline.agent.session.session import Conversation
from hookline.core.engine import Verdict
from hookline.events import InstructionsLoaded, SessionEnd, SessionStart, Setup
from hookline.settings.live import loaded_by
from hookline.settings.load import trusted_imports


async def sets_up(talk: Conversation, trigger: str) -> None:
    """Setup: hooks prepare the project; what they have to say is for the user, not the model (`setup_text`)."""
    verdict = await talk.fire(Setup, trigger=trigger)
    for text in verdict.context:
        talk.session.output.inform(f"Setup says: {text}")


async def session_starts(talk: Conversation, source: str, **about: Any) -> Verdict:
    """SessionStart: context for the first request, files to watch, a title; a block ends the session (seeds/002)."""
    if source == "compact":
        about.setdefault("model", talk.session.model_name)
    verdict = await talk.fire(SessionStart, source=source, **about)
    talk.remind_of_context(_unheard(talk, verdict))
    more = verdict.reply.specific
    if more is None:
        return verdict
    if more.session_title:
        talk.session.output.system("session_title_changed", title=more.session_title)
    if more.watch_paths and talk.session.watcher is not None:
        talk.session.watcher.add(more.watch_paths)
    return verdict


def _unheard(talk: Conversation, verdict: Verdict) -> Verdict:
    """The verdict without the context that a resumed conversation holds already, word for word."""
    heard = "\n".join(message.text for message in talk.messages if isinstance(message, Reminder))
    fresh = tuple(text for text in verdict.context if text not in heard)
    return structs.replace(verdict, reply=structs.replace(verdict.reply, context=fresh))


async def session_ends(talk: Conversation, reason: str) -> None:
    """SessionEnd: too late to change anything; what went wrong with a hook is told on stderr by the host."""
    await talk.fire(SessionEnd, reason=reason)


async def load_instructions(talk: Conversation, reason: str = "session_start") -> None:
    """Read CLAUDE.md and its kin into the conversation, each announced by InstructionsLoaded."""
    session = talk.session
    loaded = loaded_by(session.hooks)
    outside = trusted_imports(loaded) if loaded is not None else frozenset()
    found = discover(session.project_dir, session.environ, sources=session.instructions, outside=outside)
    talk.instructions_seen.update(one.file_path for one in found)
    talk.instructions_seen.update(reminder.file for reminder in instructions_told(talk))
    await _announce(talk, [one if one.parent_file_path else structs.replace(one, load_reason=reason) for one in found])


async def load_again(talk: Conversation) -> None:
    """Read them once more if the conversation has lost them, to `/clear` or a compaction."""
    if talk.forgot:
        reason, talk.forgot = talk.forgot, ""
        await load_instructions(talk, reason)


def instructions_told(talk: Conversation) -> list[Reminder]:
    """The instructions in the conversation, as the model was told them."""
    told = [message for message in talk.messages if isinstance(message, Reminder)]
    return [reminder for reminder in (*told, *talk.waiting) if reminder.file]


async def load_nested(talk: Conversation, file_path: str) -> None:
    """Read what touching a file brings with it."""
    await _announce(talk, nested(file_path, talk.session.project_dir, talk.instructions_seen))


async def _announce(talk: Conversation, found: list[Instructions]) -> None:
    for one in found:
        await talk.fire(
            InstructionsLoaded,
            file_path=one.file_path,
            memory_type=one.memory_type,
            load_reason=one.load_reason,
            parent_file_path=one.parent_file_path,
            trigger_file_path=one.trigger_file_path,
            globs=list(one.globs) if one.globs else None,
        )
        text = f"Contents of {one.file_path} ({one.memory_type} instructions):\n\n{one.content}"
        reminder = Reminder(text, one.file_path)
        if reminder not in instructions_told(talk):  # a resumed conversation holds it already
            talk.waiting.append(reminder)
