"""The reference cannot go stale: it is what the code says now, and every public name is in it."""

import argparse
import dataclasses
import re
from pathlib import Path

import pytest

import hookline
from hookline import agent, cli
from hookline.agent.factory import RunOptions
from hookline.cli.commands.run import parser as run_parser
from hookline.cli.main import COMMANDS
from hookline.events import CATALOG, spec_of
from hookline.replies import EventFields, Reply
from hookline.settings.parse import COMMON, KINDS
from hookline.settings.policy import OWN_KEYS
from tools.reference import FOLDER, PAGES, page
from tools.reference.words import ENTRY, FIELDS, ON_EVENT, SWITCHES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_says_what_the_code_says(name: str) -> None:
    """Changed the code? `make docs` writes the reference anew."""
    written = (FOLDER / name).read_text()

    assert written == page(name), f"docs/reference/{name} is stale; run `make docs` (or `python -m tools.reference`)"


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def test_every_event_and_every_field_has_its_place() -> None:
    """One section per event, one row per field of its own."""
    said = text("events.md")

    for name, spec in CATALOG.items():
        section = said.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
        for field in set(spec.cls.__struct_fields__) - set(hookline.Event.__struct_fields__):
            assert f"| `{field}` |" in section, f"{name}.{field}"


def test_the_guide_has_every_event_and_knows_its_gates() -> None:
    """`docs/HOOKS.md` is written by hand, so its table is held against the catalogue."""
    guide = (FOLDER.parent / "HOOKS.md").read_text().split("## Events", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in guide.splitlines() if line[:1] == "|"]
    said = {name: row[1] == "gate" for row in rows[2:] for name in row[0].split(", ")}

    assert said == {name: spec.gate for name, spec in CATALOG.items()}


def test_every_reply_field_and_constructor_is_listed() -> None:
    """The constructors are the public names that make replies."""
    said = text("replies.md")
    makers = [name for name in hookline.__all__ if getattr(hookline, name).__module__ == "hookline.replies"]

    for field in (*Reply.__struct_fields__, *EventFields.__struct_fields__):
        assert f"| `{field}` |" in said, field
    for name in makers:
        assert f"`{name}(" in said or name in ("Decision", "Reply"), name


def test_every_command_and_flag_is_listed() -> None:
    """A new command appears by itself, and so does a flag."""
    said = text("commands.md")

    assert [name for name in COMMANDS if f"\n## `hookline {name}`\n" not in said] == []
    own = set(run_parser().flags) - {"-h", "--help", "--version", "-d", "-n"}
    assert [flag for flag in own if f"`{flag}`" not in said] == []


def test_every_option_of_a_run_is_a_flag_that_somebody_reads() -> None:
    """No flag is taken and forgotten."""
    rooms = [Path(cli.__file__).parent, Path(agent.__file__).parent]
    code = "".join(path.read_text() for room in rooms for path in room.rglob("*.py"))
    options = {field.name for field in dataclasses.fields(RunOptions)}

    shown = {flag.dest for flag in run_parser().flags.values() if flag.help != argparse.SUPPRESS}
    assert shown - {"help", "version"} == options
    assert [name for name in options if not re.search(rf"(options|self)\.{name}\b", code)] == []


def test_every_setting_has_a_word() -> None:
    """And no word is left of a key that is gone."""
    keys = {*COMMON, *(key for fields in KINDS.values() for key in fields)}

    assert keys == set(ENTRY) - {"type"}
    assert set(OWN_KEYS) <= set(SWITCHES)


def test_no_word_is_left_of_a_field_that_is_gone() -> None:
    """The words stand beside the code, so they are held against it."""
    fields = {field for spec in CATALOG.values() for field in spec.cls.__struct_fields__}

    assert set(FIELDS) <= fields
    assert [pair for pair in ON_EVENT if pair[1] not in spec_of(pair[0]).cls.__struct_fields__] == []


def test_every_public_name_is_somewhere_in_the_reference() -> None:
    """What `from hookline import …` offers is documented."""
    everything = "".join(path.read_text() for path in Path(FOLDER).glob("*.md"))

    assert [name for name in hookline.__all__ if f"`{name}" not in everything] == []
