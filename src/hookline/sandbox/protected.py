"""Files in writable folders that run later, outside: git's hooks and settings, those of agents and editors, programs.

A line may write to its project, but what it leaves in these places would be run by its user. They are protected where
they do not exist yet, too. What lies in a folder that the line itself has made is its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from hookline.core.paths import inside_any
from hookline.sandbox import kernel
from hookline.sandbox.path_access import own_real
from hookline.sandbox.places import FREE, first_line, names_in, read_table
from hookline.sandbox.policy import Policy

Entry = tuple[int, bytes]

NAMES = frozenset(read_table("settings"))
"""Settings of agents, editors and shells, wherever they lie in a project."""
GIT_FILES = ("config", "config.worktree", "commondir", "gitdir")
_BARE = ("HEAD", "objects", "refs", "commondir")
"""By what git knows a repository that is not called `.git`; the last one leads to the two before it."""
_PLAIN = {name.casefold() for name in (*NAMES, *GIT_FILES, *_BARE, "hooks") if name[0] != "."}
"""Names that count and do not start with a dot."""
_GIT_CONTENT = ("objects", "refs", "logs", "index", "info", "rebase-merge", "rebase-apply")
"""What git keeps in a repository, where a name such as `hooks` is a branch's or a file's."""
_INNER = ("modules", "worktrees")
"""Where the repositories of submodules and the parts of work trees lie."""
SETTINGS = ("config", "config.worktree")
"""Files of a repository that git replaces as a whole, so that what is new in them can be judged."""
OPENS, MAKES, MAKES_FOLDER, REMOVES, MOVES = "open", "make", "make a folder", "remove", "move"
"""What is done with a name: an open for writing, a new entry, a new folder, an end, a move to another name."""
_ENVIRONMENT_S = ("python", "pip", "activate", "Activate", "node", "npm", "npx")
"""Programs that every environment has of its own, and that run what lies in it anyway."""
_LARGEST = 1 << 22


class ProtectedPaths:
    """Which names may not be written, by the folder that each lies in and by what the kernel calls that folder."""

    def __init__(self, policy: Policy, roots: tuple[str, ...]) -> None:
        self._roots = sorted(roots, key=len, reverse=True)
        home = os.path.realpath(os.environ.get("HOME") or "/")
        startup = [f"{home}/{name}" for name in read_table("home")] if inside_any(home, roots) else []
        also = [*policy.protect, *startup, *(place for root in roots for place in _named_by_settings(root))]
        self._also = {place.casefold(): place for place in also}
        self._free = policy.unprotect
        programs = [own_real(folder) for folder in os.environ.get("PATH", "").split(":") if folder]
        self._programs = {folder: names_in(folder) for folder in programs if inside_any(folder, self._roots)}
        self._elsewhere = [folder for folder in programs if folder not in self._programs]
        self.made: set[tuple[int, int]] = set()
        """The folders that the line has made. When a folder was made does not tell: overlayfs copies old ones."""
        self.pointers: list[str] = []
        """Files called `.git` that the line has made: where each leads is looked at when it has ended."""

    def places(self) -> list[str]:
        """What is protected by its whole path, in the folders that were granted; deeper ones are not listed."""
        names = [".git/hooks", ".git/info/attributes", *(f".git/{name}" for name in GIT_FILES), *sorted(NAMES)]
        found = [*self._also.values(), *(f"{root}/{name}" for root in self._roots for name in names)]
        return [place for place in found if not inside_any(place, self._free)]

    def problem(self, folder: str, name: str, act: str) -> str:
        """Why a name in a folder may not be written; empty if it may."""
        low, under = name.casefold(), folder.casefold()
        if folder in self._programs and act != REMOVES and self._is_elsewhere(folder, name):
            found = "a program of this name lies elsewhere in PATH"
        elif self._also and (place := self._named(f"{under}/{low}", act)):
            found = f"`{place}` is protected"
        elif "/." not in under and low[:1] != "." and low not in _PLAIN and "/hooks" not in under:
            return ""
        elif not inside_any(folder, self._roots):
            return ""  # the line's own temporary folder and caches
        else:
            found = self._settings(folder, name, act) or self._git(folder, name, act)
        return "" if found and self._free and inside_any(f"{folder}/{name}", self._free) else found

    def _is_elsewhere(self, folder: str, name: str) -> bool:
        """Whether a new program of an environment would be started in place of another; its own are its own."""
        if name in self._programs[folder] or name.startswith(_ENVIRONMENT_S):
            return False
        return any(os.access(f"{folder}/{name}", os.X_OK) for folder in self._elsewhere)

    def _named(self, place: str, act: str) -> str:
        """The place given that a name is, lies in or, where the name itself goes away, lies above."""
        for low, given in self._also.items():
            if inside_any(place, (low,)) or (act in (REMOVES, MOVES) and inside_any(low, (place,))):
                return given
        return ""

    def _settings(self, folder: str, name: str, act: str) -> str:
        """Whether a name is, or lies in, settings of an agent or an editor, below the folder that was granted."""
        root = next((root for root in self._roots if inside_any(folder, (root,))), "")
        parts = [*folder[len(root) :].split("/"), name]
        for at, part in enumerate(parts):
            low = part.casefold()
            if low not in NAMES or (at + 1 < len(parts) and parts[at + 1] in FREE):
                continue
            holder = root + "/".join(parts[:at])
            new_folder = act == MAKES_FOLDER and at == len(parts) - 1
            if new_folder or self._is_own(holder) or (act == REMOVES and holder not in self._roots):
                return ""
            return f"`{part}` sets up what runs outside"
        return ""

    def _git(self, folder: str, name: str, act: str) -> str:
        """Whether a name decides what git runs, in a repository or where there may be one."""
        parts = [*folder.split("/"), name]
        lows = [part.casefold() for part in parts]
        at = lows.index(".git") if ".git" in lows else -1
        if at < 0:
            return self._bare(parts, act)
        holder, rest = "/".join(parts[:at]) or "/", lows[at + 1 :]
        if self._is_own(holder):
            return ""
        if not rest:
            return self._repository(f"{holder}/{parts[at]}", holder, act)
        if act == REMOVES and (holder not in self._roots or rest[0] in _INNER):
            return ""
        return _decides(rest, act, exists=os.path.lexists(f"{folder}/{name}"))

    def _repository(self, place: str, holder: str, act: str) -> str:
        """`.git` itself: it may be made, as a folder or as a pointer, but stays where and what it is."""
        there = os.path.lexists(place)
        if act == MAKES_FOLDER or (act == OPENS and not there) or (act == REMOVES and holder not in self._roots):
            return ""
        return "it is the repository of what lies beside it" if there or act in (MAKES, MOVES) else ""

    def _bare(self, parts: list[str], act: str) -> str:
        """A repository without `.git` is known by what lies in it; a folder that was there does not become one."""
        folder = "/".join(parts[:-1])
        if act in (OPENS, MAKES, MAKES_FOLDER) and _completes(folder, parts[-1]) and not self._is_own(folder):
            return "git would take what lies beside it for a repository"
        for at, part in enumerate(parts):
            top = "/".join(parts[:at])
            if part != "hooks" and (part not in GIT_FILES or at + 1 < len(parts)):
                continue
            if all(os.path.lexists(f"{top}/{name}") for name in ("HEAD", "objects")) and not self._is_own(top):
                return "" if act == REMOVES else _decides(parts[at:], act, exists=os.path.lexists("/".join(parts)))
        return ""

    def astray(self) -> list[str]:
        """The pointers that the line has made and that lead to no part of a repository with its settings protected."""
        return [path for path in self.pointers if os.path.isfile(path) and not self._leads_home(path)]

    def _leads_home(self, pointer: str) -> bool:
        folder = os.path.dirname(pointer)
        if self._is_own(folder):
            return True
        try:
            own = os.path.realpath(os.path.join(folder, first_line(pointer).removeprefix("gitdir: ")))
            common = f"{own}/commondir"
            shared = os.path.realpath(os.path.join(own, first_line(common))) if os.path.lexists(common) else own
        except OSError:
            return False
        home, found, _ = own.partition("/.git/")
        inner = any(own.startswith(f"{home}/.git/{part}/") for part in _INNER)
        return bool(found) and inner and shared in (own, f"{home}/.git") and not self._is_own(home)

    def _is_own(self, folder: str) -> bool:
        """Whether a folder was made by the line."""
        with suppress(OSError):
            return identity(os.stat(folder)) in self.made
        return False


def identity(facts: os.stat_result) -> tuple[int, int]:
    """By what a file is known, whatever its name."""
    return facts.st_dev, facts.st_ino


def _named_by_settings(root: str) -> list[str]:
    """What a repository's settings name as hooks, or as further settings, and git therefore runs."""
    git = f"{root}/.git"
    try:
        text = kernel.content(f"{git}/config")
    except OSError:
        return []
    if not any(word in text.lower() for word in (b"hookspath", b"include")):
        return []
    from hookline.core.git_settings import read_settings

    found = []
    for name, value in read_settings(text.decode("utf-8", "replace")):
        if name == "core.hookspath":
            found.append(os.path.realpath(os.path.join(root, os.path.expanduser(value))))
        elif name.startswith("include") and name.endswith(".path"):
            found.append(os.path.realpath(os.path.join(git, os.path.expanduser(value))))
    return found


def _completes(folder: str, name: str) -> bool:
    """Whether a folder becomes a repository, as git knows one, when a name is made in it."""
    if name not in _BARE or os.path.lexists(f"{folder}/{name}"):
        return False
    there = {each for each in _BARE if each == name or os.path.lexists(f"{folder}/{each}")}
    return "HEAD" in there and ("commondir" in there or {"objects", "refs"} <= there)


def _decides(rest: list[str], act: str, *, exists: bool) -> str:
    """Whether a name inside a repository decides what git runs: its hooks, its settings, and where both lie."""
    inner = rest[0] in _INNER
    if rest == ["info", "attributes"]:
        return "it sets up what git runs"
    if any(part in _GIT_CONTENT for part in rest[:-1]) or (rest[0] in _GIT_CONTENT and not inner):
        return ""
    if "hooks" in rest[:-1] and not (rest[-1].endswith(".sample") and act != MOVES):
        return "git runs what lies there"
    if rest[-1] == "hooks":
        return "" if act == MAKES_FOLDER else "git runs what lies there"
    if rest[-1] in GIT_FILES and (exists or not inner or rest[-1] in SETTINGS):
        return "it sets up what git runs"
    return ""


class Snapshot:
    """Files and links in some places: their modes, and what they hold, taken down before a line and put back after it.

    For kernels before Linux 5.19: there the supervisor cannot make calls in a line's name, so that what runs later can
    be changed while the line runs.
    """

    def __init__(self, places: list[str]) -> None:
        self._places, self._before = places, _entries(places)

    def put_back(self) -> list[str]:
        after = _entries(self._places)
        changed = sorted(path for path in self._before | after if self._before.get(path) != after.get(path))
        for path in changed:
            with suppress(OSError):
                if path in after:
                    os.unlink(path)
                if path in self._before:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    _write(path, *self._before[path])
        return changed


def _entries(places: Iterable[str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    waiting = list(places)
    while waiting:
        path = waiting.pop()
        with suppress(OSError):
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                waiting += [f"{path}/{name}" for name in os.listdir(path)]
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    found[path] = mode, file.read(_LARGEST)
            else:
                found[path] = mode, os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else b""
    return found


def _write(path: str, mode: int, held: bytes) -> None:
    if stat.S_ISLNK(mode):
        os.symlink(held, os.fsencode(path))
    elif stat.S_ISREG(mode):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, stat.S_IMODE(mode)), "wb") as file:
            file.write(held)
