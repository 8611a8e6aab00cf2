"""Paths as texts: the one home of "from the root" and "inside that folder". Pure: no file is looked at.

Nothing is imported, because every confined line starts with this module.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def from_root(path: str, cwd: str, home: str) -> str:
    """The path from the root, `..` and links as they stand."""
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path if path.startswith("/") else f"{cwd}/{path}"


def absolute(path: str, cwd: str, home: str) -> str:
    """The path from the root, with `~`, `.` and `..` resolved; links are not followed."""
    parts: list[str] = []
    for part in from_root(path, cwd, home).split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def inside(path: str, folder: str) -> bool:
    """Whether an absolute path is the folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def inside_any(path: str, folders: "Iterable[str]") -> bool:
    """Whether an absolute path is one of the folders or lies in one."""
    for folder in folders:  # noqa: SIM110 - a loop: every step of every path that a guard judges comes here
        if path == folder or path.startswith(folder.rstrip("/") + "/"):
            return True
    return False
