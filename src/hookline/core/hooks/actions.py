"""What a hook runs: one frozen value per kind, performed by the module of the same name in `runners/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec


class Function(msgspec.Struct, frozen=True):
    """A Python function; whether it is `async` and whether it wants a context is settled once, at registration."""

    call: Callable[..., Any]
    is_async: bool = False
    takes_context: bool = False


class SealedFiles(Protocol):
    """The files that a trusted hook may run, compared at every run; see `hookline.settings.trust.seal`."""

    @property
    def python(self) -> bool:
        """Whether Python code is among them."""

    def check(self, action: Command | Cedar | Rego, cwd: str) -> Callable[[], None]:
        """Raise `HookFailed` unless all is as it was trusted; what is returned does so again after the run."""

    def hashed_argv(self, action: Command, cwd: str) -> tuple[tuple[str, ...], object] | None:
        """The command with its script from the bytes that were compared, and what to keep until it has ended."""


PLUGIN_FOLDERS = ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA")
"""Names of folders that a plugin's command may write as `${NAME}`; elsewhere they are nothing."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A shell command, or with `args` a program started without a shell; the event is its stdin."""

    command: str
    args: tuple[str, ...] | None = None
    shell: str | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    asynchronous: bool = False
    async_rewake: bool = False
    rewake_message: str = ""
    rewake_summary: str = ""
    persistent: bool = False
    dialect: str = "claude"
    plugin_root: str | None = None
    plugin_data: str | None = None
    plugin: str | None = None
    seal: SealedFiles | None = None


class Http(msgspec.Struct, frozen=True, kw_only=True):
    """A POST of the event to a URL; only `allowed_env` may appear in its headers.

    With a `body`, that is sent instead, `${tool_input.command}` and the like filled in from the event; its
    receiver knows nothing of hooks, so nothing but its status is read.
    """

    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    allowed_env: tuple[str, ...] = ()
    allowed_urls: tuple[str, ...] | None = None
    body: Mapping[str, Any] | None = None


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model, which answers ok or not ok."""

    prompt: str
    model: str | None = None
    continue_on_block: bool = False


class AgentCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A small agent with tools that looks for itself before it answers ok or not ok."""

    prompt: str
    model: str | None = None


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of an MCP server; `${tool_input.file_path}` in its input is filled in from the event."""

    server: str
    tool: str
    input: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Cedar(msgspec.Struct, frozen=True, kw_only=True):
    """Cedar policies in the files that a pattern matches; `entities` is a JSON file of the groups that they name."""

    policies: str
    entities: str | None = None
    seal: SealedFiles | None = None


class Rego(msgspec.Struct, frozen=True, kw_only=True):
    """Rego policies in the files that a pattern matches."""

    policies: str
    seal: SealedFiles | None = None


Action = Function | Command | Http | Prompt | AgentCheck | McpTool | Cedar | Rego

DEFAULT_TIMEOUTS: Mapping[type[Any], float] = MappingProxyType({
    Function: 30.0, Command: 60.0, Http: 60.0, Prompt: 30.0, AgentCheck: 60.0, McpTool: 60.0, Cedar: 10.0, Rego: 10.0,
})  # fmt: skip
"""Seconds a kind of hook may take when neither the hook nor its set says."""
