"""What a session shares and what each of its conversations has of its own.

A `Session` is one run: its options, what hosts and hooks have made of them, its permissions and the host it talks to. A
`Conversation` is one thread of talk in it: the main one, or a subagent's. Every event goes through `Conversation.fire`,
which fills in who and where.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4
from weakref import WeakValueDictionary

from msgspec import Struct

from hookline.agent.context.definitions import AgentDefinition, Skill
from hookline.agent.hook_messages import TEXT_LIMIT, additional_context, hook_name, notification, wrapped
from hookline.agent.messages import Assistant, Message, Reminder, ToolOutput, Usage, User
from hookline.agent.models import Model
from hookline.agent.models.base import cost_of
from hookline.agent.session.transcript import INTERRUPTED, Transcript, unanswered
from hookline.agent.stream_json.output import StreamOutput
from hookline.agent.tools import SessionState, Tool, ToolEnv, ToolHost, default_tools
from hookline.agent.tools.delegate import StructuredOutput
from hookline.agent.tools.mcp import McpServers
from hookline.api import Hooks
from hookline.core.engine import HookSet, Outcome, Verdict
from hookline.core.files import private_folder, write_atomically
from hookline.core.hooks.condition import EDITING
from hookline.core.hooks.hook import Command, Hook
from hookline.events import Event, Notification, spec_of
from hookline.guards.permissions import Mode, Permission, Rules, apply, decide
from hookline.guards.sandboxing import TOOL, unwrapped
from hookline.replies import Decision, Reply
from hookline.settings.hook_names import with_free_names

NO_RULES = Rules()
ALL_INSTRUCTIONS = frozenset({"User", "Project", "Local"})
SILENT = frozenset({"SessionStart", "SessionEnd"})  # what hooks say to the user on these is not shown (FACTS.md §1)
OBJECTS = 2  # the exit code of a command hook that objects


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """What a person is asked to permit; `reason_type` says who wants it asked (`hook`, `rule`, `mode`, …)."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str = ""
    agent_id: str | None = None
    suggestions: Sequence[Mapping[str, Any]] = ()
    reason: str = ""
    reason_type: str = "other"


CanUseTool: TypeAlias = Callable[[PermissionQuestion], Awaitable[Reply | bool | None]]
"""A function that can be asked: answers `True`, `False`, or a reply such as `deny("not today")`; `None` is no."""


def as_asked(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """The call without a confinement that a guard put around its line: rules are about the line itself."""
    found = unwrapped(str(given.get("command", ""))) if tool.name == TOOL else None
    return given if found is None else {**given, "command": found[1]}


@dataclass
class PermissionPolicy:
    """What may be done without asking, and who to ask; changed by hooks and hosts while the session runs."""

    rules: Rules = NO_RULES
    mode: Mode = Mode.DEFAULT
    dirs: tuple[str, ...] = ()
    can_use_tool: CanUseTool | None = None
    granted: Rules = NO_RULES  # what skills allow while the user's prompt is worked on

    def update(self, updates: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Change rules, mode and folders as a hook or a host says; what made no sense."""
        applied = apply(updates, self.rules, self.mode, self.dirs)
        self.rules, self.mode, self.dirs = applied.rules, applied.mode, applied.dirs
        return applied.problems


class Inbox:
    """What waits for the agent to react to, in the order it came."""

    def __init__(self) -> None:
        self._prompts: list[tuple[str, object]] = []
        self._came = asyncio.Event()

    def empty(self) -> bool:
        return not self._prompts

    def put(self, text: str, cause: object = None) -> None:
        """Let the agent react to `text`; `cause` is what `withdraw` knows it by."""
        self._prompts.append((text, cause))
        self._came.set()

    def withdraw(self, cause: object) -> bool:
        """Take back what `cause` put here; `False` if the agent has reacted to it already."""
        kept = [prompt for prompt in self._prompts if prompt[1] is not cause]
        found = len(kept) < len(self._prompts)
        self._prompts = kept
        return found

    async def wait(self) -> None:
        while not self._prompts:
            self._came.clear()
            await self._came.wait()

    async def get(self) -> str:
        """The prompt that came first, as soon as there is one."""
        await self.wait()
        return self._prompts.pop(0)[0]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SessionConfig:
    """The options of a session, as `Agent` takes them; what is `None` has a default of the session's own."""

    model: Model
    hooks: HookSet | None = None
    cwd: str | Path | None = None
    tools: Mapping[str, Tool] | None = None
    permission_mode: str = "default"
    can_use_tool: CanUseTool | None = None
    rules: Rules = NO_RULES
    dirs: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    session_id: str | None = None
    resume: Path | None = None
    fork: bool = False
    upto: str | None = None
    drops: str | None = None
    setup: str | None = None
    agents: Mapping[str, AgentDefinition] | None = None
    skills: Mapping[str, Skill] | None = None
    instructions: frozenset[str] = ALL_INSTRUCTIONS  # whose instructions are read
    max_turns: int | None = None
    compact_at: int | None = None
    effort: str | None = None
    thinking: dict[str, Any] | None = None  # how much the model may think, as the Messages API takes it
    agent_type: str | None = None
    persist: bool = True
    confine: bool | None = None  # whether Bash runs confined: whatever hooks say, never, or (None) where a guard is set
    budget: float | None = None  # US dollars the session may cost
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """An agent makes its session here."""


class Session:
    """One run of the agent: its options, what became of those that change, and what has happened so far."""

    def __init__(self, config: SessionConfig, host_of: Callable[[Conversation], ToolHost]) -> None:
        self.config = config
        self.host_of = host_of  # what the tools of a conversation may ask of the agent
        self.id: str = config.session_id or str(uuid4())
        self.project_dir: str = os.path.realpath(config.cwd or Path.cwd())
        self.hooks: HookSet = Hooks(project_dir=self.project_dir) if config.hooks is None else config.hooks
        mode = Mode(config.permission_mode)
        self.policy: PermissionPolicy = PermissionPolicy(config.rules, mode, config.dirs, config.can_use_tool)
        self.output: StreamOutput = StreamOutput(self.id)
        # what a host, a setting or a model may change while the session runs
        self.model: Model = config.model
        self.system: tuple[str, ...] = config.system
        self.effort: str | None = config.effort
        self.environ: Mapping[str, str] = dict(os.environ if config.environ is None else config.environ)
        self.tools: dict[str, Tool] = dict(default_tools() if config.tools is None else config.tools)
        self.agents: dict[str, AgentDefinition] = dict(config.agents or {})
        self.skills: dict[str, Skill] = dict(config.skills or {})
        self.active_skills: set[str] = set()
        self.servers: McpServers = McpServers({})
        self.structured: StructuredOutput | None = None  # where the answer goes if it is to have a form
        if config.schema is not None:
            self.tools[StructuredOutput.name] = self.structured = StructuredOutput(config.schema)
        #: asks the host for what an MCP server wants to know
        self.elicit: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]] | None = None
        #: told of more files that FileChanged hooks want watched
        self.watch: Callable[[Iterable[str]], None] = lambda _: None
        self.inbox: Inbox = Inbox()
        #: subagents at work in the background, the names of the teammates among them, and all conversations in use
        self.working: set[asyncio.Task[None]] = set()
        self.teammates: set[str] = set()
        self.talks: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        self.usage: Usage = Usage()
        self.spent: dict[str, Usage] = {}  # what was used of each model
        self.asked_for: float = 0.0  # seconds spent waiting for models
        self.denials: list[dict[str, Any]] = []

    @property
    def cost(self) -> float:
        """US dollars so far, at list price."""
        return sum(cost_of(model, usage) for model, usage in self.spent.items())

    def count(self, answer: Assistant) -> None:
        model = answer.model or self.model.name
        self.usage = self.usage + answer.usage
        self.spent[model] = self.spent.get(model, Usage()) + answer.usage

    def wake(self, outcome: Outcome) -> None:
        """Let an `asyncRewake` hook that objects wake an agent that is idle (FACTS.md §7)."""
        if text := self._objection(outcome):
            self.inbox.put(text, outcome)

    def woken_by(self, outcome: Outcome) -> str:
        """What such a hook says to an agent that is at work; nothing if it has woken it already."""
        text = self._objection(outcome)
        return text if self.hooks.engine.on_late is None or self.inbox.withdraw(outcome) else ""

    def _objection(self, outcome: Outcome) -> str:
        action = next((hook.action for hook in self.hooks.hooks if hook.name == outcome.hook), None)
        if not isinstance(action, Command) or not action.async_rewake or outcome.exit_code != OBJECTS:
            return ""
        said = outcome.stderr.strip() or outcome.stdout.strip() or outcome.reply.reason
        if not action.rewake_message and not action.rewake_summary:
            return notification(outcome.hook, "completed", said)
        summary = notification(outcome.hook, "completed", action.rewake_summary or f"{outcome.hook} objects")
        return f"{summary}\n{wrapped(f'{action.rewake_message} {said}'.strip())}"

    def add_hooks(self, hooks: Iterable[Hook]) -> None:
        """Let more hooks hold from now on, under names that are free."""
        taken = [hook.name for hook in self.hooks.hooks]
        self.hooks.add(*with_free_names(hooks, taken))


@dataclass
class Conversation:
    """One thread of talk: what was said, where it works, and whose it is (`agent_id` is None for the main one)."""

    session: Session
    state: SessionState
    transcript: Transcript | None = None
    messages: list[Message] = field(default_factory=list)
    agent_id: str | None = None
    agent_type: str | None = None
    parent_tool_use_id: str | None = None
    description: str | None = None  # what a subagent was asked to do, in a few words
    prompt_id: str | None = None
    model: str = ""
    system: tuple[str, ...] | None = None
    tools: dict[str, Tool] | None = None
    waiting: list[Reminder] = field(default_factory=list)  # reminders for the next request
    instructions_seen: set[str] = field(default_factory=set)
    forgot: str = ""  # why instructions have to be read again before the next request; empty if they need not
    context_tokens: int = 0
    main_transcript: Path | None = None
    depth: int = 0
    in_background: bool = False  # whether it works while its parent goes on
    max_turns: int | None = None  # how many answers of the model a turn may take

    def __post_init__(self) -> None:
        if self.agent_id is not None:
            self.session.talks[self.agent_id] = self

    @property
    def tool_set(self) -> dict[str, Tool]:
        return self.session.tools if self.tools is None else self.tools

    async def fire(self, kind: type[Event], **fields: Any) -> Verdict:
        """Send an event through the hooks, who and where filled in: the user hears what they say, files are watched."""
        session, carried = self.session, spec_of(kind).carries
        path = self.main_transcript or (self.transcript.path if self.transcript else "")
        base: dict[str, Any] = {
            "session_id": session.id,
            "transcript_path": str(path),
            "cwd": self.state.cwd,
            "prompt_id": self.prompt_id,
            "permission_mode": session.policy.mode if "permission_mode" in carried else None,
            "effort": {"level": session.effort} if session.effort and "effort" in carried else None,
            "agent_id": self.agent_id,
            "agent_type": self.agent_type or session.config.agent_type,
        }
        verdict = await session.hooks.fire(kind(**{**base, **fields}))
        name = hook_name(verdict.event)
        if verdict.event.event_name not in SILENT:
            for text in verdict.messages:
                self._told_user(f"{name} says: {text}")
            if verdict.stop:
                why = f": {verdict.stop_reason}" if verdict.stop_reason else ""
                self._told_user(f"{name} hook stopped the agent{why}", "warning")
        for outcome in verdict.failures:
            text = f"{name} hook `{outcome.hook}` gave no verdict: {outcome.error}"
            session.output.inform(text, level="warning", tag="hook_no_verdict")
        more = verdict.reply.specific
        if more is not None and more.session_title:
            session.output.system("session_title_changed", title=more.session_title)
        if more is not None and more.watch_paths:
            session.watch(more.watch_paths)
        return verdict

    async def notify(self, message: str, kind: str) -> None:
        """Notification: the user should look; what hooks want the model to know about it waits."""
        self.remind_of_context(await self.fire(Notification, message=message, notification_type=kind))

    def _told_user(self, text: str, level: str = "notice") -> None:
        """Tell the user something, and write down that it was said; the model does not hear of it."""
        self.session.output.inform(text, level=level)
        if self.transcript is not None:
            self.transcript.append({"type": "system", "subtype": "informational", "content": text, "level": level})

    def close(self) -> None:
        """Give the file it is written to back."""
        if self.transcript is not None:
            self.transcript.close()

    def add(self, message: Message, uuids: tuple[str, ...] = (), **more: Any) -> None:
        """Say something: it is in the conversation and on disk from now on."""
        self.messages.append(message)
        if self.transcript is not None:
            self.transcript.add(message, uuids, **more)

    def add_user(self, text: str) -> None:
        """Say something on the user's side that no person typed."""
        self.add(User.of(text, synthetic=True))

    def settle(self) -> None:
        """Answer calls that are open and will not be made any more: a model refuses a call without an answer."""
        if left := unanswered(self.messages):
            self.add(User(tuple(ToolOutput(use.id, INTERRUPTED, is_error=True) for use in left), synthetic=True))

    def remind(self, *texts: str) -> None:
        """Tell the model something with the next request, once."""
        self.waiting += [Reminder(text) for text in texts if text]

    def context_of(self, verdict: Verdict) -> str:
        """What hooks want the model to know; empty if it is nothing."""
        texts = [self.bounded(text) for text in verdict.context]
        return additional_context(verdict.event, texts) if texts else ""

    def remind_of_context(self, verdict: Verdict) -> None:
        """Tell the model what hooks want it to know."""
        self.remind(self.context_of(verdict))

    def deliver(self) -> None:
        reminders, self.waiting = self.waiting, []
        for reminder in reminders:
            self.add(reminder)

    def collect_late(self) -> None:
        """Let late answers of background hooks wait for the next request (FACTS.md §7: bare, whatever they decided)."""
        if self.agent_id is not None:  # the main conversation is told, whichever agent's work the hooks were about
            return
        for outcome in self.session.hooks.pending():
            self.remind(*outcome.reply.context, *outcome.reply.messages, self.session.woken_by(outcome))

    def bounded(self, text: str) -> str:
        """A text the model can be given; one that is too long goes to a file, and its beginning is told."""
        if len(text) <= TEXT_LIMIT:
            return text
        saved = ""
        if self.transcript is not None:
            path = self.transcript.path.with_suffix("") / "hook-output" / f"{uuid4()}.txt"
            saved = f"Full output saved to: {path}\n"
            try:
                private_folder(path.parent)
                write_atomically(path, text.encode())
            except OSError as problem:
                saved = f"It could not be saved ({problem.strerror}). "
        head = f"Output too large ({len(text)} characters). {saved}Its beginning:"
        return f"<persisted-output>\n{head}\n{text[:2000]}\n</persisted-output>"

    def tool_env(self, tool_use_id: str, **more: Any) -> ToolEnv:
        session, confine = self.session, self.session.config.confine is True
        about: dict[str, Any] = {"session_id": session.id, "tool_use_id": tool_use_id, "agent_id": self.agent_id}
        return ToolEnv(self.state, **about, environ=session.environ, confine=confine, **more)

    def hosted_env(self, tool_use_id: str) -> ToolEnv:
        """The same, for a call that may also use what the agent can do."""
        return self.tool_env(tool_use_id, fire=self.session.hooks.fire, host=self.session.host_of(self))

    def permission_of(self, tool: Tool, given: dict[str, Any], verdict: Verdict | None = None) -> Permission:
        """What rules, the mode and hooks say to a call."""
        policy, project_dir = self.session.policy, self.session.project_dir
        decision = verdict.decision if verdict is not None else Decision.PASS
        return decide(
            tool.name,
            as_asked(tool, given),
            rules=policy.rules | policy.granted,
            mode=policy.mode,
            hook_decision=None if decision is Decision.PASS else str(decision),
            hook_reason=verdict.reply.reason if verdict is not None else "",
            read_only=tool.read_only,
            edits=tool.name in EDITING,
            within_session=tool.within_session,
            cwd=self.state.cwd,
            dirs=(project_dir, *policy.dirs),
            home=str(Path.home()),
            project_dir=project_dir,
        )
