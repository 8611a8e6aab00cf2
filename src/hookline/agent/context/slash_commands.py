"""What `/NAME` does: the agent's own commands, and skills."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from uuid import uuid4

from msgspec import structs

from hookline.agent import hook_messages
from hookline.agent.authorization import may_run
from hookline.agent.context.definitions import Skill
from hookline.agent.hook_messages import ran, reason_of, said
from hookline.agent.messages import Assistant, ToolUse, User
from hookline.agent.models import ModelRequest
from hookline.agent.session.lifecycle import fire_session_end, fire_session_start, instructions_told
from hookline.agent.session.session import Conversation, Session
from hookline.agent.tools import Tool, ToolResult, default_tools, failure
from hookline.core.engine import Verdict
from hookline.errors import AgentError, ToolInputInvalid
from hookline.events import PostCompact, PreCompact, PreToolUse, SubagentStop
from hookline.guards.permissions import Rules, read_rules
from hookline.replies import Decision
from hookline.settings.parse import parse_hooks
from hookline.settings.sources import SettingsSource
from hookline.settings.watcher import loaded_by

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


# -- `` !`command` `` in the body of a command or a skill ---------------------------------------------------------
# Each is a call of Bash like any other: PreToolUse hooks see it, and rules, the mode or the host permit it. One that
# is not permitted, or fails, ends the whole command: a prompt with holes in it says something else. What a header
# allows by `allowed-tools` counts here too, once its file is trusted.


#: a line of its own between fences, or a piece within a line
SHELL_COMMANDS = re.compile(r"^```!\s*\n(.*?)\n```[ \t]*$|(?:^|(?<=\s))!`([^`\n]+)`", re.DOTALL | re.MULTILINE)


async def filled_in(conversation: Conversation, text: str) -> str:
    """The text with the output of its commands in their places; raises `AgentError` for one that may not run."""
    pieces, at = [], 0
    for found in SHELL_COMMANDS.finditer(text):
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
