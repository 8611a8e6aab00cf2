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


def path_matches(
    pattern: str, path: str, *, bases: tuple[str, ...], project_dir: str, home: str, any_case: bool = False
) -> bool:
    """Whether an absolute path falls under a pattern of a rule.

    `//x` starts at the root, `~/x` at home, `/x` at the project; anything else at one of `bases`, and a pattern without
    a slash at any depth below them. A pattern that names a folder covers what is in it. With `any_case`, so does one
    that is written in other letters: there are disks to which `.ENV` is `.env`.
    """
    if pattern.startswith("//"):
        return _under(pattern[2:], path, "/", anchored=True, any_case=any_case)
    if pattern.startswith("~/"):
        return _under(pattern[2:], path, home, anchored=True, any_case=any_case)
    if pattern.startswith("/"):
        return _under(pattern[1:], path, project_dir, anchored=True, any_case=any_case)
    pattern = pattern.removeprefix("./") if pattern.startswith("./") else pattern
    anchored = "/" in pattern.rstrip("/")
    return any(_under(pattern, path, base, anchored=anchored, any_case=any_case) for base in bases)


def _under(pattern: str, path: str, base: str, *, anchored: bool, any_case: bool) -> bool:
    base = base.rstrip("/")
    if not path.startswith(base + "/"):
        return False
    expression = _compiled(pattern.strip("/"), anchored=anchored, any_case=any_case)
    return expression.fullmatch(path[len(base) + 1 :]) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str, *, anchored: bool, any_case: bool) -> re.Pattern[str]:
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
    return re.compile(out + "(?:/.*)?", re.DOTALL | (re.IGNORECASE if any_case else 0))


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
