"""What a path is on this disk: where its links lead, which files a glob stands for, which other names a file has.

Every walk is bounded. What would take longer is not told, and then the caller asks a person.
"""

# ruff: noqa: PTH112, PTH118, PTH120, PTH208 - texts: `Path` folds `//` and `/./` before anyone has looked

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

MOST_ENTRIES = 20_000
MOST_NAMES = 2_000
GLOB = frozenset("*?[")


class TooMany(Exception):
    """There is more to look at than a user would wait for."""


def real(path: str) -> str:
    """Where an absolute path leads, every link followed, `..` taken as the kernel takes it."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return "/"


def is_folder(path: str) -> bool:
    """Whether it is a folder, by way of links perhaps."""
    try:
        return os.path.isdir(path)
    except ValueError:
        return False


def exists(path: str) -> bool:
    """Whether something of this name is there, be it a link that leads nowhere."""
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def expand(word: str, folder: str) -> list[str]:
    """The words that the shell puts in the place of one with `*`, `?` or `[`; the word itself when nothing matches."""
    if not GLOB & set(word):
        return [word]
    found, left = [""], MOST_ENTRIES
    *parents, last = word.split("/")
    for part in (*(f"{parent}/" for parent in parents), last):
        if not GLOB & set(part):
            found = [prefix + part for prefix in found]
            continue
        fits, slash = _name_test(part.rstrip("/")), part[len(part.rstrip("/")) :]
        following: list[str] = []
        for prefix in found:
            names = _names(os.path.join(folder, prefix))
            left -= len(names) + 1
            following += [prefix + name + slash for name in names if fits(name)]
            if left < 0 or len(following) > MOST_NAMES:
                raise TooMany
        found = following
    return [name for name in found if exists(os.path.join(folder, name))] or [word]


def could_be(word: str, folder: str) -> list[str]:
    """The paths that a word with a glob may name, be the last part there or not: `.g?t/new` is below `.git`."""
    start, slash, last = word.rpartition("/")
    if not GLOB & set(start):
        return expand(word, folder)
    return [*expand(word, folder), *(f"{place}{slash}{last}" for place in expand(start, folder))]


@lru_cache(maxsize=256)
def _name_test(pattern: str) -> Callable[[str], bool]:
    """Whether a name matches one part of a glob; a leading dot has to be written out."""
    matches = re.compile(translate(pattern.replace("[^", "[!"))).match
    dotted = pattern.startswith(".")
    return lambda name: (dotted or not name.startswith(".")) and matches(name) is not None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


class DiskEntry(NamedTuple):
    """A file or folder that a walk has met."""

    path: str
    inode: int
    link: bool


def below(folder: str) -> Iterator[DiskEntry]:
    """Every file and folder below a folder, links not followed; raises TooMany rather than take long."""
    todo, left = [folder], MOST_ENTRIES
    while todo:
        here = todo.pop()
        try:
            entries = list(os.scandir(here))
        except (OSError, ValueError):
            continue
        left -= len(entries) + 1
        if left < 0:
            raise TooMany
        for entry in entries:
            yield DiskEntry(entry.path, entry.inode(), entry.is_symlink())
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)


def in_bare_repository(folder: str) -> bool:
    """Whether git, started here, takes a folder that is not called `.git` for its repository, and obeys its config."""
    while True:
        if exists(os.path.join(folder, ".git")):
            return False
        if all(exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs")):
            return True
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
