"""A project's hooks in a file that a team shares: the same entries hold on every machine, in any environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.core.interpreter import shared_command
from tests.environ import clean_environ

HOOKS = """
from hookline import Hooks
from hookline.guards import commands

hooks = Hooks()
hooks.add(commands.block(["rm -rf *"]))
"""
EVIL = "import os\nopen({mark!r}, 'a').write(__file__)\nos._exit(0)\n"


class User:
    """An account on this machine: a home of its own, known to the system, and a clone of the team's project."""

    def __init__(self, base: Path, name: str) -> None:
        self.home = base / name
        self.project = self.home / "work" / "team project"
        (self.home / ".local" / "bin").mkdir(parents=True)
        self._accounts = base / f"{name}.passwd"
        self._accounts.write_text(f"{name}:x:0:0::{self.home}:/bin/sh\n")

    def get_hookline(self) -> None:
        """As pipx and uv do it."""
        (self.home / ".local" / "bin" / "hookline").symlink_to(Path(sys.executable).with_name("hookline"))

    def run(self, *words: str, stdin: str = "", folder: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run something in the project as this user: the only account that the program sees."""
        inside = 'mount --bind "$0" /etc/passwd && exec "$@"'
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", inside, str(self._accounts), *words], cwd=self.project / folder, input=stdin,
            env={**clean_environ(self.home), "CLAUDE_PROJECT_DIR": str(self.project), **env}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip

    def hookline(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(Path(sys.executable).with_name("hookline")), *words)

    def ask(self, line: str, *, folder: str = "", **env: str) -> tuple[int, str]:
        """What the project's entry answers about a shell line, as Claude Code asks: the exit code, and why."""
        settings = json.loads((self.project / ".claude" / "settings.json").read_text())
        event = {
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(self.project / folder), "tool_name": "Bash",
            "tool_input": {"command": line},
        }  # fmt: skip
        command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        done = self.run("sh", "-c", command, stdin=json.dumps(event), folder=folder, **env)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def team(tmp_path: Path) -> tuple[User, User]:
    """Ada has installed the project's hooks; Bob has a copy of the project, and no Hookline yet."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a namespace in which /etc/passwd can be another file")
    ada, bob = User(tmp_path, "ada"), User(tmp_path, "bob")
    ada.project.mkdir(parents=True)
    (ada.project / "src").mkdir()
    (ada.project / "hooks.py").write_text(HOOKS)
    ada.get_hookline()
    done = ada.hookline("install", "claude", "--hooks", "hooks.py", "--scope", "project")
    assert done.returncode == 0, done.stderr
    assert "hold for everyone who has Hookline" in done.stdout
    shutil.copytree(ada.project, bob.project)
    return ada, bob


def test_the_same_file_holds_for_two_users(team: tuple[User, User], tmp_path: Path) -> None:
    """Each one's Hookline asks the hooks in each one's copy, also from a folder below; no path of Ada's is there."""
    ada, bob = team
    bob.get_hookline()

    assert str(tmp_path) not in (ada.project / ".claude" / "settings.json").read_text()
    for user in team:
        for folder in ("", "src"):
            assert '"deny"' in user.ask("rm -rf build", folder=folder)[1]
            assert user.ask("ls", folder=folder)[0] == 0
            assert '"deny"' not in user.ask("ls", folder=folder)[1]
    (bob.project / "hooks.py").write_text(HOOKS.replace("rm -rf *", "ls"))
    assert '"deny"' in bob.ask("ls")[1]
    assert '"deny"' not in ada.ask("ls")[1]


def test_a_colleague_without_hookline_is_told_how_to_get_it(team: tuple[User, User]) -> None:
    """Nothing runs until then, and the line that is shown says what to do."""
    _, bob = team
    code, said = bob.ask("ls")

    assert code == 2 or '"deny"' in said
    assert "pipx install hookline" in said


def test_neither_variables_nor_the_folder_choose_another_hookline(team: tuple[User, User], tmp_path: Path) -> None:
    """PATH, HOME, what Python reads while it starts, and a `hookline` that lies in the project."""
    ada, _ = team
    evil, mark = tmp_path / "evil", tmp_path / "mark"
    python = EVIL.format(mark=str(mark))
    for folder in (evil, evil / ".local" / "bin", ada.project):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hookline").write_text(f"#!{sys.executable}\n{python}")
        (folder / "hookline").chmod(0o755)
    for name in ("sitecustomize.py", "usercustomize.py", "msgspec.py", "os.py", "encodings/__init__.py"):
        (evil / name).parent.mkdir(exist_ok=True)
        (evil / name).write_text(python)
    hostile = {"PATH": f"{evil}:.:/usr/bin:/bin"} | {
        "HOME": str(evil), "PYTHONPATH": str(evil), "PYTHONHOME": str(evil),
        "PYTHONUSERBASE": str(evil), "PYTHONPYCACHEPREFIX": str(evil), "PYTHONPLATLIBDIR": str(evil),
        "PYTHONWARNINGS": "error::msgspec.X", "PYTHONOPTIMIZE": "2", "PYTHONIOENCODING": "utf-16", "ENV": str(evil),
        "BASH_ENV": str(evil), "XDG_STATE_HOME": str(evil), "COVERAGE_PROCESS_START": str(evil), "hookline": str(evil),
        "PYTHONEXECUTABLE": str(evil / "hookline"), "HOOKLINE_ENABLED": "0", "CDPATH": str(evil), "IFS": "/",
    }  # fmt: skip
    answers = {name: ada.ask("rm -rf build", **{name: value}) for name, value in hostile.items()}
    answers["all"] = ada.ask("rm -rf build", **hostile)

    assert [name for name, (_, said) in answers.items() if '"deny"' not in said] == []
    assert not mark.exists(), mark.read_text()


def test_what_we_write_is_trusted_and_nothing_else(team: tuple[User, User]) -> None:
    """No question follows about our own entries; a hook that was there before and is not trusted stays so."""
    ada, bob = team
    assert ada.hookline("trust").stdout.startswith("trusted: ")
    settings = bob.project / ".claude" / "settings.json"
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo hi"}]}]}}))
    bob.get_hookline()

    assert bob.hookline("install", "claude", "--hooks", "hooks.py", "--scope", "project").returncode == 0
    assert bob.hookline("trust").returncode == 1


def test_hooks_outside_the_project_are_said_to_be_of_this_machine(team: tuple[User, User]) -> None:
    """They cannot be shared, and the note says so."""
    ada, _ = team
    (ada.home / "mine.py").write_text(HOOKS)
    done = ada.hookline("install", "claude", "--hooks", str(ada.home / "mine.py"), "--scope", "project", "--replace")

    assert "name folders of this machine" in " ".join(done.stdout.split())
    assert '"deny"' in ada.ask("rm -rf x")[1]


def test_the_line_that_finds_hookline_is_plain_shell() -> None:
    """It is read by whatever `sh` a machine has."""
    for shell in filter(shutil.which, ("sh", "bash", "dash", "zsh")):
        done = subprocess.run([shell, "-n", "-c", f"{shared_command()} answer claude"], check=False)
        assert done.returncode == 0, shell
    assert os.linesep not in shared_command()
