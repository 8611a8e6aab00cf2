"""How the Claude CLI is found and started: the client's options as its flags, one row each."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import CliNotFound

Path = str | os.PathLike[str]

BASE = ("-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json")


class Options(Struct, frozen=True, kw_only=True):
    """How to start the CLI; what is left out is the CLI's own default. `extra_args` go last, as they are."""

    model: str | None = None
    fallback_model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    permission_prompt_tool: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    tools: Sequence[str] | None = None
    allowed_tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    max_turns: int | None = None
    max_budget_usd: float | None = None
    settings: str | Mapping[str, Any] | None = None
    setting_sources: Sequence[str] | None = None
    mcp_servers: Mapping[str, Any] | None = None
    strict_mcp_config: bool = False
    agents: Mapping[str, Any] | None = None
    plugin_dirs: Sequence[Path] = ()
    add_dirs: Sequence[Path] = ()
    json_schema: Mapping[str, Any] | None = None
    resume: str | None = None
    continue_conversation: bool = False
    fork_session: bool = False
    session_id: str | None = None
    include_partial_messages: bool = False
    include_hook_events: bool = False
    extra_args: Sequence[str] = ()


_UNSAID = Options()
_FLAGS = {
    "allowed_tools": "--allowedTools",
    "disallowed_tools": "--disallowedTools",
    "mcp_servers": "--mcp-config",
    "plugin_dirs": "--plugin-dir",
    "add_dirs": "--add-dir",
    "continue_conversation": "--continue",
}
"""The flags that are not named as the option is."""
_GLUED = ("system_prompt", "append_system_prompt", "resume", "session_id")
"""Written `--flag=value`: the value may be empty or begin with a dash. A list is, too, as it may be empty."""


def argv(command: Sequence[str], options: Options) -> list[str]:
    """The whole command line."""
    words = [*command, *BASE]
    for name in Options.__struct_fields__[:-1]:
        value = getattr(options, name)
        flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
        if value == getattr(_UNSAID, name):
            continue
        if name in ("plugin_dirs", "add_dirs"):
            words += [word for one in value for word in (flag, os.fspath(one))]
        elif isinstance(value, bool):
            words.append(flag)
        elif isinstance(value, Mapping):
            wrapped = {"mcpServers": value} if name == "mcp_servers" else value
            words += [flag, msgspec.json.encode(wrapped).decode()]
        elif name in _GLUED or not isinstance(value, str | int | float):
            words.append(f"{flag}={value if name in _GLUED else ','.join(value)}")
        else:
            words += [flag, str(value)]
    return [*words, *options.extra_args]


# -- where the CLI is, and whether it is recent enough ----------------------------------------------------------------

ENV = "HOOKLINE_CLAUDE"
MINIMUM = (2, 0, 0)  # the first version with the control protocol of today
Command = str | os.PathLike[str] | Sequence[str]


class Cli(Struct, frozen=True):
    """A CLI that was found: the words to start it with, and where it came from."""

    command: tuple[str, ...]
    source: str


def find_cli(cli: Command | None = None, env: Mapping[str, str] | None = None) -> Cli:
    """The CLI to talk to: the one given, else $HOOKLINE_CLAUDE, else `claude` on the PATH, else the SDK's own copy."""
    env = os.environ if env is None else env
    if cli is not None:
        return Cli(_words(cli), "the argument")
    if env.get(ENV):
        return Cli(_words(env[ENV]), f"${ENV}")
    found = shutil.which("claude", path=env.get("PATH"))
    if found:
        return Cli((found,), "PATH")
    bundled = bundled_cli()
    if bundled is not None:
        return Cli((str(bundled),), "the installed claude-agent-sdk")
    raise CliNotFound(
        f"no Claude CLI found: looked at cli=, ${ENV}, PATH and an installed claude-agent-sdk; "
        "run `npm install -g @anthropic-ai/claude-code` or `pip install claude-agent-sdk`, or pass cli="
    )


def _words(cli: Command) -> tuple[str, ...]:
    """One path, or a command with words of its own; what names a file that is not there is refused here."""
    if isinstance(cli, str) and not pathlib.Path(cli).exists():
        words = tuple(shlex.split(cli))
    elif isinstance(cli, (str, os.PathLike)):
        words = (os.fspath(cli),)
    else:
        words = tuple(cli)
    if not words or shutil.which(words[0]) is None:
        named = words[0] if words else ""
        raise CliNotFound(f"`{named}` is not a program that can be started; pass the path of a Claude CLI")
    return words


def bundled_cli() -> pathlib.Path | None:
    """The copy that the official Python SDK brings along."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = pathlib.Path(spec.origin).parent / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
    return path if path.is_file() else None


def parse_version(text: str) -> tuple[int, int, int] | None:
    """`2.1.325 (Claude Code)` as numbers."""
    match = re.search(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def too_old(text: str) -> str | None:
    """What to tell the user of a CLI that says this of its version; `None` when it is recent enough."""
    version = parse_version(text)
    if version is not None and version >= MINIMUM:
        return None
    least = ".".join(str(part) for part in MINIMUM)
    return f"the CLI says it is version `{text.strip() or 'unknown'}`; {least} or later is needed: run `claude update`"


async def version_of(cli: Cli, within: float = 10.0) -> str:
    """What `--version` prints, or the empty string if it says nothing in time."""
    process = await asyncio.create_subprocess_exec(
        *cli.command, "--version", stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(within):
            printed, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return printed.decode("utf-8", "replace").strip()
