"""Glob, and Grep with ripgrep."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.tools import ToolEnv
from hookline.agent.tools import search as module
from hookline.agent.tools.search import Glob, Grep, glob_pattern

FILES = {
    "a.py": "import os\nx = 1\n# TODO one\n",
    "src/b.py": "def f():\n    return 'todo'\n\n\nend\n",
    "src/deep/c.ts": "const x = 'TODO'\n",
    "node_modules/d.py": "TODO\n",
    "bin": "\0TODO\n",
}


@pytest.fixture
def project(env: ToolEnv) -> ToolEnv:
    if not shutil.which("rg"):
        pytest.skip("ripgrep is not installed")
    for at, (name, content) in enumerate(FILES.items()):
        path = Path(env.cwd, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (at, at))
    return env


async def grep(env: ToolEnv, pattern: str, **more: Any) -> str:
    tool = Grep()
    return str((await tool.run(tool.validate({"pattern": pattern, **more}), env)).content)


@pytest.mark.parametrize(
    "more,expected",
    [
        ({}, "Found 2 files\na.py\nsrc/deep/c.ts"),
        ({"-i": True, "type": "py"}, "Found 2 files\na.py\nsrc/b.py"),
        ({"glob": "*.ts"}, "Found 1 file\nsrc/deep/c.ts"),
        ({"path": "src"}, "Found 1 file\nsrc/deep/c.ts"),
        ({"output_mode": "content", "-n": True}, "a.py:3:# TODO one\nsrc/deep/c.ts:1:const x = 'TODO'"),
        ({"output_mode": "content", "path": "a.py", "-B": 1}, "a.py-2-x = 1\na.py:3:# TODO one"),
        ({"output_mode": "content", "-o": True, "path": "a.py"}, "a.py:3:TODO"),
        ({"output_mode": "count"}, "a.py:1\nsrc/deep/c.ts:1\n\nFound 2 total occurrences across 2 files."),
        ({"output_mode": "content", "head_limit": 1, "offset": 1}, "src/deep/c.ts:1:const x = 'TODO'"),
    ],
)
async def test_text_is_found(project: ToolEnv, more: dict[str, Any], expected: str) -> None:
    """Names, lines with their context, or counts; not in binaries or in folders nobody means."""
    assert await grep(project, "TODO", **more) == expected


async def test_a_pattern_may_span_lines(project: ToolEnv) -> None:
    """With `multiline`."""
    assert await grep(project, r"f\(\):.*todo", multiline=True) == "Found 1 file\nsrc/b.py"


async def test_nothing_found_is_said(project: ToolEnv) -> None:
    """Not an error."""
    assert await grep(project, "zzz") == "No files found"
    assert await grep(project, "zzz", output_mode="content") == "No matches found"


async def test_without_ripgrep_the_model_reads_what_to_install(env: ToolEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only ripgrep searches; one that the agent may have put there itself does not count."""
    monkeypatch.setattr(module, "find_helper", lambda name, project: None)
    result = await Grep().run({"pattern": "x"}, env)

    assert result.is_error
    assert "install ripgrep" in str(result.content)


async def test_a_broken_expression_or_path_is_an_error(project: ToolEnv) -> None:
    """The model can mend it."""
    tool = Grep()
    broken = await tool.run({"pattern": "("}, project)
    nowhere = await tool.run({"pattern": "x", "path": "nowhere"}, project)

    assert (broken.is_error, nowhere.is_error) == (True, True)
    assert "nowhere" in str(nowhere.content)


async def test_files_are_found_by_name_oldest_first(project: ToolEnv) -> None:
    """Relative to the working directory, without the folders nobody means."""
    result = await Glob().run({"pattern": "**/*.py"}, project)

    assert result.content == "a.py\nsrc/b.py"
    assert (result.response["numFiles"], result.response["truncated"]) == (2, False)
    assert (await Glob().run({"pattern": "*.zzz"}, project)).content == "No files found"
    absolute = await Glob().run({"pattern": f"{project.cwd}/src/**/*.ts"}, project)
    assert absolute.content == "src/deep/c.ts"


@pytest.mark.parametrize(
    "pattern,path,fits",
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**", "src/x/y", True),
        ("**", "x/y", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.t", False),
        ("a,b", "a,b", True),
        ("{a", "{a", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
    ],
)
def test_a_glob_means_what_shells_mean(pattern: str, path: str, fits: bool) -> None:
    """`*` stays within a folder, `**` crosses them, braces are either."""
    assert (glob_pattern(pattern).match(path) is not None) == fits
