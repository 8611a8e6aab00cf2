"""`rm` of what nobody means to allow in advance, and rules of reading that hold for writing."""

from __future__ import annotations

import pytest

from hookline.guards.permissions import Mode
from tests.guards.permissions.test_decide import bash, decided, rules

EVERYTHING = rules(allow="Bash")
SYSTEM = [
    "rm -rf /", "rm -rf ~", 'rm -rf "$HOME"', "rm -rf ${HOME}/", "rm -r -f /*", "sudo rm -rf ~/*", "rm -rf ~root",
    r"\rm -rf /", "/bin/rm -fr -- ~/.", "bash -c 'rm -rf /'", "rm -rf /usr", "rm -rf /etc/*", "rm -rf ~/.*",
    "true; rm -rf //", "rm -rf $X/*", "rm -rf ../../..", "env A=1 rm -rf /home/u", "rm -rf ok /",
    "cd / && rm -rf *", "cd ~; rm -rf .", "cd ../..; rm -rf *", "cd $X && rm -rf *", "cd /usr/lib && rm -rf ..",
    "cd $X; rm -rf $Y/*", "cd $X; rm -rf ./*", "cd $X; rm -rf ./.",
]  # fmt: skip
HERE = [
    "rm -rf .", "rm -rf *", "rm -rf ./*", "rm -rf ./", "rm -rf .*", "rm -rf /home/u/proj", "rm -rf {*,.*}", "rm *",
    "rm -rf ok .", "rm -rf x/..",
]  # fmt: skip
ABOVE = ["rm -rf ..", "cd x && rm -rf ..", "rm -rf ../*"]
FINE = [
    "rm -rf build", "rm -rf ./build/*", "rm -rf /tmp/x/y", "rm a.txt", "rm -rf ../other", 'rm -rf "$DIR"',
    "echo rm -rf /", "cd $X && rm -rf build", "cd x && rm -rf build",
]  # fmt: skip


@pytest.mark.parametrize("line", SYSTEM)
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS, Mode.ACCEPT_EDITS])
def test_no_mode_rule_or_hook_allows_the_removal_of_a_system(line: str, mode: Mode) -> None:
    """It is asked about, whatever else says."""
    assert bash(line, rules=EVERYTHING, mode=mode, hook_decision="allow") == "ask"


@pytest.mark.parametrize("line", HERE)
def test_no_rule_allows_the_removal_of_everything_here(line: str) -> None:
    """A rule is not enough; somebody who said that nothing is asked, or a hook that looked at it, is."""
    assert bash(line, rules=EVERYTHING) == "ask"
    assert bash(line, rules=EVERYTHING, mode=Mode.BYPASS) == "allow"
    assert bash(line, hook_decision="allow") == "allow"


@pytest.mark.parametrize("line", ABOVE)
def test_no_rule_allows_the_removal_of_the_folder_above(line: str) -> None:
    """Here that is a home as well."""
    assert bash(line, rules=EVERYTHING) == "ask"


@pytest.mark.parametrize("line", FINE)
def test_other_removals_are_as_allowed_as_anything(line: str) -> None:
    """By name, below a folder, or of a folder that somebody else named."""
    assert bash(line, rules=EVERYTHING) == "allow"


@pytest.mark.parametrize("tool, given", [
    ("Write", {"file_path": ".env", "content": "x"}),
    ("Edit", {"file_path": "/home/u/proj/.env", "old_string": "a", "new_string": "b"}),
    ("Read", {"file_path": "./.env"}),
    ("Grep", {"pattern": "KEY", "path": ".env"}),
    ("Glob", {"pattern": "*", "path": ".env"}),
    ("Bash", {"command": "cat .env"}),
])  # fmt: skip
def test_who_may_not_read_a_file_may_not_write_or_search_it(tool: str, given: dict[str, str]) -> None:
    """A deny of `Read(…)` holds for every way to the file, over any allow."""
    known = {"rules": rules(allow=tool, deny="Read(./.env)"), "mode": Mode.BYPASS, "hook_decision": "allow"}
    assert decided(tool, given, **known).behaviour == "deny"


def test_the_file_beside_it_stays_writable() -> None:
    """The rule speaks of one file."""
    given = {"file_path": ".env.example", "content": "x"}
    assert decided("Write", given, rules=rules(allow="Write", deny="Read(./.env)")).behaviour == "allow"
