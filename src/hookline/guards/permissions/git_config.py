"""What git's own files say: about pushing, the branch that is checked out, and whether a setting has git run something.

Read, never run: `git config` would run what a hostile repository has put there.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from hookline.core.git_settings import is_harmless_setting, read_settings

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


def runs_something(folder: str) -> str:
    """Why git may run a program in a folder although it is only asked to look; empty where it does not.

    Judged by the repository's own files, which its users can write. What is not known to be harmless is not.
    """
    git, shared = _repository(Path(folder))
    settings = running_settings(folder)
    if git is None or shared is None or settings is None:
        return "" if git is None else "its configuration cannot be read whole"
    if settings:
        return f"`{settings[0]}` is set in its configuration"
    hook = "post-index-change"  # the one that runs although git was only asked to look
    return f"it has the hook `{hook}`" if any((place / "hooks" / hook).exists() for place in (git, shared)) else ""


def main_worktree(folder: str) -> str | None:
    """The folder that holds the repository which a folder belongs to, also from one of its other work trees."""
    _, shared = _repository(Path(folder))
    return None if shared is None else str(shared.parent)


def running_settings(folder: str) -> list[str] | None:
    """The settings of the repository's own files that are not known to be harmless; None if not all could be read."""
    git, shared = _repository(Path(folder))
    reader = _Reader()
    for file in () if git is None or shared is None else (shared / "config", git / "config.worktree"):
        reader.read(file)
    found = [name for name, value in reader.values if not is_harmless_setting(name, value)]
    return list(dict.fromkeys(found)) if reader.complete else None


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
        for name, value in read_settings(text.decode("utf-8", "replace")):
            if not name:
                self.complete = False
                continue
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
