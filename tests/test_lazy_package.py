"""`import hookline` and `hookline --help` load next to nothing: what they import is every command hook's cost."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hookline

HEAVY = {"argparse", "asyncio", "dataclasses", "enum", "inspect", "json", "msgspec", "re", "socket", "ssl", "typing"}


def modules_after(code: str) -> set[str]:
    """What a fresh interpreter has loaded after running the code, beyond what it starts with."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}  # coverage imports much
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    return set(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_else() -> None:
    """Not a single module besides the package itself."""
    assert modules_after("import hookline") == {"hookline"}


def test_help_loads_nothing_heavy() -> None:
    """`hookline --help` prints a table; it needs neither asyncio nor msgspec nor argparse."""
    loaded = modules_after("from hookline.cli.main import main\nmain(['--help'])")

    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("hookline")} == {"hookline", "hookline.cli", "hookline.cli.main"}


@pytest.mark.parametrize("name", hookline.__all__)
def test_each_name_is_that_of_its_module(name: str) -> None:
    """The table of names tells the truth, and what was asked for once is kept."""
    home = importlib.import_module(hookline._HOME[name])

    assert getattr(hookline, name) is getattr(home, name)
    assert name in vars(hookline)


def test_the_table_lists_what_the_package_exports() -> None:
    """No name is public without a home, or has a home without being public."""
    assert set(hookline._HOME) == set(hookline.__all__)


def test_type_checkers_are_told_the_same() -> None:
    """The imports that only type checkers read name the same modules as the table."""
    tree = ast.parse(Path(str(hookline.__file__)).read_text())
    seen = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }

    assert seen == hookline._HOME


def test_dir_lists_names_that_are_not_imported_yet() -> None:
    """Tab completion sees everything."""
    code = "import hookline; assert set(hookline.__all__) <= set(dir(hookline))"

    assert modules_after(code) == {"hookline"}


def test_modules_can_be_reached_through_the_package() -> None:
    """`import hookline; hookline.events` works without importing `hookline.events` first."""
    assert "hookline.events" in modules_after("import hookline; hookline.events.PreToolUse")


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    """As for any module; `hasattr` and `from hookline import …` depend on it."""
    with pytest.raises(AttributeError, match="module `hookline` has no attribute `dney`"):
        _ = hookline.dney  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'dney'"):
        exec("from hookline import dney")
    assert not hasattr(hookline, "__wrapped__")


def test_a_module_that_fails_to_import_says_why() -> None:
    """A missing dependency of a submodule is not mistaken for a missing submodule."""
    code = (
        "sys.modules['msgspec'] = None\nimport hookline\ntry:\n  hookline.Hooks\nexcept ImportError as e: print(e.name)"
    )
    script = f"import sys\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "msgspec\n"
