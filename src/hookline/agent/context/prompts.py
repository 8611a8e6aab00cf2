"""From what the user typed to what the model reads: UserPromptSubmit, commands, skills, `@FILE`, and room for more.

`/NAME` is one of the agent's own commands, or a skill, which UserPromptExpansion hooks may refuse.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from uuid import uuid4

from hookline import events
from hookline.agent import hook_messages
from hookline.agent.context.definitions import Skill
from hookline.agent.hook_messages import TEXTS
from hookline.agent.messages import Assistant, Block, Text, ToolUse, TurnEnd, User
from hookline.agent.models import ModelRequest
from hookline.agent.session.lifecycle import fire_session_start, instructions_told
from hookline.agent.session.session import NO_RULES, Conversation, Session
from hookline.agent.tool_calls import PendingCall, permitted
from hookline.agent.tools import ToolResult, default_tools, failure
from hookline.agent.tools.files import Read
from hookline.core.engine import Verdict
from hookline.core.paths import absolute
from hookline.errors import AgentError
from hookline.guards.permissions import Rules, read_rules
from hookline.replies import Decision
from hookline.settings.parse import parse_hooks
from hookline.settings.sources import SettingsSource
from hookline.settings.watcher import loaded_by

SLASH = re.compile(r"/([\w:.-]+)(?:\s+(.*))?\Z", re.DOTALL)


async def submit(
    conversation: Conversation, prompt: str, blocks: tuple[Block, ...] = (), *, mentions: bool = False
) -> TurnEnd | None:
    """Put a prompt into the conversation; an ending if the model need not, or may not, be asked.

    `blocks` are what came with the words (images); commands of the agent itself (`/compact`) do not reach any hook on
    prompts, as in Claude Code. With `mentions`, files that the prompt names as `@FILE` come with it.
    """
    found = SLASH.match(prompt)
    name, arguments = (found[1], (found[2] or "").strip()) if found else ("", "")
    if name in COMMANDS or name in ELSEWHERE:  # the model reads of it with the next prompt, of a later run too
        conversation.settle()
        command = COMMANDS.get(name)
        output = await command(conversation, arguments) if command else TEXTS["needs_terminal"]
        conversation.add_user(TEXTS["own_command"].format(name=name, arguments=arguments, output=output))
        conversation.deliver()
        return TurnEnd(text=output)
    conversation.prompt_id = str(uuid4())
    conversation.session.policy.granted = NO_RULES
    verdict = await conversation.fire(events.UserPromptSubmit, prompt=prompt)
    ending = _judged(conversation, verdict, prompt)
    if ending is not None:
        return ending
    skill = conversation.session.skills.get(name)
    if skill is not None:
        return await _expand(conversation, skill, arguments, prompt, verdict)
    _say(conversation, verdict, Text(prompt), *blocks)
    if mentions:
        await attach(conversation, prompt)
    if found:
        conversation.remind(f"`/{name}` is not a command of this session; read the message as a plain request.")
    return None


def _judged(conversation: Conversation, verdict: Verdict, prompt: str) -> TurnEnd | None:
    """What hooks leave of a prompt: a block erases it, a stop leaves it unanswered (FACTS.md §3)."""
    more = verdict.reply.specific
    if verdict.decision is Decision.DENY:
        shown = not (more is not None and more.suppress_original_prompt)
        text = f"{verdict.event.event_name} operation blocked by hook:\n{hook_messages.reason_of(verdict)}"
        return TurnEnd(reason="prompt_blocked", text=f"{text}\n\nOriginal prompt: {prompt}" if shown else text)
    if verdict.stop:
        told = f"Operation stopped by hook: {verdict.stop_reason or 'no reason given'}"
        conversation.settle()
        conversation.add(User.of(prompt, told))
        return TurnEnd(reason="hook_stopped", text=told)
    return None


async def _expand(
    conversation: Conversation, skill: Skill, arguments: str, prompt: str, submitted: Verdict
) -> TurnEnd | None:
    """UserPromptExpansion: the command becomes the prompt it stands for, unless a hook blocks it."""
    about = {"expansion_type": "slash_command", "command_name": skill.name, "command_args": arguments}
    verdict = await conversation.fire(events.UserPromptExpansion, **about, command_source=skill.source, prompt=prompt)
    ending = _judged(conversation, verdict, prompt)
    if ending is not None:
        return ending
    activate(conversation.session, skill)
    try:
        body = await filled_in(conversation, skill.text(arguments))
    except AgentError as problem:
        return TurnEnd(reason="prompt_blocked", text=str(problem))
    head = f"<command-name>/{skill.name}</command-name>\n<command-args>{arguments}</command-args>"
    _say(conversation, submitted, Text(head), Text(body))
    conversation.remind_of_context(verdict)
    return None


def _say(conversation: Conversation, verdict: Verdict, *blocks: Block) -> None:
    conversation.settle()
    conversation.add(User(tuple(blocks)))
    conversation.remind_of_context(verdict)


MENTION = re.compile(r'(?<!\S)@(?:"([^"]+)"|(\S+))')
MOST_MENTIONS = 20
READ = Read()


async def attach(conversation: Conversation, prompt: str) -> None:
    """Let the files that a prompt mentions wait for the next request; what is not a file stays a word.

    A file is read without a call of the model's, so the gates are asked all the same: PreToolUse as for the Read tool,
    and the rules that deny reading.
    """
    found = [_file(quoted or word, conversation.state.cwd) for quoted, word in MENTION.findall(prompt)]
    for path in list(dict.fromkeys(filter(None, found)))[:MOST_MENTIONS]:
        await _attach(conversation, path)


def _file(name: str, cwd: str) -> str:
    """The file a word names, with or without the full stop after it."""
    for word in (name, name.rstrip(".,;:!?)")):
        path = absolute(word, cwd, str(Path.home()))
        if word and Path(path).is_file():
            return path
    return ""


async def _attach(conversation: Conversation, path: str) -> None:
    given = READ.validate({"file_path": path})
    call = PendingCall(conversation, ToolUse(str(uuid4()), READ.name, given))
    verdict = await call.fire(events.PreToolUse, READ, given)
    permission = conversation.permission_of(READ, given, verdict)
    by_rule = permission.behaviour != "allow" and permission.reason_type == "rule"
    refused = permission.reason if permission.behaviour == "deny" or by_rule else ""
    if verdict.stop or verdict.decision in (Decision.DENY, Decision.ASK, Decision.DEFER):
        refused = verdict.reason or "a hook refused it"
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


DEFAULT_THRESHOLD = 160_000  # part of the context window that may fill before the conversation is summarised
SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)


async def compact_if_full(conversation: Conversation) -> None:
    """Compact once the conversation fills its share of the context window; a hook's block leaves it as it is."""
    limit = conversation.session.config.compact_at or DEFAULT_THRESHOLD
    if conversation.context_tokens >= limit and conversation.agent_id is None:
        conversation.context_tokens = 0
        await compact(conversation, trigger="auto")


async def compact(conversation: Conversation, instructions: str = "", trigger: str = "manual") -> str:
    """Replace the conversation by a summary, unless a hook blocks it; what came of it, with what the hooks said.

    A conversation in which the model has said nothing, or nothing since the last summary, stays as it is.
    `continue: false` does not block here: it is about the turn, and there is none (FACTS.md §3).
    """
    verdict = await conversation.fire(events.PreCompact, trigger=trigger, custom_instructions=instructions or None)
    if verdict.decision is Decision.DENY:
        return f"Compaction blocked by PreCompact hook: {hook_messages.reason_of(verdict)}"
    if not any(isinstance(message, Assistant) for message in conversation.messages):
        return "There is nothing to compact."
    # the user's wishes and whatever hooks printed, JSON too, as in Claude Code
    wishes = (instructions, *(hook_messages.said(one) for one in verdict.outcomes if one.ok))
    instructions = "\n\n".join(wish for wish in wishes if wish)
    text = TEXTS["summarise"] + (f"\n\nAdditional Instructions:\n{instructions}" if instructions else "")
    conversation.deliver()
    messages = (*conversation.messages, User.of(text, synthetic=True))
    request = ModelRequest(messages=messages, system=conversation.session.system)
    response = await conversation.session.model.respond(request)
    conversation.session.count(response)
    found = SUMMARY.search(response.text)
    summary = (found[1] if found else response.text).strip()
    path = str(conversation.transcript.path) if conversation.transcript else ""
    who = {"agent_id": conversation.session.id, "agent_type": "", "agent_transcript_path": path}
    await conversation.fire(events.SubagentStop, **who, stop_hook_active=False, last_assistant_message=summary)
    before = conversation.context_tokens
    conversation.waiting += instructions_told(conversation)
    conversation.forgot = "compact"
    opening = TEXTS["summary"] + summary
    conversation.messages[:] = [User.of(opening, synthetic=True)]
    if conversation.transcript is not None:
        conversation.transcript.compacted(opening, trigger)
    conversation.session.output.system("compact_boundary", compact_metadata={"trigger": trigger, "pre_tokens": before})
    await fire_session_start(conversation, "compact")
    after = await conversation.fire(events.PostCompact, trigger=trigger, compact_summary=summary)
    return "\n".join(["Compacted", *hook_messages.ran(verdict), *hook_messages.ran(after)])


async def _clear(conversation: Conversation, _: str) -> str:
    """Forget the conversation: the session ends, and another begins under an id of its own."""
    session = conversation.session
    await conversation.fire(events.SessionEnd, reason="clear")
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
    name, messages = conversation.session.model.name, len(conversation.messages)
    return f"{name}: {conversation.context_tokens} tokens in {messages} messages"


async def _cost(conversation: Conversation, _: str) -> str:
    usage = conversation.session.usage
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} tokens out"


ELSEWHERE = ("add-dir", "config", "help", "login", "logout", "model", "permissions")  # what needs a terminal
COMMANDS: Mapping[str, Callable[[Conversation, str], Awaitable[str]]] = {
    "clear": _clear,
    "compact": compact,
    "context": _context,
    "cost": _cost,
    "usage": _cost,
}


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


#: a line of its own between fences, or a piece within a line
SHELL_COMMANDS = re.compile(r"^```!\s*\n(.*?)\n```[ \t]*$|(?:^|(?<=\s))!`([^`\n]+)`", re.DOTALL | re.MULTILINE)


async def filled_in(conversation: Conversation, text: str) -> str:
    """The text of a command or a skill with the output of its `` !`commands` `` in their places.

    Each is a call of Bash like any other: PreToolUse hooks see it, and rules, the mode or the host permit it. One that
    is not permitted, or fails, is an `AgentError`: a prompt with holes in it says something else. What a header allows
    by `allowed-tools` counts here too, once its file is trusted.
    """
    pieces, at = [], 0
    for found in SHELL_COMMANDS.finditer(text):
        pieces += [text[at : found.start()], await _output(conversation, found[0], (found[1] or found[2]).strip())]
        at = found.end()
    return "".join([*pieces, text[at:]])


async def _output(conversation: Conversation, pattern: str, command: str) -> str:
    tool = conversation.tool_set.get("Bash") or default_tools()["Bash"]
    call = PendingCall(conversation, ToolUse(f"toolu_{uuid4().hex}", tool.name, {"command": command}))
    env = conversation.tool_env("")
    given = await permitted(call, tool, env)
    if given is None:
        raise AgentError(f'Shell command permission check failed for pattern "{pattern}": {call.output.content}')
    result = await tool.run(given, env)
    told = result.content if isinstance(result.content, str) else str(result.response)
    if result.is_error:
        raise AgentError(f'Shell command failed for pattern "{pattern}": {told}')
    return told
