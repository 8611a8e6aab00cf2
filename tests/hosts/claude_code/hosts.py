"""The hosts that play a scenario: our client, the official Python SDK with our engine, the official TypeScript SDK."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from hookline.api import Hooks
from hookline.core.engine import Context
from hookline.events import CATALOG, Event
from hookline.hosts.claude_code import CanUseTool, ClaudeClient, ResultMessage, ToolServer, for_sdk, tool
from tests.environ import clean_environ
from tests.hosts.claude_code.scenarios import HANG, HookSpec, Scenario

DRIVER = Path(__file__).parent / "ts" / "driver.mjs"
NODE = Path(__file__).parents[3] / ".cache" / "node"  # where `make node_modules` installs the TypeScript SDK


class Seen(msgspec.Struct):
    """What the host saw of the conversation."""

    hooks: list[str] = []
    results: list[str] = []
    asked: list[str] = []
    mcp_calls: list[str] = []
    cancelled: int = 0


class Stage(msgspec.Struct, frozen=True):
    """Where a scenario is played."""

    cli: str
    cwd: str
    env: dict[str, str]


def stage_for(cli: str, folder: Path, api: Any) -> Stage:
    """A clean home and project, and an API on loopback."""
    (folder / "home").mkdir()
    (folder / "project").mkdir()
    env = {
        **clean_environ(folder / "home"),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.port}",
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "HOOKLINE_SERVICE": os.environ.get("HOOKLINE_SERVICE", "0"),  # never the user's own
    }
    return Stage(cli, str(folder / "project"), env)


class Played:
    """The hooks, permissions and tools of scenarios as Python: those of the one that is played answer."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.engine = Hooks()
        self.scenarios = scenarios
        self.begin(scenarios[0])
        for scenario in scenarios:
            for number, spec in enumerate(scenario.hooks):
                name = f"{scenario.name}_{number}"
                options: dict[str, Any] = {"match": spec.matcher, "timeout": spec.timeout, "name": name}
                self.engine.on(CATALOG[spec.event].cls, **options)(self._hook(scenario, spec))

    def begin(self, scenario: Scenario) -> None:
        """Play this one from now on."""
        self.playing, self.seen = scenario, Seen()
        self.hanging, self.let_go = asyncio.Event(), asyncio.Event()

    @property
    def asks(self) -> bool:
        return any(scenario.permission for scenario in self.scenarios)

    @property
    def allowed_tools(self) -> list[str]:
        return sorted({name for scenario in self.scenarios for name in scenario.allowed_tools})

    def _hook(self, scenario: Scenario, spec: HookSpec) -> Callable[[Event, Context], Awaitable[Any]]:
        async def answer(event: Event, ctx: Context) -> Any:
            if scenario is not self.playing:
                return {}
            seen, let_go = self.seen, self.let_go
            calls = seen.hooks.count(spec.event)
            seen.hooks.append(spec.event)
            reply = spec.replies[min(calls, len(spec.replies) - 1)]
            if reply != HANG:
                return reply
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            finally:
                seen.cancelled += ctx.cancelled.is_set()
                let_go.set()

        return answer

    async def permit(self, request: CanUseTool) -> Any:
        self.seen.asked.append(request.tool_name)
        assert self.playing.permission is not None
        return {**self.playing.permission, "updatedInput": request.input}

    def servers(self) -> dict[str, ToolServer]:
        named = {name: prefix for scenario in self.scenarios for name, prefix in scenario.mcp_tools.items()}
        tools = [tool(name=name)(self._shout(prefix)) for name, prefix in named.items()]
        return {"srv": ToolServer(tools)} if tools else {}

    def _shout(self, prefix: str) -> Callable[[str], Awaitable[str]]:
        async def shout(text: str) -> str:
            """Say it loud."""
            self.seen.mcp_calls.append(text)
            return prefix + text

        return shout

    async def turn(self, interrupt: Callable[[], Awaitable[None]], results: AsyncIterator[str]) -> None:
        """One turn to its end, stopped in a hook that hangs if the scenario says so."""
        stopping = asyncio.ensure_future(self._interrupt_once_hanging(interrupt))
        if not self.playing.interrupt_on_hang:
            stopping.cancel()
        self.seen.results += [result async for result in results]
        with suppress(asyncio.CancelledError):
            await stopping
        if self.hanging.is_set():  # the result may be read before the hook has heard that it is cancelled
            await asyncio.wait_for(self.let_go.wait(), 60)

    async def _interrupt_once_hanging(self, interrupt: Callable[[], Awaitable[None]]) -> None:
        await self.hanging.wait()
        await interrupt()


Play = Callable[[Scenario], Awaitable[Seen]]
Host = Callable[[Sequence[Scenario], Stage], AbstractAsyncContextManager[Play]]


@asynccontextmanager
async def our_client(scenarios: Sequence[Scenario], stage: Stage) -> AsyncIterator[Play]:
    """`hookline.hosts.claude_code.ClaudeClient`."""
    played = Played(scenarios)
    client = ClaudeClient(
        hooks=played.engine,
        can_use_tool=played.permit if played.asks else None,
        mcp_servers=played.servers(),
        cli=stage.cli,
        cwd=stage.cwd,
        env=stage.env,
        allowed_tools=played.allowed_tools,
    )

    async def results() -> AsyncIterator[str]:
        async for message in client.receive():
            if isinstance(message, ResultMessage):
                yield message.subtype

    async def play(scenario: Scenario) -> Seen:
        played.begin(scenario)
        for prompt in scenario.prompts:
            await client.send(prompt)
            await played.turn(client.interrupt, results())
        return played.seen

    async with client:
        yield play


@asynccontextmanager
async def python_sdk(scenarios: Sequence[Scenario], stage: Stage) -> AsyncIterator[Play]:
    """The official Python SDK, whose hooks are ours by way of `for_sdk`."""
    import claude_agent_sdk as sdk

    played = Played(scenarios)

    async def permit(name: str, tool_input: dict[str, Any], context: Any) -> Any:
        answer = await played.permit(CanUseTool(tool_name=name, input=tool_input))
        if answer["behavior"] == "deny":
            return sdk.PermissionResultDeny(message=answer["message"])
        return sdk.PermissionResultAllow()

    servers = played.servers()
    options = sdk.ClaudeAgentOptions(
        hooks=for_sdk(played.engine),
        can_use_tool=permit if played.asks else None,
        mcp_servers={name: sdk.create_sdk_mcp_server(name, tools=_sdk_tools(server))
                     for name, server in servers.items()},
        allowed_tools=played.allowed_tools,
        cli_path=stage.cli,
        cwd=stage.cwd,
        env=stage.env,
    )  # fmt: skip
    client = sdk.ClaudeSDKClient(options)

    async def results() -> AsyncIterator[str]:
        async for message in client.receive_response():
            if isinstance(message, sdk.ResultMessage):
                yield message.subtype

    async def play(scenario: Scenario) -> Seen:
        played.begin(scenario)
        for prompt in scenario.prompts:
            await client.query(prompt)
            await played.turn(client.interrupt, results())
        return played.seen

    async with client:
        yield play


def _sdk_tools(server: ToolServer) -> list[Any]:
    import claude_agent_sdk as sdk

    made = []
    for one in server.tools.values():

        async def call(arguments: dict[str, Any], one: Any = one) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": await one(arguments)}]}

        made.append(sdk.tool(one.name, one.description, {"text": str})(call))
    return made


@asynccontextmanager
async def typescript_sdk(scenarios: Sequence[Scenario], stage: Stage) -> AsyncIterator[Play]:
    """The official TypeScript SDK, in a process of its own: it is told the scenarios, then which of them is next."""
    driver = await asyncio.create_subprocess_exec(
        "node", str(DRIVER), str(NODE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert driver.stdin is not None
    assert driver.stdout is not None
    asked, answers = driver.stdin, driver.stdout

    async def play(scenario: Scenario) -> Seen:
        asked.write(json.dumps(scenario.name).encode() + b"\n")
        return msgspec.json.decode(await asyncio.wait_for(answers.readline(), 60), type=Seen)

    try:
        told = {"scenarios": msgspec.to_builtins(scenarios), "stage": msgspec.to_builtins(stage)}
        asked.write(json.dumps(told).encode() + b"\n")
        yield play
        asked.close()
        assert await asyncio.wait_for(driver.wait(), 60) == 0
    finally:
        if driver.returncode is None:
            driver.kill()
            await driver.wait()


HOSTS: dict[str, Host] = {"client": our_client, "python-sdk": python_sdk, "typescript-sdk": typescript_sdk}


def missing(host: str) -> str | None:
    """Why a host cannot play here."""
    if host == "typescript-sdk" and shutil.which("node") is None:
        return "node is not installed"
    if host == "typescript-sdk" and not (NODE / "node_modules" / "@anthropic-ai" / "claude-agent-sdk").is_dir():
        return "the TypeScript SDK is not installed: run `make node_modules`"
    return None
