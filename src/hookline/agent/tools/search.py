"""Glob and Grep: finding files by name, and by what is in them, with ripgrep."""

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from hookline.agent.hook_messages import TEXTS
from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, failure
from hookline.agent.tools.shell import BoundedOutput, find_helper, run_helper
from hookline.errors import HooklineError

MOST_FILES = 100
DEFAULT_HEAD = 250
OUTPUT_LIMIT = 20_000
#: folders that searches leave out
SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


class Glob(Tool):
    """Find files by a pattern such as `src/**/*.py`."""

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Names relative to the working directory, at most a hundred, the longest untouched first."""
        began, root = monotonic(), env.path(given.get("path") or ".")
        if not root.is_dir():
            return failure(f"Directory does not exist: {root}")
        found = await asyncio.to_thread(_matching, root, given["pattern"])
        shown = [relative(path, env.cwd) for path in found[:MOST_FILES]]
        cut = len(found) > MOST_FILES
        note = f"\n(Results are truncated: {MOST_FILES} of {len(found)} files.)" if cut else ""
        counts = {"durationMs": round((monotonic() - began) * 1000), "numFiles": len(shown), "truncated": cut}
        response = {"filenames": shown, **counts, "totalMatches": len(found), "countIsComplete": True}
        return ToolResult("\n".join(shown) + note or "No files found", response)


class Grep(Tool):
    """Search files for a regular expression: names of matching files, the lines themselves, or counts."""

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        root = env.path(given.get("path") or ".")
        if not root.exists():
            return failure(f"Path does not exist: {root}")
        program = find_helper("rg", env.state.project_dir)
        if program is None:
            return failure(TEXTS["no_ripgrep"])
        try:
            lines = await _ripgrep(program, given, root, env.cwd)
        except HooklineError as problem:
            return failure(str(problem))
        start, most = int(given.get("offset") or 0), int(given.get("head_limit", DEFAULT_HEAD))
        shown = lines[start : start + most] if most else lines[start:]
        return _show(given.get("output_mode", "files_with_matches"), lines, shown)


def walk(root: Path) -> Iterator[Path]:
    """Every file under a folder, without those that searches leave out; links to folders are not followed."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in SKIPPED)
        yield from (Path(folder, name) for name in sorted(files))


def relative(path: Path, cwd: str) -> str:
    """The path as it reads from the working directory."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


WILD = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@cache
def glob_pattern(pattern: str) -> re.Pattern[str]:
    """A glob over whole relative paths: `*` stays within a folder, `**` crosses them, `{a,b}` is either."""
    out, depth, closed = "", 0, pattern.count("{") == pattern.count("}")
    for piece in re.findall(r"\*\*/|\*\*|.", pattern, re.DOTALL):
        depth += closed and (piece == "{") - (piece == "}")
        either = {"{": "(?:", "}": ")", ",": "|" if depth else ","} if closed else {}
        out += either.get(piece) or WILD.get(piece) or re.escape(piece)
    return re.compile(out + r"\Z", re.DOTALL)


def _matching(root: Path, pattern: str) -> list[Path]:
    base = Path(pattern)
    if base.is_absolute():
        root, pattern = Path("/"), pattern.lstrip("/")
        while not any(sign in pattern.split("/")[0] for sign in "*?{[") and "/" in pattern:
            head, pattern = pattern.split("/", 1)
            root /= head
    wanted = glob_pattern(pattern.removeprefix("./"))
    found = [path for path in walk(root) if wanted.match(str(path.relative_to(root)))]
    changed: dict[Path, float] = {}
    for path in found:
        with suppress(OSError):
            changed[path] = path.stat().st_mtime
    return sorted(found, key=lambda path: changed.get(path, 0.0))


async def _ripgrep(program: str, given: dict[str, Any], root: Path, cwd: str) -> list[str]:
    options = ("--no-config", "--color=never", "--hidden", "--no-heading", "--with-filename", "--sort=path")
    skipped = [f"--glob=!{name}" for name in sorted(SKIPPED)]
    where = ["-e", given["pattern"], "--", relative(root, cwd)]
    code, out, problem = await run_helper([program, *options, *_flags(given), *skipped, *where], cwd)
    if code not in {0, 1} and not out:
        raise HooklineError(problem)
    return [line.removeprefix("./") for line in out.splitlines()]


def _flags(given: dict[str, Any]) -> list[str]:
    modes = {"files_with_matches": ["--files-with-matches"], "count": ["--count"], "content": ["--line-number"]}
    flags = list(modes[given.get("output_mode", "files_with_matches")])
    flags += [flag for flag in ("-i", "-o") if given.get(flag)]
    flags += ["--multiline", "--multiline-dotall"] if given.get("multiline") else []
    around = {"-B": "-B", "-A": "-A", "-C": "-C", "context": "-C"}
    flags += [f"{flag}{int(given[key])}" for key, flag in around.items() if key in given]
    flags += [f"--glob={given['glob']}"] if given.get("glob") else []
    return flags + ([f"--type={given['type']}"] if given.get("type") else [])


def _show(mode: str, lines: list[str], shown: list[str]) -> ToolResult:
    """What was found, for the model and for hooks, in the form that was asked for."""
    sink = BoundedOutput(OUTPUT_LIMIT)
    sink.feed("\n".join(shown).encode())
    content, files = sink.text(), _counted(len(lines), "file")
    if mode == "files_with_matches":
        response = {"mode": mode, "filenames": shown, "numFiles": len(shown), "totalFiles": len(lines)}
        return ToolResult(f"Found {files}\n{content}" if lines else "No files found", response)
    response = {"mode": mode, "numFiles": 0, "filenames": [], "content": content}
    if mode == "content":
        response |= {"numLines": len(shown), "totalLines": len(lines)}
        return ToolResult(content or "No matches found", response)
    total = sum(int(line.rpartition(":")[2]) for line in lines)
    told = f"{content}\n\nFound {_counted(total, 'total occurrence')} across {files}."
    return ToolResult(told if lines else "No matches found", {**response, "numFiles": len(lines), "numMatches": total})


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
