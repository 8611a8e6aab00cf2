"""Where the Claude CLI is, and whether it is recent enough."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from hookline.errors import CliNotFound

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
    if isinstance(cli, str) and not Path(cli).exists():
        words = tuple(shlex.split(cli))
    elif isinstance(cli, (str, os.PathLike)):
        words = (os.fspath(cli),)
    else:
        words = tuple(cli)
    if not words or shutil.which(words[0]) is None:
        named = words[0] if words else ""
        raise CliNotFound(f"`{named}` is not a program that can be started; pass the path of a Claude CLI")
    return words


def bundled_cli() -> Path | None:
    """The copy that the official Python SDK brings along."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
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
