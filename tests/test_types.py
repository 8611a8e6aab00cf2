"""Users' type checkers: what the README shows passes the strictest, and the public interface has no holes."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import msgspec
import pytest

import hookline
from tests.pages import ROOT, blocks

LEAST = 0.98
WRONG = "from hookline import HookAnswer\n\ndef hook() -> HookAnswer:\n    return 42\n"
PYRIGHT = shutil.which("pyright", path=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What `mypy --strict` has to say about two programs: the README's first, and one that is wrong."""
    folder = tmp_path_factory.mktemp("typed")
    first = next(block for block in blocks((ROOT / "README.md").read_text()) if block.language == "python")
    (folder / "right.py").write_text(inside_a_function(first.text))
    (folder / "wrong.py").write_text(WRONG)
    argv = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
    argv += [f"--cache-dir={ROOT / '.mypy_cache'}", "right.py", "wrong.py"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return (done.stdout + done.stderr).splitlines()


def inside_a_function(source: str) -> str:
    """A page's blocks may await, which a module may not."""
    return "async def page() -> None:\n" + textwrap.indent(source, "    ")


def test_the_first_example_passes_the_strictest_checker(told: list[str]) -> None:
    """Whoever copies it into a typed project has nothing to add."""
    assert [line for line in told if not line.startswith("wrong.py:")] == []


def test_a_hook_that_returns_something_else_is_found(told: list[str]) -> None:
    """The check can fail."""
    [line] = [line for line in told if line.startswith("wrong.py:4:")]

    assert "Incompatible return value type" in line


@pytest.mark.timeout(300)
@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed: `pip install pyright`")
def test_the_public_interface_is_typed(tmp_path: Path) -> None:
    """What users reach has a type that every checker sees alike (`pyright --verifytypes`)."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=60)
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for package in (hookline, msgspec):
        (packages / package.__name__).symlink_to(Path(package.__path__[0]))
    argv = [str(PYRIGHT), "--verifytypes", "hookline", "--ignoreexternal", "--outputjson"]
    env = {**os.environ, "VIRTUAL_ENV": str(tmp_path / "env"), "PATH": f"{tmp_path}/env/bin:{os.environ['PATH']}"}
    env["NODE_OPTIONS"] = "--max-semi-space-size=64"  # MB: it makes many small objects, and few last
    try:
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("pyright fetches itself with npm when it is first run, and could not")
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {(done.stderr or done.stdout).strip()[-200:]}")
    found = json.loads(done.stdout)["typeCompleteness"]
    holes = [symbol["name"] for symbol in found["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]]

    assert found["exportedSymbolCounts"]["withKnownType"] > 1000
    assert found["completenessScore"] >= LEAST, holes
