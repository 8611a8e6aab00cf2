"""JSON with comments is edited in place; what others wrote stays, to the letter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import HooklineError
from hookline.hosts.install.jsonc import BadJson, Node, append, cut, parse, put

COMMENTED = """{
  // my settings
  "theme": "dark", /* the best */
  "hooks": {
    "BeforeTool": [
      {"hooks": [{"type": "command", "command": "theirs"}]}, // theirs
    ], // keep this
  },
}
"""
PLAIN = '{\n    "hooks": {\n        "BeforeTool": [\n            1\n        ]\n    }\n}'
INLINE = '{"a": 1, "hooks": {"BeforeTool": [1]}}'
TABS = '{\n\t"hooks": {\n\t\t"BeforeTool": [\n\t\t\t1 // one\n\t\t]\n\t}\n}\n'
EMPTY_ARRAY = '{\n  "hooks": {"BeforeTool": []}\n}\n'
TEXTS = [COMMENTED, PLAIN, INLINE, TABS]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("path", [("hooks", "BeforeTool"), ("hooks", "AfterTool"), ("other", "deep", "list")])
def test_what_was_added_can_be_taken_out_again(text: str, path: tuple[str, ...]) -> None:
    """An entry that is added and cut leaves the text as it was, comments, commas and white space included."""
    added = append(text, path, {"command": "ours", "timeout": 5})

    assert cut(added, *added_part(text, added, path)) == text


def added_part(before: str, after: str, path: tuple[str, ...]) -> tuple[Node, Node]:
    """The topmost part that is new, with its parent."""
    parent, old = parse(after), parse(before)
    for name in path:
        if name not in old.members:
            return parent, parent.members[name]
        parent, old = parent.members[name], old.members[name]
    return parent, parent.parts[-1]


def test_comments_survive() -> None:
    """They stay on the lines they were written for."""
    added = append(COMMENTED, ("hooks", "BeforeTool"), 2)

    for line in COMMENTED.splitlines():
        assert line in added.splitlines()


def test_an_empty_file_becomes_an_object() -> None:
    """A file that is not there, or has nothing in it."""
    assert json.loads(append("", ("hooks", "Stop"), 1)) == {"hooks": {"Stop": [1]}}
    assert json.loads(append(" \n", ("hooks", "Stop"), 1)) == {"hooks": {"Stop": [1]}}
    assert json.loads(append("{}", ("hooks", "Stop"), 1)) == {"hooks": {"Stop": [1]}}
    assert json.loads(append(EMPTY_ARRAY, ("hooks", "BeforeTool"), 1)) == {"hooks": {"BeforeTool": [1]}}


def test_a_value_is_replaced_where_it_stands() -> None:
    """`put` changes one value and nothing around it."""
    assert put(COMMENTED, ("theme",), "light") == COMMENTED.replace('"dark"', '"light"')


BAD = {
    '{"a": 1,, }': 1,
    '{\n  "a": 1\n  "b": 2\n}': 3,
    '{\n  a: 1\n}': 2,
    '{"a": tru}': 1,
    '{"a": 1} x': 1,
    '{"a": "unended': 1,
    "[1, 2": 1,
    '{"a": 01}': 1,
}  # fmt: skip


@pytest.mark.parametrize("text, line", BAD.items())
def test_what_is_not_json_is_refused_with_its_line(text: str, line: int) -> None:
    """Nobody edits a file that cannot be read."""
    with pytest.raises(BadJson, match=f"line {line}: expected") as raised:
        parse(text)
    assert raised.value.line == line


def test_an_entry_needs_an_array_to_go_into() -> None:
    """`hooks` may be something else in a file of another program."""
    with pytest.raises(HooklineError, match=r"`hooks\.Stop` is not an array"):
        append('{"hooks": {"Stop": 3}}', ("hooks", "Stop"), 1)
    with pytest.raises(HooklineError, match="`hooks` is not an object"):
        append('{"hooks": []}', ("hooks", "Stop"), 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(value=VALUES, indent=st.sampled_from([None, 1, 2, "\t"]))
def test_every_json_text_is_read_as_python_reads_it(value: object, indent: int | str | None) -> None:
    """Comments apart, this is JSON and nothing else."""
    assert parse(json.dumps(value, indent=indent)).value == value


@given(
    value=st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=3), indent=st.sampled_from([None, 2, "\t"])
)
def test_an_added_member_changes_nothing_else(value: dict[str, object], indent: int | str | None) -> None:
    """Whatever the file holds."""
    value.pop("hooks", None)

    added = append(json.dumps(value, indent=indent), ("hooks", "Stop"), {"command": "x"})

    assert json.loads(added) == {**value, "hooks": {"Stop": [{"command": "x"}]}}
