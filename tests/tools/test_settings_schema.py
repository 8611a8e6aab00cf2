"""The JSON Schema of settings: an independent validator agrees with our own reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from hookline.cli.commands.init import starter
from hookline.settings.parse import KINDS
from tools.reference.schema import settings_schema

VALIDATOR = jsonschema.Draft202012Validator(settings_schema())


def hook(**entry: Any) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}}


def test_it_is_a_schema() -> None:
    """By the standard's own rules."""
    jsonschema.Draft202012Validator.check_schema(settings_schema())


def as_written(value: Any) -> Any:
    """A case's settings with its recorded hooks as the commands they stand for."""
    if isinstance(value, dict):
        plain = {key: as_written(item) for key, item in value.items() if key != "rec"}
        return {"type": "command", "command": "hook", **plain} if "rec" in value else plain
    return [as_written(item) for item in value] if isinstance(value, list) else value


def test_settings_that_claude_code_reads_are_valid() -> None:
    """Every recorded case about PreToolUse, a few dozen files, but for those that are wrong on purpose."""
    cases = Path(__file__).parents[1] / "contract" / "cases"
    settings = [as_written(json.loads(path.read_text()).get("settings")) for path in sorted(cases.glob("pre_*.json"))]
    valid = [VALIDATOR.is_valid(one) for one in settings if one]

    assert valid.count(True) > 20
    assert valid.count(False) < valid.count(True) / 10


def test_the_starter_file_is_valid() -> None:
    """And names the schema."""
    assert list(VALIDATOR.iter_errors({"hooks": starter()})) == []


WRONG = [
    hook(type="command"),
    hook(type="command", command=3),
    hook(type="command", command="x", timeout="30s"),
    hook(type="command", command="x", onFailure="stop"),
    hook(type="shell", command="x"),
    {"hooks": {"PreTooluse": []}},
    {"hooks": []},
]


@pytest.mark.parametrize("settings", WRONG)
def test_a_mistake_is_found(settings: dict[str, Any]) -> None:
    """While the file is being written."""
    assert not VALIDATOR.is_valid(settings)


@pytest.mark.parametrize("kind", KINDS)
def test_each_keys_example_is_valid(kind: str) -> None:
    """What a message tells people to write is what an editor accepts."""
    entry = {"type": kind, **{key: json.loads(field.write) for key, field in KINDS[kind].items()}}

    assert list(VALIDATOR.iter_errors(hook(**entry))) == []
