"""How an agent CLI is run headless on the scripted model, as data of its row; `prove` acts on it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

ToolCall = tuple[str, Any]

NAME = "hookline-proof"
"""What the scripted model and its provider are called; a user's own may have any other name."""

GENERAL = MappingProxyType({"description": "x", "subagent_type": "general-purpose"})
"""What several agents want to know of an agent to start."""


class World(NamedTuple):
    """Where one run takes place: folders of its own, and the model's address."""

    home: Path
    project: Path
    url: str


class FileEdit(NamedTuple):
    """What is set in a JSON or TOML file of the home, which may be a copy of the user's, comments and all."""

    path: str
    values: Mapping[tuple[str, ...], Any]
    rows: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """One row for each of these arrays of tables, in place of one that has its name."""
    without: tuple[str, ...] = ()
    """A key that is taken out first."""


class TrustedFolders(NamedTuple):
    """An agent's list of the folders whose hooks it runs."""

    path: str
    """The file, relative to the home."""
    form: Literal["table", "map", "lists"]
    """A table for each folder; a value for each; or lists of folders, whose name says what holds for them."""
    names: tuple[str, ...]
    """The tables and their key; nothing; or the lists, of which the last one wins."""
    trusted: Any
    """What it says of a folder that is trusted."""
    inherits: bool = True
    """Whether a folder is trusted that lies in one that is; measured."""
    unlisted: bool = False
    """Whether it runs a project's hooks in a folder that the list does not have."""
    settings: str = ""
    """The file with the switch of all this, for an agent that does no work in a folder that is not trusted."""
    on: bool = True
    """Whether it is on where the switch is not set."""


class ProofRecipe(NamedTuple):
    """One agent CLI, as it is run for a proof."""

    argv: Callable[[World, str], list[str]]
    env: Callable[[World], dict[str, str]]
    bash: Callable[[str], ToolCall]
    """The call of its shell tool for a command."""
    write: Callable[[str], ToolCall]
    """The call that writes a file."""
    copies: tuple[str, ...]
    """What of the user's home it reads: files and folders, relative to it."""
    project_copies: tuple[str, ...] = ()
    edits: Callable[[World], list[FileEdit]] = lambda world: []
    setup: Callable[[World], list[str]] | None = None
    """The words of a command of its own that tells it of the model."""
    ending: tuple[ToolCall, ...] = ()
    """Calls that end the run, for an agent that must be told."""
    spawn: Callable[[str], ToolCall] | None = None
    """The call that has another agent work on a prompt; none if it offers no such tool."""
    trust: TrustedFolders | None = None
    """Where it keeps the folders that are trusted; the others run a project's hooks wherever they are started."""
    servers: str = ""
    """The file with the MCP servers whose tools cannot be told from the agent's own by their names."""
    to_the_model: float = 60.0
    """Seconds in which it must have asked its model for the first time."""


def command_call(name: str, **more: Any) -> Callable[[str], ToolCall]:
    """A shell tool that takes a `command`."""
    return lambda command: (name, {"command": command, **more})


def file_call(name: str, path: str = "file_path", text: str = "content", **more: Any) -> Callable[[str], ToolCall]:
    """A tool that writes a file."""
    return lambda file: (name, {path: file, text: "x\n", **more})


def prompt_call(tool: str, field: str = "prompt", /, **more: Any) -> Callable[[str], ToolCall]:
    """A tool that starts another agent."""
    return lambda prompt: (tool, {field: prompt, **more})


def quiet_settings(folder: str, auth: str) -> list[FileEdit]:
    """The settings that Gemini CLI and its descendants have in common."""
    values = {("security", "auth", "selectedType"): auth, ("telemetry", "enabled"): False,
              ("privacy", "usageStatisticsEnabled"): False, ("general", "disableAutoUpdate"): True}  # fmt: skip
    return [FileEdit(f"{folder}/settings.json", values)]
