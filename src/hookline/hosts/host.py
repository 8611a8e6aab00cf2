"""What is said about an agent CLI in one row: its events, its tools, its words for an answer. Pure.

A row is data: `rows/NAME.json`, with the fields of `Host`. `decode` and `encode` turn payloads into events and answers
into bytes with it, so that a new host is one file and one line in `table`; what data cannot say (a payload that nests
what others have at the top) is a function there. Everything a row claims was measured on the binary of the version in
`verified`; a row without one repeats the vendor's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from hookline.core.placeholders import in_every_text
from hookline.events import Event, PreToolUse
from hookline.replies import Reply, deny

if TYPE_CHECKING:
    from hookline.core.engine import HookSet

_NONE: Mapping[Any, Any] = MappingProxyType({})


def mcp_name(server: Any, tool: Any) -> str:
    """The name that rules and matchers use for the tool of an MCP server."""
    return f"mcp__{server}__{tool}"


NAMESPACE = "::"  # stands between a namespace of tools and a tool's name, for hosts that have such


EXIT: Literal["exit 2"] = "exit 2"  # an answer that is the exit code 2, with the text on stderr

PLAIN: Literal["plain text"] = "plain text"  # an answer that is plain text on stdout

TEXT = "{text}"  # stands in a template for the reason, the context or the message

Template = Mapping[str, Any] | Literal["exit 2", "plain text"]
"""How a host words one kind of answer.

`{value}` stands for the tool's new input or output, as the host itself would write it; `{prompt}` for the user's.
"""

Words = Mapping[str, Template]
"""By kind of answer: allow, ask, defer, deny, rewrite, context, replace, stop, keep_going.

`deny command` is the deny of a shell line, for a host where any other refused call ends the run.
"""
NO_WORDS: Words = _NONE

_BLANK = re.compile(r"\{(\w+)\}")


def fill(template: Any, **values: Any) -> Any:
    """A template with its `{names}` replaced; a text that is one name alone becomes the value itself."""

    def filled(text: str) -> Any:
        alone = _BLANK.fullmatch(text)
        if alone is not None:
            return values.get(alone[1], text)
        return _BLANK.sub(lambda found: str(values.get(found[1], found[0])), text)

    return in_every_text(template, filled)


class Response(msgspec.Struct, frozen=True):
    """What a hook command leaves behind: its two streams and its exit code."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one of the host's tools is called here, and its fields.

    `fields` maps the host's names to ours; a field that is not named keeps its name. `lines` is a list of shell
    commands that become one `command`. `each` is a list of things one call touches: an event is judged for each of
    them. `patch` is a field with a patch in Codex's format, judged file by file; `command_line` is a shell line that
    may feed one to `apply_patch`, judged as a line and file by file. A tool that reads or writes, as the value of its
    field `by` says, has `variants`.
    """

    name: str
    fields: Mapping[str, str] = _NONE
    lines: str = ""
    each: str = ""
    patch: str = ""
    command_line: str = ""
    by: str = ""
    variants: Mapping[str, Tool] = _NONE


MARGIN = 10.0  # seconds by which the host's patience exceeds ours: a busy machine may take that long to start a process


class HookEntry(NamedTuple):
    """One command in a host's configuration; `timeout` is in the host's unit."""

    event: str
    command: str
    timeout: int
    gate: bool


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the host reads its hooks, and in which form.

    Entries are appended to the list of their event below `hooks`, or if they are `listed` to `hooks` itself. They have
    the form of `entry`, and that of a gate the form of `gate_entry` if there is one; `{id}` is a number made of the
    command, for a host that drops a hook whose name another one has. A folder of `scripts` has an executable for each
    event; a `plugin` is a file in `rows` for all of them.

    `user` is relative to the home, `project` and `local` (one's own there) to the project's folder; `home_env` is the
    variable that moves the first part of `user`. `second` is the length of a second in the host's unit of timeouts.
    `longest` is the number of seconds after which a hook must have answered: the host was seen to wait that long, and
    gives up some time later, whatever its file says. A host that was not measured gets what all of the others allow.
    `cut_to` has the events whose timeouts it cuts, in seconds. `expands` says that `$NAME` in a command is replaced
    before a shell sees it; `replaces`, that a project's file is read instead of the user's.
    """

    user: str
    project: str = ""
    local: str = ""
    home_env: str = ""
    kind: Literal["json", "toml", "scripts", "plugin"] = "json"
    entry: Mapping[str, Any] = MappingProxyType(
        {"hooks": [{"type": "command", "command": "{command}", "timeout": "{timeout}"}]}
    )
    gate_entry: Mapping[str, Any] = _NONE
    version: int | str | None = None
    listed: bool = False
    plugin: str = ""
    second: int = 1
    longest: int = 45
    cut_to: Mapping[str, int] = _NONE
    own_file: bool = False
    expands: bool = False
    replaces: bool = False

    def seconds(self, event: str) -> float:
        """In how many seconds a hook must have answered one of the host's events."""
        return self.cut_to[event] * 2 / 3 if event in self.cut_to else self.longest


class HookTrust(msgspec.Struct, frozen=True):
    """Where a host notes which hooks the user trusts: it skips any other without a word.

    `file` is a TOML file beside the user's hooks, `key` where in it the hash of a hook is, and `hashes` gives the key
    and the hash of each hook of ours in a hook file, from the file's name, what it holds, and a test for our commands.
    """

    file: str
    key: Callable[[str], tuple[str, ...]]
    hashes: Callable[[str, Any, Callable[[Any], bool]], dict[str, str]]


class ServerFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a host keeps its MCP servers, and the form of an entry there.

    `user` is relative to the home (or to the host's own folder, where a variable moves that), `project` to a project.
    `nested` is a table of folders, each with servers of its own. `url` is the field with an address that speaks
    streamable HTTP; `marks` is what the entry of a program says besides, whose `command` may be the list of all words
    (`as_list`). `beyond` are servers of the host that have no entry.
    """

    user: str
    project: str = ""
    key: str = "mcpServers"
    nested: str = ""
    kind: Literal["json", "toml", "rows"] = "json"
    url: str = "url"
    env: str = "env"
    marks: Mapping[str, str] = _NONE
    as_list: bool = False
    beyond: str = ""


# -- how it is run headless on the scripted model; `prove` acts on it --------------------------------------------------

ToolCall = tuple[str, Any]


class ToolForm(msgspec.Struct, frozen=True, array_like=True):
    """A call of one of the agent's tools, whose input has a blank for a command, a file or a prompt."""

    tool: str
    given: Any

    def __call__(self, value: str) -> ToolCall:
        """The call with its blank filled."""
        return self.tool, fill(self.given, command=value, file=value, prompt=value)


class FileEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is set in a JSON or TOML file of the home, which may be a copy of the user's, comments and all.

    Keys are joined by points. `rows` has one row for each of these arrays of tables, in place of one that has its name;
    the key `without` is taken out first.
    """

    path: str
    values: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]] = _NONE
    without: str = ""


class TrustedFolders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's list of the folders whose hooks it runs.

    The file at `path`, relative to the home, has a `table` for each folder, with the names of the tables and of their
    key in `names`; or is a `map` with a value for each; or has `lists` of folders, whose name says what holds for them,
    of which the last of `names` wins. `trusted` is what it says of a folder that is trusted.
    """

    path: str
    form: Literal["table", "map", "lists"]
    names: tuple[str, ...] = ()
    trusted: Any
    inherits: bool = True  # whether a folder is trusted that lies in one that is; measured
    unlisted: bool = False  # whether it runs a project's hooks in a folder that the list does not have
    settings: str = ""
    """The file with the switch of all this, for an agent that does no work in a folder that is not trusted."""
    on: bool = True  # whether it is on where the switch is not set


class ProofRecipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent CLI, as it is run for a proof: `bash`, `write` and `spawn` are the calls of its tools.

    `{home}`, `{project}` and `{url}` stand for the folders of a run and the model's address, `{prompt}` for the prompt.
    """

    argv: list[str]
    env: Mapping[str, str]
    bash: ToolForm
    write: ToolForm
    copies: tuple[str, ...]  # what of the user's home it reads: files and folders, relative to it
    project_copies: tuple[str, ...] = ()
    edits: list[FileEdit] = []
    setup: list[str] = []  # the words of a command of its own that tells it of the model
    ending: list[ToolCall] = []  # calls that end the run, for an agent that must be told
    spawn: ToolForm | None = None  # the call that has another agent work on a prompt; none if it offers no such tool
    trust: TrustedFolders | None = None
    """Where it keeps the folders that are trusted; the others run a project's hooks wherever they are started."""
    servers: str = ""  # the file with the MCP servers whose tools cannot be told from the agent's own by their names
    to_the_model: float = 60.0  # seconds in which it must have asked its model for the first time


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent CLI."""

    name: str
    title: str
    events: Mapping[str, str] = _NONE  # the host's event names, and ours
    says: Mapping[str, Words]  # for each of our events, the kinds of answer the host obeys, and its words for them
    config: Config
    verified: str = ""
    executable: str  # what it is called on PATH
    aliases: Mapping[str, str] = _NONE
    """More names under which its events arrive; they are never written into its configuration."""
    event_field: str = "hook_event_name"
    names: Mapping[str, str] = _NONE  # payload fields that are called differently here
    tools: Mapping[str, Tool] = _NONE
    other_tools: frozenset[str] = frozenset()
    """Tools that keep their names: they run no shell line and change no file. Any other is judged by its input."""
    mcp: Callable[[str, Mapping[str, Any]], tuple[str, ...]] | None = None
    """Our names for an MCP server's tool, from the host's and the payload, unless they are Claude Code's; else none."""
    mcp_pattern: str = ""  # matches such a name, with its server and its tool
    mcp_separator: str = ""  # what stands between a server and a tool in such a name, where that is all there is to it
    mcp_input: str = ""  # where in such a tool's input its own input is
    tells_servers: bool = True  # whether it says which MCP server a tool belongs to
    unwrap: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Flattens a payload that nests what others have at the top."""
    inside: Mapping[str, Mapping[str, str]] = _NONE
    """Objects in a payload with fields that others have at the top, and what each of these is called there."""
    prompt_in_parts: bool = False  # whether it sends a prompt as a list of parts
    cut_field: str = ""  # says of a payload that only the beginning of the call is there
    folders_field: str = ""  # lists the project's folders, for a host that does not say in which one it is
    roams: bool = False  # whether `cwd` of a tool event is the folder the command will run in, not the project's
    message: Mapping[str, Any] | None = None  # the words for a message to the user
    body: Callable[[Reply, Event], dict[str, Any]] | None = None
    """Writes a whole reply, for a host whose words are the wire's own."""
    unjudged: frozenset[str] = frozenset()
    """Events of the host that have no counterpart here: there is nothing to judge."""
    subagents: bool | None = None
    """Whether hooks are asked inside the agents that it starts itself, as was measured; `None` if it was not."""
    notes: tuple[str, ...] = ()
    hook_trust: HookTrust | None = None
    servers: ServerFile | None = None  # where it keeps its MCP servers
    own_rules: bool = False
    """Whether it applies the permission rules of the settings files that Hookline reads, and reads the hooks there."""
    borrows: tuple[str, ...] = ()  # the hosts whose hook files it runs as well
    recognized_by: tuple[str, ...] = ()
    """The fields by which a payload that another host's entry was given is its own, for a host that borrows."""
    binaries: tuple[str, ...] = ()
    """Patterns of more places of its executable, below where the tests keep theirs; the first that is there counts."""
    bundled: str = ""  # its executable inside a Python package
    distribution: str = ""  # the Python package that its version is told from, if it is not called as the executable
    reports_version: bool = False  # whether its version is asked for, and not looked up beside the binary
    proof: ProofRecipe | None = None

    def native_events(self, name: str) -> tuple[str, ...]:
        """What the host calls one of our events: a few have several names for it, many none."""
        return tuple(theirs for theirs, ours in self.events.items() if ours == name)

    @property
    def refuses_commands_only(self) -> bool:
        """Whether a refused call that is not a shell command ends the run, and the model does not learn why."""
        return "deny command" in self.says["PreToolUse"]

    def mcp_names(self, name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Our names for an MCP server's tool; one that can be cut in several places is read in every way."""
        if self.mcp is not None:
            return self.mcp(name, fields)
        if self.mcp_pattern:
            found = re.fullmatch(self.mcp_pattern, name)
            return (mcp_name(found[1], found[2]),) if found else ()
        between = self.mcp_separator
        parts = name.split(between) if between else [name]
        cuts = range(1, len(parts))
        return tuple(mcp_name(between.join(parts[:cut]), between.join(parts[cut:])) for cut in cuts)

    def ours(self, theirs: str) -> str | None:
        return self.events.get(theirs) or self.aliases.get(theirs)


ROWS: Path = Path(__file__).with_name("rows")


def read_row(name: str, **functions: Any) -> Host:
    """The row of a host: what its file says, and what data cannot say."""
    row = msgspec.json.decode((ROWS / f"{name}.json").read_bytes(), type=Host)
    return msgspec.structs.replace(row, **functions) if functions else row


ABILITIES: Mapping[str, tuple[str, str]] = MappingProxyType({
    "deny": ("PreToolUse", "deny"),
    "ask": ("PreToolUse", "ask"),
    "rewrite": ("PreToolUse", "rewrite"),
    "context": ("PostToolUse", "context"),
    "replace output": ("PostToolUse", "replace"),
    "gate prompt": ("UserPromptSubmit", "deny"),
    "keep going": ("Stop", "keep_going"),
    "session events": ("SessionStart", ""),
    "inside subagents": ("", ""),
})  # fmt: skip
"""What people ask of a host, and the answer that shows it: an event, and a kind of answer on it, or a field."""


def able(host: Host, ability: str) -> bool:
    """Whether a host has an ability."""
    event, kind = ABILITIES[ability]
    if not event:
        return bool(host.subagents)
    return kind in host.says.get(event, NO_WORDS) if kind else event in host.events.values()


# -- agents that a host starts inside itself: where it asks no hook in them, the tool that starts them is denied -------

ALLOW = "allow"
"""The value of `--subagents` in a command that lets them be started, which `install --allow-subagents` has written."""


def unasked_subagents(host: Host) -> str:
    """Why hooks do not hold in the agents that a host starts; nothing if they do."""
    if host.subagents is None:
        return f"it was not measured whether {host.title} asks hooks inside the agents that it starts"
    return "" if host.subagents else f"{host.title} asks no hook inside the agents that it starts"


def refuse_unasked(hooks: HookSet, host: Host, allowed: str) -> None:
    """Have a set of hooks deny the tool that starts agents, where hooks do not hold in them."""
    why = unasked_subagents(host)
    if why and allowed != ALLOW:
        told = f"{why}: what they do would not be judged. `hookline install {host.name} --allow-subagents` allows them"
        hooks.add(PreToolUse, lambda event: deny(told), match="Agent|Task", name="subagents", inline=True)
