"""What `/NAME` does: the agent's own commands, and skills."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from uuid import uuid4

from hookline.agent.context.compaction import compact
from hookline.agent.context.definitions import Skill
from hookline.agent.context.shell_output import filled_in
from hookline.agent.session.lifecycle import fire_session_end, fire_session_start
from hookline.agent.session.session import Conversation, Session
from hookline.agent.tools import ToolResult, failure
from hookline.errors import AgentError
from hookline.guards.permissions import Rules, read_rules
from hookline.settings.live import loaded_by
from hookline.settings.parse import parse_hooks
from hookline.settings.sources import SettingsSource


async def _compact(conversation: Conversation, arguments: str) -> str:
    """Summarise the conversation, with the user's wishes for the summary."""
    return await compact(conversation, "manual", arguments)


async def _clear(conversation: Conversation, _: str) -> str:
    """Forget the conversation: the session ends, and another begins under an id of its own."""
    session = conversation.session
    await fire_session_end(conversation, "clear")
    conversation.messages.clear()
    conversation.waiting.clear()
    conversation.state.files_read.clear()
    conversation.instructions_seen.clear()
    conversation.forgot = "session_start"
    session.output.say("conversation_reset", new_conversation_id=str(uuid4()), trigger="clear")
    session.id = session.output.session_id = str(uuid4())
    if conversation.transcript is not None:
        conversation.transcript = conversation.transcript.renewed(session.id)
    await fire_session_start(conversation, "clear")
    return ""


async def _context(conversation: Conversation, _: str) -> str:
    """How full the context window is."""
    name, messages = conversation.session.model_name, len(conversation.messages)
    return f"{name}: {conversation.context_tokens} tokens in {messages} messages"


async def _cost(conversation: Conversation, _: str) -> str:
    """What the session used so far."""
    usage = conversation.session.usage
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} tokens out"


async def _elsewhere(_: Conversation, __: str) -> str:
    return "This command needs a terminal; it does nothing here."


COMMANDS: Mapping[str, Callable[[Conversation, str], Awaitable[str]]] = MappingProxyType({
    "add-dir": _elsewhere,
    "clear": _clear,
    "compact": _compact,
    "config": _elsewhere,
    "context": _context,
    "cost": _cost,
    "help": _elsewhere,
    "login": _elsewhere,
    "logout": _elsewhere,
    "model": _elsewhere,
    "permissions": _elsewhere,
    "usage": _cost,
})  # fmt: skip
"""The agent's own commands, by name."""


async def use_skill(conversation: Conversation, name: str, arguments: str) -> ToolResult:
    """Load a skill: the model reads it after the result, and its hooks hold from now on."""
    skill = conversation.session.skills.get(name.removeprefix("/"))
    if skill is None or not skill.for_model:
        known = ", ".join(sorted(one.name for one in conversation.session.skills.values() if one.for_model))
        return failure(f"Unknown skill: {name}. Known: {known or 'none'}")
    activate(conversation.session, skill)
    try:
        conversation.remind(await filled_in(conversation, skill.text(arguments)))
    except AgentError as problem:
        return failure(str(problem))
    return ToolResult(f"Launching skill: {skill.name}", {"success": True, "commandName": skill.name})


def activate(session: Session, skill: Skill) -> None:
    """Let a skill's header hold: hooks and denials until the session ends (FACTS.md §9), its grants for a prompt."""
    policy = session.policy
    policy.granted = policy.granted | Rules(allow=read_rules({}, allowed=skill.allowed).allow)
    if skill.disallowed:
        fresh = read_rules({}, disallowed=skill.disallowed)
        policy.rules = policy.rules | Rules(deny=tuple(rule for rule in fresh.deny if rule not in policy.rules.deny))
    if not skill.hooks or skill.name in session.active_skills:
        return
    session.active_skills.add(skill.name)
    loaded = loaded_by(session.hooks)
    if loaded is not None:  # they were read with the settings: if they are trusted, they are there
        session.add_hooks([hook for one in loaded.skills if one.source.path == skill.path for hook in one.hooks])
        return
    source = SettingsSource(kind="skill", label=skill.path, path=skill.path, root=session.project_dir, owner=skill.name)
    parsed = parse_hooks(skill.hooks, source)
    for problem in parsed.problems:
        session.output.inform(str(problem), level="warning")
    session.add_hooks(parsed.hooks)
