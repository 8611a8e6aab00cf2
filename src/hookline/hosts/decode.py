"""A host's payload becomes events: its names translated, its own words kept in `event.extra["host"]`. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from posixpath import normpath
from shlex import join, quote
from typing import Any

import msgspec

from hookline.core.hooks.condition import ARGUMENTS, EDITING
from hookline.core.patches import PatchedFile, holds_patch, read_patch
from hookline.core.wire.claude import event_from
from hookline.errors import EventError, did_you_mean
from hookline.events import Event
from hookline.guards.tool_inputs import lines_of, paths_in, texts_of
from hookline.hosts.host import NAMESPACE, Host, Tool

_KEPT = "host"
_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"})


def decode(host: Host, payload: Mapping[str, Any], *, event: str = "", cwd: str = "") -> tuple[Event, ...]:
    """The events in a payload: one, or one for each file that a single call touches; every one must be judged.

    `event` is the host's name for the event, for payloads that do not say; `cwd` is the project's folder, for hosts
    that report the folder of the command instead.
    """
    fields = _flattened(host, payload)
    if host.cut_field and fields.get(host.cut_field):
        raise EventError(f"{host.title}: the call is too long and arrived cut; what is missing cannot be judged")
    folders = fields.get(host.folders_field) if host.folders_field else None
    if isinstance(folders, list) and folders:
        fields.setdefault("cwd", folders[0])
    theirs = fields.pop(host.event_field, None) or event
    if not isinstance(theirs, str) or not theirs:
        raise EventError(f"{host.title}: `{host.event_field}` is missing, so what is to be judged is not known")
    if theirs in host.unjudged:
        return ()
    ours = host.ours(theirs)
    if ours is None:
        near = did_you_mean(theirs, host.events) or f"; known are {', '.join(host.events)}"
        raise EventError(f"{host.title}: unknown event `{theirs}`{near}")
    fields["hook_event_name"] = ours
    kept: dict[str, Any] = {"name": host.name, "event": theirs}
    if ours not in _TOOL_EVENTS:
        return (_made(fields, kept),)
    kept |= {"tool_name": fields.get("tool_name"), "tool_input": fields.get("tool_input")}
    if host.roams and cwd and fields.get("cwd") not in (None, cwd):
        # the command's folder is said where guards look for it; `cwd` is left to the project
        if isinstance(given := fields.get("tool_input"), dict):
            fields["tool_input"] = {"cwd": fields["cwd"], **given}
        fields["cwd"] = cwd
    return tuple(_made({**fields, **call}, {**kept, **part}) for call, part in _calls(host, fields))


def _flattened(host: Host, payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload in our names, with everything at the top that others have there; of a prompt in parts, the texts."""
    fields = dict(payload)
    for outer, names in host.inside.items():
        if isinstance(inner := fields.pop(outer, None), dict):
            fields |= {ours: inner[theirs] for theirs, ours in names.items() if inner.get(theirs) is not None}
    fields = host.unwrap(fields) if host.unwrap else fields
    fields = {host.names.get(name, name): value for name, value in fields.items()}
    if host.prompt_in_parts and isinstance(parts := fields.get("prompt"), list):
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        fields["prompt"] = "\n".join(text for text in texts if isinstance(text, str))
    return fields


def _made(fields: Mapping[str, Any], kept: Mapping[str, Any]) -> Event:
    known = {name: value for name, value in fields.items() if value is not None}
    event = event_from(known)
    return msgspec.structs.replace(event, extra={**event.extra, _KEPT: kept})


def original(event: Event) -> Mapping[str, Any]:
    """What the host itself called the event, the tool and its input."""
    kept = event.extra.get(_KEPT)
    return kept if isinstance(kept, Mapping) else {}


def tool_row(host: Host, name: Any, given: Any) -> Tool | None:
    """The row of a tool, or of its variant."""
    row = host.tools.get(name) if isinstance(name, str) else None
    if row is not None and row.by and isinstance(given, dict):
        return row.variants.get(str(given.get(row.by)), row)
    return row


def _calls(host: Host, fields: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The tool calls of a payload, in our words; a file is named by its whole path.

    Beside each, whether it is one that the host's call amounts to, and not the call itself.
    """
    given = fields.get("tool_input", {})
    base = (given.get("cwd") if isinstance(given, dict) else None) or fields.get("cwd")
    root = base if isinstance(base, str) and PurePath(base).is_absolute() else ""
    for call in _translated(host, fields, given):
        part = {"part": True} if call.pop("part", False) else {}
        found = call.get("tool_input", {})
        path = found.get("file_path")
        if root and isinstance(path, str) and path[:1] not in ("", "~") and not PurePath(path).is_absolute():
            call["tool_input"] = {**found, "file_path": normpath(PurePath(root, path))}
        yield call, part


def _translated(host: Host, fields: Mapping[str, Any], given: Any) -> Iterator[dict[str, Any]]:
    name = fields.get("tool_name")
    row = tool_row(host, name, given)
    is_text = isinstance(given, str)
    if row is not None and (row.patch or (is_text and row.name in EDITING)):
        yield from map(_file_call, read_patch(given.get(row.patch) if isinstance(given, dict) else given))
        return
    if is_text:
        if row is not None or (isinstance(name, str) and name in ARGUMENTS):
            raise EventError(f"{host.title}: the input of `{name}` is a text, and what it does with it is not known")
        given = {"input": given}
    if not isinstance(given, dict):
        yield {}
    elif row is None:
        yield from _untranslated(host, fields, given)
    elif row.lines:
        yield {"tool_name": row.name, "tool_input": _one_command(host, row, given)}
    elif row.each:
        yield from _event_per_item(host, row, given)
    else:
        yield {"tool_name": row.name, "tool_input": _renamed(row, given)}
        if (line := given.get(row.command_line)) is not None:  # most lines feed no patch to `apply_patch`
            from hookline.core.shell.patched_files import patched_files  # on one host only

            yield from map(_file_call, patched_files(line if isinstance(line, str) else join(map(str, line))))


def _file_call(change: PatchedFile) -> dict[str, Any]:
    return {"tool_name": change.tool, "tool_input": change.tool_input, "part": True}


def _untranslated(host: Host, fields: Mapping[str, Any], given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A call of an MCP server's tool; of one that keeps its name; or of a tool that is not known."""
    name = fields.get("tool_name")
    names = host.mcp_names(name, fields) if isinstance(name, str) else ()
    if names:
        inner = given.get(host.mcp_input) if host.mcp_input else given
        if not isinstance(inner, dict):
            raise EventError(f"{host.title}: `{host.mcp_input}` of an MCP tool's call is not an object")
        yield from ({"tool_name": each, "tool_input": inner} for each in names)
        return
    yield {"tool_input": given}
    if not knows_tool(host, name, given):
        for tool, call in calls_inside(str(name), given):
            yield {"tool_name": tool, "tool_input": call, "part": True}


def knows_tool(host: Host, name: Any, given: Mapping[str, Any]) -> bool:
    """Whether what a tool does can be told from its name: it is in the host's table, or a server's, or goes by ours."""
    if not isinstance(name, str):
        return False
    ours = ARGUMENTS.get(name)
    return name in host.tools or name in host.other_tools or name.startswith("mcp__") or (
        ours is not None and ours.name in given
    )  # fmt: skip


def _renamed(row: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {row.fields.get(name, name): value for name, value in given.items()}
    words = renamed.get("command")
    if row.name == "Bash" and isinstance(words, list):
        renamed["command"] = join(map(str, words))
    return renamed


def _event_per_item(host: Host, row: Tool, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    items = given.get(row.each)
    if not items and row.name in ("Grep", "Glob"):  # they search the current folder then
        yield {"tool_name": row.name, "tool_input": _renamed(row, given)}
        return
    items = [items] if isinstance(items, str) else items
    if not isinstance(items, list) or not items:
        raise EventError(f"{host.title}: `{row.each}` is not a list of what `{row.name}` works on")
    rest = {name: value for name, value in given.items() if name != row.each}
    for item in items:
        call = item if isinstance(item, dict) else {row.each: item}
        yield {"tool_name": row.name, "tool_input": _renamed(row, {**rest, **call})}


def _one_command(host: Host, row: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    items = given.get(row.lines)
    if isinstance(items, str):
        items = [items]
    if not isinstance(items, list):
        raise EventError(f"{host.title}: `{row.lines}` is not a list of commands")
    texts: list[str] = []
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("command"), str):
            texts.append(" ".join([item["command"], *(quote(str(word)) for word in item.get("args") or ())]))
        elif isinstance(item, str):
            texts.append(item)
        else:
            raise EventError(f"{host.title}: a command that is neither a text nor has a `command`")
    rest = {name: value for name, value in given.items() if name != row.lines}
    return {**_renamed(row, rest), "command": joined(texts)}


_HARMLESS = re.compile(
    r"(?!(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|time|coproc)\b)[\w./=:,@%+ -]+"
)


def joined(commands: list[str]) -> str:
    """Commands that run one after another, each in a shell of its own, as one line to judge.

    What could swallow the next line (a quote, a here-document, a keyword) is wrapped, so that every command is seen.
    """
    if len(commands) == 1:
        return commands[0]
    return "\n".join(text if _HARMLESS.fullmatch(text) else f"bash -c {quote(text)}" for text in commands)


def native_input(host: Host, event: Event, changed: Mapping[str, Any]) -> dict[str, Any]:
    """A rewritten input in the host's words, with what the host had besides."""
    kept = original(event)
    before = kept.get("tool_input")
    row = tool_row(host, kept.get("tool_name"), before)
    if row is None or not isinstance(before, Mapping):
        inside = host.mcp_input if event.tool_name != kept.get("tool_name") else ""
        return {**(before or {}), inside: dict(changed)} if inside else dict(changed)
    back = {ours: theirs for theirs, ours in row.fields.items() if theirs in before or theirs not in changed}
    renamed = {back.get(name, name): value for name, value in changed.items()}
    if row.lines:
        renamed[row.lines] = [renamed.pop("command", "")]
    elif row.name == "Bash" and isinstance(before.get(line := back.get("command", "command")), list):
        renamed[line] = ["bash", "-c", renamed[line]]
    if host.roams and "cwd" not in before:
        renamed.pop("cwd", None)
    return renamed


def unknown_offers(host: Host, offered: Iterable[str], servers: Iterable[str] = ()) -> list[str]:
    """The tools that a host offers its model and that its table does not have; MCP servers' tools aside."""
    fields = {"mcp_servers": list(servers)}

    def is_known(name: str) -> bool:
        space, _, short = name.rpartition(NAMESPACE)
        if name.startswith("mcp_") or space.startswith("mcp_"):
            return True
        listed = any(each in host.tools or each in host.other_tools for each in (name, short, space + short))
        return listed or bool(host.mcp_names(name, fields))

    return sorted(name for name in offered if not is_known(name))


Call = tuple[str, dict[str, Any]]
_RUNS = re.compile(r"bash|shell|terminal|command|exec|run|process|monitor|ssh|console|pty", re.IGNORECASE)
_PATH = re.compile(r"(?:/|~/|\.\./)\S{1,4000}")


def calls_inside(name: str, given: Mapping[str, Any]) -> Iterator[Call]:
    """The calls that a tool's input may amount to; a path may be read or written, so it is both."""
    patches = [text for text in texts_of(given, all_of_them=True) if holds_patch(text)]
    for patch in patches:
        yield from ((change.tool, change.tool_input) for change in read_patch(patch))
    for line in lines_of(given, runs=_RUNS.search(name) is not None):
        if line.text not in patches:
            yield "Bash", {"command": line.text}
    named = [path for _, path in paths_in(given)]
    for path in dict.fromkeys([*named, *filter(_PATH.fullmatch, texts_of(given))]):
        yield "Read", {"file_path": path}
        yield "Write", {"file_path": path, "content": ""}
