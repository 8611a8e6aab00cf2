"""Paths as texts: the one home of "from the root" and "inside that folder". Pure: no file is looked at.

Nothing is imported, because every confined line starts with this module.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def absolute(path: str, cwd: str, home: str) -> str:
    """The path from the root, with `~`, `.` and `..` resolved; links are not followed."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    elif not path.startswith("/"):
        path = f"{cwd}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
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
    return any(inside(path, folder) for folder in folders)
