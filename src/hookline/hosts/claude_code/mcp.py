"""Tools that live in the host: the CLI calls them over the control protocol, as an MCP server of type `sdk`.

    @tool
    async def add(a: float, b: float) -> str:
        "Add two numbers."
        return str(a + b)

    ClaudeClient(mcp_servers={"sums": ToolServer([add])}, allowed_tools=["mcp__sums__add"])

A server object of the official `mcp` package works in the same place.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, get_type_hints, overload

import msgspec
from msgspec import Struct

from hookline.errors import HookError, extra
from hookline.hosts.gateway import messages as jsonrpc
from hookline.processes.loop import running

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")
PROTOCOL_VERSION = "2025-06-18"


class Tool(Struct, frozen=True):
    """A function the model may call: its name, what it is for, what it takes."""

    name: str
    description: str
    input_schema: dict[str, Any]
    call: Callable[..., Any]
    arguments: type[Any]

    async def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """The result for arguments that fit the schema; others are a `msgspec.ValidationError`."""
        checked = msgspec.convert(arguments, self.arguments)
        result = self.call(**{name: getattr(checked, name) for name in checked.__struct_fields__})
        return await result if inspect.isawaitable(result) else result


@overload
def tool(call: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(call: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None) -> Any:
    """Make a tool of a function; its type hints become the schema, its docstring the description."""

    def made(function: Callable[..., Any]) -> Tool:
        arguments = _arguments(function)
        components = dict(msgspec.json.schema(arguments)["$defs"])
        body = components.pop(arguments.__name__)
        body = {**body, "$defs": components} if components else body
        about = description if description is not None else inspect.getdoc(function) or ""
        return Tool(name or function.__name__, about, body, function, arguments)

    return made if call is None else made(call)


def _arguments(function: Callable[..., Any]) -> type[Any]:
    hints = get_type_hints(function)
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise HookError(f"tool `{function.__name__}`: parameter `{parameter.name}` must have a name and a type")
        kind = hints.get(parameter.name, Any)
        given = parameter.default is not parameter.empty
        fields.append((parameter.name, kind, parameter.default) if given else (parameter.name, kind))
    return msgspec.defstruct(function.__name__, fields, kw_only=True)


class InProcess(Protocol):
    """A server that takes JSON-RPC messages and gives the response, or `None` for a notification."""

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None: ...
    async def aclose(self) -> None: ...


class ToolServer:
    """An MCP server of plain functions; needs no further package."""

    def __init__(self, tools: Sequence[Tool | Callable[..., Any]], *, name: str = "hookline") -> None:
        made = [one if isinstance(one, Tool) else tool(one) for one in tools]
        self.tools: dict[str, Tool] = {one.name: one for one in made}
        self._about = {"name": name, "version": "1"}

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """One JSON-RPC message; a failing tool is a result that says so, never an exception."""
        number, method = message.get("id"), message.get("method")
        if number is None or method is None:
            return None
        params = jsonrpc.params_of(message)
        result: dict[str, Any] = {}
        if method == "initialize":
            version = params.get("protocolVersion", PROTOCOL_VERSION)
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": self._about}
        elif method == "tools/list":
            result["tools"] = [
                {"name": one.name, "description": one.description, "inputSchema": one.input_schema}
                for one in self.tools.values()
            ]
        elif method == "tools/call":
            result = await self._call(params)
        elif method != "ping":
            return jsonrpc.error(number, jsonrpc.METHOD_NOT_FOUND, f"`{method}` is not supported here")
        return jsonrpc.result(number, result)

    async def aclose(self) -> None:
        """Nothing to end."""

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = self.tools.get(str(params.get("name")))
        if wanted is None:
            return _result(f"there is no tool `{params.get('name')}`", failed=True)
        try:
            return _result(await wanted(params.get("arguments") or {}))
        except msgspec.ValidationError as problem:
            return _result(f"the arguments do not fit `{wanted.name}`: {problem}", failed=True)
        except Exception as problem:
            log.exception("tool `%s` failed", wanted.name)
            return _result(f"{type(problem).__name__}: {problem}", failed=True)


def _result(value: Any, *, failed: bool = False) -> dict[str, Any]:
    """What a tool returned, as MCP content: text as it is, content blocks as they are, anything else as JSON."""
    if isinstance(value, Mapping) and "content" in value:
        return dict(value)
    if isinstance(value, str):
        blocks = [{"type": "text", "text": value}]
    elif isinstance(value, list) and value and all(isinstance(one, dict) and "type" in one for one in value):
        blocks = value
    else:
        blocks = [{"type": "text", "text": msgspec.json.encode(value).decode()}]
    return {"content": blocks, "isError": failed}


class Bridged:
    """A server object of the official `mcp` package, run over that package's own in-memory streams."""

    def __init__(self, server: Any) -> None:
        # The package's friendlier server class holds the one it stands for, under a name that changed with mcp 2.
        self._server = getattr(server, "_mcp_server", None) or getattr(server, "_lowlevel_server", server)
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._session: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Any] | None = None  # where messages for it go

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        from mcp.shared.message import SessionMessage

        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_future()
            self._session = asyncio.get_running_loop().create_task(self._run(self._opened))
            self._session.add_done_callback(self._over)
        sink, number = await asyncio.shield(self._opened), message.get("id")
        if number is None or "method" not in message:
            await sink.send(SessionMessage(_parsed(message)))
            return None
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await sink.send(SessionMessage(_parsed(message)))
            return await future
        finally:
            self._waiting.pop(number, None)

    async def _run(self, opened: asyncio.Future[Any]) -> None:
        from mcp.shared.memory import create_client_server_memory_streams

        streams: Any = create_client_server_memory_streams()
        options = self._server.create_initialization_options()
        async with streams as ((receive, sink), theirs), running(self._server.run(*theirs, options)) as serving:
            opened.set_result(sink)
            async for answer in receive:
                body = answer.message.model_dump(by_alias=True, mode="json", exclude_none=True)
                future = self._waiting.get(body.get("id"))
                if future is not None and not future.done() and "method" not in body:
                    future.set_result(body)
            await serving

    def _over(self, session: asyncio.Task[None]) -> None:
        problem = None if session.cancelled() else session.exception()
        if problem is not None:
            log.error("in-process mcp server ended: %s", problem)
        why = f"the server ended: {problem or 'closed'}"
        for number, future in list(self._waiting.items()):
            if not future.done():
                future.set_result(jsonrpc.error(number, jsonrpc.INTERNAL_ERROR, why))

    async def aclose(self) -> None:
        if self._session is not None:
            self._session.cancel()
            await asyncio.gather(self._session, return_exceptions=True)


def _parsed(message: dict[str, Any]) -> Any:
    """A JSON-RPC message as the installed package models it: a union since mcp 2, a root model before."""
    from mcp import types

    adapter = getattr(types, "jsonrpc_message_adapter", None)
    if adapter is not None:
        return adapter.validate_python(message, by_name=False)
    return getattr(types, "JSONRPCMessage").model_validate(message)  # noqa: B009 - mypy sees only the version installed


def in_process(server: Any) -> InProcess | None:
    """A server of ours, or the bridge for one of the official package; `None` for a configuration mapping."""
    if isinstance(server, ToolServer):
        return server
    if isinstance(server, Mapping):
        live = server.get("instance")
        return in_process(live) if live is not None else None
    if hasattr(server, "handle") and hasattr(server, "aclose"):
        return server  # type: ignore[no-any-return]
    with extra(f"an MCP server object ({type(server).__name__})", "agent"):
        import mcp  # noqa: F401
    return Bridged(server)
