"""From what the user typed to what the model reads: UserPromptSubmit, slash commands, UserPromptExpansion."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from hookline.agent import hook_messages
from hookline.agent.authorization import permission_of
from hookline.agent.context.definitions import Skill
from hookline.agent.context.slash_commands import COMMANDS, activate, filled_in
from hookline.agent.messages import Block, Text, User
from hookline.agent.permission_policy import NO_RULES
from hookline.agent.session.results import TurnEnd
from hookline.agent.session.session import Conversation
from hookline.agent.session.transcript import interrupted_results, unanswered
from hookline.agent.tools.files import Read
from hookline.core.engine import Verdict
from hookline.core.paths import absolute
from hookline.errors import AgentError
from hookline.events import PreToolUse, UserPromptExpansion, UserPromptSubmit
from hookline.replies import Decision

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
    if name in COMMANDS:
        return await _command(conversation, name, arguments)
    conversation.prompt_id = str(uuid4())
    conversation.session.policy.granted = NO_RULES
    verdict = await conversation.fire(UserPromptSubmit, prompt=prompt)
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


async def _command(conversation: Conversation, name: str, arguments: str) -> TurnEnd:
    """Do what a command of the agent itself does; the model reads of it with the next prompt, of a later run too."""
    _settle(conversation)
    output = await COMMANDS[name](conversation, arguments)
    conversation.add_user(hook_messages.command_run(name, arguments, output))
    conversation.deliver()
    return TurnEnd(text=output)


def _judged(conversation: Conversation, verdict: Verdict, prompt: str) -> TurnEnd | None:
    """What hooks leave of a prompt: a block erases it, a stop leaves it unanswered (FACTS.md §3)."""
    more = verdict.reply.specific
    if more is not None and more.session_title:
        conversation.session.output.system("session_title_changed", title=more.session_title)
    if verdict.decision is Decision.DENY:
        shown = not (more is not None and more.suppress_original_prompt)
        return TurnEnd(reason="prompt_blocked", text=hook_messages.blocked_prompt(verdict, prompt, shown=shown))
    if verdict.stop:
        told = hook_messages.stopped_prompt(verdict)
        _settle(conversation)
        conversation.add(User.of(prompt, told))
        return TurnEnd(reason="hook_stopped", text=told)
    return None


async def _expand(
    conversation: Conversation, skill: Skill, arguments: str, prompt: str, submitted: Verdict
) -> TurnEnd | None:
    """UserPromptExpansion: the command becomes the prompt it stands for, unless a hook blocks it."""
    verdict = await conversation.fire(
        UserPromptExpansion,
        expansion_type="slash_command",
        command_name=skill.name,
        command_args=arguments,
        command_source=skill.source,
        prompt=prompt,
    )
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
    _settle(conversation)
    conversation.add(User(tuple(blocks)))
    conversation.remind_of_context(verdict)


def _settle(conversation: Conversation) -> None:
    """Calls that were deferred and are still open are not made any more: a model refuses a call without an answer."""
    left = unanswered(conversation.messages)
    if left:
        conversation.add(interrupted_results(left))


# -- `@FILE` in a prompt ------------------------------------------------------------------------------------------
# A file is read without a call of the model's, so the gates are asked all the same: PreToolUse as for the Read tool,
# and the rules that deny reading.


MENTION = re.compile(r'(?<!\S)@(?:"([^"]+)"|(\S+))')
MOST_MENTIONS = 20
READ = Read()


async def attach(conversation: Conversation, prompt: str) -> None:
    """Let the files that a prompt mentions wait for the next request; what is not a file stays a word."""
    for path in _mentioned(prompt, conversation.state.cwd)[:MOST_MENTIONS]:
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
    refused = await _reading_refused(conversation, given)
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


async def _reading_refused(conversation: Conversation, given: dict[str, object]) -> str:
    """Why a file may not be read; nothing if it may."""
    verdict = await conversation.fire(PreToolUse, tool_name=READ.name, tool_input=given, tool_use_id=str(uuid4()))
    if verdict.stop or verdict.decision in (Decision.DENY, Decision.ASK, Decision.DEFER):
        return verdict.reason or "a hook refused it"
    permission = permission_of(conversation, READ, given, verdict)
    by_rule = permission.behaviour != "allow" and permission.reason_type == "rule"
    return permission.reason if permission.behaviour == "deny" or by_rule else ""
