"""Audit records as OCSF events: each validates against the published schema of its class, version and profiles."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from hookline.events import CATALOG
from hookline.records.audit.export import ocsf

jsonschema = pytest.importorskip("jsonschema")
ocsf_json_schema = pytest.importorskip("ocsf_json_schema", reason="needs `ocsf-json-schema`, as `make test-all` has")

DECISIONS: dict[str, dict[str, Any]] = {
    "allow": {"decision": "allow"},
    "pass": {"decision": "pass"},
    "deny": {"decision": "deny", "blocked": True, "by": "guard", "reasons": ["no", "never"]},
    "ask": {"decision": "ask"},
    "defer": {"decision": "defer"},
    "stop": {"decision": "pass", "stop": True, "blocked": True},
    "rewrite": {"decision": "allow", "rewritten": {"command": "ls"}},
}
ABOUT: dict[str, dict[str, Any]] = {
    "a shell line": {"tool": "Bash", "input": {"command": "rm -rf /"}, "tool_use_id": "t1"},
    "a file": {"tool": "Write", "input": {"file_path": "/etc/passwd"}},
    "an MCP tool": {"tool": "mcp__github__create_issue", "input": {}},
    "no tool": {},
}


@cache
def schemas() -> Any:
    text = (importlib.resources.files("ocsf_json_schema") / "ocsf/1.8.0.json").read_text()
    return ocsf_json_schema.OcsfJsonSchemaEmbedded(json.loads(text))


@cache
def validator(uid: int, profiles: tuple[str, ...]) -> Any:
    made = schemas()
    return jsonschema.Draft202012Validator(made.get_class_schema(made.lookup_class_name_from_uid(uid), list(profiles)))


def problems(event: dict[str, Any]) -> Iterator[str]:
    """What the schema refuses, and captions that are not those of their numbers."""
    uid = event["class_uid"]
    for error in validator(uid, tuple(event["metadata"]["profiles"])).iter_errors(event):
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
    attributes = schemas().schema.schema["classes"][schemas().lookup_class_name_from_uid(uid)]["attributes"]
    for name in ("activity", "severity", "action", "disposition", "status", "category", "class"):
        number = event.get(f"{name}_id", event.get(f"{name}_uid"))
        caption = event.get(f"{name}_name", event.get(name))
        known = attributes.get(f"{name}_id", attributes.get(f"{name}_uid", {})).get("enum", {})
        if caption is not None and number != 99 and str(number) in known and known[str(number)]["caption"] != caption:
            yield f"{name}: `{caption}` is not the caption of {number}"
    if event["type_uid"] != uid * 100 + event["activity_id"]:
        yield "type_uid: not class and activity"


def records() -> Iterator[dict[str, Any]]:
    for name in CATALOG:
        for about in ABOUT.values():
            for decision in DECISIONS.values():
                yield {
                    "time": "2026-03-02T09:00:00.250+00:00", "run": "s1", "user": "ada", "event": name, "seq": 7,
                    "hash": "ab" * 32, **about, **decision,
                }  # fmt: skip


def test_every_event_and_every_decision_validates() -> None:
    """The whole catalogue, with each kind of tool; what is missing from a record is not made up."""
    wrong = [
        (record["event"], problem)
        for record in [*records(), {"time": "nonsense"}, {"event": "AuditGap", "missing": 3, "tool": "mcp__x"}]
        for event in ocsf(record, "m1")
        for problem in problems(event)
    ]

    assert wrong == []


def test_what_was_not_let_through_is_a_finding() -> None:
    """Denied, asked about, put off, stopped or changed; and only that."""
    for name, decision in DECISIONS.items():
        classes = [event["class_uid"] for event in ocsf({"event": "PreToolUse", **ABOUT["a file"], **decision})]

        assert (2004 in classes) == (name not in ("allow", "pass")), name


def test_the_check_can_fail() -> None:
    """An event with a field of a profile that it does not name is refused."""
    [event] = ocsf({"event": "Stop"})
    event["metadata"]["profiles"] = []

    assert list(problems(event)) != []
