"""No test reads or writes what the user who runs the suite keeps at home."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.core.files import state_folder
from hookline.hosts.install.entries import config_path
from hookline.hosts.table import HOSTS
from hookline.records.console.index import default_path
from hookline.settings.trust.store import trust_file

TESTS = Path(__file__).parent
WHERE = """
from hookline.core.files import state_folder
from hookline.settings.trust.store import trust_file
print(state_folder(), trust_file(), sep="\\n")
"""


def test_what_a_user_keeps_is_looked_for_in_a_folder_of_this_run(own_home: Path, tmp_path: Path) -> None:
    """State, trust, the console's index, and each host's own settings."""
    places = [state_folder(), trust_file(), default_path([tmp_path])]
    places += [config_path(host, "user") for host in HOSTS.values()]

    assert [place for place in places if not place.is_relative_to(own_home)] == []


def test_so_it_is_in_processes_that_tests_start(own_home: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", WHERE], capture_output=True, text=True, check=True)

    assert all(Path(line).is_relative_to(own_home) for line in ran.stdout.splitlines())


def test_the_run_s_home_is_not_the_users(own_home: Path) -> None:
    pwd = pytest.importorskip("pwd", reason="users have entries in a table on Unix only")

    assert own_home != Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_a_whole_environment_names_the_service_that_answers() -> None:
    """Without the variable a hook's program starts, or asks, the service of the user who runs the tests."""
    assert [place for path in sorted(TESTS.rglob("*.py")) for place in _environments(path)] == []


def _environments(path: Path) -> list[str]:
    """Environments written out by hand that `tests.environ.clean_environ` should make."""
    if "contract" in path.parts:  # the recorded contract's harness runs no hook of ours
        return []
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict) and None not in node.keys:
            names = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if {"HOME", "PATH"} <= names and "HOOKLINE_SERVICE" not in names:
                found.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    return found
