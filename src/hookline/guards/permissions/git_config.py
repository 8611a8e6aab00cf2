"""What git's own files say: about pushing, the branch that is checked out, and whether a setting has git run something.

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
_TABLE = """\
core: repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol \
safecrlf quotepath abbrev compression untrackedcache preloadindex sharedrepository checkstat trustctime longpaths \
protecthfs protectntfs commentchar whitespace bigfilethreshold splitindex
extensions: worktreeconfig objectformat refstorage partialclone preciousobjects noop relativeworktrees
remote.*: url pushurl fetch push tagopt prune prunetags mirror promisor partialclonefilter skipdefaultupdate \
skipfetchall gh-resolved followremotehead
branch.*: remote merge rebase pushremote description vscode-merge-base gh-merge-base github-pr-owner-number base
submodule.*: url active branch path ignore
push: default autosetupremote followtags recursesubmodules gpgsign useforceifincludes
diff: algorithm renames renamelimit colormoved colormovedws context submodule mnemonicprefix noprefix indentheuristic
status: short branch showuntrackedfiles relativepaths showstash
log: date decorate abbrevcommit follow showroot
merge: ff conflictstyle renamelimit renames log
fetch: prune prunetags parallel writecommitgraph recursesubmodules
user: name email signingkey useconfigonly
branch: autosetuprebase autosetupmerge sort
commit: gpgsign verbose cleanup
rebase: autostash autosquash updaterefs
pull: rebase ff
tag: gpgsign sort
lfs.*: access locksverify
submodule: active recurse
filter.lfs: required
lfs: repositoryformatversion
init: defaultbranch
"""
_HARMLESS = {section: keys.split() for section, _, keys in (row.partition(": ") for row in _TABLE.splitlines())}
"""Settings for which git runs nothing, by section (`*`: any name in quotes). All others may have it run one."""
_LFS = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
_PLAIN_URL = re.compile(r"(?!-)(?:(?:https?|ssh|git|file)://|(?![\w.+-]*::)[^\s-])\S*")
"""An address that git reaches by itself: not `ext::sh -c …`, nor one that reads as an option."""
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


def is_harmless_setting(name: str, value: str) -> bool:
    """Whether git is known to run nothing because of a setting."""
    section, _, key = name.rpartition(".")
    first, dot, _ = section.partition(".")
    first, key = first.lower(), key.lower()
    if section == "filter.lfs" and key in _LFS:
        return value == _LFS[key]
    row = section if section == "filter.lfs" else f"{first}.*" if dot else first
    plain = key not in ("url", "pushurl") or _PLAIN_URL.fullmatch(value) is not None
    return key in _HARMLESS.get(row, ()) and plain


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


def _settings(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in re.sub(r"\\\r?\n", "", text.removeprefix("\ufeff")).split("\n"):
        rest = line.strip()
        header = _SECTION.match(rest)
        if header:
            own = None if header[2] is None else re.sub(r"\\(.)", r"\1", header[2])
            section = header[1].lower() if own is None else f"{header[1].lower()}.{own}"
            rest = rest[header.end() :].strip()
        found = _KEY.match(rest) if rest[:1] not in ("#", ";") else None
        if found:
            yield f"{section}.{found[1].lower()}", _value(found[2])
        elif rest and rest[:1] not in ("#", ";"):
            yield "", rest  # git reads it in a way that we do not


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
