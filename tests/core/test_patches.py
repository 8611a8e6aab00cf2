"""Patches: whatever an agent takes for a file of a patch is reported, and what could be read differently is refused."""

import pytest

from hookline.core.patches import holds_patch, read_patch
from hookline.errors import EventError


def framed(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


READ: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "all kinds": (
        framed("*** Add File: a", "+x", "*** Update File: b", "*** Move to: c", "@@ f()", " k", "-o", "+n",
               "*** End of File", "*** Delete File: d"),
        [("Write", "a"), ("Edit", "b"), ("Write", "c"), ("Edit", "d")],
    ),
    "a space before a header": (framed(" *** Add File: a", "+x"), [("Write", "a")]),
    "a tab before a header": (framed("\t*** Add File: a", "+x"), [("Write", "a")]),
    "a no-break space before a header": (framed("\u00a0*** Add File: a", "+x"), [("Write", "a")]),
    "an ideographic space before a header": (framed("\u3000*** Add File: a", "+x"), [("Write", "a")]),
    "a mark of byte order before a header": (framed("\ufeff*** Add File: a", "+x"), [("Write", "a")]),
    "a header after the first file": (framed("*** Add File: a", "+x", "  *** Add File: /b", "+y"),
                                      [("Write", "a"), ("Write", "/b")]),
    "a header among context lines": (framed("*** Update File: a", "@@", " *** Delete File: /b", "-x"),
                                     [("Edit", "a"), ("Edit", "/b")]),
    "no space after the colon": (framed("*** Add File:/x/y", "+x"), [("Write", "/x/y")]),
    "small letters": (framed("*** add file: a", "+x"), [("Write", "a")]),
    "blanks in a header": (framed("***  Update   File : a", "@@", "+x"), [("Edit", "a")]),
    "a blank behind a path": (framed("*** Add File: a ", "+x"), [("Write", "a"), ("Write", "a ")]),
    "two blanks before a path": (framed("*** Add File:  a", "+x"), [("Write", "a"), ("Write", " a")]),
    "blanks on both sides of a path": (framed("*** Add File:  a ", "+x"),
                                       [("Write", "a"), ("Write", " a"), ("Write", "a "), ("Write", " a ")]),
    "carriage returns": (framed("*** Delete File: a").replace("\n", "\r\n"), [("Edit", "a"), ("Edit", "a\r")]),
    "a name with blanks": (framed("*** Add File: my notes.txt", "+x"), [("Write", "my notes.txt")]),
    "a name in other letters": (framed("*** Add File: bücher/日本.txt", "+x"), [("Write", "bücher/日本.txt")]),
    "a home": (framed("*** Add File: ~/a", "+x"), [("Write", "~/a"), ("Write", "./~/a")]),
    "no frame": ("*** Add File: a\n+x", [("Write", "a")]),
    "empty lines": (framed("", "*** Update File: a", "@@", "", "-x", ""), [("Edit", "a")]),
    "a here-document around it": ("<<'EOF'\n" + framed("*** Add File: a", "+x") + "\nEOF\n", [("Write", "a")]),
    "a frame that is indented": ("  *** Begin Patch\n*** Add File: a\n+x\n  *** End Patch", [("Write", "a")]),
    "a second frame": (framed("*** Add File: a", "+x") + "\n" + framed("*** Add File: /b", "+x"),
                       [("Write", "a"), ("Write", "/b")]),
    "a file after the end": (framed("*** Add File: a", "+x") + "\n*** Delete File: /b",
                             [("Write", "a"), ("Edit", "/b")]),
    "a header as content": (framed("*** Add File: a", "+*** Add File: b", "-*** Add File: c"), [("Write", "a")]),
    "separators in content": (framed("*** Add File: a", "+x\u2028y\x0cz\x85"), [("Write", "a")]),
}  # fmt: skip

REFUSED: dict[str, str] = {
    "nothing": "",
    "a text": "hello",
    "an empty frame": framed(),
    "no path": framed("*** Add File: ", "+x"),
    "a line separator in a path": framed("*** Add File: a\u2028*** Add File: /b", "+x"),
    "a form feed in a path": framed("*** Add File: a\x0c/../b", "+x"),
    "a next-line sign in a path": framed("*** Add File: a\x85", "+x"),
    "a carriage return in a path": framed("*** Add File: a\r/b", "+x"),
    "a no-break space behind a path": framed("*** Add File: a\u00a0", "+x"),
    "a sign without width in a path": framed("*** Add File: a\u200b", "+x"),
    "a carriage return before a path": framed("*** Add File: \r/b", "+x"),
    "a tab before a path": framed("*** Add File:\ta", "+x"),
    "a tab behind a path": framed("*** Add File: a\t", "+x"),
    "a null in a path": framed("*** Add File: a\x00b", "+x"),
    "a header behind a line separator": framed("*** Add File: a", "+x\u2028*** Add File: /b"),
    "a header behind a carriage return": framed("*** Add File: a", "+x\r*** Add File: /b"),
    "a line without a sign": framed("*** Update File: a", "@@", "x"),
    "a header that is not known": framed("*** Add File: a", "+x", "*** Copy File: /b"),
    "another environment": framed("*** Environment ID: x", "*** Add File: a", "+x"),
    "four stars": framed("*** Add File: a", "+x", "**** Add File: /b"),
    "text before": "please\n" + framed("*** Add File: a", "+x"),
    "text after": framed("*** Add File: a", "+x") + "\nthanks",
    "a body without a file": framed("+x", "*** Add File: a", "+x"),
    "a unified diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b",
}


def test_every_file_of_a_patch_is_reported() -> None:
    """In every form that one of the agents takes: Codex trims, opencode wants no space, Cline no frame."""
    found = {name: [(one.tool, one.path) for one in read_patch(text)] for name, (text, _) in READ.items()}

    assert found == {name: expected for name, (_, expected) in READ.items()}
    assert all(holds_patch(text) for text, _ in READ.values())


def test_a_patch_that_could_be_read_differently_is_refused() -> None:
    """A line that is neither a header nor a hunk nor a body, and a path with a sign that some agent cuts at."""
    for name, text in REFUSED.items():
        with pytest.raises(EventError, match="patch"):
            pytest.fail(f"{name}: {read_patch(text)}")
    for given in (None, 3, ["*** Begin Patch"]):
        with pytest.raises(EventError, match="expected a text"):
            read_patch(given)


def test_a_file_of_a_patch_is_a_call_of_a_file_tool() -> None:
    """With what is added and what is removed, so that a hook that looks for secrets sees them."""
    text = framed("*** Add File: a", "+x", "+y", "*** Update File: b", "@@", " k", "-o", "+n")

    assert [one.tool_input for one in read_patch(text)] == [
        {"file_path": "a", "content": "x\ny"},
        {"file_path": "b", "old_string": "o", "new_string": "n"},
    ]
