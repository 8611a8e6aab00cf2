"""The small project that the demo's agent works on: a package with two mistakes, and the tests that find them."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from pathlib import Path

import msgspec

PYTHON = Path(sys.executable).name
"""What this interpreter is called in its own folder, which the demo puts first on PATH."""

FILES: dict[str, str] = tomllib.loads(Path(__file__).with_name("project.toml").read_text(encoding="utf-8"))


def write_project(folder: Path) -> None:
    """Put the files into `folder`."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


class Tests(msgspec.Struct, frozen=True):
    """What a run of the project's tests came to."""

    ran: int
    failing: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether there were tests, and none failed."""
        return self.ran > 0 and not self.failing

    def __str__(self) -> str:
        if self.passed:
            return f"{self.ran} of {self.ran} tests pass"
        return f"{len(self.failing)} of {self.ran} tests fail: {', '.join(self.failing)}"


async def run_tests(folder: str | Path) -> Tests:
    """Run the project's tests, really: a process of its own, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-B", "-m", "unittest", cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    _, printed = await process.communicate()
    text = printed.decode("utf-8", "replace")
    ran = re.search(r"^Ran (\d+) test", text, re.MULTILINE)
    failing = re.findall(r"^(?:FAIL|ERROR): (?:test_)?(\w+)", text, re.MULTILINE)
    if process.returncode and not failing:
        failing = [text.strip().splitlines()[-1] if text.strip() else f"exit code {process.returncode}"]
    return Tests(int(ran[1]) if ran else 0, tuple(name.replace("_", " ") for name in failing))
