"""Which of a project's files a command names."""

from pathlib import Path

import pytest

from hookline.core.hooks import Command, Hook, Http
from hookline.core.hooks.hook import Action
from hookline.events import PreToolUse
from hookline.settings.files import HookScript, read_script
from hookline.settings.trust.scripts import files_run_by


def named(action: Action, project: Path, root: Path | None = None) -> list[str]:
    hook = Hook(name="x", events=(PreToolUse,), action=action)
    found = files_run_by(hook.action, (str(root or project), str(project)), str(project)).files
    return [str(Path(path).relative_to(root or project)) for path in found]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    base = tmp_path / "my proj"
    for name in ("hooks/a.py", "hooks/b c.sh", "run.sh", "Makefile", "pkg/__init__.py", "pkg/__main__.py", "tool"):
        file = base / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (tmp_path / "outside.sh").write_text("")
    return base


@pytest.mark.parametrize(
    "command, files",
    [
        ("python3 hooks/a.py --strict", ["hooks/a.py"]),
        ('python3 "$CLAUDE_PROJECT_DIR"/hooks/a.py', ["hooks/a.py"]),
        ('python3 "${CLAUDE_PROJECT_DIR}/hooks/a.py"', ["hooks/a.py"]),
        ("python3 $CLAUDE_PROJECT_DIR/hooks/a.py", ["hooks/a.py"]),
        ("bash 'hooks/b c.sh'", ["hooks/b c.sh"]),
        ('"$CLAUDE_PROJECT_DIR/hooks/b c.sh" x', ["hooks/b c.sh"]),
        (r"bash hooks/b\ c.sh", ["hooks/b c.sh"]),
        ("X=1;./run.sh|tee log", ["run.sh"]),
        ("bash -c './run.sh && python hooks/a.py'", ["hooks/a.py", "run.sh"]),
        ("cd hooks && python a.py", ["hooks/a.py"]),
        ("make -s check", ["Makefile"]),
        ("python -m pkg", ["pkg/__init__.py", "pkg/__main__.py"]),
        ("python pkg", ["pkg/__main__.py"]),
        ("../outside.sh /etc/passwd nothing.sh", []),
        ("echo hello", []),
    ],
)
def test_words_that_are_files_of_the_project_count(project: Path, command: str, files: list[str]) -> None:
    """Relative, after `$CLAUDE_PROJECT_DIR`, quoted, in a folder the command names; blanks in names do no harm."""
    assert named(Command(command=command), project) == files


def test_arguments_and_absolute_paths_count(project: Path) -> None:
    """In the exec form each argument is one word."""
    action = Command(command=str(project / "tool"), args=("${CLAUDE_PROJECT_DIR}/hooks/b c.sh", "-x"))

    assert named(action, project) == ["hooks/b c.sh", "tool"]


def test_a_plugins_own_files_count(project: Path, tmp_path: Path) -> None:
    """Whether its folder was filled in already or is left to the shell."""
    plugin = tmp_path / "a plug"
    (plugin / "x.sh").parent.mkdir()
    (plugin / "x.sh").write_text("")

    for command in (f"{plugin}/x.sh 1", '"$CLAUDE_PLUGIN_ROOT"/x.sh', f'"{plugin}/x.sh"'):
        assert named(Command(command=command, plugin_root=str(plugin)), project, plugin) == ["x.sh"]


def test_what_a_python_script_imports_from_beside_itself_counts(project: Path) -> None:
    """Modules, packages and relative imports, through any number of files; the standard library does not."""
    (project / "hooks" / "a.py").write_text("import json, helper\nfrom deep.low import thing\n")
    (project / "hooks" / "helper.py").write_text("import a, again\n")
    (project / "hooks" / "again.py").write_text("import json\n")
    (project / "hooks" / "deep").mkdir()
    (project / "hooks" / "deep" / "__init__.py").write_text("from . import side\n")
    (project / "hooks" / "deep" / "side.py").write_text("")
    (project / "hooks" / "deep" / "low.py").write_text("")

    assert named(Command(command="python hooks/a.py"), project) == [
        "hooks/a.py", "hooks/again.py", "hooks/deep/__init__.py", "hooks/deep/low.py", "hooks/deep/side.py",
        "hooks/helper.py",
    ]  # fmt: skip


def test_a_python_script_is_known_by_its_first_line_too(project: Path) -> None:
    """No suffix is needed."""
    (project / "tool").write_text("#!/usr/bin/env python3\nimport near\n")
    (project / "near.py").write_text("")

    assert named(Command(command="./tool"), project) == ["near.py", "tool"]


def test_only_commands_name_files(project: Path) -> None:
    """An http hook names none."""
    assert named(Http(url="http://h/run.sh"), project) == []


def test_a_script_that_is_not_there_yet_is_looked_at_again(project: Path) -> None:
    """Otherwise somebody could put it there after the command was trusted."""
    hook = Hook(name="x", events=(PreToolUse,), action=Command(command="./later.sh"))

    assert str(project / "later.sh") in files_run_by(hook.action, (str(project),), str(project)).watch


@pytest.mark.parametrize("command", ["\0", "x" * 100_000, "'" * 999, "a/" * 9000, "~nobody-at-all/x", "$(cat <<E\nE)"])
def test_no_command_is_a_crash(project: Path, command: str) -> None:
    """Whatever a command looks like, its words are only looked up."""
    assert named(Command(command=command), project) == []


def test_a_script_is_its_bytes(tmp_path: Path) -> None:
    """The hash is always kept, a copy if it is text and short; what cannot be read hashes as such."""
    (tmp_path / "a").write_text("hi\n")
    (tmp_path / "b").write_bytes(b"\0")
    (tmp_path / "c").mkdir()

    assert read_script(tmp_path / "a") == HookScript(
        str(tmp_path / "a"), "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4", "hi\n"
    )
    assert read_script(tmp_path / "b") == HookScript(
        str(tmp_path / "b"), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", None
    )
    assert read_script(tmp_path / "c") == HookScript(
        str(tmp_path / "c"), "unreadable: is a folder; a file was expected"
    )
    assert read_script(tmp_path / "d") is None
