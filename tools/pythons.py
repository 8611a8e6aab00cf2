"""Run tests on every supported Python that this machine has: `python -m tools.pythons [--core] [pytest arguments]`.

Each version gets an environment of its own (`.venv-3.12`, …). The Python that runs this is left out, because
`make test` has tested it. Versions that are not installed, or for which no package can be had, are named, and are not
a failure. With `--core` the environments have what the core's tests need and no extra, which is quick enough for every
run of CI.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DEFAULT_TESTS = (
    "tests/core", "tests/events", "tests/processes", "tests/runners",
    "tests/settings", "tests/guards", "tests/records/audit", "tests/test_replies.py",
)  # fmt: skip
CORE_TESTS = ("tests/core/engine", "tests/events", "tests/core/hooks", "tests/core/wire", "tests/test_replies.py")
CORE_NEEDS = (
    "-e", ".", "hypothesis", "jsonschema", "mypy", "psutil", "pytest", "pytest-asyncio", "pytest-timeout",
    "pytest-xdist", "rich",
)  # fmt: skip


def candidates(version: str) -> Iterator[str]:
    """Where a Python of this version may be: on PATH, or among pyenv's."""
    if found := shutil.which(f"python{version}"):
        yield found
    for folder in sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*"), reverse=True):
        yield str(folder / "bin" / "python")


def find(version: str) -> str | None:
    """A Python of this version that really starts; a shim may only say that it is not there."""
    code = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for path in candidates(version):
        try:
            ran = subprocess.run([path, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        except OSError:
            continue
        if ran.stdout.strip() == version:
            return path
    return None


def environment(version: str, python: str, *, core: bool) -> Path:
    """The version's environment, set up if it is new or its requirements have changed."""
    venv = ROOT / f".venv-{version}{'-core' if core else ''}"
    ready = venv / ".ready"
    sources = (ROOT / "pyproject.toml", ROOT / "constraints.txt")
    if ready.exists() and all(ready.stat().st_mtime >= source.stat().st_mtime for source in sources):
        return venv
    print(f"setting up {venv.name}", flush=True)
    subprocess.run([python, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    needs = CORE_NEEDS if core else ("-e", ".[all,dev]")
    subprocess.run([*pip, "-c", "constraints.txt", *needs], cwd=ROOT, check=True)
    ready.touch()
    return venv


def can_install(venv: Path) -> bool:
    """Whether anything can be installed there at all; if so, it is our requirements that do not fit."""
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "-qq", "--dry-run", "msgspec"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test(version: str, arguments: Sequence[str], *, core: bool) -> str:
    """Run the tests on one version; how it ended, in a word or two."""
    python = find(version)
    if python is None:
        return "not installed here"
    print(f"== Python {version}", flush=True)
    try:
        venv = environment(version, python, core=core)
    except subprocess.CalledProcessError as error:
        if not can_install(ROOT / f".venv-{version}{'-core' if core else ''}"):
            return "not set up: no index has a package for it"
        return f"failed: setting up ended with exit code {error.returncode}"
    command = [str(venv / "bin" / "python"), "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *arguments]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    return "passed" if code == 0 else f"failed: exit code {code}"


def main(arguments: Sequence[str]) -> int:
    """Test every other version, then say how each ended."""
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    core = "--core" in arguments
    chosen = [word for word in arguments if word != "--core"] or (CORE_TESTS if core else DEFAULT_TESTS)
    ends = {version: test(version, chosen, core=core) for version in VERSIONS if version != mine}
    for version, end in ends.items():
        print(f"Python {version}: {end}")
    return 1 if any(end.startswith("failed") for end in ends.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
