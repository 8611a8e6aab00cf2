"""Every form of secret that we know, wherever it stands in an event: none reaches the log, or what is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.core.calls import call_notes
from hookline.core.engine import Approval
from hookline.events import Event, PostToolUse, PostToolUseFailure, PreToolUse, UserPromptSubmit
from hookline.records.audit.export import lines
from hookline.records.audit.log import AuditLog, read
from hookline.replies import ask
from hookline.sandbox.judged_line import Reporter
from hookline.sandbox.policy import Policy
from hookline.testing import bash
from tests.guards.detect.test_detect import HEX, MIXED, TOKENS


def events(secret: str) -> Iterator[Event]:
    yield bash(f"deploy --with {secret}", tool_use_id="t1")
    yield PreToolUse(tool_name="Write", tool_input={"file_path": "a", "content": f"x\n{secret}\ny"})
    yield PreToolUse(tool_name="mcp__x__y", tool_input={"list": [{"deep": secret}], f"k {secret}": 1})
    yield PostToolUse(
        tool_name="Bash", tool_use_id="t1", tool_input={"command": "env"}, tool_response={"stdout": secret}
    )
    yield PostToolUseFailure(tool_name="Bash", tool_input={}, error=f"failed: {secret}")
    yield UserPromptSubmit(prompt=f"use {secret} please")


def test_no_form_of_secret_reaches_the_log_or_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Input, output, errors, prompts, reasons, approvals, what a confined line did; as a record, as OCSF, as OTLP."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    leaked = []
    for number, (name, secret) in enumerate(TOKENS.items()):
        path = tmp_path / f"{number}.jsonl"
        Reporter(Policy(call=str(call_notes("", "t1", "env")))).saw("program", f"curl {secret}")
        _fire(path, secret)
        records = [("", dict(record)) for record in read(path)]
        texts = [path.read_bytes(), *(b"".join(lines(iter(records), form)) for form in ("ocsf", "otel"))]
        assert len(records) == 6
        leaked += [name for text in texts if MIXED[:16].encode() in text or HEX[:16].encode() in text]

    assert len(TOKENS) >= 42
    assert leaked == []


def _fire(path: Path, secret: str) -> None:
    def reply(event: Event) -> Any:
        return ask(f"sure about {secret}?") if event.tool_name == "Bash" else deny(f"found {secret}")

    hooks = Hooks(on_ask=lambda verdict: Approval(by="ada", granted=False, reason=f"not with {secret}"))
    hooks.add(PreToolUse, reply, name="asks")
    log = AuditLog(path, sync="line")
    hooks.observe(log, inline=True)
    for event in events(secret):
        hooks.fire_sync(event)
