"""Values for every field of the recorded contract, made from the types it names."""

import json
from pathlib import Path
from typing import Any

CONTRACT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "contract" / "events.json").read_text())
EVENTS: dict[str, dict[str, Any]] = {row["name"]: row for row in CONTRACT["events"]}
TYPES: dict[str, str] = CONTRACT["types"]
SEED_FIELDS: dict[str, set[str]] = {
    "PermissionRequest": {"tool_use_id"},
    "SubagentStart": {"description"},
    "SubagentStop": {"description", "success", "error"},
}
"""Fields that Claude Code does not send, and seeds/002 and seeds/004 ask for."""

_PLAIN: dict[str, Any] = {"string": "some text", "number": 3, "boolean": True, "null": None, "true": True,
                          "{ level: string; }": {"level": "high"}, "Record<string, unknown>": {"a": [1, {"b": None}]},
                          "McpServerProvenance": {"name": "files", "source": "project"}}  # fmt: skip
_BY_NAME: dict[str, Any] = {
    "tool_input": {"command": "ls", "options": [1, None]},
    "tool_response": {"stdout": "a\n", "interrupted": False},
    "updatedToolOutput": ["any", {"thing": 1}],
    "updatedMCPToolOutput": "any thing",
    "decision": {"behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": [{"type": "setMode"}]},
}


def values(field: str, kind: str) -> list[Any]:
    """One value for each alternative that the contract's type allows."""
    if kind.endswith("[]"):
        inner = kind[:-2]
        return [["one", "two"]] if inner == "string" else [[{"id": "x", "tool_name": "Bash"}], []]
    if kind in _PLAIN:
        return [_PLAIN[kind]]
    if kind in TYPES and not TYPES[kind].startswith("{"):
        return values(field, TYPES[kind])
    if field in _BY_NAME and ("unknown" in kind or kind.startswith("{ behavior")):
        return [_BY_NAME[field]]
    return [_alternative(part.strip()) for part in kind.split("|")]


def _alternative(part: str) -> Any:
    return part.strip("'") if part.startswith("'") else _PLAIN[part]


def least(name: str) -> dict[str, Any]:
    """The fields that an event cannot do without."""
    return {"tool_name": "Bash"} if "tool_name" in EVENTS[name]["input"] else {}


def full_input(name: str) -> dict[str, Any]:
    """An input of the event with every field there is."""
    fields = {**CONTRACT["base_input"], **EVENTS[name]["input"]}
    body = {field: values(field, row["type"])[0] for field, row in fields.items()}
    return {**body, "hook_event_name": name}


def every_input() -> list[tuple[str, dict[str, Any]]]:
    """For each event and field, and each kind of value it may have, an input that differs in that field."""
    cases = []
    for name, row in EVENTS.items():
        for field, about in {**CONTRACT["base_input"], **row["input"]}.items():
            cases += [(name, {**full_input(name), field: value}) for value in values(field, about["type"])]
    return cases


def every_output() -> list[tuple[str, dict[str, Any]]]:
    """For each event, each field of its output by itself, with each kind of value it may have."""
    cases = []
    for name, row in EVENTS.items():
        specific = row["specific_output"] or {}
        needed = {field: values(field, about["type"])[0] for field, about in specific.items() if about["required"]}
        for field, about in specific.items():
            cases += [
                (name, {"hookSpecificOutput": {"hookEventName": name, **needed, field: value}})
                for value in values(field, about["type"])
            ]
    return cases
