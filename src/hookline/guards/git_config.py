"""What git's own files say about pushing: aliases, `push.default`, `remote.*.push`, the branch that is checked out.

Read, never run: `git config` would run what a hostile repository has put there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$")
_LARGEST = 1 << 20
_MOST_INCLUDES = 8


class GitConfig(msgspec.Struct, frozen=True):
    """The settings of one repository that decide what a push does; names in small letters."""

    values: tuple[tuple[str, str], ...] = ()
    branch: str | None = None
    """What is checked out; None when it cannot be told."""
    complete: bool = True
    """Whether all files could be read."""

    def get(self, name: str) -> str | None:
        """The last value of a setting, which is the one that counts."""
        return next((value for key, value in reversed(self.values) if key == name), None)

    def all(self, name: str) -> list[str]:
        """Every value of a setting that may have several."""
        return [value for key, value in self.values if key == name]


def read_git_config(folder: str) -> GitConfig:
    """The settings that hold for git in a folder: the machine's, the user's, the repository's."""
    git, shared = _repository(Path(folder))
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/gitconfig"), config / "git" / "config", home / ".gitconfig"]
    files += [] if shared is None else [shared / "config"]
    files += [] if git is None else [git / "config.worktree"]
    reader = _Reader()
    for file in files:
        reader.read(file)
    return GitConfig(tuple(reader.values), _branch(git), reader.complete)


def _repository(folder: Path) -> tuple[Path | None, Path | None]:
    """The repository that a folder is in: its own part, and the part that work trees share."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        try:
            if git.is_file():
                git = place / git.read_text().removeprefix("gitdir:").strip()
            (git / "HEAD").read_text()
        except (OSError, ValueError):
            continue
        try:
            return git, git / (git / "commondir").read_text().strip()
        except (OSError, ValueError):
            return git, git
    return None, None


def _branch(git: Path | None) -> str | None:
    try:
        head = (git / "HEAD").read_text().strip() if git is not None else ""
    except (OSError, ValueError):
        return None
    return head.removeprefix("ref:").strip().removeprefix("refs/heads/") if head.startswith("ref:") else None


class _Reader:
    """Reads files of git's own form, one after the other; a later value counts more."""

    def __init__(self) -> None:
        self.values: list[tuple[str, str]] = []
        self.complete = True
        self._included = 0

    def read(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                text = opened.read(_LARGEST + 1)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            self.complete = False
            return
        self.complete = self.complete and len(text) <= _LARGEST
        for name, value in _settings(text.decode("utf-8", "replace")):
            self.values.append((name, value))
            if name == "include.path" or (name.startswith("includeif.") and name.endswith(".path")):
                self._include(file, value)

    def _include(self, file: Path, value: str) -> None:
        """A file that another one includes; a condition is taken to hold, since it may."""
        self._included += 1
        if self._included > _MOST_INCLUDES:
            self.complete = False
            return
        self.read(file.parent / Path(value).expanduser())


def _settings(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in re.sub(r"\\\n", "", text).splitlines():
        rest = line.strip()
        header = _SECTION.match(rest)
        if header:
            own = None if header[2] is None else re.sub(r"\\(.)", r"\1", header[2])
            section = header[1].lower() if own is None else f"{header[1].lower()}.{own}"
            rest = rest[header.end() :].strip()
        found = _KEY.match(rest) if rest[:1] not in ("#", ";") else None
        if found:
            yield f"{section}.{found[1].lower()}", _value(found[2])


def _value(text: str | None) -> str:
    """A value without its comment and quotes; a key alone is true."""
    if text is None:
        return "true"
    said, quoted, at = "", False, 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and at + 1 < len(text):
            at += 1
            said += {"n": "\n", "t": "\t", "b": ""}.get(text[at], text[at])
        elif sign == '"':
            quoted = not quoted
        elif sign in "#;" and not quoted:
            break
        else:
            said += sign
        at += 1
    return said.strip()
