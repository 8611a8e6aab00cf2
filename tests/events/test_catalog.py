"""One class and one row per event, checked against the recorded contract."""

import json
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from hookline import HookEvent, Reply, allow, ask, context, deny, keep_going, replace_output, rewrite, specific
from hookline.errors import ReplyMismatch, UnknownEvent
from hookline.events import CATALOG, OWN_EVENTS, Event, FileChanged, PreToolUse, SessionStart, Stop, spec_of
from hookline.events.kinds import ToolEvent
from hookline.replies import EventFields, check_fits
from tests.core.wire.samples import SEED_FIELDS

CONTRACT: dict[str, Any] = {
    row["name"]: row
    for row in json.loads((Path(__file__).parents[1] / "contract" / "events.json").read_text(encoding="utf-8"))[
        "events"
    ]
}
PYTHON: dict[str, tuple[Any, ...]] = {
    "string": (str,), "boolean": (bool,), "number": (int, float), "string[]": (list[str],),
    "Record<string, unknown>": (dict[str, Any],),
}  # fmt: skip

SAID: dict[str, Reply] = {
    "permissionDecision": ask("why"),
    "permissionDecisionReason": deny("why"),
    "updatedInput": rewrite({"a": 1}),
    "additionalContext": context("c"),
    "classifierContext": specific(classifier_context="c"),
    "updatedToolOutput": replace_output(None),
    "updatedMCPToolOutput": specific(mcp_output=[1]),
    "sessionTitle": specific(session_title="t"),
    "suppressOriginalPrompt": specific(suppress_original_prompt=True),
    "initialUserMessage": specific(initial_user_message="m"),
    "watchPaths": specific(watch_paths=("/a",)),
    "reloadSkills": specific(reload_skills=True),
    "decision": allow() | rewrite({"a": 1}) | specific(updated_permissions=({"a": 1},)),
    "retry": specific(retry=True),
    "action": specific(action="accept"),
    "content": specific(content={"a": 1}),
    "worktreePath": specific(worktree_path="/w"),
    "displayContent": specific(display_content="d"),
}
"""How a hook says each field of the wire's `hookSpecificOutput`."""


def test_there_is_a_class_and_a_row_for_every_event_of_the_contract() -> None:
    """All 33, and no others."""
    assert set(CATALOG) == set(CONTRACT) == {str(name) for name in HookEvent}
    assert len(CATALOG) == 33


@pytest.mark.parametrize("name", CONTRACT)
def test_every_input_field_of_the_contract_is_a_field_of_the_class(name: str) -> None:
    """By its name; one that may be left out is `None` by default, one that is always there is not."""
    cls = CATALOG[name].cls
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    made = cls()

    for key, described in CONTRACT[name]["input"].items():
        assert key in fields, key
        default = getattr(made, key)
        if described["required"] and "null" not in described["type"] and described["type"] != "unknown":
            assert default is not None, key
        if not described["required"]:
            assert default is None, key


@pytest.mark.parametrize("name", CONTRACT)
def test_every_field_of_the_class_is_in_the_contract_or_in_every_event(name: str) -> None:
    """Nothing is made up."""
    cls = CATALOG[name].cls

    assert set(cls.__struct_fields__) - set(Event.__struct_fields__) <= {
        *CONTRACT[name]["input"],
        *SEED_FIELDS.get(name, ()),
    }


@pytest.mark.parametrize("name", CONTRACT)
def test_plain_types_are_the_contracts(name: str) -> None:
    """Texts are `str`, numbers are numbers, flags are `bool`."""
    hints = get_type_hints(CATALOG[name].cls)
    for key, described in CONTRACT[name]["input"].items():
        if described["type"] in PYTHON:
            expected = PYTHON[described["type"]]
            hint = hints[key]
            assert any(hint == one or hint == (one | None) for one in expected), (key, hint)


@pytest.mark.parametrize("name", CONTRACT)
def test_every_specific_output_can_be_said_and_fits_its_event(name: str) -> None:
    """A reply that says it passes the check; on events that lack it, it is refused."""
    spec = CATALOG[name]
    output = CONTRACT[name].get("specific_output") or {}

    for key in output:
        check_fits(SAID[key], name, spec.decisions, spec.fields)
    own = {"permissionDecision", "permissionDecisionReason", "decision"}
    for key in set(SAID) - set(output) - own:
        if name == "PermissionRequest" and key == "updatedInput":
            continue  # said inside its decision
        if name == "PreCompact" and key == "additionalContext":
            continue  # seeds: a hook may add to what the summary keeps
        with pytest.raises(ReplyMismatch):
            check_fits(SAID[key], name, spec.decisions, spec.fields)


def test_every_specific_output_of_the_contract_has_a_way_to_be_said() -> None:
    """And every field of `EventFields` fits some event."""
    keys = {key for row in CONTRACT.values() for key in (row.get("specific_output") or {})}
    fields = {field for spec in CATALOG.values() for field in spec.fields}

    assert keys <= set(SAID)
    assert set(EventFields.__struct_fields__) <= fields


def test_what_keeps_an_agent_going_fits_where_it_can_stop() -> None:
    """And a deny there is refused with a hint."""
    for name in ("Stop", "SubagentStop", "TeammateIdle"):
        spec = CATALOG[name]
        check_fits(keep_going("more"), name, spec.decisions, spec.fields)
        with pytest.raises(ReplyMismatch, match="answer `keep_going"):
            check_fits(deny("no"), name, spec.decisions, spec.fields)


def test_every_gate_can_be_denied() -> None:
    """Or a failing hook could not close it."""
    assert all("deny" in spec.decisions for spec in CATALOG.values() if spec.gate)


def test_a_row_says_what_its_event_is() -> None:
    """Name, subject and one sentence."""
    spec = spec_of(SessionStart)

    assert (spec.name, spec.subject) == ("SessionStart", "source")
    assert spec.about == "A session begins, or begins again after a resume, a clear or a compaction."
    assert all(spec.about for spec in CATALOG.values())
    assert spec_of("Stop") is spec_of(Stop()) is spec_of(HookEvent("Stop"))


def test_an_unknown_event_is_refused_with_the_near_ones() -> None:
    """Or with all of them, if none is near."""
    with pytest.raises(UnknownEvent, match="did you mean `PreToolUse`"):
        spec_of("PreToolUsed")
    with pytest.raises(UnknownEvent, match="write one of PreToolUse, "):
        spec_of("zzz")


def test_events_are_equal_when_all_but_their_time_is() -> None:
    """They are compared, never used as keys."""
    assert PreToolUse(tool_name="a") == PreToolUse(tool_name="a")
    assert not (PreToolUse(tool_name="a") != PreToolUse(tool_name="a"))  # noqa: SIM202
    assert PreToolUse(tool_name="a") != PreToolUse(tool_name="b")
    assert PreToolUse() != Stop()
    assert PreToolUse() != "PreToolUse"
    with pytest.raises(TypeError):
        hash(PreToolUse())


def test_events_know_their_name_and_subject() -> None:
    """The subject is what a matcher looks at."""
    assert (PreToolUse(tool_name="a").subject, PreToolUse().hook_event_name) == ("a", "PreToolUse")
    assert Stop().subject is None
    assert FileChanged(file_path="C:\\a\\b.txt").subject == FileChanged(file_path="/a/b.txt").subject == "b.txt"
    assert PreToolUse().timestamp.tzinfo is not None


def test_an_event_is_called_what_its_class_is() -> None:
    """One that is made from another keeps that one's name, which hooks are registered for; a class may name its own."""

    class Patched(PreToolUse, frozen=True):
        pass

    class Renamed(Event, frozen=True):
        event_name = "Mine"

    rows = (*CATALOG.items(), *OWN_EVENTS.items())
    assert [name for name, row in rows if name != row.cls.__name__] == []
    assert (Patched.event_name, Renamed.event_name, ToolEvent.event_name) == ("PreToolUse", "Mine", "")


def test_events_are_frozen() -> None:
    """A hook answers; it does not edit."""
    with pytest.raises(AttributeError):
        PreToolUse().tool_name = "x"  # type: ignore[misc]


def test_an_event_of_our_own_agent_has_a_row() -> None:
    """It is not in the CLI's catalogue, and is found all the same."""
    assert "PreModelCall" not in CATALOG
    assert spec_of("PreModelCall").name == "PreModelCall"


def test_a_hook_on_several_events_can_ask_any_of_them_for_its_tool() -> None:
    """What an event does not have is `None`, not an error (seeds/002); a misspelt attribute still is one."""
    made = [spec.cls() for spec in CATALOG.values()]

    for event in made:
        assert isinstance(event.tool_name, str | None), event
        assert event.tool_name is None or event.subject_field == "tool_name", event
        assert isinstance(event.tool_input, dict | None), event
        for name in ("tool_use_id", "command", "file_path", "url"):
            assert isinstance(getattr(event, name), str | None), (event, name)
    with pytest.raises(AttributeError):
        made[0].tool_nmae  # type: ignore[attr-defined]  # noqa: B018
