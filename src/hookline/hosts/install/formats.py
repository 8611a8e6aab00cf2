"""Each host's configuration with our entries in it, and without them. Pure: texts in, texts out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hookline.errors import HooklineError
from hookline.hosts.host import HookEntry, Host
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import is_ours

_MARK = "\ufeff"


def with_entries(host: Host, text: str, entries: list[HookEntry]) -> str:
    """A host's configuration file with our entries, in place of older ones of ours."""
    return keep_form(text, lambda body: _appended(host, _without(host, body), entries))


def without_entries(host: Host, text: str) -> str:
    """A host's configuration file without our entries; those of others are not touched."""
    return keep_form(text, lambda body: _without(host, body))


def _without(host: Host, text: str) -> str:
    if host.config.format.kind == "toml":
        return toml_edit.remove_rows(text, "hooks", lambda row: is_ours(row.get("command"), host))
    if host.config.format.kind == "plugin":
        return "" if "// hookline: " in text else text
    return _cut_json(host, text)


def all_commands(host: Host, text: str) -> list[tuple[str, str]]:
    """Every command in a host's hook file, ours or not: the host's event, and the command."""
    found: list[tuple[Any, Any]]
    if host.config.format.kind == "toml":
        rows = toml_edit.checked(without_mark(text)).get("hooks", [])
        found = [(row.get("event") or row.get("type"), row.get("command")) for row in rows if isinstance(row, dict)]
    elif host.config.format.kind == "plugin":
        pairs = json.loads(text.partition("/*commands*/")[2].partition("/*end*/")[0] or "[]")
        found = [(event, command) for event, command in pairs]
    else:
        value = jsonc.parse(without_mark(text)).value
        found = _commands(value.get("hooks")) if isinstance(value, dict) else []
    return [(str(event), command) for event, command in found if isinstance(command, str)]


def _commands(value: Any, event: str = "") -> list[tuple[Any, Any]]:
    """Every command in a file, with the key or the trigger it stands under."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        event = value.get("trigger", event) if isinstance(value.get("trigger"), str) else event
        found += [(event, value[key]) for key in ("command", "bash") if isinstance(value.get(key), str)]
        for key, inner in value.items():
            found += _commands(inner, key if key[:1].isalpha() and key not in ("hooks", "action") else event)
    elif isinstance(value, list):
        for inner in value:
            found += _commands(inner, event)
    return found


# -- byte order marks and line ends stay as they are -----------------------------------------------------------------


def keep_form(text: str, edit: Callable[[str], str]) -> str:
    """The edited text, with the mark it began with and the line ends it had; where they are mixed, ours are plain."""
    mark = _MARK if text.startswith(_MARK) else ""
    body = text.removeprefix(_MARK)
    windows = "\r\n" in body and body.count("\r\n") == body.count("\n")
    made = edit(body.replace("\r\n", "\n") if windows else body)
    return mark + (made.replace("\n", "\r\n") if windows else made)


def without_mark(text: str) -> str:
    """The text as parsers want it."""
    return text.removeprefix(_MARK)


# -- JSON -----------------------------------------------------------------------------------------------------------


def _appended(host: Host, text: str, entries: list[HookEntry]) -> str:
    form = host.config.format
    if form.plugin is not None:
        return form.plugin(entries)
    if form.version is not None and "version" not in jsonc.parse(text).members:
        text = jsonc.put(text, ("version",), form.version)
    for entry in entries:
        if form.kind == "toml":
            text = toml_edit.add_row(text, "hooks", form.entry(entry))
        else:
            text = jsonc.append(text, ("hooks",) if form.listed else ("hooks", entry.event), form.entry(entry))
    return text


def _cut_json(host: Host, text: str) -> str:
    """Without our commands, without groups they were alone in, without events that are empty then."""
    while True:
        root = jsonc.parse(text)
        if not isinstance(root.value, dict):
            raise HooklineError("expected an object")
        found = _ours_in(host, root.members.get("hooks"))
        if found is None:
            return text
        text = jsonc.cut(text, *found)


def _ours_in(host: Host, node: jsonc.Node | None) -> tuple[jsonc.Node, jsonc.Node] | None:
    """One part that is only there for us, with its parent."""
    for part in node.parts if node else ():
        if _only_ours(host, part.value):
            assert node is not None
            return node, part
        inner = _ours_in(host, part)
        if inner is not None:
            return inner
    return None


def _only_ours(host: Host, value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_only_ours(host, item) for item in value)
    if not isinstance(value, dict):
        return False
    if any(is_ours(value.get(key), host) for key in ("command", "bash")):
        return True
    return _only_ours(host, value["hooks"]) if "hooks" in value else _only_ours(host, value.get("action"))


# -- executables ----------------------------------------------------------------------------------------------------

OTHERS = ".before-hookline"
"""What another one's executable for an event is called while ours is in its place."""

_SCRIPT = """#!/bin/sh
# hookline: `hookline uninstall {host}` takes this out
{command}
"""
_CHAIN = """#!/bin/sh
# hookline: `hookline uninstall {host}` takes this out
# ours is asked first; if it has nothing to say, the one that was here before answers
payload=$(cat)
answer=$(printf '%s' "$payload" | {{ {command}; }})
status=$?
if [ -n "$answer" ] || [ "$status" -ne 0 ]; then
    printf '%s' "$answer"
    exit "$status"
fi
printf '%s' "$payload" | "$0{others}"
"""


def script(host: Host, entry: HookEntry, *, chained: bool) -> str:
    """The executable for one event."""
    return (_CHAIN if chained else _SCRIPT).format(host=host.name, command=entry.command, others=OTHERS)
