"""Room of a confined line's own: a temporary folder, caches apart from the user's, the files it was given."""

from __future__ import annotations

import os
import stat

_TEMPORARY = "hookline-confine-"
CACHES = {
    "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build",
    "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache",
}  # fmt: skip
"""Variables that move a tool's cache: what a confined line puts there is never read by an unconfined one."""


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
    """Remove a temporary folder and all that is in it."""
    if not path:
        return
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files:
            _quietly(os.unlink, os.path.join(folder, name))
        for name in folders:
            place = os.path.join(folder, name)
            _quietly(os.unlink if os.path.islink(place) else os.rmdir, place)
    _quietly(os.rmdir, path)


def _quietly(act: object, path: str) -> None:
    try:
        act(path)  # type: ignore[operator]  # os.unlink or os.rmdir
    except OSError:
        return


def cache_folder(temporary: str) -> str:
    """Where a line's caches lie: kept from line to line where the user has a cache folder, else with the line."""
    home = os.environ.get("HOME") or "/"
    kept = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    if not os.path.isdir(kept):
        return temporary
    folder = os.path.join(os.path.realpath(kept), "hookline", "confined")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
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
