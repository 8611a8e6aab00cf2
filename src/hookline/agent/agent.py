"""`Agent`: a model with tools, whose every step passes through hooks.

    async with Agent(model=choose("anthropic:…"), hooks=hooks, cwd="…") as agent:
        result = await agent.run("make the tests pass")

A session begins with the first prompt and ends with `aclose`, whatever happens in between: SessionEnd always fires.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any, Self

from msgspec import structs

from hookline.agent import hook_messages
from hookline.agent.context.prompts import submit
from hookline.agent.hook_services import agent_services, replace_services
from hookline.agent.messages import Assistant, Block, Message, Result, TurnEnd, Usage, fail_turn
from hookline.agent.models.base import model_usage
from hookline.agent.session.lifecycle import FileWatcher, fire_session_start, fire_setup, load_instructions, names_in
from hookline.agent.session.session import Conversation, Session, SessionConfig
from hookline.agent.session.transcript import Mirror, Transcript, deferred, resume, transcript_path, unanswered
from hookline.agent.stream_json.output import Note, StreamOutput
from hookline.agent.subagents import AgentToolHost
from hookline.agent.tool_calls import call_tools
from hookline.agent.tools import SessionState
from hookline.agent.tools.shell import Job
from hookline.agent.turn import run_turn
from hookline.errors import AgentError, HooklineError
from hookline.events import SessionEnd
from hookline.processes.loop import running
from hookline.runners import Services

LONGEST_WAIT = 600.0  # seconds a run waits for a background command before it ends without it


class Agent(SessionConfig):
    """One session: give it prompts with `run` or `stream`, one after another.

    `resume` is the path of a transcript to go on with (`fork=True` goes on in a copy, `upto` after that message of it,
    if what is left out is only the turn of the prompt `drops`).
    `can_use_tool` is asked when neither hooks nor rules decide. Without `hooks` nothing is judged but by `rules` and
    `permission_mode`. On Linux a Bash line runs confined where a path or command guard is set; `confine=True` holds
    every line to the project and the temporary folder, `confine=False` none. `budget` ends the run once it has cost so
    many US dollars; `schema` is the JSON Schema of the answer, which `Result.structured` then holds. `Prompt` and
    `AgentCheck` hooks are judged by `model`, unless `hooks.services` has another judge.
    """

    def __post_init__(self) -> None:
        self.session: Session = Session(self, AgentToolHost)
        self.output: StreamOutput = self.session.output
        state = SessionState(self.session.project_dir)
        self.conversation: Conversation = Conversation(self.session, state, max_turns=self.max_turns)
        self._watcher = FileWatcher(self.conversation)
        self.session.watch = self._watcher.add
        state.jobs.on_done = partial(_command_finished, self.session)
        self._lent = agent_services(self.conversation)
        replace_services(self.session.hooks, Services(), self._lent)
        self.caught_up: asyncio.Event = asyncio.Event()  # set once those calls have been made, before the model goes on
        self.mirror: Mirror | None = None  # told every line that is written to a transcript, with its file
        self._started = self._ended = self._interrupted = False
        self._source = ""
        self._turn: asyncio.Future[TurnEnd] | None = None

    async def run(
        self,
        prompt: str,
        *,
        blocks: tuple[Block, ...] = (),
        mentions: bool = False,
        origin: dict[str, Any] | None = None,
    ) -> Result:
        """Work on a prompt until the agent rests; what it came to. With `mentions`, `@FILE` in it attaches the file.

        `origin` says where the prompt comes from; the result says so, too.
        """
        await self.start()
        return await self._guarded(_prompted(self.conversation, prompt, blocks, mentions=mentions), origin)

    async def stream(self, prompt: str) -> AsyncIterator[Note]:
        """Work on a prompt; the messages of the stream as they come, the last one is the result."""
        notes: asyncio.Queue[Note | None] = asyncio.Queue()
        self.output.listeners.append(notes.put_nowait)
        try:
            async with running(self.run(prompt)) as work:
                work.add_done_callback(lambda _: notes.put_nowait(None))
                while (note := await notes.get()) is not None:
                    yield note
                await work
        finally:
            self.output.listeners.remove(notes.put_nowait)

    def interrupt(self) -> bool:
        """Stop the turn under way; it ends with `error_during_execution`. Whether there was one."""
        if self._turn is None or self._turn.done():
            return False
        self._interrupted = True
        self._turn.cancel()
        return True

    async def start(self) -> Result | None:
        """Begin the session, unless it has begun: Setup, SessionStart, instructions; what calls left undone came to."""
        if self._started:
            return None
        self._started = True
        source = self.open()
        if self.setup:
            await fire_setup(self.conversation, self.setup)
        self._watcher.add(names_in(self.session.hooks.hooks))
        verdict = await fire_session_start(self.conversation, source)
        if verdict.blocked:
            raise AgentError(f"a SessionStart hook refused the session: {verdict.reason or 'no reason given'}")
        await load_instructions(self.conversation)
        finished = await self._finish_deferred()
        first = verdict.reply.specific.initial_user_message if verdict.reply.specific else None
        if first:
            await self._guarded(_prompted(self.conversation, first))
        return finished

    async def aclose(self, reason: str = "other") -> None:
        """End the session: SessionEnd fires, then everything the session started is ended. Safe to call twice."""
        if self._ended:
            return
        self._ended = True
        for task in tuple(self.session.working):
            task.cancel()
        await self._watcher.aclose()
        if self._started:
            await self.conversation.fire(SessionEnd, reason=reason)
        replace_services(self.session.hooks, self._lent, Services())
        await self.conversation.state.jobs.aclose()
        await asyncio.gather(*self.session.working, return_exceptions=True)
        self.conversation.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def background(self) -> Result | None:
        """Wait for the next thing that happens in the background and let the agent react; None when nothing is left."""
        session, jobs = self.session, self.conversation.state.jobs
        moved: set[asyncio.Future[None]] | bool = True
        while moved and session.inbox.empty() and (session.working or jobs.running()):
            waiting = asyncio.ensure_future(session.inbox.wait())
            moved, _ = await asyncio.wait(
                {waiting, *session.working}, timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED
            )
            waiting.cancel()
        return None if session.inbox.empty() else await self.react()

    async def react(self) -> Result:
        """React to what happened in the background: it is a prompt that no person typed."""
        prompt = await self.session.inbox.get()
        return await self._guarded(_prompted(self.conversation, prompt), {"kind": "task-notification"})

    async def _guarded(self, work: Coroutine[Any, Any, TurnEnd], origin: dict[str, Any] | None = None) -> Result:
        """One turn as a task of its own, so that it can be interrupted; its result is told and returned."""
        started = time.monotonic()
        before, denied, asked = self.session.usage, len(self.session.denials), self.session.asked_for
        said = len(self.conversation.messages)
        self._interrupted = False
        self._turn = asyncio.ensure_future(work)
        try:
            ending = await self._turn
        except asyncio.CancelledError:
            if not self._interrupted:
                self._turn.cancel()
                await asyncio.gather(self._turn, return_exceptions=True)
                raise
            ending = _cut_short(self.conversation, said)
        except HooklineError as problem:  # the disk is full, a hook's set was closed: told, and the session can end
            ending = fail_turn("error", str(problem))
        now = self.session.usage
        result = Result(
            **{**structs.asdict(ending), "text": ending.text or ""},
            duration_ms=round((time.monotonic() - started) * 1000),
            api_ms=round((self.session.asked_for - asked) * 1000),
            usage=Usage(**{name: getattr(now, name) - getattr(before, name) for name in now.__struct_fields__}),
            denials=tuple(self.session.denials[denied:]),
            session_id=self.session.id,
            cost_usd=self.session.cost,
            model_usage={model: model_usage(model, used) for model, used in self.session.spent.items()},
            origin=origin,
        )
        self.output.result(result)
        return result

    async def _finish_deferred(self) -> Result | None:
        """Make the calls that the run before left to this one, then let the model go on (FACTS.md §3, defer)."""
        if not self.left_undone():
            self.conversation.settle()
            return None
        left = unanswered(self.conversation.messages)

        async def make_calls() -> TurnEnd:
            try:
                ending = await call_tools(self.conversation, left)
            finally:
                self.caught_up.set()
            return ending or await _prompted(self.conversation, hook_messages.CONTINUE)

        return await self._guarded(make_calls())

    def open(self) -> str:
        """Open the session's file, or the one to go on with, unless it is open; why the session starts."""
        session, cwd = self.session, self.session.project_dir
        if self._source:
            return self._source
        self._source = "startup" if self.resume is None else "fork" if self.fork else "resume"
        if self.resume is not None:
            found, messages = resume(self.resume, cwd=cwd, fork=self.fork, upto=self.upto, drops=self.drops)
            found.mirror = self.mirror
            self.conversation.transcript = found
            self.conversation.messages = list(messages)
            session.id = self.output.session_id = found.session_id
            if session.id != self.resume.stem and not self.fork:
                told = f"session {self.resume.stem} is in use; this one is a copy of it"
                self.output.inform(told, level="warning")
        elif self.persist:
            path = transcript_path(cwd, session.id, session.environ)
            self.conversation.transcript = Transcript(path, session.id, cwd=cwd, mirror=self.mirror)
        return self._source

    def left_undone(self) -> bool:
        """Whether the run before left calls to this one, which are made as soon as it starts."""
        self.open()
        wanted = deferred(self.conversation.transcript.path) if self.conversation.transcript else set()
        return any(use.id in wanted for use in unanswered(self.conversation.messages))

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said so far."""
        return tuple(self.conversation.messages)


async def _prompted(
    conversation: Conversation, prompt: str, blocks: tuple[Block, ...] = (), *, mentions: bool = False
) -> TurnEnd:
    return await submit(conversation, prompt, blocks, mentions=mentions) or await run_turn(conversation)


def _command_finished(session: Session, job: Job) -> None:
    """A background command is over: the agent hears of it as a prompt, unless it was ended on purpose."""
    if job.status != "killed":
        summary = f'Background command "{job.description or job.command}" {job.status} (exit code {job.exit_code})'
        session.inbox.put(hook_messages.notification(job.id, job.status, f"{summary}. Output: {job.output}"))


def _cut_short(conversation: Conversation, said: int) -> TurnEnd:
    """Answer what was left unanswered, so that the conversation can go on."""
    answers = [message for message in conversation.messages[said:] if isinstance(message, Assistant)]
    # one that had said its last word, and whose Stop hooks were being asked, is done
    if answers and conversation.messages[-1] is answers[-1] and not answers[-1].tool_uses:
        return TurnEnd(text=answers[-1].text, stop_reason=answers[-1].stop_reason, turns=len(answers))
    conversation.settle()
    return fail_turn("aborted", "interrupted")
