"""Keeping an agent inside a folder: judged on where a path really leads, not on how it is spelt.

Every path a file tool is given is resolved (`..`, `~`, links, also in a parent) and must end inside. A shell line is
judged on what it writes to, as far as its text tells; where it does not tell, that is said, and asked about or denied.
After a write the path is looked at once more, so that a link swapped in between is found.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.engine import Context
from hookline.events import PostToolUse, PreToolUse, SessionStart
from hookline.hooks import Hook, make_hook
from hookline.hooks.shell import writes
from hookline.replies import Reply, ask, deny, rewrite, stop

Undecided = Literal["ask", "deny"]
PRIORITY = 100
WRITERS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
READERS = {"Read": "file_path", "NotebookRead": "notebook_path", "Glob": "path", "Grep": "path", "LS": "path"}
SHELLS = {"Bash": "command", "Monitor": "command"}
ARGUMENTS = frozenset({
    "path", "paths", "file", "files", "file_path", "filepath", "file_paths", "filename", "file_name", "dir",
    "directory", "folder", "source", "src", "destination", "dest", "dst", "target", "target_path", "output",
    "output_path", "output_file", "out", "to", "from", "notebook_path", "new_path", "old_path", "root", "cwd", "uri",
    "url",
})  # fmt: skip
"""What MCP tools call the arguments that hold paths."""

_NO_REAL_FOLDERS = ("/proc", "/dev/fd", "/dev/pts", "/sys")
_MOST_SESSIONS = 1_000


class Fence(msgspec.Struct, frozen=True):
    """The folders that count as inside, links resolved."""

    folders: tuple[str, ...]

    def holds(self, path: str) -> bool:
        """Whether a resolved path is one of the folders or lies in one, whatever its case where case does not count."""
        return any(_within(path, folder) for folder in self.folders) or self._by_identity(path)

    def _by_identity(self, path: str) -> bool:
        """Compare folders by what they are, for file systems where two spellings are one folder."""
        roots = {_identity(folder) for folder in self.folders} - {None}
        return any(_identity(str(parent)) in roots for parent in (Path(path), *Path(path).parents))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def stay_inside(
    root: str | Path | None = None,
    also: Iterable[str | Path] = (),
    *,
    read: bool = False,
    undecided: Undecided = "ask",
    name: str = "paths.stay_inside",
) -> list[Hook]:
    """Deny what would write outside `root` (default: the session's project folder) and the folders in `also`.

    `read=True` keeps reading inside, too. `undecided` is what happens when a shell line does not tell what it writes.
    """
    guard = StayInside(root, tuple(also), read=read, undecided=undecided)
    return [
        make_hook((PreToolUse,), guard.judge, name=name, priority=PRIORITY),
        make_hook((PostToolUse,), guard.look_again, name=f"{name}.afterwards", priority=PRIORITY),
        make_hook((SessionStart,), guard.begin, name=f"{name}.begin", priority=PRIORITY, on_failure="continue"),
    ]


class StayInside:
    """The guard behind `stay_inside`: remembers where each session began, so that `cd` does not move the fence."""

    def __init__(
        self, root: str | Path | None, also: tuple[str | Path, ...], *, read: bool, undecided: Undecided
    ) -> None:
        self._root = root
        self._also = also
        self._undecided = undecided
        self._tools = {**WRITERS, **(READERS if read else {})}
        self._begun: dict[str, str] = {}

    async def begin(self, event: SessionStart, ctx: Context) -> None:
        """Remember the folder the session began in."""
        self._fence(event, ctx)

    async def judge(self, event: PreToolUse, ctx: Context) -> Reply | None:
        """Deny a call whose paths lead outside."""
        fence = self._fence(event, ctx)
        if event.tool_name in SHELLS:
            return self._judge_line(str(event.tool_input.get(SHELLS[event.tool_name], "")), event.cwd, fence)
        changed: dict[str, Any] = {}
        for field, path in self._paths(event):
            problem, resolved = judged(path, event.cwd, fence)
            if problem:
                return deny(problem)
            if resolved != _plain(path, event.cwd) and isinstance(event.tool_input.get(field), str):
                changed[field] = resolved
        return rewrite({**event.tool_input, **changed}) if changed else None

    async def look_again(self, event: PostToolUse, ctx: Context) -> Reply | None:
        """Find a path that led inside when it was judged, and outside when it was written."""
        fence = self._fence(event, ctx)
        for _, path in self._paths(event):
            problem, _ = judged(path, event.cwd, fence)
            if problem:
                return stop(f"it was changed while it was written: {problem}")
        return None

    def _fence(self, event: Any, ctx: Context) -> Fence:
        folder = str(self._root) if self._root is not None else self._project(event, ctx)
        return Fence(tuple(os.path.realpath(os.path.expanduser(str(one))) for one in (folder, *self._also)))

    def _project(self, event: Any, ctx: Context) -> str:
        known = ctx.engine.place.project_dir or ctx.env.get("CLAUDE_PROJECT_DIR")
        if known:
            return known
        if event.session_id not in self._begun and len(self._begun) >= _MOST_SESSIONS:
            del self._begun[next(iter(self._begun))]
        return self._begun.setdefault(event.session_id, event.cwd or os.getcwd())

    def _paths(self, event: PreToolUse | PostToolUse) -> Iterator[tuple[str, str]]:
        """The paths a call is given, with the argument that holds each."""
        given = event.tool_input
        field = self._tools.get(event.tool_name)
        if field is not None and (field in given or event.tool_name in WRITERS):
            yield field, given.get(field, "")
        elif event.tool_name.startswith("mcp__"):
            for name, value in given.items():
                if name.lower() in ARGUMENTS:
                    yield from ((name, one) for one in _texts(value) if _is_path(name, one))

    def _judge_line(self, line: str, cwd: str, fence: Fence) -> Reply | None:
        found = writes(line)
        for target in found.targets:
            problem, _ = judged(target, cwd, fence)
            if problem:
                return deny(problem)
        if found.undecidable:
            answer = {"ask": ask, "deny": deny}[self._undecided]
            return answer(f"cannot tell what `{line[:200]}` writes: {'; '.join(found.undecidable)}")
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _is_path(name: str, text: str) -> bool:
    """Whether an argument that may be a path or an address is a path here."""
    if "://" in text:
        return text.lower().startswith("file://")
    return (
        name not in ("url", "uri", "to", "from", "output", "out", "source", "target")
        or text[:1] in "/~."
        or "/" in text
    )


def judged(path: Any, cwd: str, fence: Fence) -> tuple[str, str]:
    """What is wrong with a path (or the empty string), and where it really leads."""
    if not isinstance(path, str) or not path.strip():
        return "no path was given, so it cannot be told where this would write", ""
    if any(ord(char) < 32 or char == "\x7f" for char in path):
        return f"`{path!r}` holds control characters; no honest path does", ""
    for spelling in dict.fromkeys((path, _look_alikes(path))):
        plain = _plain(spelling, cwd)
        if any(_within(plain, folder) for folder in _NO_REAL_FOLDERS):
            return f"`{path}` is no folder of its own: it leads wherever a process happens to be", ""
        resolved = os.path.realpath(plain)
        if not fence.holds(resolved):
            leads = f", which leads to `{resolved}`," if resolved != path else ""
            return f"`{path}`{leads} is outside `{fence.folders[0]}`", resolved
    return "", os.path.realpath(_plain(path, cwd))


def _plain(path: str, cwd: str) -> str:
    """The path from `/`, links not followed and `..` not folded (a link before it would matter)."""
    if path.lower().startswith("file://"):
        path = path[7:]
    path = os.path.expanduser(path.strip())
    return path if path.startswith("/") else f"{cwd.rstrip('/') or ''}/{path}"


def _look_alikes(path: str) -> str:
    """The path as it looks: signs that resemble `/`, `.` and `~` read as those."""
    table = {"∕": "/", "⁄": "/", "⧸": "/", "∖": "/", "․": ".", "‥": "..", "…": "...", "∼": "~", "～": "~"}
    folded = unicodedata.normalize("NFKC", "".join(table.get(char, char) for char in path))
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")
