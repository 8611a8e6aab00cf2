"""Events over the wire, against the recorded contract: every field of every event, both ways."""

import json
from typing import Any

import pytest

from hookline.core.wire import claude
from hookline.errors import EventError, UnknownEvent
from hookline.events import CATALOG, Event, FileChanged, PostToolUse, PreCompact, PreToolUse, SessionStart
from tests.core.wire.samples import CONTRACT, EVENTS, SEED_FIELDS, every_input, full_input, least
from tests.tables import each

INPUTS = every_input()


def trusted(raw: bytes, name: str) -> Event:
    return claude.trusted_reader(CATALOG[name].cls)(raw)


def test_the_contract_and_the_catalogue_have_the_same_events() -> None:
    """No event is missing and none is made up."""
    assert set(CATALOG) == set(EVENTS)
    assert len(CATALOG) == 33


@pytest.mark.parametrize("name", EVENTS)
def test_every_field_of_the_contract_is_a_field_of_the_event(name: str) -> None:
    """What the contract lists can be read as an attribute, and the event knows no field beyond it."""
    fields = {*CONTRACT["base_input"], *EVENTS[name]["input"], *SEED_FIELDS.get(name, ())}

    assert set(CATALOG[name].cls.__struct_fields__) - {"timestamp", "extra"} == fields


@each("name, payload", INPUTS)
def test_every_input_comes_back_as_it_went_in(name: str, payload: dict[str, Any]) -> None:
    """Decoded and encoded again, an input says what it said; a null that the wire may leave out is left out."""
    raw = json.dumps(payload, separators=(",", ":")).encode()
    event = claude.decode_event(raw)

    assert type(event) is CATALOG[name].cls
    assert {key: getattr(event, key) for key in payload} == payload
    assert event.extra == {}
    assert json.loads(claude.encode_event(event)) == payload
    assert claude.event_from(payload) == trusted(raw, name) == event


@pytest.mark.parametrize("name", EVENTS)
def test_unknown_fields_survive(name: str) -> None:
    """A field that is new tomorrow is readable today, and goes on to whoever is told next."""
    unknown = {"new_field": {"a": [1, 2]}, "timestamp": "2026-01-31T09:30:00Z", "extra": "theirs", "type": None}
    payload = {**full_input(name), **unknown}
    event = claude.decode_event(json.dumps(payload))

    assert event.extra == unknown
    assert json.loads(claude.encode_event(event)) == payload
    assert trusted(json.dumps(payload).encode(), name) == event


@pytest.mark.parametrize("name", EVENTS)
def test_a_name_is_enough(name: str) -> None:
    """Everything but the tool's name has a default, and an event made here says the same over the wire."""
    assert claude.decode_event({"hook_event_name": name, **least(name)}) == CATALOG[name].cls(**least(name))


def test_an_extra_field_never_replaces_a_known_one() -> None:
    """What an event says of itself beats what rides along."""
    event = PreToolUse(tool_name="Bash", extra={"tool_name": "Read", "hook_event_name": "Stop", "more": 1})
    said = claude.event_object(event)

    assert (said["tool_name"], said["hook_event_name"], said["more"]) == ("Bash", "PreToolUse", 1)


def test_what_is_absent_is_not_written_but_a_said_null_is() -> None:
    """The CLI writes `null` for a few fields and leaves the others out."""
    assert "prompt_id" not in claude.event_object(PreCompact())
    assert claude.event_object(PreCompact())["custom_instructions"] is None
    assert claude.event_object(PostToolUse(tool_name="Bash"))["tool_response"] is None


def test_whole_numbers_are_written_without_a_point() -> None:
    """As JavaScript writes them, so that a shell script can compare them."""
    event = claude.decode_event(
        {"hook_event_name": "SessionStart", "context_tokens": 7, "estimated_cache_write_usd": 0.5}
    )

    assert isinstance(event, SessionStart)
    assert b'"context_tokens":7,' in claude.encode_event(event)
    assert b'"estimated_cache_write_usd":0.5' in claude.encode_event(event)


def test_white_space_changes_nothing_for_a_trusted_line() -> None:
    """The fast way is for the CLI's own spelling; any other spelling is read too."""
    raw = json.dumps({"hook_event_name": "FileChanged", "file_path": "/a", "event": "add"}, indent=2).encode()

    assert trusted(raw, "FileChanged") == FileChanged(file_path="/a", event="add")


def test_a_name_inside_the_payload_does_not_mislead_a_trusted_line() -> None:
    """Only the event's own name counts, wherever it stands."""
    payload = {"tool_input": {"hook_event_name": "Stop"}, "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    raw = json.dumps(payload, separators=(",", ":")).encode()

    assert trusted(raw, "PreToolUse") == PreToolUse(tool_name="Bash", tool_input={"hook_event_name": "Stop"})


BROKEN = [b"", b"[]", b"\xff", b'{"hook_event_name":"Nope"}', b'{"hook_event_name":"\xff"}',
          b'{"hook_event_name":"PreToolUse"}', b'{"hook_event_name":"Stop","cwd":1}']  # fmt: skip


@pytest.mark.parametrize("raw", BROKEN)
def test_a_trusted_line_that_is_wrong_gets_the_same_error(raw: bytes) -> None:
    """Trusted means that its writer is no enemy, not that it is never wrong."""
    with pytest.raises(EventError) as careful:
        claude.decode_event(raw)
    with pytest.raises(EventError) as trusting:
        trusted(raw, "Stop" if b"Stop" in raw else "PreToolUse")

    assert str(trusting.value) == str(careful.value)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "event: `hook_event_name` is missing; write the event's name, such as `PreToolUse`"),
    ({"hook_event_name": 1}, "event: `hook_event_name` is missing; write the event's name, such as `PreToolUse`"),
    ({"hook_event_name": "PreToolUse"}, "PreToolUse: `tool_name` is missing; write the tool's name, such as `Bash`"),
    ({"hook_event_name": "PreToolUse", "tool_name": 1}, "PreToolUse: `tool_name`: expected a string, got a number"),
    ({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": [1], "unknown": 1},
     "PreToolUse: `tool_input`: expected an object, got an array"),
    ({"hook_event_name": "Stop", "stop_hook_active": "yes"},
     "Stop: `stop_hook_active`: expected `true` or `false`, got a string"),
    ({"hook_event_name": "Stop", "cwd": None}, "Stop: `cwd`: expected a string, got null; leave it out to say nothing"),
    ({"hook_event_name": "Stop", "prompt_id": 1}, "Stop: `prompt_id`: expected a string or null, got a number"),
    ({"hook_event_name": "Stop", "background_tasks": [{}, 3]},
     "Stop: `background_tasks[1]`: expected an object, got a number"),
]  # fmt: skip


@pytest.mark.parametrize("payload, problem", WRONG, ids=[problem for _, problem in WRONG])
def test_a_wrong_value_is_named_with_its_place(payload: dict[str, Any], problem: str) -> None:
    """The error says where, what was expected, and what to do."""
    with pytest.raises(EventError) as raised:
        claude.decode_event(payload)

    assert str(raised.value) == problem


def test_an_unknown_event_is_refused_with_the_near_ones() -> None:
    """A typo is answered with what was probably meant."""
    with pytest.raises(UnknownEvent) as near:
        claude.decode_event({"hook_event_name": "PreToolUsed"})
    with pytest.raises(UnknownEvent) as far:
        claude.decode_event({"hook_event_name": "xyzzy"})

    assert str(near.value).startswith("unknown event `PreToolUsed`; did you mean `PreToolUse`")
    assert str(far.value).startswith("unknown event `xyzzy`; write one of PreToolUse, PostToolUse, ")


@pytest.mark.parametrize("value, problem", [
    ("\ud800", "it has a lone surrogate; use valid Unicode"),
    (object(), "encoding objects of type object is unsupported; use strings, numbers, lists and dicts"),
])  # fmt: skip
def test_an_event_that_json_cannot_say_is_refused(value: Any, problem: str) -> None:
    """A host's own value that cannot be sent is an error of ours, not of the encoder's."""
    with pytest.raises(EventError) as raised:
        claude.encode_event(PreToolUse(tool_name="Bash", tool_input={"a": value}))

    assert str(raised.value) == f"PreToolUse: cannot be written as JSON: {problem}"


def test_an_event_that_contains_itself_is_refused() -> None:
    """A cycle has no end."""
    loop: dict[str, Any] = {}
    loop["again"] = loop

    with pytest.raises(EventError, match="nested too deep, or contains itself"):
        claude.encode_event(PreToolUse(tool_name="Bash", tool_input=loop))


def test_any_value_can_be_written_as_text() -> None:
    """For placeholders that are filled in with JSON."""
    assert claude.encoded({"a": [1]}) == '{"a":[1]}'


@pytest.mark.parametrize("name", EVENTS)
def test_fields_come_in_claude_code_s_order(name: str) -> None:
    """What all events share, the event's name, then its own (`run_raw`): scripts that cut lines apart rely on it."""
    event = claude.decode_event(dict(reversed(full_input(name).items())))
    written = list(json.loads(claude.encode_event(event)))
    at = written.index("hook_event_name")

    assert set(written[:at]) <= set(CONTRACT["base_input"])
    assert set(written[at + 1 :]) & set(CONTRACT["base_input"]) == set()


@pytest.mark.parametrize("raw, reads", [
    (b'{"hook_event_name":"PreToolUse","tool_name":"Bash","cwd":"/p"}', "Bash"),
    (b'{"hook_event_name":"PreToolUse","tool_name":"Bash","new_field":1}', "Bash"),
    (b'{"hook_event_name":"PreToolUse","cwd":"/p"}', None),
    (b"[]", None),
])  # fmt: skip
def test_a_host_that_knows_which_event_comes_reads_the_same(raw: bytes, reads: str | None) -> None:
    """The short way reads what the careful way reads, and refuses what it refuses."""
    read = claude.trusted_reader(PreToolUse)

    if reads is None:
        with pytest.raises(EventError):
            read(raw)
    else:
        assert read(raw) == claude.decode_event(raw)
