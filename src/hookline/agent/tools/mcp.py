"""Tools that live in other processes: MCP servers, through the official SDK.

`McpServers` reads what `--mcp-config` says, connects to every server at once and offers their tools as
`mcp__SERVER__TOOL`. A server that cannot be reached does not stop the others; why is kept in `failures`. Each
connection is held open by one task of its own, because the SDK wants it closed where it was opened.
"""

import asyncio
import contextlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, TypeAlias

import msgspec
from msgspec import Struct

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, check_object, failure
from hookline.core.placeholders import WITH_DEFAULT, fill, in_every_text
from hookline.errors import HooklineError, McpError, MissingExtra, extra
from hookline.hosts.host import mcp_name
from hookline.processes.loop import running

CONNECT_SECONDS = 30.0
CALL_SECONDS = 100_000.0
IN_HOST = "sdk"  # the `type` of a server that lives in the host
INTERNAL_ERROR = -32603
#: `await ask(server, message)`: hands a JSON-RPC message to the host; its JSON-RPC answer, or None
AskHost: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]


class ServerConfig(Struct, frozen=True):
    """How to reach one server: a command to start, a URL, or (`type: "sdk"`) the host it lives in."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    type: str = ""
    url: str = ""
    headers: dict[str, str] = {}


def read_config(source: str, environ: Mapping[str, str] = os.environ) -> dict[str, ServerConfig]:
    """The servers of one `--mcp-config`, JSON text or a file's path; `${VAR}` and `${VAR:-else}` are filled in."""
    inline = source.lstrip().startswith("{")
    where = "--mcp-config" if inline else source
    try:
        whole = msgspec.json.decode(source if inline else Path(source).read_bytes())
        servers = whole["mcpServers"] if isinstance(whole, dict) and "mcpServers" in whole else whole
        return {name: _config(name, entry, environ) for name, entry in servers.items()}
    except OSError as problem:
        raise McpError(where, f"cannot read the file: {problem.strerror}") from problem
    except (msgspec.DecodeError, AttributeError) as problem:
        raise McpError(where, f'expected `{{"mcpServers": {{…}}}}`: {problem}') from problem


class McpServers:
    """All the session's servers."""

    def __init__(self, configs: Mapping[str, ServerConfig]) -> None:
        self.servers: dict[str, McpServer] = {name: McpServer(name, config) for name, config in configs.items()}
        self.failures: dict[str, McpError] = {}

    async def connect(self) -> "dict[str, McpTool]":
        """Connect to all at once that need no host; the tools of those that answered, by name."""
        return await self._connect({name: one for name, one in self.servers.items() if one.config.type != IN_HOST})

    async def connect_hosted(self, ask: AskHost, more: Collection[str] = ()) -> "dict[str, McpTool]":
        """Connect to the servers that live in the host: those the configuration says, and `more` that it names."""
        wanted = [name for name, one in self.servers.items() if one.config.type == IN_HOST]
        wanted += [name for name in more if name not in self.servers]
        made = {name: McpServer(name, ServerConfig(type=IN_HOST), ask) for name in wanted}
        self.servers |= made
        return await self._connect(made)

    async def _connect(self, servers: "Mapping[str, McpServer]") -> "dict[str, McpTool]":
        results = await asyncio.gather(*(server.connect() for server in servers.values()), return_exceptions=True)
        tools: dict[str, McpTool] = {}
        for name, result in zip(servers, results, strict=True):
            if isinstance(result, McpError):
                self.failures[name] = result
            elif isinstance(result, BaseException):
                raise result
            else:
                tools.update({tool.name: tool for tool in result})
        return tools

    def statuses(self) -> list[dict[str, str]]:
        """Each server and whether it is connected, as the init message lists them."""
        states = {name: "connected" if one.client else "pending" for name, one in self.servers.items()}
        states |= dict.fromkeys(self.failures, "failed")
        return [{"name": name, "status": state} for name, state in states.items()]

    async def aclose(self) -> None:
        await asyncio.gather(*(server.aclose() for server in self.servers.values()))


class McpServer:
    """One server and the connection to it."""

    def __init__(self, name: str, config: ServerConfig, ask: AskHost | None = None) -> None:
        self.name = name
        self.config = config
        self._ask = ask
        self.env: ToolEnv | None = None  # of the call under way: who to ask when the server elicits
        self.client: Any = None  # while there is a connection
        self._holder: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()

    async def connect(self) -> "list[McpTool]":
        """Start or reach the server and list its tools; raises `McpError`."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(ready), name=f"mcp server {self.name}")
        seconds = float(os.environ.get("MCP_TIMEOUT") or CONNECT_SECONDS * 1000) / 1000
        try:
            async with asyncio.timeout(seconds):
                await ready
                tools: list[McpTool] = []
                page = None
                while page is None or page.next_cursor:
                    page = await self.client.list_tools(cursor=page and page.next_cursor)
                    tools += [McpTool(self, _wire(tool)) for tool in page.tools]
                return tools
        except BaseException as problem:
            await self.aclose()
            if not isinstance(problem, TimeoutError):
                raise
            what = f"gave no answer within {seconds:g} s; set `MCP_TIMEOUT` (ms) to wait longer"
            raise McpError(self.name, what) from problem

    async def call(self, tool: str, arguments: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Call one of its tools; what goes wrong is a result the model can read."""
        if self.client is None:
            return failure(f"MCP server {self.name} is not connected")
        self.env = env
        seconds = float(os.environ.get("MCP_TOOL_TIMEOUT") or CALL_SECONDS * 1000) / 1000
        try:
            async with asyncio.timeout(seconds):
                result = await self.client.call_tool(tool, arguments)
        except TimeoutError:
            return failure(f"MCP tool {tool} gave no answer within {seconds:g} s")
        except Exception as problem:  # noqa: BLE001 - whatever the SDK raises, the call failed and the model must hear of it
            return failure(f"MCP tool {tool} failed: {str(problem) or type(problem).__name__}")
        return read_result(result)

    async def aclose(self) -> None:
        self._leave.set()
        if self._holder is not None:
            if self.client is None:  # still trying to connect: it would not notice
                self._holder.cancel()
            await asyncio.wait({self._holder})
            self._holder = None

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        """Open the connection, keep it until told to leave, close it: all in this one task."""
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            try:
                async with self._open(errors) as client:
                    self.client = client
                    if not ready.done():
                        ready.set_result(None)
                    await self._leave.wait()
            except Exception as problem:  # noqa: BLE001 - told to those who wait for the connection
                if not ready.done():
                    ready.set_exception(McpError(self.name, _why(problem, errors)))
            finally:
                self.client = None

    def _open(self, errors: IO[str]) -> contextlib.AbstractAsyncContextManager[Any]:
        with extra("MCP servers", "agent"):
            import mcp  # noqa: F401 - whether it is there at all
        try:
            from mcp.client.client import Client
        except ImportError:
            raise HooklineError(
                f"MCP servers need `mcp` 2 or later, and {version('mcp')} is installed; if another package, such as "
                "CrewAI, allows no later one, run the agent in an environment of its own"
            ) from None
        # a started server gets the plain handshake every version knows; a remote one may be newer than that
        mode = "auto" if self.config.url else "legacy"
        return Client(self._transport(errors), mode=mode, elicitation_callback=self._elicit, cache=None)

    def _transport(self, errors: IO[str]) -> Any:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        config = self.config
        if self._ask is not None:
            return host_streams(self.name, self._ask)
        if config.url:
            from mcp.client.sse import sse_client

            return sse_client(config.url, headers=config.headers) if config.type == "sse" else _streamable(config)
        if not config.command:
            what = 'expected a `command` or a `url`; write `{"command": "…"}` or `{"type": "http", "url": "…"}`'
            raise McpError(self.name, what)
        variables = {**os.environ, **config.env}
        parameters = StdioServerParameters(command=config.command, args=config.args, env=variables, cwd=config.cwd)
        return stdio_client(parameters, errlog=errors)  # type: ignore[arg-type]

    async def _elicit(self, context: Any, params: Any) -> Any:
        """The server asks the user: the host of the call answers; without one it is cancelled."""
        from mcp_types import ElicitResult

        answer: dict[str, Any] = {"action": "cancel"}
        if self.env is not None:
            answer = await self.env.host.elicit(self.name, _wire(params))
        return ElicitResult(action=answer.get("action", "cancel"), content=answer.get("content"))


class McpTool(Tool):
    """One tool of one server."""

    Input = Struct

    def __init__(self, server: McpServer, wire: dict[str, Any]) -> None:
        hints = wire.get("annotations") or {}
        self.server = server
        self.tool: Any = wire["name"]
        self.name: str = re.sub(r"[^a-zA-Z0-9_-]", "_", mcp_name(server.name, wire["name"]))  # type: ignore[misc]
        self.description: Any = wire.get("description") or wire["name"]  # type: ignore[misc]
        self.read_only: bool = bool(hints.get("readOnlyHint"))  # type: ignore[misc]
        self.concurrency_safe: bool = self.read_only  # type: ignore[misc]
        self._schema = wire.get("inputSchema") or {"type": "object"}

    @property
    def input_schema(self) -> dict[str, Any]:
        return self._schema

    def validate(self, given: Any) -> dict[str, Any]:
        check_object(self.name, given)
        return dict(given)

    rewritten = validate

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        return await self.server.call(self.tool, given, env)


def _wire(value: Any) -> dict[str, Any]:
    """A value of the SDK's as it is on the wire."""
    found: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def read_result(result: Any) -> ToolResult:
    """A server's answer: its blocks for hooks as they came, for the model in the form the model knows."""
    wire = [_wire(block) for block in result.content]
    if result.is_error:
        text = "\n".join(str(block.get("text") or f"[{block['type']}]") for block in wire)
        return failure(text or "the tool failed without saying why")
    structured = getattr(result, "structured_content", None)
    if not wire and structured is not None:
        wire = [{"type": "text", "text": msgspec.json.encode(structured).decode()}]
    return ToolResult([_block(block) for block in wire] or "(the tool answered with nothing)", wire)


def _block(wire: dict[str, Any]) -> dict[str, Any]:
    if wire["type"] == "text":
        return {"type": "text", "text": wire["text"]}
    if wire["type"] == "image":
        source = {"type": "base64", "media_type": wire["mimeType"], "data": wire["data"]}
        return {"type": "image", "source": source}
    if wire["type"] == "resource" and "text" in wire["resource"]:
        return {"type": "text", "text": wire["resource"]["text"]}
    rest = {key: value for key, value in wire.items() if key != "data"}
    return {"type": "text", "text": msgspec.json.encode(rest).decode()}


@contextlib.asynccontextmanager
async def _streamable(config: ServerConfig) -> AsyncIterator[Any]:
    """The transport with our headers; the SDK closes only an HTTP client it made itself, so ours is closed here."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with (
        create_mcp_http_client(headers=config.headers) as client,
        streamable_http_client(config.url, http_client=client) as streams,
    ):
        yield streams


def _config(name: str, entry: Any, environ: Mapping[str, str]) -> ServerConfig:
    try:
        return msgspec.convert(in_every_text(entry, lambda text: fill(text, environ.get, WITH_DEFAULT)), ServerConfig)
    except msgspec.ValidationError as problem:
        raise McpError(name, str(problem)) from problem


def _why(problem: BaseException, errors: IO[str]) -> str:
    """The innermost reason, and the last thing the server said on stderr."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    if isinstance(problem, McpError | MissingExtra):
        return str(problem).removeprefix(f"mcp server `{getattr(problem, 'server', '')}`: ")
    errors.seek(0)
    said = errors.read()[-2000:].strip().splitlines()
    return "; ".join([f"cannot connect: {str(problem) or type(problem).__name__}", *said[-1:]])


@contextlib.asynccontextmanager
async def host_streams(server: str, ask: AskHost) -> AsyncIterator[Any]:
    """A transport for the MCP SDK whose other end is the host; calls may overlap."""
    from mcp.shared.memory import create_client_server_memory_streams

    async with create_client_server_memory_streams() as (ours, (outgoing, incoming)):

        async def carry() -> None:
            async with asyncio.TaskGroup() as calls:
                async for item in outgoing:
                    calls.create_task(_exchange(server, ask, _wire(item.message), incoming))  # type: ignore[union-attr]

        async with running(carry()):
            yield ours


async def _exchange(server: str, ask: AskHost, message: dict[str, Any], incoming: Any) -> None:
    """One message over, one answer back; a notification gets none, and a host that cannot answer is an error."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    if "id" not in message or "method" not in message:
        with contextlib.suppress(HooklineError, ValueError):
            await ask(server, message)
        return
    try:
        parsed = jsonrpc_message_adapter.validate_python(await ask(server, message))
    except (HooklineError, ValueError) as problem:
        refusal = {"code": INTERNAL_ERROR, "message": f"the host gave no answer: {problem}"}
        parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
    await incoming.send(SessionMessage(parsed))
