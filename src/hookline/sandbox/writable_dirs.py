"""Room of a confined line's own: a temporary folder, caches apart from the user's, the files it was given."""

from __future__ import annotations

import os
import stat
import time
from _blake2 import blake2s  # without `hashlib`, which loads OpenSSL

from hookline.core.paths import inside_any
from hookline.sandbox.policy import Policy

_TEMPORARY = "hookline-confine-"
_KEPT = 7 * 24 * 3600
CACHES = {
    "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build",
    "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache",
}  # fmt: skip
"""Variables that move a tool's cache: what a confined line puts there is never read by an unconfined one."""


class WritableDirs:
    """Where a line may write: the folders it was given, its own temporary one, its caches and devices."""

    def __init__(self, projects: list[str] | None, temporary: str, caches: str) -> None:
        self.projects: list[str] | None = projects
        self.temporary: str = temporary
        self.caches: str = caches
        self.granted: list[str] | None = None if projects is None else [*projects, caches, temporary, *open_files()]

    @classmethod
    def make(cls, policy: Policy) -> WritableDirs:
        """Room for one line on this machine: the same for every line that may write to the same folders."""
        if policy.write is None:
            return cls(None, "", "")
        key = blake2s("\0".join(sorted(policy.write)).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
        temporary = temporary_folder(key)
        caches = cache_folder(key, temporary)
        return cls([*policy.write, *worktree_folders(policy.write)], temporary, caches)

    @property
    def places(self) -> list[str]:
        """The folders and files that may be written to."""
        return ["/"] if self.granted is None else self.granted


def temporary_folder(key: str) -> str:
    """The temporary folder of lines that share a key, which stays; a new one where something else lies in its place."""
    base = os.path.realpath(os.environ.get("TMPDIR") or "/tmp")
    for name in (f"{os.geteuid()}-{key}", *(os.urandom(6).hex() for _ in range(100))):
        path = os.path.join(base, _TEMPORARY + name)
        try:
            os.mkdir(path, 0o700)
            _tidy(base, f"{_TEMPORARY}{os.geteuid()}-")
        except FileExistsError:
            if not _is_ours(path):
                continue
        return path
    raise FileExistsError(17, os.strerror(17), base)


def _tidy(base: str, start: str) -> None:
    """Remove folders of other lines that are empty and have been for a week; called where a new one is made."""
    oldest = time.time() - _KEPT
    with os.scandir(base) as entries:
        found = [entry for entry in entries if entry.name.startswith(start) and entry.is_dir(follow_symlinks=False)]
    for entry in found:
        try:
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.rmdir(entry.path)
        except OSError:
            continue  # it is not empty


def _is_ours(path: str) -> bool:
    """Whether a path is a folder that no other user can write to, and not a link to one."""
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def cache_folder(key: str, temporary: str) -> str:
    """Where a line's caches lie: kept from line to line where the user has a cache folder, else with the line.

    Lines that may write to other folders have others: what one project's line puts there, no other installs. A folder
    on the way that is a link was put there by a line which may write to the user's caches.
    """
    home = os.environ.get("HOME") or "/"
    folder = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    if not os.path.isdir(folder):
        return temporary
    folder = os.path.realpath(folder)
    for name in ("hookline", "confined", key):
        folder = f"{folder.rstrip('/')}/{name}"
        try:
            os.mkdir(folder, 0o700)
            _tidy(os.path.dirname(folder), "" if name == key else "/")
        except FileExistsError:
            if not _is_ours(folder):
                return temporary
        except OSError:
            return temporary
    return folder


def variables(temporary: str, caches: str, given: dict[str, str]) -> dict[str, str]:
    """The variables that lead programs there; those that the user has set stay."""
    moved = {name: f"{caches}/{part}" for name, part in CACHES.items() if name not in given}
    return {"TMPDIR": temporary, "TMUX_TMPDIR": temporary, **moved}


def open_files() -> list[str]:
    """The files that standard output and error go to, which programs may open again as `/dev/stdout`."""
    found = []
    for fd in (1, 2):
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode) or os.isatty(fd):
                found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return [path for path in found if os.path.exists(path)]


def worktree_folders(folders: tuple[str, ...]) -> list[str]:
    """What git writes to outside of folders that are worktrees: each one's own part, and what all of them share.

    The pointer in a worktree may be a line's work, so that it counts only where the repository points back; and the
    repository is the one that the own part lies in, whatever is written there.
    """
    return [part for folder in folders for part in _repository(folder, folders)]


def _repository(folder: str, writable: tuple[str, ...]) -> list[str]:
    pointer = os.path.join(folder, ".git")
    if not os.path.isfile(pointer):
        return []
    try:
        own = os.path.realpath(os.path.join(folder, first_line(pointer).removeprefix("gitdir: ")))
        back = os.path.realpath(first_line(os.path.join(own, "gitdir")))
    except OSError:
        return []
    common, name = os.path.split(os.path.dirname(own))
    if back != os.path.realpath(pointer) or name != "worktrees" or inside_any(own, writable):
        return []
    return [own, *(f"{common}/{part}" for part in ("objects", "refs", "logs") if os.path.isdir(f"{common}/{part}"))]


def first_line(path: str) -> str:
    """The first line of a file, such as a pointer of git's."""
    with open(path, errors="surrogateescape") as file:
        return file.readline(4096).rstrip("\n")
