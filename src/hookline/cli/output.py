"""How a run is shown: `text` for people, `json` for scripts that want the end, `stream-json` for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from hookline.agent.stream_json.output import HookReporter, Note
from hookline.agent.stream_json.session_state import write_init_message
from hookline.cli.style import paint, width
from hookline.core.engine import Notice, Verdict
from hookline.display import block, one_line
from hookline.events import PreToolUse

if TYPE_CHECKING:
    from hookline.agent.factory import AgentBundle
    from hookline.agent.run_options import RunOptions

LOUD = ("DENY", "STOP")
START_ONLY = frozenset({"SessionStart", "Setup"})
Write = Callable[[bytes], None]
_encode = msgspec.json.Encoder().encode


def shown_on(made: AgentBundle, options: RunOptions, write: Write) -> None:
    """Show the run in the form that was asked for; what programs read goes to `write`."""
    FORMS[options.output_format](made, options, write)


def _as_stream(made: AgentBundle, options: RunOptions, write: Write) -> None:
    made.agent.output.listeners.append(lambda note: write(_encode(note) + b"\n"))
    made.agent.output.partial = options.include_partial_messages
    if options.session_mirror:
        made.agent.mirror = _mirror(write)
    only = None if options.include_hook_events else START_ONLY
    made.hooks.observe(HookReporter(made.agent.output, made.hooks, only), inline=True)
    if not options.driven:
        write_init_message(made)


def _mirror(write: Write) -> Callable[[str, Note], None]:
    """Every line of a transcript, for hosts that keep sessions elsewhere."""

    def tell(path: str, entry: Note) -> None:
        write(_encode({"type": "transcript_mirror", "filePath": path, "entries": [entry]}) + b"\n")

    return tell


def _as_json(made: AgentBundle, options: RunOptions, write: Write) -> None:
    def listen(note: Note) -> None:
        if note["type"] == "result":
            write(_encode(note) + b"\n")

    made.agent.output.listeners.append(listen)


def _as_text(made: AgentBundle, options: RunOptions, write: Write) -> None:
    made.agent.output.listeners.append(_Text())
    made.hooks.observe(_explain if options.verbose else _denied, inline=True)


class _Text:
    """Words on stdout as they come, everything else on stderr."""

    def __init__(self) -> None:
        self._message, self._said = "", ""  # the message that was shown last, and its words

    def __call__(self, note: Note) -> None:
        kind, subtype = note["type"], note.get("subtype")
        if kind == "assistant" and note.get("parent_tool_use_id") is None:
            if note["message"]["id"] != self._message:
                self._message, self._said = note["message"]["id"], ""
            for part in note["message"]["content"]:
                self._part(part)
        elif kind == "system" and subtype == "permission_denied":
            _loudly("DENY", str(note.get("tool_name") or ""), note.get("tool_input"), str(note.get("message") or ""))
        elif kind == "system" and subtype == "informational":
            print(block(note.get("content") or note.get("message") or ""), file=sys.stderr, flush=True)
        elif kind == "result":
            self._result(note)

    def _part(self, part: Note) -> None:
        if part["type"] == "text":
            self._said += part["text"]
            print(block(part["text"]), flush=True)
        elif part["type"] == "tool_use":
            print(f"→ {one_line(part['name'])} {_short(part['input'])}", file=sys.stderr, flush=True)

    def _result(self, note: Note) -> None:
        if note["subtype"] != "success":
            print(block("; ".join(note.get("errors") or [note["subtype"]])), file=sys.stderr, flush=True)
        elif note["terminal_reason"] != "completed" and note.get("result") not in ("", None, self._said):
            print(block(note["result"]), flush=True)  # a refusal, say: no word of the model's


def _short(given: object) -> str:
    return one_line(_encode(given).decode(), 118)


def _denied(notice: Notice) -> None:
    """A call that hooks refuse or stop: the loudest line of the run."""
    if not isinstance(notice, Verdict) or notice.word not in LOUD or not isinstance(notice.event, PreToolUse):
        return
    names = ", ".join(dict.fromkeys(one.hook for one in notice.outcomes if one.decision is notice.decision))
    why = f"{notice.reason or 'no reason given'} ({names})" if names else notice.reason
    _loudly(notice.word, notice.event.tool_name, notice.event.tool_input, why)


def _loudly(word: str, tool: str, given: object, why: str) -> None:
    """One line that stands out, below the call that it is about."""
    about = one_line(f"{tool} {_short(given)}", 80) if given else one_line(tool)
    mark = paint(paint(f"✗ {word}", "bold", sys.stderr), "red", sys.stderr)
    print(f"{mark} {about}: {paint(one_line(why), 'red', sys.stderr)}", file=sys.stderr, flush=True)


def _explain(notice: Notice) -> None:
    if isinstance(notice, Verdict) and notice.outcomes:
        print(notice.explain(width(sys.stderr)), file=sys.stderr, flush=True)


FORMS: dict[str, Callable[[AgentBundle, RunOptions, Write], None]] = {
    "text": _as_text,
    "json": _as_json,
    "stream-json": _as_stream,
}
