"""Patterns over paths, as `.gitignore` has them, and the paths they are held against. Pure: no file is looked at."""

from __future__ import annotations

import re
from functools import lru_cache


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


def path_matches(pattern: str, path: str, *, bases: tuple[str, ...], project_dir: str, home: str) -> bool:
    """Whether an absolute path falls under a pattern of a rule.

    `//x` starts at the root, `~/x` at home, `/x` at the project; anything else at one of `bases`, and a pattern without
    a slash at any depth below them. A pattern that names a folder covers what is in it.
    """
    if pattern.startswith("//"):
        return _under(pattern[2:], path, "/", anchored=True)
    if pattern.startswith("~/"):
        return _under(pattern[2:], path, home, anchored=True)
    if pattern.startswith("/"):
        return _under(pattern[1:], path, project_dir, anchored=True)
    pattern = pattern.removeprefix("./") if pattern.startswith("./") else pattern
    anchored = "/" in pattern.rstrip("/")
    return any(_under(pattern, path, base, anchored=anchored) for base in bases)


def _under(pattern: str, path: str, base: str, *, anchored: bool) -> bool:
    base = base.rstrip("/")
    if not path.startswith(base + "/"):
        return False
    return _compiled(pattern.strip("/"), anchored=anchored).fullmatch(path[len(base) + 1 :]) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str, *, anchored: bool) -> re.Pattern[str]:
    """The expression for a relative path; `**` spans folders, `*` and `?` do not."""
    out = "" if anchored else "(?:.*/)?"
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("**", at):
            out, at = out + ".*", at + 2
        else:
            piece, at = _one(pattern, at)
            out += piece
    return re.compile(out + "(?:/.*)?", re.DOTALL)


def _one(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at]
    if char == "*":
        return "[^/]*", at + 1
    if char == "?":
        return "[^/]", at + 1
    closing = pattern.find("]", at + 2) if char == "[" else -1
    if closing > 0:
        negated = "^" if pattern[at + 1] in "!^" else ""
        members = re.escape(pattern[at + 1 + len(negated) : closing]).replace(r"\-", "-")
        try:
            re.compile(f"[{members}]")
        except re.error:
            return re.escape(char), at + 1
        return f"(?![/])[{negated}{members}]", closing + 1
    if char == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    return re.escape(char), at + 1
