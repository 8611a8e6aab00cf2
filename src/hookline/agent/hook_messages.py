"""What the model and the user are told about hooks, in words: one function per line of FACTS.md §1.

The words need not be Claude Code's own, but the same things are said in the same places: a reason where the call's
result stands, context after it, feedback as if the user had said it.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from hookline.core.engine import Outcome, Verdict
from hookline.events import Event

TEXTS: dict[str, str] = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
CONTINUE = "Continue from where you left off."
INTERRUPTED = "The run was interrupted before this tool was called; it was not called."
TEXT_LIMIT = 10_000  # longer hook text goes to a file, and the model gets its beginning (FACTS.md §1)
BARE_NAMES = frozenset({"SessionStart", "SubagentStart"})  # what these were about is left out before their context


def hook_name(event: Event) -> str:
    """What a hook's run is called: `PreToolUse:Bash`."""
    return f"{event.event_name}:{event.subject}" if event.subject else event.event_name


def reason_of(verdict: Verdict) -> str:
    """Why it was decided so; hooks need not say."""
    return verdict.reply.reason or "Blocked by hook"


def additional_context(event: Event, texts: Sequence[str]) -> str:
    """What hooks want the model to know."""
    name = event.event_name if event.event_name in BARE_NAMES else hook_name(event)
    return f"{name} hook additional context: " + "\n".join(texts)


def reminder_of_stop(verdict: Verdict) -> str:
    """What the model hears in its next turn about the hook that ended the last one."""
    return f"{hook_name(verdict.event)} hook stopped continuation: {verdict.stop_reason or ''}".rstrip(": ")


def objection(verdict: Verdict) -> str:
    """What the model is told when a hook objects to something already done."""
    return f"{hook_name(verdict.event)} hook blocking error: {reason_of(verdict)}"


def feedback(reasons: Sequence[str], event: str = "Stop") -> str:
    """What a Stop or TeammateIdle hook says to an agent that it sends back to work."""
    return f"{event} hook feedback:\n" + ("\n".join(reasons) or "Blocked by hook")


def said(outcome: Outcome) -> str:
    """All that a hook had to say: what it printed, else its context."""
    return outcome.stdout.strip() or "\n\n".join(outcome.reply.context)


def ran(verdict: Verdict) -> list[str]:
    """What became of each hook, a line each, where the user asked for what they ran on."""
    name = verdict.event.event_name
    return [
        f"{name} [{one.hook}] completed successfully: {said(one)}".removesuffix(": ")
        if one.ok
        else f"{name} [{one.hook}] failed: {one.stderr.strip() or one.error}"
        for one in verdict.outcomes
    ]


def wrapped(text: str) -> str:
    """A reminder in the user's own message."""
    return f"<system-reminder>\n{text}\n</system-reminder>"


def notification(task_id: str, status: str, summary: str, result: str = "") -> str:
    """What the model is told when something in the background is over."""
    rows = {"task-id": task_id, "status": status, "summary": summary, "result": result}
    body = "\n".join(f"<{name}>{text}</{name}>" for name, text in rows.items() if text)
    return f"<task-notification>\n{body}\n</task-notification>"
