"""What the project wants the agent to know: CLAUDE.md and its kin, with everything they include.

`discover` reads what holds for the whole session; `nested` what a file the agent touches brings with it (a CLAUDE.md in
a folder below, a rule whose `paths` match). Each `Instructions` carries what the InstructionsLoaded event tells.

| file | memory type |
|---|---|
| `~/.claude/CLAUDE.md`, `~/.claude/rules/**/*.md` | User |
| `CLAUDE.md`, else `AGENTS.md`; `.claude/CLAUDE.md`, `.claude/rules/**/*.md`; in the project and above it | Project |
| `CLAUDE.local.md` beside them | Local |
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, structs

from hookline.agent.session.transcript import config_folder
from hookline.agent.tools.search import glob_pattern
from hookline.settings.trust.memory_files import MOST_HOPS, includes, is_outside

HEADER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
SIZE_LIMIT = 1 << 20


class Instructions(Struct, frozen=True):
    """One file of instructions, with why it was loaded."""

    file_path: str
    content: str
    memory_type: str = "Project"
    load_reason: str = "session_start"
    parent_file_path: str | None = None
    trigger_file_path: str | None = None
    globs: tuple[str, ...] | None = None


def discover(
    cwd: str,
    environ: Mapping[str, str] = os.environ,
    *,
    sources: frozenset[str] = frozenset({"User", "Project", "Local"}),
    outside: frozenset[str] = frozenset(),
) -> list[Instructions]:
    """What holds for a session in `cwd`, the user's first, then from the outermost folder inwards; each file once.

    `outside` has the files that a project may take in from outside its own folder: those that are trusted.
    """
    home = config_folder(environ)
    found: list[Instructions] = []
    seen: set[str] = set()
    for kind, path in _session_files(Path(cwd), home):
        if kind in sources and _globs(path) is None:
            fence = None if kind == "User" else _Fence(_root_of(path, Path(cwd)), outside)
            found += _load(path, Instructions(str(path), "", kind), seen, fence)
    return found


def nested(file_path: str, cwd: str, known: set[str]) -> list[Instructions]:
    """What touching a file below `cwd` brings: the CLAUDE.md of the folders on the way, and rules for such paths.

    `known` has the paths loaded so far and is added to, so that each file is loaded once in a session.
    """
    path, root = Path(file_path), Path(cwd)
    if not path.is_relative_to(root):
        return []
    found: list[Instructions] = []
    folders = [
        root / Path(*path.relative_to(root).parts[: depth + 1])
        for depth in range(len(path.relative_to(root).parts) - 1)
    ]
    for folder in folders:
        for kind, file in _folder_files(folder):
            if _globs(file) is None:
                about = Instructions(str(file), "", kind, "nested_traversal", trigger_file_path=file_path)
                found += _load(file, about, known, _Fence(root))
    for rule in [rule for folder in (root, *folders) for rule in _rules(folder / ".claude")]:
        globs = _globs(rule)
        inside = path.relative_to(root).as_posix()
        if globs and any(glob_pattern(glob).match(inside) for glob in globs):
            about = Instructions(str(rule), "", "Project", "path_glob_match", trigger_file_path=file_path, globs=globs)
            found += _load(rule, about, known, _Fence(root))
    return found


def _session_files(cwd: Path, home: Path) -> Iterator[tuple[str, Path]]:
    yield "User", home / "CLAUDE.md"
    yield from (("User", rule) for rule in _rules(home))
    for folder in (*reversed(cwd.parents), cwd):
        # the user's own folder may lie above the project: its files are the user's, whichever way they are found
        yield from ((kind, file) for kind, file in _folder_files(folder) if not file.is_relative_to(home))


def _folder_files(folder: Path) -> Iterator[tuple[str, Path]]:
    main = folder / "CLAUDE.md"
    yield "Project", main if main.is_file() else folder / "AGENTS.md"
    yield "Project", folder / ".claude" / "CLAUDE.md"
    yield from (("Project", rule) for rule in _rules(folder / ".claude"))
    yield "Local", folder / "CLAUDE.local.md"


def _rules(settings: Path) -> list[Path]:
    return sorted((settings / "rules").rglob("*.md"))


class _Fence(Struct, frozen=True):
    """The folder that a project's instructions may be taken from, and what is trusted besides."""

    root: Path
    outside: frozenset[str] = frozenset()

    def admits(self, path: Path) -> bool:
        return not is_outside(path, self.root) or os.path.realpath(path) in self.outside


def _root_of(path: Path, cwd: Path) -> Path:
    """The project's folder; for a file of a folder above it, that folder."""
    return cwd if path.is_relative_to(cwd) else path.parent.parent if path.parent.name == ".claude" else path.parent


def _load(
    path: Path, about: Instructions, seen: set[str], fence: _Fence | None = None, hops: int = 0
) -> list[Instructions]:
    """The file and, after it, what it includes; nothing when it is missing, unreadable, fenced off or loaded before."""
    real = os.path.realpath(path)
    if real in seen or not _readable(path) or (fence is not None and not fence.admits(path)):
        return []
    seen.add(real)
    content = HEADER.sub("", path.read_text("utf-8", "replace"), count=1)
    loaded = [structs.replace(about, content=content)]
    if hops >= MOST_HOPS:
        return loaded
    for target in includes(content, path.parent):
        inner = Instructions(str(target), "", about.memory_type, "include", str(path), about.trigger_file_path)
        loaded += _load(target, inner, seen, fence, hops + 1)
    return loaded


def _readable(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= SIZE_LIMIT and os.access(path, os.R_OK)
    except OSError:
        return False


def _globs(path: Path) -> tuple[str, ...] | None:
    """The `paths` of a rule's header; None when it has none and so always holds."""
    if "rules" not in path.parts or not _readable(path):
        return None
    header = HEADER.match(path.read_text("utf-8", "replace"))
    return _paths_of(header[1]) if header else None


def _paths_of(header: str) -> tuple[str, ...] | None:
    """`paths` of it: in brackets, one per line, or on one line with commas; too little to need a YAML library."""
    found = re.search(r"^paths:[ \t]*(.*(?:\n[ \t]*-.*)*)", header, re.MULTILINE)
    if not found:
        return None
    text = found[1].strip().removeprefix("[").removesuffix("]")
    parts = re.findall(r"^[ \t]*-[ \t]*(.+)$", text, re.MULTILINE) or _split(text)
    return tuple(part.strip().strip("\"'") for part in parts if part.strip().strip("\"'"))


def _split(text: str) -> list[str]:
    """A list by its commas, but not by those in `{a,b}`."""
    return re.findall(r"(?:\{[^}]*\}|[^,{])+", text)
