"""The header of markdown files."""

import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.errors import MissingExtra
from hookline.settings import Problem, load
from hookline.settings.files import Markdown, parse_markdown, read_markdown
from tests.settings.world import World


def test_header_and_text_are_read(tmp_path: Path) -> None:
    """Every field of the header, as YAML has it; dates stay as they are written."""
    file = tmp_path / "rev.md"
    file.write_text(
        "---\nname: rev\ntools: Read, Bash\nmodel: haiku\nsince: 2024-01-02\n7: x\n---\nYou are.\n---\nMore\n"
    )

    assert read_markdown(file) == Markdown(
        {"name": "rev", "tools": "Read, Bash", "model": "haiku", "since": "2024-01-02", "7": "x"},
        "You are.\n---\nMore\n",
    )


@pytest.mark.parametrize("text", ["Just text", "", "text\n---\nname: x\n---\n", "----\n"])
def test_a_file_without_a_header_is_all_text(text: str) -> None:
    """`---` counts on the first line alone."""
    assert parse_markdown(text, "x.md") == Markdown({}, text)


@pytest.mark.parametrize(
    "header, message",
    [
        ("- a", "its header must be `key: value` lines, got `[\"a\"]`"),
        ("just text", "its header must be `key: value` lines, got `\"just text\"`"),
        ("{[", "its header is not YAML: line 3 column 1: expected the node content, but found '<stream end>'"),
        ("a: " + "[" * 150 + "]" * 150, "its header cannot be read: it is nested too deeply"),
        ("a: " + "x" * 300_000, "its header is longer than 256 KiB; nothing of it is read"),
    ],
)  # fmt: skip
def test_a_header_that_is_no_yaml_is_a_problem_and_the_text_is_kept(header: str, message: str) -> None:
    """Line and column are those of the file; nothing is executed and nothing explodes."""
    assert parse_markdown(f"---\n{header}\n---\nText", "x.md") == Markdown({}, "Text", (Problem("x.md", message),))


@pytest.mark.parametrize(
    "header, why",
    [
        ("a: [", "line 3 column 1: expected the node content, but found '<stream end>'"),
        ("a: b: c", "line 2 column 5: mapping values are not allowed here"),
        ("a: *x", "line 2: `*` begins an alias, which is not understood; quote it"),
        ("a: !!python/object/apply:os.system [id]",
         ("line 2 column 4: could not determine a constructor for the tag "
          "'tag:yaml.org,2002:python/object/apply:os.system'")),
    ],
)  # fmt: skip
def test_a_value_that_is_no_yaml_is_text_and_a_warning(header: str, why: str) -> None:
    """Line and column are those of the file; nothing is executed and nothing explodes."""
    message = f"its header is not YAML ({why}) and is read as it seems to be meant; quote the value"
    found = parse_markdown(f"---\n{header}\n---\nText", "x.md")

    assert found == Markdown({"a": header.removeprefix("a: ")}, "Text", (Problem("x.md", message, "warning"),))


def test_a_header_without_an_end_is_a_problem() -> None:
    """The text is not lost."""
    found = parse_markdown("---\nname: x\n", "x.md")

    assert (found.body, [p.message for p in found.problems]) == (
        "---\nname: x\n", ["its header has no end; write `---` on a line of its own after it"],
    )  # fmt: skip


def test_an_empty_header_and_windows_lines_are_fine() -> None:
    """Nothing in it is nothing wrong."""
    assert parse_markdown("---\n---\nText", "x.md") == Markdown({}, "Text")
    assert parse_markdown("---\r\nname: x\r\n---\r\nText", "x.md") == Markdown({"name": "x"}, "Text")


def test_without_the_extra_a_header_says_what_to_install(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one raises; settings report it and go on."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    world.write("proj/.claude/agents/a.md", "---\nname: a\nhooks: {}\n---\n")
    world.write("proj/.claude/agents/b.md", "---\nname: b\n---\nneeds none\n")

    with pytest.raises(MissingExtra, match=r"pip install 'hookline\[yaml\]'"):
        parse_markdown("---\na: 1\n---\n", "x.md")
    [problem] = load(world.project, home=world.home, managed=world.managed).problems
    assert str(problem) == (
        ".claude/agents/a.md: reading the header of .claude/agents/a.md needs an extra; "
        "run `pip install 'hookline[yaml]'`"
    )


@pytest.mark.parametrize("hooks", ["5", "[]", "{true: [], PreToolUse: {1: {2: 3}}}", "!!set {a, b}", "!!binary aGk="])
def test_yaml_that_json_does_not_know_is_no_crash(world: World, hooks: Any) -> None:
    """Keys that are no text, sets and bytes come out as problems, not as exceptions."""
    world.write("proj/.claude/agents/a.md", f"---\nname: a\nhooks: {hooks}\n---\n")

    loaded = load(world.project, home=world.home, managed=world.managed)
    assert (loaded.hooks, len(loaded.problems) > 0) == ((), True)
