"""The hosts that play a scenario: our client, the official Python SDK with our engine, the official TypeScript SDK."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from hookline.api import Hooks
from hookline.engine import Context
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


Host = Callable[[Scenario, Stage], Awaitable[Seen]]


class Played:
    """A scenario's hooks, permission and tools as Python, noting what happens."""

    def __init__(self, scenario: Scenario) -> None:
        self.seen = Seen()
        self.hanging = asyncio.Event()
        self.engine = Hooks()
        self._scenario = scenario
        for number, spec in enumerate(scenario.hooks):
            options: dict[str, Any] = {"match": spec.matcher, "timeout": spec.timeout, "name": f"hook{number}"}
            self.engine.on(CATALOG[spec.event].cls, **options)(self._hook(spec))

    def _hook(self, spec: HookSpec) -> Callable[[Event, Context], Awaitable[Any]]:
        async def answer(event: Event, ctx: Context) -> Any:
            calls = self.seen.hooks.count(spec.event)
            self.seen.hooks.append(spec.event)
            reply = spec.replies[min(calls, len(spec.replies) - 1)]
            if reply != HANG:
                return reply
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.seen.cancelled += ctx.cancelled.is_set()

        return answer

    async def permit(self, request: CanUseTool) -> Any:
        self.seen.asked.append(request.tool_name)
        assert self._scenario.permission is not None
        return {**self._scenario.permission, "updatedInput": request.input}

    def servers(self) -> dict[str, ToolServer]:
        tools = [tool(name=name)(self._shout(prefix)) for name, prefix in self._scenario.mcp_tools.items()]
        return {"srv": ToolServer(tools)} if tools else {}

    def _shout(self, prefix: str) -> Callable[[str], Awaitable[str]]:
        async def shout(text: str) -> str:
            """Say it loud."""
            self.seen.mcp_calls.append(text)
            return prefix + text

        return shout

    async def interrupt_once_hanging(self, interrupt: Callable[[], Awaitable[None]]) -> None:
        await self.hanging.wait()
        await interrupt()


async def our_client(scenario: Scenario, stage: Stage) -> Seen:
    """`hookline.hosts.claude_code.ClaudeClient`."""
    played = Played(scenario)
    client = ClaudeClient(
        hooks=played.engine,
        can_use_tool=played.permit if scenario.permission else None,
        mcp_servers=played.servers(),
        cli=stage.cli,
        cwd=stage.cwd,
        env=stage.env,
        allowed_tools=list(scenario.allowed_tools),
    )
    async with client:
        for prompt in scenario.prompts:
            await client.send(prompt)
            stopping = asyncio.ensure_future(played.interrupt_once_hanging(client.interrupt))
            if not scenario.interrupt_on_hang:
                stopping.cancel()
            async for message in client.receive():
                if isinstance(message, ResultMessage):
                    played.seen.results.append(message.subtype)
            with suppress(asyncio.CancelledError):
                await stopping
    return played.seen


async def python_sdk(scenario: Scenario, stage: Stage) -> Seen:
    """The official Python SDK, whose hooks are ours by way of `for_sdk`."""
    import claude_agent_sdk as sdk

    played = Played(scenario)

    async def permit(name: str, tool_input: dict[str, Any], context: Any) -> Any:
        answer = await played.permit(CanUseTool(tool_name=name, input=tool_input))
        if answer["behavior"] == "deny":
            return sdk.PermissionResultDeny(message=answer["message"])
        return sdk.PermissionResultAllow()

    options = sdk.ClaudeAgentOptions(
        hooks=for_sdk(played.engine),
        can_use_tool=permit if scenario.permission else None,
        mcp_servers={"srv": sdk.create_sdk_mcp_server("srv", tools=_sdk_tools(played))} if scenario.mcp_tools else {},
        allowed_tools=list(scenario.allowed_tools),
        cli_path=stage.cli,
        cwd=stage.cwd,
        env=stage.env,
    )
    async with sdk.ClaudeSDKClient(options) as client:
        for prompt in scenario.prompts:
            await client.query(prompt)
            stopping = asyncio.ensure_future(played.interrupt_once_hanging(client.interrupt))
            if not scenario.interrupt_on_hang:
                stopping.cancel()
            async for message in client.receive_response():
                if isinstance(message, sdk.ResultMessage):
                    played.seen.results.append(message.subtype)
            with suppress(asyncio.CancelledError):
                await stopping
    return played.seen


def _sdk_tools(played: Played) -> list[Any]:
    import claude_agent_sdk as sdk

    made = []
    for one in played.servers()["srv"].tools.values():

        async def call(arguments: dict[str, Any], one: Any = one) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": await one(arguments)}]}

        made.append(sdk.tool(one.name, one.description, {"text": str})(call))
    return made


async def typescript_sdk(scenario: Scenario, stage: Stage) -> Seen:
    """The official TypeScript SDK, in a process of its own."""
    told = {**msgspec.to_builtins(scenario), "stage": msgspec.to_builtins(stage)}
    driver = await asyncio.create_subprocess_exec(
        "node", str(DRIVER), str(NODE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        printed, _ = await asyncio.wait_for(driver.communicate(json.dumps(told).encode()), 60)
    finally:
        if driver.returncode is None:
            driver.kill()
            await driver.wait()
    assert driver.returncode == 0
    return msgspec.json.decode(printed, type=Seen)


HOSTS: dict[str, Host] = {"client": our_client, "python-sdk": python_sdk, "typescript-sdk": typescript_sdk}


def missing(host: str) -> str | None:
    """Why a host cannot play here."""
    if host == "typescript-sdk" and shutil.which("node") is None:
        return "node is not installed"
    if host == "typescript-sdk" and not (NODE / "node_modules" / "@anthropic-ai" / "claude-agent-sdk").is_dir():
        return "the TypeScript SDK is not installed: run `make node_modules`"
    return None
