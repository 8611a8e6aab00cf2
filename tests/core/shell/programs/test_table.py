"""The table of programs: one row each, tags and looks that exist, and two views that are never one."""

from __future__ import annotations

import re
from pathlib import Path

from hookline.core.shell import parse_line, writes
from hookline.core.shell.programs import table
from hookline.core.shell.programs.table import known, lists, names, program, values
from hookline.core.shell.targets import _KINDS
from hookline.core.shell.wrappers import LOOKS

FILE = Path(table.__file__).with_name("rows.txt").read_text()


def test_a_program_has_one_row() -> None:
    """What is said of it in one place cannot be contradicted in another."""
    every = [name for key, _ in table._read_rows(FILE) for name in key.split()]

    assert sorted({name for name in every if every.count(name) > 1}) == []


def test_every_tag_is_explained_and_every_look_and_writer_exists() -> None:
    """A misspelt word in a row would be a fact that nothing reads."""
    explained = set(re.findall(r"[`,] ?`?([a-z-]+)(?=[`=])", FILE.partition("\n\n")[0]))
    aside = {"own-syntax", "changes", "texts", "pattern", "no-pattern", "most"}

    assert set(table._TAGS) - explained <= aside
    assert set(values("look").values()) == set(LOOKS)
    assert {kind for kinds in lists("writes").values() for kind in kinds if not kind.startswith("-")} == set(_KINDS)


def test_options_stand_behind_the_tags_in_every_row() -> None:
    """Tags are read up to the first option."""
    late = [
        (key, word)
        for key, row in table.ROWS.items()
        for word in re.sub(r"^.*?(?= -)", "", f"{row} ", count=1).split()
        if " -" in row and not word.startswith("-")
    ]

    assert late == []


def test_what_is_not_in_a_row_is_not_known() -> None:
    """An abbreviation, a bundle with an unknown letter, an option that runs a program."""
    sort = program("sort")

    assert known(["-n", "-k", "2", "a"], sort) is not None
    for words in (["--numeric"], ["-no"], ["-o", "x"], ["--compress-program=x"], ["--compress-prog=x"]):
        assert known(words, sort) is None, words
    assert sort.runs == ("--compress-program",)
    assert known(["a"], program("made-up")) is not None
    assert known(["-a"], program("made-up")) is None


def test_what_is_suspected_counts_for_the_worst() -> None:
    """The same words: nothing is claimed by the one view, and everything is feared by the other."""
    assert parse_line("sort --compress-prog=x a").undecidable
    assert parse_line("sudo --made-up ls").undecidable
    assert writes("made-up --output=x").targets == ("x",)
    assert "sed" in names("opens") & names("text") & names("script-first")
    assert lists("recipe")["make"] == ("GNUmakefile", "makefile", "Makefile")
