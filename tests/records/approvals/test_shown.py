"""A question as a person reads it: a command, a diff, and nothing left out."""

import json

from hookline.records.approvals.questions import AskedCall, AskedQuestion
from hookline.records.approvals.server import shown


def parts(tool_input: object) -> list[tuple[str, str, str]]:
    call = AskedCall(event="PreToolUse", tool="T", input=json.dumps(tool_input))
    return [(part["title"], part["kind"], part["text"]) for part in shown(AskedQuestion(id="A-1", call=call))["parts"]]


def test_what_would_run_is_shown_as_people_read_it() -> None:
    """Each kind of input; what has no form of its own is shown as JSON."""
    rows: list[tuple[object, list[tuple[str, str, str]]]] = [
        ({"command": "ls"}, [("Command", "command", "ls")]),
        ({"command": "ls", "timeout": 5}, [("Command", "command", "ls"), ("Input", "text", '{\n  "timeout": 5\n}')]),
        ({"command": ["a"]}, [("Input", "text", '{\n  "command": [\n    "a"\n  ]\n}')]),
        ({"file_path": "a.py", "old_string": "x\ny", "new_string": "x\nz"},
         [("Change in a.py", "diff", "@@ -1,2 +1,2 @@\n x\n-y\n+z")]),
        ({"file_path": "a", "content": "1"},
         [("New contents of a", "diff", "@@ -0,0 +1 @@\n+1")]),
        ({"file_path": "a", "edits": [{"old_string": "1", "new_string": "2", "replace_all": True}, {"odd": 1}]},
         [("Change in a", "diff", "@@ -1 +1 @@\n-1\n+2"),
          ("Input", "text", json.dumps({"file_path": "a", "edits": [{"replace_all": True}, {"odd": 1}]}, indent=2))]),
        ({"file_path": "a"}, [("Input", "text", '{\n  "file_path": "a"\n}')]),
        ({"command": "ls", "file_path": "a"},
         [("Command", "command", "ls"), ("Input", "text", '{\n  "file_path": "a"\n}')]),
        ("prompt", [("Content", "text", "prompt")]),
        ({}, []),
    ]  # fmt: skip
    for given, expected in rows:
        assert parts(given) == expected, given


def test_an_input_without_end_is_cut_and_says_so() -> None:
    """What is missing is counted."""
    [(_, _, text)] = parts({"command": "x" * 100_007})

    assert text.endswith("… 7 more characters")
