"""Canaries: calls that a proof lets the model attempt, and the hook that answers them. Harmless by construction.

`hookline answer` adds the hook when a proof is running (`HOOKLINE_PROVE` names the file to note in). It can only add a
deny or turn one canary's command into another's; it never allows what another hook refuses.
"""

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.core.engine import HookSet, Verdict
from hookline.events import Event, PreToolUse, UserPromptSubmit, spec_of
from hookline.replies import Reply, deny, rewrite

VARIABLE = "HOOKLINE_PROVE"
TOKEN = "hookline-canary"  # noqa: S105 - a word to look for, not a secret
REASON = "a canary was refused on purpose"
NAME = "canary"
KINDS = ("allow", "deny", "rewrite", "hang", "crash", "exit", "write")
HEADER = b'{"proof": "hookline"}\n'
"""The first line of a proof's file: no other file is written to, whatever the variable names."""
_REWRITTEN = re.compile(rf"touch [\w./-]+/{TOKEN}-rewrite")
PATIENCE = 3.0  # seconds until a canary that hangs is refused


def ran(kind: str, folder: Path) -> bool:
    """Whether a canary's command ran, which leaves a file behind."""
    return (folder / f"{TOKEN}-{kind}").exists()


def attach(hooks: HookSet, env: Mapping[str, str]) -> None:
    """Add the canary's hook and note every verdict, if a proof is running."""
    path = env.get(VARIABLE, "")
    gates = [hook.name for hook in hooks.hooks if any(spec_of(event).gate for event in hook.events)]
    if not note(path, hooks={hook.name: hook.matcher.pattern or "*" for hook in hooks.hooks}, gates=gates):
        return
    hooks.add(PreToolUse, _judge, name=NAME, inline=True)
    hooks.add(UserPromptSubmit, _judge, name=f"{NAME} prompt", inline=True)

    def note_verdict(notice: Any) -> None:
        if isinstance(notice, Verdict):
            note(path, event=notice.event.event_name, kind=_kind(notice.event), decided_by=notice.decided_by,
                 asked=[outcome.hook for outcome in notice.outcomes if outcome.status != "skipped"],
                 failed={outcome.hook: outcome.error for outcome in notice.failures})  # fmt: skip

    hooks.observe(note_verdict, inline=True)


def note(path: str, **what: Any) -> bool:
    """One line in the proof's file, if it is one; whether it is."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        if os.read(descriptor, len(HEADER)) != HEADER:
            return False
        os.write(descriptor, json.dumps(what, default=str).encode() + b"\n")
    finally:
        os.close(descriptor)
    return True


def _kind(event: Event) -> str:
    text = ""
    if isinstance(event, PreToolUse):
        text = str(event.tool_input.get("command", ""))
    elif isinstance(event, UserPromptSubmit):
        text = event.prompt
    return text.rpartition(f"{TOKEN}-")[2] if TOKEN in text else ""


def _judge(event: PreToolUse | UserPromptSubmit) -> Reply | None:
    kind = _kind(event)
    if kind == "deny":
        return deny(REASON)
    if isinstance(event, UserPromptSubmit):
        return None
    if kind == "rewrite" and _REWRITTEN.fullmatch(event.tool_input["command"]):
        return rewrite({**event.tool_input, "command": event.tool_input["command"].replace("rewrite", "rewritten")})
    if kind == "hang":
        time.sleep(3600)
    if kind == "crash":
        raise RuntimeError("a canary crashed on purpose")
    if kind == "exit":
        os._exit(0)
    return None
