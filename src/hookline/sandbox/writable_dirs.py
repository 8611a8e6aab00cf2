"""Room of a confined line's own: a temporary folder, caches apart from the user's, the files it was given."""

from __future__ import annotations

import os
import stat

from hookline.sandbox.policy import Policy

_TEMPORARY = "hookline-confine-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CACHES = {
    "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build",
    "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache",
}  # fmt: skip
"""Variables that move a tool's cache: what a confined line puts there is never read by an unconfined one."""


class WritableDirs:
    """Where a line may write: the folders it was given, its own temporary one, its caches and devices."""

    def __init__(self, granted: list[str] | None, temporary: str, caches: str) -> None:
        self.granted, self.temporary, self.caches = granted, temporary, caches

    @classmethod
    def make(cls, policy: Policy) -> WritableDirs:
        """Room for one line on this machine."""
        if policy.write is None:
            return cls(None, "", "")
        temporary = make()
        caches = cache_folder(temporary)
        given = [*policy.write, *worktree_folders(policy.write)]
        return cls([*given, caches, temporary, *open_files()], temporary, caches)

    @property
    def places(self) -> list[str]:
        """The folders and files that may be written to."""
        return ["/"] if self.granted is None else self.granted


def make() -> str:
    """A new temporary folder that is only ours."""
    base = os.environ.get("TMPDIR") or "/tmp"
    for _ in range(100):
        path = os.path.join(os.path.realpath(base), _TEMPORARY + os.urandom(6).hex())
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(17, os.strerror(17), base)


def remove(path: str) -> None:
    """Remove a temporary folder and all that is in it.

    The line may have put a link in its place, or somewhere below: no link is followed, whatever is moved meanwhile.
    """
    if not path:
        return
    try:
        _empty(os.open(path, _FOLDER))
        os.rmdir(path)
    except (OSError, RecursionError):
        return


def _empty(folder: int) -> None:
    """Empty an open folder, and close it; what cannot be removed stays."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in found:
            try:
                if is_folder:
                    _empty(os.open(name, _FOLDER, dir_fd=folder))
                    os.rmdir(name, dir_fd=folder)
                else:
                    os.unlink(name, dir_fd=folder)
            except OSError:
                continue
    finally:
        os.close(folder)


def cache_folder(temporary: str) -> str:
    """Where a line's caches lie: kept from line to line where the user has a cache folder, else with the line.

    A folder on the way that is a link was put there by a line which may write to the user's caches.
    """
    home = os.environ.get("HOME") or "/"
    folder = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    if not os.path.isdir(folder):
        return temporary
    folder = os.path.realpath(folder)
    for name in ("hookline", "confined"):
        folder = f"{folder.rstrip('/')}/{name}"
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if os.path.islink(folder) or not os.path.isdir(folder):
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
    """The repositories behind folders that are git worktrees, where the repository says so, too."""
    return [common for folder in folders if (common := _repository(folder))]


def _repository(folder: str) -> str:
    pointer = os.path.join(folder, ".git")
    if not os.path.isfile(pointer):
        return ""
    try:
        own = _line(pointer).removeprefix("gitdir: ")
        own = os.path.realpath(os.path.join(folder, own))
        back = os.path.realpath(_line(os.path.join(own, "gitdir")))
        common = os.path.realpath(os.path.join(own, _line(os.path.join(own, "commondir"))))
    except OSError:
        return ""
    points_back = back == os.path.realpath(pointer) and own.startswith(common + "/worktrees/")
    return common if points_back and os.path.isdir(os.path.join(common, "objects")) else ""


def _line(path: str) -> str:
    with open(path) as file:
        return file.readline(4096).rstrip("\n")
