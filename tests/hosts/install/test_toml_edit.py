"""Our keys in somebody else's TOML file: set, added, removed; everything else as it was."""

import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import HooklineError
from hookline.hosts.install import toml_edit
from hookline.hosts.install.apply import keep_form
from hookline.hosts.install.toml_edit import checked, literal, lookup

KEY = ("hooks", "state", "/a b/hooks.json:stop:0:0", "trusted_hash")
QUOTED = '"/a b/hooks.json:stop:0:0"'
ROW = {"event": "PreToolUse", "command": "ours", "timeout": 3}

PARTS = [
    "", "\n", "# a comment\n", "a = 1\n", "  b.c = 'x' # [not.a.table]\n", 'long = """\n[hooks]\n\\""" x"""\n',
    "raw = '''\n[[hooks]]\n'''\n", "list = [\n  1, # one ]\n  [2, 3],\n]\n", "pi = nan\n",
    "when = 2020-01-01T00:00:00Z\n",
    'map = {x = 1.5, "y z" = ["]"]}\n', '"=" = "="\n', "'#' = '#'\n",
]  # fmt: skip
TABLES = [
    "", "[mcp_servers.x]\ncommand = 'echo'\n", '\n[projects."/some where"]\ntrust_level = "trusted"\n', "[ hooks ]\n",
    "[hooks.state]\n", f"[hooks.state.{QUOTED}]\nenabled = true # mine\n",
    '[hooks.state."other"]\ntrusted_hash = "o"\n',
    '[hooks]\nstate.other.trusted_hash = "dotted"\n', "[hooks]\nstate = {other = {trusted_hash = 'inline', x = 1.5}}\n",
    "[hooks.state]\nother = {trusted_hash = 'inline'}\n", "[[rows]]\nx = 1\n[rows.inner]\ny = 2\n",
]  # fmt: skip


def set_value(text: str, path: tuple[str, ...], value: Any) -> str:
    return keep_form(text, lambda body: toml_edit.set_value(body, path, value))


def remove_value(text: str, path: tuple[str, ...]) -> str:
    return keep_form(text, lambda body: toml_edit.remove_value(body, path))


def add_row(text: str, name: str, row: dict[str, Any]) -> str:
    return keep_form(text, lambda body: toml_edit.add_row(body, name, row))


def remove_rows(text: str, name: str, unwanted: Callable[[Mapping[str, Any]], bool]) -> str:
    return keep_form(text, lambda body: toml_edit.remove_rows(body, name, unwanted))


files = st.tuples(
    st.lists(st.sampled_from(PARTS), unique=True),
    st.sampled_from(TABLES),
    st.sampled_from(["", "[after]\nx = 1\n"]),
    st.sampled_from(["", "# the end", "\n\n"]),
    st.booleans(),
).map(lambda made: "".join([*made[0], made[1], made[2], made[3]]).removesuffix("\n" if made[4] else "\0"))


def updated(values: dict[str, Any], value: str) -> dict[str, Any]:
    inner = values.setdefault(KEY[0], {}).setdefault(KEY[1], {}).setdefault(KEY[2], {})
    inner[KEY[3]] = value
    return values


@given(files)
def test_a_key_goes_in_and_comes_out_of_any_file(text: str) -> None:
    """Set, set again, removed: nothing else has another value, and the text is as it was to the byte."""
    once = set_value(text, KEY, "one")
    twice = set_value(once, KEY, "two")

    assert checked(once) == updated(checked(text), "one")
    assert checked(twice) == updated(checked(text), "two")
    assert set_value(twice, KEY, "two") == twice
    after = remove_value(twice, KEY)
    assert remove_value(after, KEY) == after
    assert lookup(checked(after), KEY) is None
    if "{" not in text.partition("[hooks")[2]:  # an inline table is written in our way
        assert after == text


@given(files, st.integers(1, 3))
def test_rows_go_in_and_come_out_of_any_file(text: str, count: int) -> None:
    """An array of tables grows at the end of the file, and only our rows are taken out again."""
    text = text.replace("[hooks", "[others").replace("[ hooks", "[ others") + "\n[[hooks]]\nevent = 'Stop'\n"
    made = text
    for _ in range(count):
        made = add_row(made, "hooks", ROW)

    assert checked(made)["hooks"][1:] == [ROW] * count
    later = made + ("" if made.endswith("\n") else "\n") + "\n[later]\nx = 1\n"
    assert remove_rows(made, "hooks", lambda row: row.get("command") == "ours") == text
    kept = remove_rows(later, "hooks", lambda row: row.get("command") == "ours")
    assert checked(kept) == {**checked(text), "later": {"x": 1}}


def test_what_another_program_writes_between_our_tables_stays() -> None:
    """Codex puts its own tables before, behind and between them."""
    made = set_value(set_value('model = "x"', ("h", "a", "k"), "1"), ("h", "b", "k"), "2")
    first, _, second = made.partition("\n[h.b]")
    mixed = (
        f"{first}\n[mcp_servers.x]\ncommand = 'echo'\n\n[h.b]{second}\n\n[projects.\"/p\"]\ntrust_level = 'trusted'\n"
    )

    after = remove_value(remove_value(mixed, ("h", "a", "k")), ("h", "b", "k"))

    assert checked(after) == {
        "model": "x", "mcp_servers": {"x": {"command": "echo"}}, "projects": {"/p": {"trust_level": "trusted"}},
    }  # fmt: skip


@pytest.mark.parametrize("text", ["hooks = 1\n", "[[hooks]]\nx = 1\n", "hooks.state = []\n"])
def test_what_cannot_be_edited_is_refused(text: str) -> None:
    """The path that is in the way is named, and nothing is made up."""
    with pytest.raises(HooklineError, match=r"`hooks\.state\..*` cannot be edited here"):
        set_value(text, KEY, "x")


@pytest.mark.parametrize("value", ["plain", 'a "quote"', "back\\slash", "ü\n\t\x7f\x01", 5, True, False,
                                   {"a b": [1, {"c": "d"}]}])  # fmt: skip
def test_values_are_read_as_they_were_meant(value: object) -> None:
    """Commands have quotes and backslashes in them."""
    assert tomllib.loads(f"x = {literal(value)}") == {"x": value}


@pytest.mark.parametrize("text, told", [("a = 1\nb = \n", "line 2"), ("a = " + "[" * 5000 + "]" * 5000, "too deep")])
def test_a_file_that_cannot_be_read_is_refused(text: str, told: str) -> None:
    """Nothing is added to what is broken, and no file makes us fail in our own words."""
    with pytest.raises(HooklineError, match=told):
        checked(text)
