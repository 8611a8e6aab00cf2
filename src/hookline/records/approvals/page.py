"""The page behind a link: what would run, why it is asked, and two buttons. Opening it decides nothing. Pure."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from hookline.display import block, one_line
from hookline.guards.sandboxing import unwrapped
from hookline.records.approvals.binding import AskedCall
from hookline.records.approvals.questions import AskedQuestion, shown_state

STYLE: bytes = (Path(__file__).parent / "page.css").read_bytes()
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none';"
                               " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
"""What every answer says: no code, no other origin, nothing kept; a scanner's preview has no buttons that work."""
MOST_TEXT = 100_000


class Part(msgspec.Struct, frozen=True):
    """A piece of what would run: its heading, its kind (`command`, `diff`, `text`) and its text."""

    title: str
    kind: str
    text: str


def parts_of(call: AskedCall) -> list[Part]:
    """What would run, as a person reads it: a command, a diff, else the tool's input."""
    try:
        given = msgspec.json.decode(call.input)
    except msgspec.MsgspecError:
        given = call.input
    if not isinstance(given, dict):
        return [Part("Content", "text", str(given))]
    return list(_parts(given))


def _parts(given: dict[str, Any]) -> Iterator[Part]:
    rest = dict(given)
    if isinstance(command := rest.pop("command", None), str):
        found = unwrapped(command)
        yield Part(
            "Command, which would run confined" if found else "Command", "command", found[1] if found else command
        )
    path = str(rest.pop("file_path", None) or rest.pop("notebook_path", None) or "")
    edits = rest.pop("edits", None) or [rest]
    for edit in edits if isinstance(edits, list) else []:
        old, new = (edit.pop(name, None) for name in ("old_string", "new_string"))
        if isinstance(new, str):
            yield Part(f"Change in {path}", "diff", diff_of(str(old or ""), new))
    for name in ("content", "new_source"):
        if path and isinstance(content := rest.pop(name, None), str):
            yield Part(f"New contents of {path}", "diff", diff_of("", content))
            path = ""
    if path and not any(edits):
        yield Part("File", "text", path)
    rest = {name: value for name, value in rest.items() if value not in (None, "", [], {})}
    if rest:
        yield Part("With", "text", msgspec.json.format(msgspec.json.encode(rest), indent=2).decode())


def diff_of(old: str, new: str) -> str:
    """A unified diff without its head."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=3, lineterm="")
    return "\n".join(list(lines)[2:]) or "(no change)"


def render(one: AskedQuestion, person: str) -> bytes:
    """The page for one person."""
    call = one.call
    rows = {
        "Why": one.why, "Asked by": one.hooks, "Agent": " · ".join(filter(None, (one.host, call.agent))),
        "Folder": call.cwd, "Session": call.session, "Question": f"{one.id}, call {call.identity[:12]}",
        "Open until": time.strftime("%H:%M:%S", time.localtime(one.until)),
    }  # fmt: skip
    body = [f"<h1>{_text(call.tool or call.event)}</h1>", *_shown(call)]
    body.append(
        "<dl>" + "".join(f"<dt>{name}</dt><dd>{_text(text)}</dd>" for name, text in rows.items() if text) + "</dl>"
    )
    if one.before:
        items = "".join(f"<li>{escape(one_line(line, 300))}</li>" for line in one.before)
        body.append(f"<h2>Before this</h2><ol>{items}</ol>")
    return document("".join(body), _buttons(one, person))


def _shown(call: AskedCall) -> Iterator[str]:
    for part in parts_of(call):
        text = block(part.text[:MOST_TEXT])
        inner = "".join(map(_line, text.split("\n"))) if part.kind == "diff" else escape(text)
        cut = (
            f"<p>{len(part.text) - MOST_TEXT:,} more characters are not shown.</p>"
            if len(part.text) > MOST_TEXT
            else ""
        )
        yield f"<h2>{_text(part.title)}</h2><pre class={part.kind}>{inner}</pre>{cut}"


def _line(line: str) -> str:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return f"<span class={kind}>{escape(line)}\n</span>"


def _buttons(one: AskedQuestion, person: str) -> str:
    if one.state != "open":
        return f"<p class=state>{_text(shown_state(one))}</p>"
    gone = "The agent no longer waits: a yes lets it make the call once."
    waits = "The agent waits for this." if one.waiting else gone
    return (
        f"<p>{waits} You answer as <b>{_text(person)}</b>.</p><form method=post>"
        "<button name=answer value=no class=no>No</button>"
        "<button name=answer value=yes class=yes>Let it run once</button></form>"
    )


def document(body: str, footer: str = "") -> bytes:
    """A page of ours."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta name=robots content=noindex><title>Hookline: may this run?</title><link rel=stylesheet href=/page.css>"
        f"<main>{body}</main><footer>{footer}</footer></html>"
    ).encode()


def notice(text: str) -> bytes:
    """A page with one sentence."""
    return document(f"<p class=state>{_text(text)}</p>")


def _text(text: str) -> str:
    return escape(block(text))
