"""CLAUDE.md and its kin, as far as trust is concerned: which files they take in from outside their project.

A project may put anything into its own files, and a model that is told to read them reads them. What it may not do
before it is trusted is to take in files of its user: `@~/notes.md`, `@/etc/hosts`, or a link that leads there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hookline.settings.files import is_file, read_bytes
from hookline.settings.sources import SettingsFolders, SettingsSource

INCLUDE = re.compile(r"(?:^|\s)@((?:[^\s\\`]|\\ )+)")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
MOST_HOPS = 5
_MOST_RULES = 500
_LARGEST = 1 << 20


def includes(content: str, folder: Path) -> list[Path]:
    """The files a text names with `@path`, outside code; a name that is not a file is just a word."""
    prose = CODE.sub("", FENCE.sub("", content))
    names = [name.replace("\\ ", " ") for name in INCLUDE.findall(prose)]
    return [Path(folder, _expanded(name)) for name in names]


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # `~name` of an unknown user
        return Path(name)


def is_outside(path: Path, root: Path) -> bool:
    """Whether a file lies outside a folder, links followed."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def memory_sources(where: SettingsFolders) -> tuple[SettingsSource, ...]:
    """The files of instructions in the project's folder."""
    root = where.project_dir
    rules = sorted((root / ".claude" / "rules").rglob("*.md"))[:_MOST_RULES]
    files = [*(root / name for name in ("CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", "CLAUDE.local.md")), *rules]
    return tuple(
        SettingsSource(kind="memory", label=where.label(path), path=str(path), root=str(root), foreign=True)
        for path in files
        if is_file(path)
    )


def outside_imports(path: Path, root: Path) -> tuple[str, ...]:
    """What a file takes in from outside `root`, also by way of others inside it; itself, if it is a link to there."""
    return tuple(dict.fromkeys(_outside(path, root, set(), 0)))


def _outside(path: Path, root: Path, seen: set[str], hops: int) -> Iterator[str]:
    real = os.path.realpath(path)
    if real in seen or not is_file(path):
        return
    seen.add(real)
    if is_outside(path, root):
        yield real
        return
    data = read_bytes(str(path), _LARGEST)
    if isinstance(data, bytes) and hops < MOST_HOPS:
        for target in includes(data.decode("utf-8", "replace"), path.parent):
            yield from _outside(target, root, seen, hops + 1)
