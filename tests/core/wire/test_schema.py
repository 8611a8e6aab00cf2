"""The generated JSON Schema, checked by an independent validator against the recorded contract."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from hookline.core.wire import claude
from hookline.core.wire.schema import event_schema, reply_schema, schema
from hookline.errors import UnknownEvent
from hookline.events import CATALOG
from tests.core.wire.samples import EVENTS, every_input, every_output, full_input, least


def problems(document: dict[str, Any], value: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(document).iter_errors(value)]


@pytest.mark.parametrize("name", EVENTS)
def test_every_schema_is_a_schema(name: str) -> None:
    """What we generate is itself valid, stands alone and can be written as JSON."""
    for document in (event_schema(name), reply_schema(name)):
        Draft202012Validator.check_schema(document)

        assert "$ref" not in json.dumps(document)


def test_every_input_of_the_contract_is_valid() -> None:
    """The schema accepts what the CLI sends."""
    for name, payload in every_input():
        assert problems(event_schema(name), payload) == []


def test_every_output_of_the_contract_is_valid() -> None:
    """The schema accepts what a hook may print."""
    for name, output in every_output():
        assert problems(reply_schema(name), output) == []


@pytest.mark.parametrize("name", EVENTS)
def test_what_we_write_is_valid(name: str) -> None:
    """Our own events keep our own schema."""
    assert problems(event_schema(name), json.loads(claude.encode_event(CATALOG[name].cls(**least(name))))) == []


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("PreToolUse", {"hook_event_name": "PostToolUse", "tool_name": "Bash"}),
    ("PreToolUse", {"hook_event_name": "PreToolUse"}),
    ("PreToolUse", {"hook_event_name": "PreToolUse", "tool_name": 1}),
    ("Stop", {"hook_event_name": "Stop", "stop_hook_active": "yes"}),
]


@pytest.mark.parametrize("name, payload", WRONG)
def test_what_the_decoder_refuses_the_schema_refuses(name: str, payload: dict[str, Any]) -> None:
    """One set of types, two readers, one opinion."""
    assert len(problems(event_schema(name), payload)) == 1


WRONG_REPLIES: list[tuple[str, dict[str, Any]]] = [
    ("PreToolUse", {"decision": "deny"}),
    ("PreToolUse", {"continue": None}),
    ("PreToolUse", {"asyncTimeout": 0}),
    ("PreToolUse", {"hookSpecificOutput": {"hookEventName": "Stop"}}),
    ("PreModelSwitch", {"hookSpecificOutput": {"hookEventName": "PreModelSwitch", "permissionDecision": "defer"}}),
    ("PermissionRequest", {"hookSpecificOutput": {"hookEventName": "PermissionRequest"}}),
    ("SessionEnd", {"hookSpecificOutput": {"hookEventName": "SessionEnd"}}),
]


@pytest.mark.parametrize("name, output", WRONG_REPLIES)
def test_an_answer_that_is_refused_does_not_fit_the_schema(name: str, output: dict[str, Any]) -> None:
    """One set of types, two readers, one opinion."""
    assert len(problems(reply_schema(name), output)) == 1


def test_one_document_has_it_all() -> None:
    """It describes any event, and has every answer under `$defs`."""
    document = schema()
    Draft202012Validator.check_schema(document)

    assert set(document["$defs"]) == {*EVENTS, *(f"ReplyTo{name}" for name in EVENTS)}
    assert [problems(document, full_input(name)) for name in EVENTS] == [[]] * 33
    assert len(problems(document, {"hook_event_name": "Nope"})) == 1


def test_an_unknown_event_has_no_schema() -> None:
    """The near ones are suggested."""
    for make in (event_schema, reply_schema):
        with pytest.raises(UnknownEvent, match="did you mean `Stop`"):
            make("Stopp")
