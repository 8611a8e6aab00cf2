"""What a hook was trusted with, compared at every run: it runs the files that were looked at, or it does not run.

The files are opened, hashed and compared right before the command is started, from those bytes where that is possible
(see `hashed_script`). They, and the folders on the way to them, are looked at once more when it has ended: if any was
changed or exchanged in between, the answer does not count. An edit inside that moment may still run once where the
script is run from its path; what it answers opens no gate.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from hookline.core.hooks.actions import Cedar, Command, Rego
from hookline.errors import SealBroken
from hookline.settings.files import read_script
from hookline.settings.trust.code_imports import Listing
from hookline.settings.trust.scripts import files_run_by

_Identity = tuple[int, ...] | None
_known: dict[str, tuple[_Identity, str | None]] = {}
_SETTLED_NS = 2_000_000_000
"""A file that was changed less than this ago may be changed again within one tick of the clock: it is hashed again."""


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The files, with their hashes, that one hook may run; those that must not be there; what imports may find."""

    files: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
    listings: tuple[tuple[Listing, str], ...] = ()
    roots: tuple[str, ...] = ()
    project: str = ""

    @property
    def python(self) -> bool:
        """Whether Python code is among the files."""
        return bool(self.listings)

    def check(self, action: Command | Cedar | Rego, cwd: str) -> Callable[[], None]:
        """Raise `SealBroken` unless everything is as it was trusted; what is returned does so again after the run."""
        before = {path: _identity(path) for path, _ in self.files}
        trails = {folder: _trail(folder) for folder in self._folders()}
        for path, sha256 in self.files:
            if _hash(path, before[path]) != sha256:
                raise self._changed(path, "has changed since it was trusted")
        for path in self.absent:
            if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112 - at every run
                raise self._changed(path, "was not there when the hook was trusted")
        for listing, sha256 in self.listings:
            if listing.read().sha256 != sha256:
                raise self._changed(listing.folder, "has files that were not there when the hook was trusted")
        self._elsewhere(action, cwd)

        def check_again() -> None:
            for path, identity in before.items():
                if _identity(path) != identity:
                    raise self._changed(path, "was changed while it ran, so that its answer does not count")
            self._compare_trails(trails)

        return check_again

    def hashed_argv(self, action: Command, cwd: str) -> tuple[tuple[str, ...], object] | None:
        """The command with its script from the bytes that were hashed; `None` where it has to be run from its path."""
        from hookline.settings.trust.hashed_script import hashed_argv

        return hashed_argv(action, dict(self.files), self.project, cwd)

    def _folders(self) -> set[str]:
        """Every folder and link on the way to a file, as it is written and as it is resolved."""
        files = {os.path.dirname(path) for path, _ in self.files}  # noqa: PTH120 - at every run
        starts = files | {os.path.realpath(folder) for folder in files}
        return {str(step) for start in starts for step in (Path(start), *Path(start).parents)}

    def _compare_trails(self, before: dict[str, _Identity]) -> None:
        """A folder that was exchanged and put back: it was renamed, which its own times and its parent's tell.

        A name that is added to a folder changes the times of that folder alone. Above the project only what a rename
        alone does is looked at: folders there change for many reasons.
        """
        now = {folder: _trail(folder) for folder in before}
        for folder, (was, at_last) in {one: (before[one], now[one]) for one in before}.items():
            if was == at_last:
                continue
            parent = os.path.dirname(folder)  # noqa: PTH120 - at every run
            inside = any(folder != root and Path(folder).is_relative_to(root) for root in self.roots if root)
            added = was is not None and at_last is not None and was[:3] == at_last[:3] and was[3] != at_last[3]
            if not added or (inside and before.get(parent) != now.get(parent)):
                raise self._changed(folder, "was exchanged while the hook ran, so that its answer does not count")

    def _elsewhere(self, action: Command | Cedar | Rego, cwd: str) -> None:
        """In another folder than the project's, a relative name is another file; a pattern may match more by now."""
        if not isinstance(action, Command):
            cwd = self.project
        elif not cwd or os.path.realpath(cwd) == os.path.realpath(self.project):
            return
        found = files_run_by(action, (*self.roots, cwd), cwd)
        trusted = dict(self.files)
        for path in found.files:
            if path not in trusted:
                raise self._changed(path, "was never trusted, and the command means it in this folder")

    def _changed(self, path: str, why: str) -> SealBroken:
        shown = os.path.relpath(path, self.project) if Path(path).is_relative_to(self.project) else path
        return SealBroken(f"was not run: `{shown}` {why}; run `hookline trust` to look and decide")


def _trail(folder: str) -> _Identity:
    """What tells a folder or link from another one in its place; the last two are the times of its last changes."""
    try:
        it = os.lstat(folder)
    except OSError:
        return None
    return it.st_dev, it.st_ino, it.st_mode, it.st_mtime_ns, it.st_ctime_ns


def _identity(path: str) -> _Identity:
    """What no edit leaves as it was: also the time of the last change, which no program can set."""
    try:
        it = os.stat(path)  # noqa: PTH116 - at every run
    except (OSError, ValueError):
        return None
    return it.st_dev, it.st_ino, it.st_size, it.st_mtime_ns, it.st_ctime_ns


def _hash(path: str, identity: _Identity) -> str | None:
    """The file's hash; one that was computed for the very same file is taken, unless that was edited a moment ago."""
    import time

    known = _known.get(path)
    if known is not None and identity is not None and known[0] == identity:
        return known[1]
    script = read_script(path)
    sha256 = None if script is None else script.sha256
    settled = identity is not None and time.time_ns() - max(identity[3:]) > _SETTLED_NS
    if settled and _identity(path) == identity:
        _known[path] = (identity, sha256)
    return sha256
