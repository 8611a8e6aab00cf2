"""How a run is shown: `text` for people, `json` for scripts that want the end, `stream-json` for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from hookline.agent.stream_json.output import HookReporter, Note
from hookline.cli.flags import CLAUDE_CODE_VERSION
from hookline.cli.style import width
from hookline.display import block, one_line
from hookline.engine import Notice, Verdict
from hookline.errors import ConfigError

if TYPE_CHECKING:
    from hookline.cli.factory import Made
    from hookline.cli.flags import Flags

START_ONLY = frozenset({"SessionStart", "Setup"})
_encode = msgspec.json.Encoder().encode


def shown_on(made: Made, flags: Flags) -> None:
    """Show the run in the form that the flags ask for."""
    form = flags.output_format or "text"
    if form not in FORMS:
        raise ConfigError("--output-format", f"unknown format `{form}`; write one of {', '.join(FORMS)}")
    FORMS[form](made, flags)


def _as_stream(made: Made, flags: Flags) -> None:
    made.agent.output.listeners.append(print_line)
    made.agent.output.partial = bool(flags.include_partial_messages)
    only = None if flags.include_hook_events else START_ONLY
    made.hooks.observe(HookReporter(made.agent.output, made.hooks, only), inline=True)
    if flags.input_format != "stream-json":
        say_init(made)


def say_init(made: Made) -> None:
    """The first message: where, with what, under which rules."""
    session = made.agent.session
    made.agent.output.system(
        "init",
        cwd=session.project_dir,
        tools=list(session.tools),
        mcp_servers=made.servers.statuses() if made.servers else [],
        model=session.model_name,
        permissionMode=str(session.policy.mode),
        slash_commands=[*session.skills, "compact", "clear", "context", "cost"],
        apiKeySource="ANTHROPIC_API_KEY",
        agents=list(session.agents),
        skills=[skill.name for skill in session.skills.values() if skill.kind == "skill"],
        output_style="default",
        claude_code_version=CLAUDE_CODE_VERSION,
    )


def print_line(note: Note) -> None:
    """One message, one line."""
    sys.stdout.buffer.write(_encode(note) + b"\n")
    sys.stdout.buffer.flush()


def _as_json(made: Made, flags: Flags) -> None:
    def listen(note: Note) -> None:
        if note["type"] == "result":
            print_line(note)

    made.agent.output.listeners.append(listen)


def _as_text(made: Made, flags: Flags) -> None:
    made.agent.output.listeners.append(_tell)
    if flags.verbose:
        made.hooks.observe(_explain, inline=True)


def _tell(note: Note) -> None:
    """Words on stdout as they come, everything else on stderr."""
    if note["type"] == "assistant" and note.get("parent_tool_use_id") is None:
        for part in note["message"]["content"]:
            if part["type"] == "text":
                print(block(part["text"]), flush=True)
            elif part["type"] == "tool_use":
                print(f"→ {one_line(part['name'])} {_short(part['input'])}", file=sys.stderr, flush=True)
    elif note["type"] == "system" and note.get("subtype") in ("informational", "permission_denied"):
        print(block(str(note.get("content") or note.get("message"))), file=sys.stderr, flush=True)
    elif note["type"] == "result":
        _tell_result(note)


def _tell_result(note: Note) -> None:
    if note["subtype"] != "success":
        print(block("; ".join(note.get("errors") or [note["subtype"]])), file=sys.stderr, flush=True)
    elif note["terminal_reason"] != "completed" and note.get("result") and not note["is_error"]:
        print(block(note["result"]), flush=True)


def _short(given: object) -> str:
    return one_line(_encode(given).decode(), 118)


def _explain(notice: Notice) -> None:
    if isinstance(notice, Verdict) and notice.outcomes:
        print(notice.explain(width(sys.stderr)), file=sys.stderr, flush=True)


FORMS: dict[str, Callable[[Made, Flags], None]] = {"text": _as_text, "json": _as_json, "stream-json": _as_stream}
