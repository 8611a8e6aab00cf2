"""What a path is on this disk: where its links lead, which files a glob stands for, which other names a file has.

Every walk is bounded. What would take longer is not told, and then the caller asks a person.
"""

# ruff: noqa: PTH111, PTH115, PTH118, PTH208 - texts: `Path` folds `//` and `/./` before anyone has looked

import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote

from hookline.core.paths import inside_any

MOST_ENTRIES = 20_000
MOST_NAMES = 5_000
GLOB = frozenset("*?[")


class TooMany(Exception):
    """There is more to look at than a user would wait for."""


def real(path: str) -> str:
    """Where an absolute path leads, every link followed, `..` taken as the kernel takes it."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return "/"


def expand(word: str, folder: str, *, hidden: bool = False) -> list[str]:
    """The words that the shell puts in the place of one with `*`, `?` or `[`; the word itself when nothing matches.

    A leading dot has to be written out, but for `hidden`: bash has an option for that. A folder on the way may itself
    be called so, as `app/[slug]` is.
    """
    if GLOB.isdisjoint(word):
        return [word]
    found, left = [""], MOST_ENTRIES
    for part in re.findall(r"[^/]*/|[^/]+", word):
        if GLOB.isdisjoint(part):
            found = [prefix + part for prefix in found]
            continue
        end, following = part[len(part.rstrip("/")) :], list[str]()
        pattern = part.removesuffix(end).replace("[^", "[!")
        for prefix in found:
            names: list[str] = []
            with suppress(OSError, ValueError):
                names = os.listdir(os.path.join(folder, prefix))
            left -= len(names) + 1
            seen = names if hidden or pattern.startswith(".") else [name for name in names if name[0] != "."]
            following += [prefix + name + end for name in seen if fnmatchcase(name, pattern)]
            so_called = prefix + part
            if so_called not in following and os.path.lexists(os.path.join(folder, so_called)):
                following.append(so_called)
            if left < 0 or len(following) > MOST_NAMES:
                raise TooMany
        found = following
    return [name for name in found if os.path.lexists(os.path.join(folder, name))] or [word]


def matches(word: str, folder: str, *, hidden: bool = True) -> list[str]:
    """A path of a shell line and all that it may stand for, hidden files too."""
    return [word, *expand(os.path.expanduser(word), folder, hidden=hidden)] if not GLOB.isdisjoint(word) else [word]


def glob_start(pattern: str) -> str:
    """The folder that a glob starts from: what stands before its first wildcard; the root if it climbs behind that."""
    start = re.split(r"[*?\[{]", pattern)[0]
    if ".." in pattern.split("/")[start.count("/") :]:
        return "/"
    return start.rpartition("/")[0] or ("/" if pattern.startswith("/") else ".")


def could_be(word: str, folder: str) -> list[str]:
    """The paths that a word with a glob may name, be the last part there or not: `.g?t/new` is below `.git`."""
    start, slash, last = word.rpartition("/")
    if GLOB.isdisjoint(start):
        return expand(word, folder)
    return [*expand(word, folder), *(f"{place}{slash}{last}" for place in expand(start, folder))]


def below(folder: str) -> Iterator[os.DirEntry[str]]:
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
            yield entry
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)


def in_bare_repository(folder: str) -> bool:
    """Whether git, started here, takes a folder that is not called `.git` for its repository, and obeys its config."""
    for place in (Path(folder), *Path(folder).parents):
        if os.path.lexists(place / ".git"):
            return False
        if all(os.path.lexists(place / name) for name in ("HEAD", "objects", "refs")):
            return True
    return False


# -- where a path really leads: every link on the way followed, every way of spelling it considered -------------------

_MOST_LINKS = 40
_MOST_CHARACTERS = 4096
_NO_REAL_FOLDERS = ("/proc", "/dev/fd", "/dev/pts", "/sys", "/dev/stdin", "/dev/tcp", "/dev/udp")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\]")
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")
"""A path that every program reads alike."""

_ALIKE = str.maketrans({
    **dict.fromkeys("∕⁄⧸╱⟋／", "/"), **dict.fromkeys("∖＼⧵", "\\"), **dict.fromkeys("․․．｡。", "."),
    "‥": "..", "…": "...", **dict.fromkeys("∼～˜⁓〜", "~"), **dict.fromkeys("‐‑‒–—―−﹣－⁃˗", "-"),
    **dict.fromkeys("＿", "_"),
    **dict(zip("аеорсухіјѕԁһԛԝкмтгнвАВЕКМНОРСТХ", "aeopcyxijsdhqwkmtrhbABEKMHOPCTX", strict=True)),
    **dict(zip("αοινυρτκεσ", "aoivuptkes", strict=True)), **dict(zip("ıɑɡ", "iag", strict=True)),
})  # fmt: skip


class UnresolvablePath(Exception):
    """The path cannot be judged; the text says why. Never leaves the guard."""


def places_of(path: object, cwd: str) -> Iterator[str]:
    """Where a path leads, for every way that a program may take this text, the plainest reading first."""
    text, here = _checked(path), cwd.rstrip("/") + "/"
    readings = (text,) if _PLAIN.fullmatch(text) else dict.fromkeys(_readings(text))
    return map(_resolved, [one if one.startswith("/") else here + one for one in readings])


def _readings(path: str) -> Iterator[str]:
    yield os.path.expanduser(path)
    stripped = fold_confusables(path).strip().strip("\"'")
    yield os.path.expanduser(stripped)
    if stripped.lower().startswith("file:"):
        yield re.sub(r"^/*(?:localhost(?=/))?", "/", unquote(stripped[5:]))
    if "%" in stripped:
        yield os.path.expanduser(unquote(stripped))
    if "\\" in stripped:
        yield os.path.expanduser(stripped.replace("\\", "/"))
    if "$" in stripped:
        yield os.path.expandvars(os.path.expanduser(stripped))


def _checked(path: object) -> str:
    """The path as a text that can be looked at; anything else is astray."""
    if not isinstance(path, str) or not path.strip():
        raise UnresolvablePath("no path was given, so it cannot be told where this would write")
    if not path.isprintable() and any(ord(char) < 32 or char == "\x7f" for char in path):
        raise UnresolvablePath(f"{path[:200]!r} holds control characters; no honest path does")
    if len(path) > _MOST_CHARACTERS:
        raise UnresolvablePath(f"a path of {len(path)} characters is longer than any system takes")
    if os.sep == "/" and _DRIVE.match(path):
        raise UnresolvablePath(f"`{path}` is a path of another system")
    return path


def _resolved(path: str) -> str:
    """Where an absolute path leads, links followed one by one, also where nothing lies yet."""
    todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    here, links, gone = "", 0, False
    while todo:
        part = todo.pop()
        if part == "..":
            here, gone = here.rpartition("/")[0], False
            continue
        step = f"{here}/{part}"
        if step.startswith(_NO_REAL_FOLDERS) and inside_any(step, _NO_REAL_FOLDERS):
            raise UnresolvablePath(f"`{path}` is not a place of its own: it leads wherever a process happens to be")
        target = None if gone else _link(step, path)
        gone = gone or target == ""
        if not target:
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise UnresolvablePath(f"`{path}` leads in a circle")
        here = "" if target.startswith("/") else here
        todo += [each for each in reversed(target.split("/")) if each not in ("", ".")]
    return here or "/"


def _link(step: str, path: str) -> str | None:
    """Where a link points; None for what is not a link, and an empty text for what is not there, nor anything below."""
    try:
        return os.readlink(step)
    except FileNotFoundError:
        return ""
    except PermissionError:
        raise UnresolvablePath(f"`{path}` leads through `{step}`, which may not be looked at") from None
    except (OSError, ValueError):
        return None


def fold_confusables(text: str) -> str:
    """The text as it looks: full-width letters are plain, signs without width are gone, an en dash is a hyphen."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text.translate(_ALIKE)).translate(_ALIKE)
    return "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Mn"))
