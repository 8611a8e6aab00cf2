"""Headers as people write them: read as leniently as Claude Code reads them, and what cannot be read restricts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.agent.context.definitions import find_agents, find_skills
from hookline.settings.files import parse_markdown
from hookline.settings.load import load


@pytest.mark.parametrize("header, read", [
    ("description: Use this: when asked", {"description": "Use this: when asked"}),
    ("argument-hint: [file] [line]", {"argument-hint": "[file] [line]"}),
    ("description: *bold* words", {"description": "*bold* words"}),
    ("description: @someone asks", {"description": "@someone asks"}),
    ('description: say "hi": then "bye"', {"description": 'say "hi": then "bye"'}),
    ("description: `code` first", {"description": "`code` first"}),
    ("description: 100% sure: %d", {"description": "100% sure: %d"}),
    ("tools: [Read, Grep", {"tools": "[Read, Grep"}),
    ("description: a: b\n  and more", {"description": "a: b and more"}),
    ("# a note\ndescription: a: b", {"description": "a: b"}),
])  # fmt: skip
def test_a_value_that_is_no_yaml_is_text(header: str, read: dict[str, Any]) -> None:
    """And the keys around it keep their meaning."""
    found = parse_markdown(f"---\n{header}\nname: me\ntools: Read, Grep\n---\nbody", "x.md")
    expected = {**read, "name": "me", "tools": "Read, Grep"}

    if "and more" in header:  # a text over two lines that is no YAML has no reading everybody shares
        assert found.header.get("name") == "me"
    else:
        assert found.header == expected
    assert found.body == "body"


HOOKED = """---
description: Use this: when asked
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: echo "a: b" >&2; exit 2
---
Do it
"""


@pytest.mark.parametrize("file, kind", [
    ("commands/go.md", "skills"), ("skills/go/SKILL.md", "skills"), ("agents/go.md", "agents"),
])  # fmt: skip
def test_hooks_in_such_a_header_count(tmp_path: Path, file: str, kind: str) -> None:
    """None is dropped, and the files are not reported as errors."""
    path = tmp_path / ".claude" / file
    path.parent.mkdir(parents=True)
    path.write_text(HOOKED)
    loaded = load(tmp_path, home=tmp_path / "home", env={})
    hooks = loaded.hooks if kind == "agents" else [hook for skill in loaded.skills for hook in skill.hooks]

    assert len(hooks) == 1
    assert not loaded.errors
    assert [problem.severity for problem in loaded.problems] == ["warning"]


@pytest.mark.parametrize("header, tools", [
    ("description: Use this: when asked\ntools: Read, Grep", ("Read", "Grep")),
    ("tools: Read\nhooks:\n\t- broken: [", ("Read",)),
    ("description: x\nhooks:\n\t- broken: [", ()),
    ("no keys at all: [\n]]: {{", ()),
])  # fmt: skip
def test_what_cannot_be_read_restricts(tmp_path: Path, header: str, tools: tuple[str, ...]) -> None:
    """An agent whose limits may be among what is unreadable has no tools."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.md").write_text(f"---\n{header}\n---\nbody")

    (agent,) = find_agents([tmp_path]).values()
    assert agent.tools == tools


def test_a_header_may_disallow_tools(tmp_path: Path) -> None:
    """As a list or as one text, with patterns."""
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "a.md").write_text("---\ndisallowed-tools: Bash(rm *), WebFetch\n---\nx")
    (tmp_path / "commands" / "b.md").write_text("---\ndisallowed-tools:\n  - Write\n---\nx")
    found = find_skills([(tmp_path, "project")])

    assert found["a"].disallowed == ("Bash(rm *)", "WebFetch")
    assert found["b"].disallowed == ("Write",)
