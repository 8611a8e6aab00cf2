"""A marked block in a TOML file, and everything else as it was."""

import tomllib

import pytest

from hookline.errors import HooklineError
from hookline.hosts.install.toml_block import block_of, checked, literal, tables, with_block, without

TEXTS = ["", "a = 1\n", "# mine\na = 1\n\n[t]\nb = 2 # two\n", "[[hooks]]\nevent = 'Stop'\ncommand = 'theirs'\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_block_goes_in_and_comes_out(text: str) -> None:
    """In, again in, and out: the file is as it was."""
    body = tables("hooks", [{"event": "PreToolUse", "command": "ours", "timeout": 3}])

    once = with_block(text, "kimi", body)

    assert with_block(once, "kimi", body) == once
    assert without(once) == text
    assert tomllib.loads(once)["hooks"][-1] == {"event": "PreToolUse", "command": "ours", "timeout": 3}
    assert "ours" in block_of(once)
    assert block_of(text) == ""


def test_what_is_written_after_the_block_stays() -> None:
    """People and programs append to their files."""
    once = with_block("a = 1\n", "kimi", "[[hooks]]\nx = 1")

    assert without(once + "\n[later]\nb = 1\n") == "a = 1\n\n[later]\nb = 1\n"


@pytest.mark.parametrize("value", ["plain", 'a "quote"', "back\\slash", "ü\n\t\x7f\x01", 5, True, False])
def test_values_are_read_as_they_were_meant(value: object) -> None:
    """Commands have quotes and backslashes in them."""
    assert tomllib.loads(f"x = {literal(value)}") == {"x": value}


def test_a_file_that_cannot_be_read_is_refused_with_its_line() -> None:
    """Nothing is appended to what is broken."""
    with pytest.raises(HooklineError, match="line 2"):
        checked("a = 1\nb = \n")
