"""What the end of a command means, event by event (FACTS.md §2). Pure.

A command says what it wants in JSON on stdout, which counts whatever the exit code; the exit code alone says the rest.
"""

from __future__ import annotations

import re

from hookline.events import spec_of
from hookline.replies import NOTHING, Reply, deny, keep_going, specific

_NOT_THERE = re.compile(
    r"\S*python[\d.]*: can't open file '(?P<path>[^']+)': \[Errno 2\]"
    r"|\S*sh: \d+: cannot open (?P<sh>\S+?): No such file"
)


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


def text_reply(event_name: str, text: str) -> Reply:
    """What plain text on stdout means: context on some events, a path on one, nothing elsewhere."""
    said = text.strip()
    field = spec_of(event_name).stdout
    if not said or not field:
        return NOTHING
    if field == "context":
        return Reply(context=(said,))
    return specific(**{field: said.splitlines()[-1].strip()})
