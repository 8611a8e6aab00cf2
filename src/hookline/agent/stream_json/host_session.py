"""`hookline run --input-format stream-json`: a host drives the agent over the control protocol.

The host's callbacks are hooks of the same engine, its prompts are turns, and what it asks is answered by one table.

Of a callback (FACTS.md §10), an error or a nonsense answer counts as no answer, unless `onFailure` says block. A host
that does not answer in time, or is gone, cannot have agreed: before a tool, a prompt and a subagent that is a deny.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec
from msgspec import Raw

from hookline import errors
from hookline.agent.agent import Agent
from hookline.agent.factory import AgentBundle, RunOptions, add_agents, effort
from hookline.agent.messages import Result, Text, User, decode_block, text_of
from hookline.agent.models import ModelRequest, choose
from hookline.agent.session.session import PermissionQuestion
from hookline.agent.stream_json.output import StreamOutput
from hookline.core.engine import Context
from hookline.core.hooks.declare import make_hook
from hookline.core.hooks.hook import Hook, OnFailure, parse_matcher
from hookline.core.wire import claude
from hookline.core.wire.strict import check_object
from hookline.events import CATALOG, DirectoryAdded, Event, PostModelSwitch, PreModelSwitch
from hookline.guards.permissions import Mode, removed_tools
from hookline.hosts.claude_code import messages as wire
from hookline.hosts.claude_code.channels import CliChannel
from hookline.processes.loop import chunks, running
from hookline.replies import Decision, EventFields, Reply, deny

log: logging.Logger = logging.getLogger("hookline.agent")
LONGEST_HOLD = 45.0  # seconds that `initialize` waits for calls of the run before; official SDKs give up after 60
#: a host asks for the session's state with one of these; with the second it does not pass it on to its own user
WANTED, HOST_ONLY = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_SDK_READS_SESSION_STATE"
OFF = ("", "0", "false")
#: in place of a prompt: the run before left calls to this one, or something happened in the background
Wake: TypeAlias = Literal["leftover", "background"]
PROBE = ModelRequest(messages=(User.of("Hi"),), max_tokens=1)


async def serve(made: AgentBundle, options: RunOptions, write: Callable[[bytes], None]) -> int:
    """Serve a host until it closes stdin and everything it asked for is done; what it is told goes to `write`."""
    host = HostSession(made, options, write)
    async with running(host.read()), running(host.listen()):
        return await host.work()


class HostSession:
    """The host and what it asks of us."""

    def __init__(self, made: AgentBundle, options: RunOptions, write: Callable[[bytes], None]) -> None:
        self.made: AgentBundle = made
        self.options: RunOptions = options
        self.agent: Agent = made.agent
        self.server: CliChannel = CliChannel(write, also=OTHERS)
        self._connecting: asyncio.Task[None] | None = None
        self._callbacks: tuple[str, ...] = ()
        self.over = False
        self.prompts: asyncio.Queue[wire.UserMessage | Wake | None] = asyncio.Queue()
        self._state = ""
        made.hooks.engine.on_late = self.agent.session.wake
        if options.permission_prompt_tool == "stdio" and options.permission_prompts != "none":
            self.agent.session.policy.can_use_tool = self._may_run
        self.agent.session.elicit = self._elicit

    async def read(self) -> None:
        """Hand on what the host says, until it closes stdin."""
        try:
            async for chunk in chunks(sys.stdin.fileno()):
                self.server.received(chunk)
        finally:
            self.server.ended()

    async def listen(self) -> None:
        """Prompts wait their turn, requests are served at once."""
        while (said := await self.server.next()) is not None:
            if isinstance(said, wire.UserMessage):
                self.prompts.put_nowait(said)
            else:
                await self._serve(said)
        self.prompts.put_nowait(None)

    async def _serve(self, asked: wire.ControlRequest) -> None:
        request = asked.request
        name = request.subtype if isinstance(request, wire.OtherRequest) else str(request.__struct_config__.tag)
        try:
            answer = await REQUESTS[name](self, request)
        except (errors.HooklineError, ValueError, OSError) as problem:
            self.server.refuse(asked.request_id, str(problem), getattr(problem, "code", None))
        except Exception as problem:
            log.exception("`%s` could not be served", name)
            self.server.refuse(asked.request_id, f"{type(problem).__name__}: {problem}", "internal_error")
        else:
            self.server.answer(asked.request_id, answer or {})

    async def work(self) -> int:
        """Take prompts, and what happens in the background, one after another."""
        result: Result | None = None
        while True:
            prompt = await self._next()
            if prompt is None or self.over:
                break
            self._tell_state("running")
            result = await self._turn(prompt) or result
            session = self.agent.session
            if session.inbox.empty() and not session.working:  # nothing in the background will wake it
                self._tell_state("idle")
        while not self.over and (later := await self.agent.background()) is not None:
            result = later
        if result is None and not self.over:
            await self.agent.start()
        return 1 if result is not None and result.is_error else 0

    def _tell_state(self, state: str) -> None:
        """Tell a host that asks for it whether the session works or rests."""
        wanted, host_only = (self.agent.session.environ.get(name, "") not in OFF for name in (WANTED, HOST_ONLY))
        if state != self._state and (wanted or host_only):
            self._state = state
            quiet = {} if wanted else {"sdk_host_only": True}
            self.agent.output.system("session_state_changed", state=state, **quiet)

    async def _next(self) -> wire.UserMessage | Wake | None:
        """The next prompt of the host, or that there is one which no person typed; `None` when the host has gone."""
        typed = asyncio.ensure_future(self.prompts.get())
        untyped = asyncio.ensure_future(self.agent.session.inbox.wait())
        try:
            done, _ = await asyncio.wait({typed, untyped}, return_when=asyncio.FIRST_COMPLETED)
            return typed.result() if typed in done else "background"
        finally:
            typed.cancel()
            untyped.cancel()

    async def _turn(self, prompt: wire.UserMessage | Wake) -> Result | None:
        if prompt == "background":
            self.made.write_init_message()
            return await self.agent.react()
        self._begin_to_connect()
        assert self._connecting is not None
        await self._connecting  # until every server has answered or failed
        if isinstance(prompt, str):
            self.made.write_init_message()
            try:
                return await self.agent.start()
            finally:
                self.agent.caught_up.set()
        try:
            await self.agent.start()
        except errors.TranscriptError as problem:  # it cannot be gone on with: the host reads why in a result
            self.agent.output.refuse_prompt(str(problem))
            raise
        self.made.write_init_message()
        if self.options.replay_user_messages:
            self.server.say(prompt.data)
        blocks = [decode_block(block) for block in prompt.content]
        more = tuple(block for block in blocks if not isinstance(block, Text))
        mentions = prompt.data.get("client_composed") is not True
        origin: dict[str, Any] | None = prompt.get("origin", {}) or None
        return await self.agent.run(text_of(blocks), blocks=more, mentions=mentions, origin=origin)

    async def _may_run(self, ask: PermissionQuestion) -> Reply:
        """`can_use_tool`: the host decides about a call."""
        request = wire.CanUseTool(
            tool_name=ask.tool_name,
            input=ask.input,
            tool_use_id=ask.tool_use_id,
            agent_id=ask.agent_id,
            permission_suggestions=list(ask.suggestions),
            decision_reason=ask.reason,
            decision_reason_type=ask.reason_type,
            decision_reason_hook_event="PreToolUse" if ask.reason_type == "hook" else None,
        )
        try:
            return _permission(await self.server.ask(request))
        except (errors.RequestRefused, errors.HostGone) as problem:
            return deny(f"the host could not be asked: {problem}")

    def _begin_to_connect(self, names: Collection[str] = ()) -> None:
        """Connect, once, to the MCP servers in the host: those it names, and those that `--mcp-config` names."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(names), name="mcp servers in the host")

    async def _connect(self, names: Collection[str]) -> None:
        session = self.agent.session
        found = await session.servers.connect_hosted(self._ask_server, names)
        gone = removed_tools(session.policy.rules, found)
        session.tools |= {name: tool for name, tool in found.items() if name not in gone}
        for name, problem in session.servers.failures.items():
            self.agent.output.inform(f"MCP server `{name}`: {problem}", level="warning")

    async def _ask_server(self, server: str, message: dict[str, Any]) -> dict[str, Any] | None:
        request = wire.McpMessage(server_name=server, message=Raw(msgspec.json.encode(message)))
        answer = await self.server.ask(request)
        told = answer.get("mcp_response") if isinstance(answer, dict) else None
        return told if isinstance(told, dict) else None

    async def _elicit(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """`elicitation`: the host answers an MCP server's question; one who cannot has answered cancel."""
        schema = request.get("requestedSchema")
        told = {
            "message": str(request.get("message") or ""),
            "mode": str(request.get("mode") or "form"),
            "url": request.get("url"),
            "elicitation_id": request.get("elicitationId"),
            "requested_schema": schema,
            "property_order": list(schema.get("properties") or ()) if isinstance(schema, dict) else None,
        }
        asked = {"mcp_server_name": server, **{name: value for name, value in told.items() if value is not None}}
        try:
            answer = await self.server.ask(wire.OtherRequest.of("elicitation", asked))
        except (errors.RequestRefused, errors.HostGone) as problem:
            self.agent.output.inform(f"MCP server `{server}` asked, and the host could not: {problem}", level="warning")
            return {"action": "cancel"}
        sensible = isinstance(answer, dict) and answer.get("action") in ("accept", "decline", "cancel")
        return answer if sensible else {"action": "cancel"}

    async def initialize(self, request: wire.Initialize) -> dict[str, Any]:
        """Take over the host's callbacks (in place of those of an earlier `initialize`, if it names any) and wishes."""
        system = None if request.system_prompt is None else _prompts(request.system_prompt)
        if request.hooks is not None:
            for name in self._callbacks:
                self.made.hooks.remove(name)
            added = host_hooks(self.server, request.hooks, self.agent.output)
            self._callbacks = tuple(hook.name for hook in self.made.hooks.add(*added)) if added else ()
        self._begin_to_connect(request.sdk_mcp_servers or ())
        self.agent.output.subagent_text = request.forward_subagent_text is True
        session = self.agent.session
        if request.agents:
            session.agents |= add_agents(request.agents, self.made.hooks)
        if system is not None:
            session.system = system
        if request.append_system_prompt:
            session.system = (*session.system, request.append_system_prompt)
        with suppress(errors.TranscriptError):  # the first turn says why it cannot be gone on with
            if self.options.resume and self.agent.left_undone():
                self.prompts.put_nowait("leftover")
                try:  # a host with an empty prompt closes stdin once answered
                    await asyncio.wait_for(self.agent.caught_up.wait(), LONGEST_HOLD)
                except TimeoutError:
                    log.warning("a call left by the run before still runs; the host goes on without waiting for it")
        return self._about()

    def _about(self) -> dict[str, Any]:
        session = self.agent.session
        skills = session.skills.values()
        commands = [{"name": one.name, "description": one.description, "argumentHint": ""} for one in skills]
        return {
            "commands": commands,
            "agents": [{"name": name, "description": one.description} for name, one in session.agents.items()],
            "output_style": self.made.output_style,
            "available_output_styles": ["default"],
            "models": [{"value": session.model.name, "displayName": session.model.name, "description": ""}],
            "account": {"apiKeySource": "ANTHROPIC_API_KEY"},
            "pid": os.getpid(),
            "current_permission_mode": str(session.policy.mode),
            "hooks_applied": True,
            "hook_on_failure_supported": True,
            "session_hooks_supported": True,
            "session_state": "idle",
        }

    async def interrupt(self, _: wire.Interrupt) -> None:
        self.agent.interrupt()

    async def end_session(self, request: wire.OtherRequest) -> None:
        """SessionEnd, while the host can still be asked about it; nothing more is worked on."""
        self.over = True
        self.agent.interrupt()
        await self.agent.aclose(str(msgspec.json.decode(request.body).get("reason") or "other"))
        self.prompts.put_nowait(None)

    async def set_permission_mode(self, request: wire.SetPermissionMode) -> dict[str, Any]:
        self.agent.session.policy.mode = Mode(request.mode)
        return {"mode": request.mode}

    async def set_model(self, request: wire.SetModel) -> None:
        """PreModelSwitch, PostModelSwitch: another model from now on, unless a hook refuses."""
        session, conversation = self.agent.session, self.agent.conversation
        model = choose(request.model or "")
        await model.respond(PROBE)  # a model that is not served is refused here, not in the next turn
        about = {"from_model": session.model.name, "to_model": model.name, "requested_model": request.model,
                 "context_tokens": conversation.context_tokens}  # fmt: skip
        verdict = await conversation.fire(PreModelSwitch, **about)
        if verdict.decision in (Decision.DENY, Decision.ASK) or verdict.stop:
            raise errors.RequestRefused("set_model", verdict.reason or "blocked by a hook", "blocked_by_hook")
        session.model = model
        session.effort = effort(self.options, model)
        conversation.remind_of_context(await conversation.fire(PostModelSwitch, **about))

    async def register_repo_root(self, request: wire.OtherRequest) -> None:
        """DirectoryAdded: one more working folder; it must lie inside one that was there from the start."""
        given = msgspec.json.decode(request.body)
        directory = os.path.realpath(str(given.get("directory") or ""))  # noqa: ASYNC240 - one look at the disk
        session = self.agent.session
        roots = (session.project_dir, *self.options.add_dir)
        inside = any(Path(directory) != Path(root) and Path(directory).is_relative_to(root) for root in roots)
        if not inside or not Path(directory).is_dir():  # noqa: ASYNC240 - and another
            raise ValueError(f"`{directory}` is not a folder inside the working folders")
        if directory in session.policy.dirs:
            raise ValueError(f"`{directory}` is a working folder already")
        session.policy.dirs = (*session.policy.dirs, directory)
        await self.agent.conversation.fire(DirectoryAdded, directory=directory, source="register_repo_root")

    async def mcp_status(self, _: wire.OtherRequest) -> dict[str, Any]:
        return {"mcpServers": self.agent.session.servers.statuses()}

    async def stop_task(self, request: wire.OtherRequest) -> None:
        await self.agent.conversation.state.jobs.stop(str(msgspec.json.decode(request.body).get("task_id")))


async def _nothing(host: HostSession, _: Any) -> None:
    """Asked for, understood, and without meaning here."""


#: what a host may ask; the channel knows the shape of the first five
REQUESTS: dict[str, Callable[[HostSession, Any], Awaitable[dict[str, Any] | None]]] = {
    "initialize": HostSession.initialize,
    "interrupt": HostSession.interrupt,
    "set_permission_mode": HostSession.set_permission_mode,
    "set_model": HostSession.set_model,
    "mcp_message": _nothing,
    "register_repo_root": HostSession.register_repo_root,
    "mcp_status": HostSession.mcp_status,
    "end_session": HostSession.end_session,
    "stop_task": HostSession.stop_task,
    "set_max_thinking_tokens": _nothing,
}
OTHERS = tuple(REQUESTS)[5:]


def _prompts(given: Any) -> tuple[str, ...]:
    """A host's system prompt: one text or several, without the empty ones (no API takes them)."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"systemPrompt: expected a text or a list of texts, got `{type(given).__name__}`")
    return tuple(text for text in texts if text)


def _permission(answer: Any) -> Reply:
    if not isinstance(answer, dict) or answer.get("behavior") not in ("allow", "deny"):
        return deny("the host's answer makes no sense")
    if answer["behavior"] == "deny":
        reply = deny(str(answer.get("message") or "The host did not permit this call."))
        return reply | Reply(specific=EventFields(interrupt=True)) if answer.get("interrupt") is True else reply
    given, updates = answer.get("updatedInput"), answer.get("updatedPermissions")
    more = EventFields(updated_permissions=tuple(updates)) if isinstance(updates, list) else None
    return Reply(decision=Decision.ALLOW, input=given if isinstance(given, dict) else None, specific=more)


# -- the host's callbacks as hooks of our engine -----------------------------------------------------------------------

DEFAULT_TIMEOUT = 600.0
NEEDS_ANSWER = frozenset({"PreToolUse", "UserPromptSubmit", "SubagentStart"})  # here silence is a no
MARGIN = 5.0


def host_hooks(
    server: CliChannel, table: Mapping[str, Sequence[wire.CallbackMatcher]], output: StreamOutput
) -> list[Hook]:
    """The hooks of an `initialize`; what makes no sense in it is told, and the rest holds."""
    hooks: list[Hook] = []
    for event, entries in table.items():
        if event not in CATALOG:
            output.inform(f"initialize: unknown event `{event}`; its callbacks are never called", level="warning")
            continue
        for entry in entries:
            hooks += _entry(server, event, entry, output, len(hooks))
    return hooks


def _entry(server: CliChannel, event: str, entry: wire.CallbackMatcher, output: StreamOutput, count: int) -> list[Hook]:
    on_failure: OnFailure = "continue" if entry.on_failure in (None, "continue") else "block"
    if entry.on_failure not in (None, "block", "continue"):
        output.inform(f"initialize: unknown onFailure `{entry.on_failure}` is read as `block`", level="warning")
    seconds = entry.timeout or DEFAULT_TIMEOUT
    try:
        parse_matcher(entry.matcher)
    except errors.MatcherError as problem:
        output.inform(f"initialize: {event}: {problem}; its callbacks are never called", level="warning")
        return []
    return [
        make_hook(
            [event], _callback(server, name, seconds, strict=on_failure == "block"), match=entry.matcher,
            timeout=seconds + MARGIN, on_failure=on_failure, name=f"callback {name} #{count + number}", source="host",
            rejudge=False,
        )
        for number, name in enumerate(entry.callback_ids)
    ]  # fmt: skip


def _callback(
    server: CliChannel, name: str, seconds: float, *, strict: bool
) -> Callable[[Event, Context], Awaitable[Reply | None]]:
    async def ask_host(event: Event, ctx: Context) -> Reply | None:
        sent = Raw(claude.encode_event(event))
        request = wire.HookCallback(callback_id=name, input=sent, tool_use_id=ctx.tool_use_id or str(uuid4()))
        try:
            async with asyncio.timeout(seconds):
                answer = await server.ask(request)
            return _understood(event, answer, strict=strict)
        except TimeoutError:
            return _silence(event, f"hook callback timed out after {round(seconds * 1000)}ms")
        except (errors.HostGone, errors.UnknownCallback) as problem:
            return _silence(event, str(problem))
        except errors.ReplyMismatch as problem:
            if event.event_name in NEEDS_ANSWER:
                return deny(f"{event.event_name} hook failed: {problem}; nothing was done")
            raise errors.HookFailed(str(problem)) from None
        except (errors.RequestRefused, errors.ReplyError) as problem:
            log.warning("hook callback %s failed: %s", name, problem)  # the model is not meant to hear what went wrong
            why = f"callback {name} failed: the host replied with an error or an invalid answer"
            raise errors.HookFailed(why) from None

    return ask_host


def _silence(event: Event, why: str) -> Reply | None:
    if event.event_name in NEEDS_ANSWER:
        return deny(f"{event.event_name} hook did not respond ({why}); nothing was done")
    raise errors.HookTimeout(why)


def _understood(event: Event, answer: Any, *, strict: bool) -> Reply | None:
    if not isinstance(answer, dict):
        raise errors.ReplyError(f"expected an object, got `{type(answer).__name__}`")
    if strict:
        check_object(answer, event.event_name)
    return None if answer.get("async") is True else claude.decode_reply(answer, event)
