"""Drive a Claude CLI from Python, with a set of hooks in the middle of everything it does.

    async for message in query("tidy up", hooks=hooks):
        print(message)

Or, for several turns:

    async with ClaudeClient(hooks=hooks) as claude:
        await claude.send("tidy up")
        async for message in claude.receive(): ...
        await claude.send("now commit")
"""

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import msgspec

from hookline.core.engine import HookSet
from hookline.errors import ClaudeError, CliSilent, Closed, HooksIgnored
from hookline.events import SessionEnd, SessionStart
from hookline.hosts.claude_code import messages as wire
from hookline.hosts.claude_code import process
from hookline.hosts.claude_code.channels import ANSWER_WITHIN, LINGER, HostChannel
from hookline.hosts.claude_code.mcp import in_process
from hookline.hosts.claude_code.messages import Message, ResultMessage, UserMessage
from hookline.hosts.claude_code.process import Command, Options, Subprocess, Transport
from hookline.hosts.claude_code.protocol import LINE_LIMIT
from hookline.hosts.claude_code.registration import NEVER_CALLED, plan, unsupported_features
from hookline.hosts.claude_code.requests import CanUse

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")

Prompt = str | Sequence[Mapping[str, Any]] | UserMessage
Prompts = Prompt | AsyncIterable[Prompt]


class ClaudeClient:
    """A conversation of several turns with a Claude CLI.

    `hooks` are asked about everything the CLI reports, by the engine's rules: its timeouts, validation and failure
    policy. `can_use_tool` decides on tools that neither rules nor hooks decided on; `mcp_servers` may hold servers that
    live here. Further keywords are the CLI's flags (`Options`). The hooks stay the caller's to close.
    """

    def __init__(
        self, *, hooks: HookSet | None = None, can_use_tool: CanUse | None = None,
        mcp_servers: Mapping[str, Any] | None = None, cli: Command | None = None,
        cwd: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None,
        transport: Transport | None = None, initialize_timeout: float = ANSWER_WITHIN, line_limit: int = LINE_LIMIT,
        linger: float = LINGER, options: Options | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self.info: dict[str, Any] = {}
        self._hooks = hooks
        servers = {name: (one, in_process(one)) for name, one in (mcp_servers or {}).items()}
        self._servers = {name: live for name, (_, live) in servers.items() if live}
        flags = msgspec.structs.asdict(options or Options()) | more
        if servers:  # those that live here are announced
            told = {name: {"type": "sdk", "name": name} if live else one for name, (one, live) in servers.items()}
            flags["mcp_servers"] = {**(flags["mcp_servers"] or {}), **told}
        if can_use_tool is not None:
            flags["permission_prompt_tool"] = "stdio"
        self._options = Options(**flags)
        self._command = cli
        self._cli: process.Cli | None = None
        self._cwd = None if cwd is None else os.fspath(cwd)
        self._env = env
        self._transport = transport
        self._initialize_timeout = initialize_timeout
        self._channel = partial(
            HostChannel, hooks=hooks, can_use_tool=can_use_tool, servers=self._servers, line_limit=line_limit,
            linger=linger,
        )  # fmt: skip
        self._session: HostChannel | None = None
        self._who: dict[str, Any] = {}
        self._began = False  # its SessionStart hooks let it
        self._context: tuple[str, ...] = ()  # what they want the model to know

    async def connect(self) -> dict[str, Any]:
        """Start the CLI, register the hooks, and return what it says of itself."""
        if self._session is not None:
            raise ClaudeError("this client is connected already")
        told = self._options.session_id or self._options.resume or self._options.continue_conversation
        if not told and not plan(self._hooks).hooks.keys().isdisjoint(NEVER_CALLED):  # then they hear of an id
            self._options = msgspec.structs.replace(self._options, session_id=str(uuid4()))
        session_id = self._options.session_id or self._options.resume or ""
        self._who = {"session_id": session_id, "cwd": self._cwd or str(Path.cwd())}
        transport = self._transport
        if transport is None:
            self._cli = process.find_cli(self._command)
            env = {name: value for name, value in os.environ.items() if name != "CLAUDECODE"}  # not a child of another
            env = {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1", **(env if self._env is None else self._env)}
            transport = Subprocess(process.argv(self._cli.command, self._options), cwd=self._cwd, env=env)
        session = self._channel(transport)
        await transport.start(session)
        self._session = session
        try:
            await self._initialize(session)
            await self._begin_session()
        except BaseException:
            await self.aclose()
            raise
        return self.info

    async def _initialize(self, session: HostChannel) -> None:
        """Register the hooks there are now; told again, the CLI forgets the ones before."""
        planned = plan(self._hooks)
        session.answering.register(planned)
        opening = wire.Initialize(hooks=planned.hooks or None, sdk_mcp_servers=list(self._servers) or None)
        try:
            self.info = await session.request(opening, self._initialize_timeout)
        except CliSilent as silent:
            old = process.too_old(await process.version_of(self._cli)) if self._cli is not None else None
            raise (silent if old is None else CliSilent(f"{silent.problem}; {old}", None, silent.stderr)) from None
        session.ends_session = self.info.get("session_hooks_supported") is True and "SessionEnd" in planned.hooks
        version = self.info.get("claude_code_version")
        old = process.too_old(str(version)) if version is not None else None
        for problem in [*unsupported_features(planned, self.info), *([old] if old else [])]:
            log.warning("%s", problem)
            warnings.warn(problem, HooksIgnored, stacklevel=4)

    async def aclose(self) -> None:
        """Stop running hooks and end the CLI in good order."""
        session, self._session = self._session, None
        began, self._began = self._began, False
        if session is None:
            return
        try:
            await session.aclose()
        finally:
            if began:
                await self._end_session()

    # A CLI registers callbacks on SessionStart and SessionEnd and never calls them (`NEVER_CALLED`), unless it says it
    # does. The client knows when a conversation begins and ends, so it fires them itself.

    def _unheard(self, name: str) -> HookSet | None:
        """The hooks, if some of them hear of an event of which the CLI does not tell them."""
        told = self.info.get("session_hooks_supported") is True
        return None if told or name not in plan(self._hooks).hooks else self._hooks

    async def _begin_session(self) -> None:
        """SessionStart: its context goes with the first prompt; a hook that blocks it is a `ClaudeError`."""
        if (hooks := self._unheard("SessionStart")) is not None:
            source = "resume" if self._options.resume or self._options.continue_conversation else "startup"
            verdict = await hooks.fire(SessionStart(**self._who, source=source, model=self._options.model))
            if verdict.blocked:
                raise ClaudeError(f"a SessionStart hook refused the session: {verdict.reason or 'no reason given'}")
            self._context = verdict.context
        self._began = True

    async def _end_session(self) -> None:
        """SessionEnd: too late to change anything."""
        if (hooks := self._unheard("SessionEnd")) is not None:
            try:
                await hooks.fire(SessionEnd(**self._who, reason="other"))
            except Closed as problem:  # the caller was done with them before the conversation ended
                log.warning("SessionEnd hooks did not run: %s", problem)

    def _with_context(self, message: UserMessage) -> UserMessage:
        """The prompt with what SessionStart hooks want the model to know, the first time."""
        texts, self._context = self._context, ()
        if not texts:
            return message
        told = "<system-reminder>\nSessionStart hook additional context: {}\n</system-reminder>"
        blocks = [{"type": "text", "text": told.format("\n".join(texts))}, *message.content]
        spoken = {**message.get("message", {}), "content": blocks}
        return UserMessage("user", msgspec.json.encode({**message.data, "message": spoken}))

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def send(self, prompt: Prompts) -> None:
        """Say something: text, content blocks, a `UserMessage`, or a stream of these."""
        session = self._open
        if self._hooks is not None and plan(self._hooks) != session.answering.plan:
            await self._initialize(session)  # hooks were added or removed since
        async for one in prompt if isinstance(prompt, AsyncIterable) else _only(prompt):
            message = one if isinstance(one, UserMessage) else UserMessage.of(one)
            await session.say(self._with_context(message))

    async def receive(self) -> AsyncIterator[Message]:
        """What is said until the turn is over; the last one is the `ResultMessage`."""
        async for message in self.messages():
            yield message
            if isinstance(message, ResultMessage):
                return

    async def messages(self) -> AsyncIterator[Message]:
        """Everything that is said until the CLI ends; raises a `ClaudeError` if it does not end well."""
        session = self._open
        while (message := await session.next()) is not None:
            yield message

    def end_input(self) -> None:
        """No more prompts: the CLI ends once it has nothing left to do."""
        self._open.run.end_when_done()

    async def interrupt(self) -> None:
        """Stop the turn; hooks that run are cancelled."""
        await self._open.request(wire.Interrupt())

    async def set_model(self, model: str | None = None) -> None:
        """Use another model from now on; `None` is the default one."""
        await self._open.request(wire.SetModel(model=model))

    async def set_permission_mode(self, mode: str) -> None:
        """Change the permission mode from now on."""
        await self._open.request(wire.SetPermissionMode(mode=mode))

    async def request(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """Any other control request, such as `mcp_status`."""
        return await self._open.request(wire.OtherRequest.of(subtype, fields))

    @property
    def _open(self) -> HostChannel:
        if self._session is None:
            raise ClaudeError("this client is not connected; use it in `async with`, or call connect()")
        return self._session


async def query(prompt: Prompts, *, hooks: HookSet | None = None, **options: Any) -> AsyncIterator[Message]:
    """Ask once and read the answer; takes what `ClaudeClient` takes."""
    async with ClaudeClient(hooks=hooks, **options) as client:
        asking = asyncio.get_running_loop().create_task(_ask(client, prompt))
        try:
            async for message in client.messages():
                yield message
        finally:
            asking.cancel()
            await asyncio.wait([asking])
        if not asking.cancelled():
            asking.result()


async def _ask(client: ClaudeClient, prompt: Prompts) -> None:
    """Say it all, and no more; a stream of prompts that fails ends the input too."""
    try:
        await client.send(prompt)
    finally:
        client.end_input()


async def _only(prompt: Prompt) -> AsyncIterator[Prompt]:
    yield prompt
