"""A question as people see it, on the page, in the console and in the terminal: what would run, and why it is asked."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec

from hookline.guards.sandboxing import unwrapped
from hookline.records.approvals.binding import AskedCall
from hookline.records.approvals.questions import AskedQuestion

_MOST_TEXT = 100_000
_WORDS = {"open": "open", "yes": "yes", "used": "yes, and it ran", "no": "no", "expired": "not answered in time"}


def shown(one: AskedQuestion) -> dict[str, Any]:
    """Everything that a person needs, as JSON; `parts` are what would run."""
    found: dict[str, Any] = msgspec.to_builtins(one)
    call = found.pop("call")
    return {**found, **call, "call": one.call.identity[:12], "parts": list(_parts(one.call)), "told": outcome(one)}


def outcome(one: AskedQuestion) -> str:
    """What became of a question, in a few words."""
    return _WORDS[one.state] + (f", by {one.by} ({one.how})" if one.by else "")


def _parts(call: AskedCall) -> Iterator[dict[str, str]]:
    try:
        given = msgspec.json.decode(call.input)
    except msgspec.MsgspecError:
        given = call.input
    rows = _readable(given) if isinstance(given, dict) else [("Content", "text", str(given))]
    for title, kind, text in rows:
        more = f"\n… {len(text) - _MOST_TEXT:,} more characters" if len(text) > _MOST_TEXT else ""
        yield {"title": title, "kind": kind, "text": text[:_MOST_TEXT] + more}


def _readable(given: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """A command, changes as diffs, and whatever else is in a tool's input; nothing of it is left out."""
    rest = dict(given)
    if isinstance(command := rest.get("command"), str):
        confined = unwrapped(rest.pop("command"))
        yield "Command, confined" if confined else "Command", "command", confined[1] if confined else command
    path = rest.get("file_path") or rest.get("notebook_path") or ""
    edits = rest.pop("edits") if isinstance(rest.get("edits"), list) else [rest]
    found = [
        (edit, edit.pop("new_string")) for edit in edits if isinstance(edit, dict) and _is_text(edit, "new_string")
    ]
    changes = [(f"Change in {path}", "diff", _diff(str(edit.pop("old_string", "")), new)) for edit, new in found]
    whole = [name for name in ("content", "new_source") if path and _is_text(rest, name)]
    changes += [(f"New contents of {path}", "diff", _diff("", rest.pop(name))) for name in whole]
    yield from changes
    if left := [edit for edit in edits if edit and edit is not rest]:
        rest["edits"] = left
    if rest and not (changes and rest.keys() <= {"file_path", "notebook_path"}):
        yield "Input", "text", msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()


def _is_text(given: dict[str, Any], name: str) -> bool:
    return isinstance(given.get(name), str)


def _diff(old: str, new: str) -> str:
    """A unified diff without its head."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))
    return "\n".join(lines[2:]) or "(no change)"
