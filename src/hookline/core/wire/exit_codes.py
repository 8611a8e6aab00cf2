"""What the end of a command means, event by event (FACTS.md §2). Pure.

A command says what it wants in JSON on stdout, which counts whatever the exit code; the exit code alone says the rest.
"""

from __future__ import annotations

import re
from enum import StrEnum

from hookline.events import spec_of
from hookline.replies import NOTHING, Reply, deny, keep_going, specific


class End(StrEnum):
    """How a command ended."""

    ZERO = "exit 0"
    TWO = "exit 2"
    OTHER = "another exit code"
    SIGNAL = "a signal"
    OVERFLOW = "printed too much"


class ExitMeaning(StrEnum):
    """What that is taken for."""

    SAID = "what it printed is its answer"
    NO = "it says no: a block, or back to work"
    FAILED = "it failed: the failure policy decides"


_NOT_THERE = re.compile(
    r"\S*python[\d.]*: can't open file '(?P<path>[^']+)': \[Errno 2\]"
    r"|\S*sh: \d+: cannot open (?P<sh>\S+?): No such file"
)


def end_of(exit_code: int | None, signal: int | None = None) -> End:
    """Which row of `ENDS` a process that ended by itself belongs to."""
    if signal is not None or exit_code is None:
        return End.SIGNAL
    return {0: End.ZERO, 2: End.TWO}.get(exit_code, End.OTHER)


def exit_meaning(end: End, event_name: str) -> ExitMeaning:
    """What an end means on an event; one that nothing can be said no to takes exit 2 as a failure."""
    if end is End.ZERO:
        return ExitMeaning.SAID
    says_no = end is End.TWO and no(event_name, "") is not None
    return ExitMeaning.NO if says_no else ExitMeaning.FAILED


def no(event_name: str, reason: str) -> Reply | None:
    """The reply of a command that says no by exit code 2; None on an event that cannot be blocked."""
    spec = spec_of(event_name)
    if spec.keeps_going:
        return keep_going(reason)
    return deny(reason) if "deny" in spec.decisions else None


def script_missing(event_name: str, command: str, stdout: str, stderr: str) -> bool:
    """Whether exit 2 is an interpreter's word for a script that is not there, on an event that sends an agent back.

    The work was not looked at then, so it is a failure, as in Claude Code; elsewhere exit 2 blocks.
    """
    lines = stderr.strip().splitlines()
    if not spec_of(event_name).keeps_going or stdout.strip() or len(lines) != 1:
        return False
    found = _NOT_THERE.match(lines[0])
    return found is not None and (found["path"] or found["sh"]).rpartition("/")[2] in command


def no_reason(command: str, stderr: str) -> str:
    """Why it says no, in Claude Code's words."""
    return f"[{command}]: {stderr.rstrip() or 'No stderr output'}"


def text_reply(event_name: str, text: str) -> Reply:
    """What plain text on stdout means: context on some events, a path on one, nothing elsewhere."""
    said = text.strip()
    field = spec_of(event_name).stdout
    if not said or not field:
        return NOTHING
    if field == "context":
        return Reply(context=(said,))
    return specific(**{field: said.splitlines()[-1].strip()})


def recorded_code(exit_code: int | None, signal: int | None) -> int | None:
    """The exit code as it is recorded; a death by signal counts as a shell counts it, 128 and the signal's number."""
    return 128 + signal if signal is not None else exit_code
