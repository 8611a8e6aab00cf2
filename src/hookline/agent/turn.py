"""One turn: the model is asked, its tools are called, until it has nothing more to do and no Stop hook objects.

    prompt → model → tools → model → … → Stop

The same loop serves the main conversation and subagents; they differ in which event asks whether they may stop.
"""

import time
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET, structs

from hookline import events
from hookline.agent import hook_messages
from hookline.agent.context.prompts import compact_if_full
from hookline.agent.hook_messages import TEXTS
from hookline.agent.messages import Assistant, Message, Text, ToolOutput, TurnEnd, User, fail_turn
from hookline.agent.models import ModelRequest
from hookline.agent.models.base import has_price
from hookline.agent.session.lifecycle import load_instructions
from hookline.agent.session.session import Conversation
from hookline.agent.tool_calls import call_tools
from hookline.core.engine import Verdict
from hookline.errors import ModelError

STOP_CAP = 8
CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
MOST_CUT_OFF = 3
MOST_FORMLESS = 5


async def run_turn(conversation: Conversation) -> TurnEnd:
    """Go on with the conversation until it rests; how it ended."""
    turn = _Turn(conversation)
    return structs.replace(await turn.run(), turns=1 + turn.results + turn.sent_back)


class _Turn:
    """The counters of one turn."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.answers = self.results = self.sent_back = self.in_a_row = self.cut_off = self.formless = 0
        #: where the answer goes, if this conversation's is to have a form
        self.form = conversation.session.structured if conversation.agent_id is None else None

    async def run(self) -> TurnEnd:
        while True:
            try:
                answer = await self._ask()
            except ModelError as problem:
                return await _failed(self.conversation, problem)
            ending = answer if isinstance(answer, TurnEnd) else await self._act(answer)
            if ending is not None:
                return ending
            session, limit = self.conversation.session, self.conversation.max_turns
            budget = session.config.budget
            if budget is not None and (session.cost >= budget or not all(map(has_price, session.spent))):
                why = f"Reached maximum budget (${budget})"
                return fail_turn("budget_exhausted", why, "error_max_budget_usd", stop_reason="tool_use")
            if limit is not None and self.answers >= limit:
                why = f"Reached maximum number of turns ({limit})"
                return fail_turn("max_turns", why, "error_max_turns", stop_reason="tool_use")

    async def _ask(self) -> Assistant | TurnEnd:
        """One request, with everything that waits to be told; an ending if a hook withholds the question or answer."""
        conversation = self.conversation
        await compact_if_full(conversation)
        if conversation.forgot:  # to `/clear` or a compaction
            reason, conversation.forgot = conversation.forgot, ""
            await load_instructions(conversation, reason)
        conversation.collect_late()
        refused = await may_ask(conversation)
        if refused is not None:
            return refused
        conversation.deliver()
        answer = await judged(conversation, await _respond(conversation))
        if isinstance(answer, TurnEnd):
            return answer
        self.answers += 1
        message = await _shown(conversation, answer)
        uuids = tuple(str(uuid4()) for _ in message.content)
        conversation.add(answer, uuids)
        conversation.session.count(answer)
        conversation.context_tokens = answer.usage.context_tokens
        # the words of a subagent that is waited for are heard by its parent only, unless the host wants them
        output, waited_for = conversation.session.output, conversation.agent_id and not conversation.in_background
        quiet = bool(waited_for) and not output.subagent_text
        output.assistant(message, conversation.parent_tool_use_id, uuids=uuids, only_calls=quiet)
        return message

    async def _act(self, answer: Assistant) -> TurnEnd | None:
        """Do what the model asked for; an ending if it asked for nothing and may stop."""
        if answer.tool_uses:
            self.in_a_row = 0
            ending = await call_tools(self.conversation, answer.tool_uses)
            if ending is None or ending.deferred is None:
                self.results += len(answer.tool_uses)
            if ending is not None or self.form is None or self.form.answer is UNSET:
                return ending
            text = msgspec.json.encode(self.form.answer).decode()
            return TurnEnd(text=text, stop_reason=answer.stop_reason, structured=self.form.answer)
        if answer.stop_reason == "max_tokens" and self.cut_off < MOST_CUT_OFF:
            self.cut_off += 1
            self.conversation.add_user(TEXTS["cut_off"])
            return None
        if self.form is None:
            return await self._rest(answer)
        self.formless += 1  # an answer without its form is not one: the model is told so, until that is too often
        if self.formless > MOST_FORMLESS:
            why = f"the model gave no answer in the form that was asked for, {self.formless} times"
            return fail_turn("error", why, "error_max_structured_output_retries")
        self.conversation.add_user(TEXTS["form_wanted"])
        return None

    async def _rest(self, answer: Assistant) -> TurnEnd | None:
        """Stop, SubagentStop: a hook may send the agent back, so many times with no tool call between (FACTS.md §3)."""
        done = TurnEnd(text=answer.text, stop_reason=answer.stop_reason)
        background = [job.summary() for job in self.conversation.state.jobs.running()]
        about = {"stop_hook_active": self.sent_back > 0, "last_assistant_message": answer.text}
        if self.conversation.agent_id is None:
            verdict = await self.conversation.fire(events.Stop, **about, background_tasks=background)
        else:
            verdict = await subagent_stops(self.conversation, success=True, **about, background_tasks=background)
        if verdict.stop:
            self.conversation.remind(hook_messages.reminder_of_stop(verdict))
            return TurnEnd(reason="stop_hook_prevented", text=answer.text, stop_reason=answer.stop_reason)
        if not verdict.keep_going and not verdict.context:
            return await may_return(self.conversation, done)
        self.sent_back += 1
        self.in_a_row += 1
        stated = self.conversation.session.environ.get(CAP_VARIABLE, "")
        if self.in_a_row > (int(stated) if stated.isdigit() and int(stated) > 0 else STOP_CAP):
            told = f"Stop hooks blocked {self.in_a_row} times in a row; ending"
            self.conversation.session.output.inform(told, "warning")
            return done
        # why it may not rest yet: each reason as the user's own words, context as a reminder
        reasons = (verdict.reply.keep_going_reasons or ("",)) if verdict.keep_going else ()
        words = [hook_messages.feedback([reason]) for reason in reasons]
        if verdict.context:
            words.append(hook_messages.wrapped(self.conversation.context_of(verdict)))
        message = User.of(*words, synthetic=True)
        self.conversation.add(message)
        self.conversation.session.output.user(message, self.conversation.parent_tool_use_id)
        return None


async def _respond(conversation: Conversation) -> Assistant:
    session = conversation.session
    request = ModelRequest(
        messages=tuple(conversation.messages),
        system=session.system if conversation.system is None else conversation.system,
        tools=tuple(tool.spec for tool in conversation.tool_set.values()),
        model=conversation.model,
        effort=session.effort,
        thinking=session.config.thinking,
    )
    started = time.monotonic()
    output = session.output
    tell = partial(output.piece, parent=conversation.parent_tool_use_id) if output.partial else None
    try:
        return await session.model.respond(request, tell)
    finally:
        session.asked_for += time.monotonic() - started


async def _shown(conversation: Conversation, message: Assistant) -> Assistant:
    """MessageDisplay: hooks may change the words that are shown; the model's own memory keeps what it said."""
    if conversation.agent_id is not None or not message.text:
        return message
    blocks = list(message.content)
    for index, block in enumerate(blocks):
        if isinstance(block, Text) and block.text:
            ids = {"turn_id": conversation.prompt_id or "", "message_id": message.id or str(uuid4())}
            verdict = await conversation.fire(events.MessageDisplay, **ids, index=index, final=True, delta=block.text)
            shown = verdict.reply.specific.display_content if verdict.reply.specific else None
            blocks[index] = block if shown is None else Text(shown)
    return structs.replace(message, content=tuple(blocks))


async def subagent_stops(conversation: Conversation, *, success: bool, **about: Any) -> Verdict:
    """SubagentStop, for a subagent that is done or has failed."""
    path = str(conversation.transcript.path) if conversation.transcript else ""
    return await conversation.fire(
        events.SubagentStop, agent_transcript_path=path, description=conversation.description, success=success, **about
    )


async def _failed(conversation: Conversation, problem: ModelError) -> TurnEnd:
    """StopFailure: the model could not answer; the user reads why, the conversation stays as it was."""
    text = f"API Error: {problem}"
    message = await _shown(conversation, Assistant((Text(text),), id=str(uuid4()), model="<synthetic>"))
    conversation.session.output.assistant(message, conversation.parent_tool_use_id, error=problem.kind)
    if conversation.agent_id is None:
        about = {"error": problem.kind, "error_details": str(problem)}
        await conversation.fire(events.StopFailure, **about, last_assistant_message=text)
    return TurnEnd(reason="api_error", text=message.text, is_error=True, errors=(str(problem),))


async def may_ask(conversation: Conversation) -> TurnEnd | None:
    """PreModelCall: why the model is not asked, if a hook says so; what hooks add goes into the request.

    It and the next two are Hookline's own events: they are fired only if some hook listens.
    """
    if not _listens(conversation, events.PreModelCall):
        return None
    messages = [_plain(message) for message in (*conversation.messages, *conversation.waiting)]
    about = {"model": conversation.model or conversation.session.model.name, "tools": sorted(conversation.tool_set)}
    verdict = await conversation.fire(events.PreModelCall, **about, messages=messages)
    if verdict.blocked:
        return _withheld(verdict)
    conversation.remind_of_context(verdict)
    return None


async def judged(conversation: Conversation, message: Assistant) -> Assistant | TurnEnd:
    """PostModelCall: the answer as hooks leave it; one that is denied never becomes part of the conversation."""
    if not _listens(conversation, events.PostModelCall):
        return message
    calls = [{"id": use.id, "name": use.name, "args": use.input} for use in message.tool_uses]
    about = {"model": message.model or conversation.model or conversation.session.model.name, "text": message.text}
    verdict = await conversation.fire(events.PostModelCall, **about, tool_calls=calls, stop_reason=message.stop_reason)
    if verdict.blocked:
        return _withheld(verdict)
    if verdict.reply.output is UNSET:
        return message
    rest = tuple(block for block in message.content if not isinstance(block, Text))
    return structs.replace(message, content=(Text(str(verdict.output)), *rest))


async def may_return(conversation: Conversation, done: TurnEnd) -> TurnEnd:
    """PreOutput: the answer as hooks leave it; a subagent's answer is a tool's result and judged as that."""
    if conversation.agent_id is not None or not _listens(conversation, events.PreOutput):
        return done
    verdict = await conversation.fire(events.PreOutput, text=done.text or "")
    if verdict.blocked:
        return _withheld(verdict)
    return done if verdict.reply.output is UNSET else structs.replace(done, text=str(verdict.output))


def _listens(conversation: Conversation, kind: type[events.Event]) -> bool:
    return any(kind in hook.events for hook in conversation.session.hooks.hooks)


def _plain(message: Message) -> dict[str, str]:
    """A message as `{role, content}`: its text, and the texts of tool results."""
    role = "assistant" if isinstance(message, Assistant) else "user"
    text = getattr(message, "text", "")
    results = [str(block.content) for block in getattr(message, "content", ()) if isinstance(block, ToolOutput)]
    return {"role": "tool" if results else role, "content": "\n".join([*results, text] if text else results) or text}


def _withheld(verdict: Verdict) -> TurnEnd:
    why = verdict.reason or f"a hook refused {verdict.event.event_name}"
    return fail_turn("hook_stopped", why, text=why)
