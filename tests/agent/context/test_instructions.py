"""Which instructions a session has, and why each was loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.agent.session.lifecycle import Instructions, discover, nested


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "proj"
    root.mkdir(parents=True)
    return root


def put(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def session(project: Path) -> list[Instructions]:
    return discover(str(project), {"HOME": str(project.parent)})


def names(found: list[Instructions], project: Path) -> list[str]:
    return [str(Path(item.file_path).relative_to(project.parent)) for item in found]


def test_an_included_file_follows_the_one_that_names_it(project: Path) -> None:
    """The case `events_instructions`: why, of which kind, and by whom."""
    put(project, **{"CLAUDE.md": "ROOT\n@inc.md\n", "inc.md": "INC", "CLAUDE.local.md": "LOCAL"})

    assert session(project) == [
        Instructions(f"{project}/CLAUDE.md", "ROOT\n@inc.md\n"),
        Instructions(f"{project}/inc.md", "INC", "Project", "include", f"{project}/CLAUDE.md"),
        Instructions(f"{project}/CLAUDE.local.md", "LOCAL", "Local"),
    ]


def test_the_users_come_first_then_from_outside_inwards(project: Path) -> None:
    """The nearest word is the last one."""
    put(project.parent, **{".claude/CLAUDE.md": "user", "CLAUDE.md": "outer"})
    put(project, **{"CLAUDE.md": "inner", ".claude/CLAUDE.md": "hidden", ".claude/rules/style.md": "rule"})

    found = session(project)

    assert names(found, project) == [
        ".claude/CLAUDE.md",
        "CLAUDE.md",
        "proj/CLAUDE.md",
        "proj/.claude/CLAUDE.md",
        "proj/.claude/rules/style.md",
    ]
    assert [item.memory_type for item in found] == ["User", "Project", "Project", "Project", "Project"]


def test_agents_md_stands_in_for_claude_md(project: Path) -> None:
    """It is read where there is no CLAUDE.md."""
    put(project, **{"AGENTS.md": "agents"})
    assert names(session(project), project) == ["proj/AGENTS.md"]

    put(project, **{"CLAUDE.md": "claude"})
    assert names(session(project), project) == ["proj/CLAUDE.md"]


def test_files_that_include_each_other_are_loaded_once(project: Path) -> None:
    """A circle ends."""
    put(project, **{"CLAUDE.md": "@a.md @CLAUDE.md", "a.md": "@./CLAUDE.md @b.md", "b.md": "@a.md"})

    assert names(session(project), project) == ["proj/CLAUDE.md", "proj/a.md", "proj/b.md"]


def test_includes_go_five_deep(project: Path) -> None:
    """A chain has an end."""
    put(project, **{"CLAUDE.md": "@1.md", **{f"{n}.md": f"@{n + 1}.md" for n in range(1, 9)}})

    assert names(session(project), project)[-1] == "proj/5.md"


def test_an_at_sign_in_code_or_in_a_word_includes_nothing(project: Path) -> None:
    """Addresses, decorators and examples are just text; so is a file that is not there."""
    put(project, **{"CLAUDE.md": "me@x.md `@x.md`\n```\n@x.md\n```\n@gone.md @property", "x.md": "no"})

    assert names(session(project), project) == ["proj/CLAUDE.md"]


def test_touching_a_file_below_brings_its_folders_instructions_and_rules(project: Path) -> None:
    """The case `events_instructions`: nested files and rules by path, each once in a session."""
    put(project, **{"sub/CLAUDE.md": "NESTED", ".claude/rules/ts.md": '---\npaths: ["**/*.ts"]\n---\nTS RULE'})
    trigger, known = f"{project}/sub/f.ts", set[str]()

    found = nested(trigger, str(project), known)

    assert session(project) == []
    assert found == [
        Instructions(f"{project}/sub/CLAUDE.md", "NESTED", "Project", "nested_traversal", None, trigger),
        Instructions(
            f"{project}/.claude/rules/ts.md", "TS RULE", "Project", "path_glob_match", None, trigger, ("**/*.ts",)
        ),
    ]
    assert nested(trigger, str(project), known) == []
    assert nested("/elsewhere/f.ts", str(project), known) == []


@pytest.mark.parametrize(
    "header,globs",
    [
        ('paths: ["**/*.ts", "src/*.{js,jsx}"]', ("**/*.ts", "src/*.{js,jsx}")),
        ("paths:\n  - '**/*.ts'\n  - src/*.js\nother: x", ("**/*.ts", "src/*.js")),
        ("paths: **/*.ts, src/*.js", ("**/*.ts", "src/*.js")),
    ],
)
def test_paths_may_be_written_in_three_ways(project: Path, header: str, globs: tuple[str, ...]) -> None:
    """A list in brackets, a list of lines, or commas."""
    put(project, **{".claude/rules/r.md": f"---\n{header}\n---\nRULE"})

    (rule,) = nested(f"{project}/x.ts", str(project), set())

    assert (rule.globs, rule.content) == (globs, "RULE")


def test_sources_can_be_left_out(project: Path) -> None:
    """`--setting-sources` counts here too."""
    put(project.parent, **{".claude/CLAUDE.md": "user"})
    put(project, **{"CLAUDE.md": "project"})

    found = discover(str(project), {"HOME": str(project.parent)}, sources=frozenset({"User"}))

    assert [item.content for item in found] == ["user"]


def test_what_cannot_be_read_is_passed_over(project: Path) -> None:
    """A folder of that name, a broken link, odd bytes: no instructions stop a session."""
    (project / "CLAUDE.md").mkdir()
    (project / "CLAUDE.local.md").symlink_to("gone")
    put(project, **{".claude/CLAUDE.md": ""})
    (project / ".claude" / "CLAUDE.md").write_bytes(b"ok \xff")

    assert [item.content for item in session(project)] == ["ok �"]
