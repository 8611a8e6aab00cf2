"""Read, Write and Edit: files as the model sees and changes them.

A file that exists must have been read in this session before it is written or edited, and not changed by someone else
since; both are checked before any hook is asked, as in Claude Code. Writes replace the file in one step, so a crash
leaves either the old text or the new.
"""

from __future__ import annotations

import base64
import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, failure
from hookline.core.files import write_atomically

__all__ = ["Edit", "Read", "Write"]

LINE_LIMIT = 2000
LINE_WIDTH = 2000
BYTE_LIMIT = 10 << 20
IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
IMAGE_LIMIT = 5 << 20
EMPTY = "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
UNREAD = "File has not been read yet. Read it first before writing to it."
STALE = (
    "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
)

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
MOST_LINES = 20_000  # beyond this many lines a comparison costs more than anyone gains from it


class ReadInput(Struct, frozen=True):
    file_path: Annotated[str, Meta(description="the file's absolute path")]
    offset: Annotated[int, Meta(ge=0, description="the first line to read")] | UnsetType = UNSET
    limit: Annotated[int, Meta(gt=0, description="how many lines to read")] | UnsetType = UNSET
    pages: str | UnsetType = UNSET
    allow_large: bool | UnsetType = UNSET


class Read(Tool):
    """Shows a text file with line numbers, or an image."""

    name = "Read"
    description = "Read a file: text with line numbers (up to 2000 lines; use offset and limit for more), or an image."
    Input = ReadInput
    read_only = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Read it; what is missing, a directory or binary says so."""
        path = env.path(given["file_path"])
        problem = unreadable(path, env)
        if problem:
            return failure(problem)
        try:
            if path.suffix.lower() in IMAGES:
                return image(path)
            data = path.read_bytes()
        except OSError as error:
            return failure(f"cannot read {path}: {error.strerror}")
        if b"\0" in data[:8192]:
            return failure(f"This tool cannot read binary files. {path} is a binary file of {len(data)} bytes.")
        seen(path, env)
        return page(path, data.decode("utf-8", "replace"), given.get("offset") or 1, given.get("limit") or LINE_LIMIT)


class WriteInput(Struct, frozen=True):
    file_path: Annotated[str, Meta(description="the file's absolute path")]
    content: Annotated[str, Meta(description="the whole new text")]


class Write(Tool):
    """Creates a file, or replaces its whole text."""

    name = "Write"
    description = "Write a whole file. An existing file must have been read first."
    Input = WriteInput

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """An existing file must be known to the model as it is now."""
        path = env.path(given["file_path"])
        return unknown(path, env) if path.is_file() else None

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Write it, with the folders it needs."""
        path, content = env.path(given["file_path"]), given["content"]
        try:
            old = printable(text(path)) if path.exists() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, content)
        except OSError as error:
            return failure(f"cannot write {path}: {error.strerror}")
        seen(path, env)
        patch = [] if old is None else structured_patch(old, content)
        kind = "create" if old is None else "update"
        response = {
            "type": kind,
            "filePath": str(path),
            "content": content,
            "structuredPatch": patch,
            "originalFile": old,
        }
        told = (
            f"File created successfully at: {path}"
            if old is None
            else f"The file {path} has been updated successfully."
        )
        return ToolResult(told, {**response, "userModified": False})


class EditInput(Struct, frozen=True):
    file_path: Annotated[str, Meta(description="the file's absolute path")]
    old_string: Annotated[str, Meta(description="the text to replace; it must occur exactly once, unless replace_all")]
    new_string: Annotated[str, Meta(description="the text to put there")]
    replace_all: Annotated[bool, Meta(description="replace every occurrence")] = False


class Edit(Tool):
    """Replaces a piece of a file's text."""

    name = "Edit"
    description = (
        "Replace a piece of text in a file that has been read. The piece must be unique, unless replace_all is true."
    )
    Input = EditInput

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """The piece must be there, once, in a file the model knows as it is now."""
        path, old = env.path(given["file_path"]), given["old_string"]
        if old == given["new_string"]:
            return "No changes to make: old_string and new_string are exactly the same."
        if not path.is_file():
            return None if not old and not path.exists() else missing(env)
        return unknown(path, env) or misplaced(path, old, all_of_them=given.get("replace_all", False))

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Replace it; what `check` found is checked again, since a hook may have changed the input."""
        path, old, new = env.path(given["file_path"]), given["old_string"], given["new_string"]
        every = given.get("replace_all", False)
        try:
            if not path.exists() and not old:
                path.parent.mkdir(parents=True, exist_ok=True)
                original = ""
            else:
                original = text(path)
                problem = misplaced(path, old, all_of_them=every)
                if problem:
                    return failure(problem)
            changed = original.replace(old, new, -1 if every else 1) if old else new
            replace_text(path, changed)
        except OSError as error:
            return failure(f"cannot edit {path}: {error.strerror}")
        seen(path, env)
        response = {"filePath": str(path), "oldString": old, "newString": new, "originalFile": printable(original)}
        patch = structured_patch(printable(original), printable(changed))
        told = f"The file {path} has been updated successfully."
        return ToolResult(told, {**response, "structuredPatch": patch, "userModified": False, "replaceAll": every})


def unreadable(path: Path, env: ToolEnv) -> str | None:
    """Why the file cannot be shown, or None."""
    if not path.exists():
        return missing(env)
    if path.is_dir():
        return f"EISDIR: illegal operation on a directory, read '{path}'"
    if not path.is_file():
        return f"{path} is a device or a pipe, not a file"  # reading one could block for ever
    size = path.stat().st_size
    if size > BYTE_LIMIT:
        return f"File content ({size} bytes) exceeds the maximum of {BYTE_LIMIT}. Use Grep, or head and tail in Bash."
    return None


def missing(env: ToolEnv) -> str:
    """The words for a file that is not there."""
    return f"File does not exist. Note: your current working directory is {env.cwd}."


def image(path: Path) -> ToolResult:
    """An image as a block the model can look at."""
    data = path.read_bytes()
    if len(data) > IMAGE_LIMIT:
        return failure(f"{path} is {len(data)} bytes; images may have {IMAGE_LIMIT}")
    kind, coded = IMAGES[path.suffix.lower()], base64.b64encode(data).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": kind, "data": coded}}
    return ToolResult([block], {"type": "image", "file": {"base64": coded, "type": kind, "originalSize": len(data)}})


def page(path: Path, whole: str, start: int, limit: int) -> ToolResult:
    """Some lines of a text, numbered."""
    lines = whole.split("\n")
    shown = lines[start - 1 : start - 1 + limit]
    file = {
        "filePath": str(path),
        "content": "\n".join(shown),
        "numLines": len(shown),
        "startLine": start,
        "totalLines": len(lines),
    }
    if not whole:
        return ToolResult(EMPTY, {"type": "text", "file": file})
    if not shown:
        note = f"the file has {len(lines)} lines, fewer than the offset {start}"
        return ToolResult(f"<system-reminder>Warning: {note}</system-reminder>", {"type": "text", "file": file})
    numbered = "\n".join(f"{number}\t{line[:LINE_WIDTH]}" for number, line in enumerate(shown, start))
    return ToolResult(numbered.rstrip("\t"), {"type": "text", "file": file})


def seen(path: Path, env: ToolEnv) -> None:
    """Remember that the model knows the file as it is now."""
    env.state.files_read[str(path)] = path.stat().st_mtime_ns


def unknown(path: Path, env: ToolEnv) -> str | None:
    """Why the model may not change the file yet, or None."""
    if str(path) not in env.state.files_read:
        return UNREAD
    return STALE if path.stat().st_mtime_ns > env.state.files_read[str(path)] else None


def misplaced(path: Path, old: str, *, all_of_them: bool) -> str | None:
    """Why `old` cannot be replaced in the file, or None."""
    if not old:
        return "Cannot create new file - file already exists." if text(path) else None
    count = text(path).count(old)
    if count == 0:
        return f"String to replace not found in file.\nString: {old}"
    if count == 1 or all_of_them:
        return None
    return (
        f"Found {count} matches of the string to replace, but replace_all is false. To replace all occurrences, set "
        "replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the "
        f"instance.\nString: {old}"
    )


def text(path: Path) -> str:
    """A file's text, line ends as they are; bytes that are no UTF-8 survive a round trip."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def printable(content: str) -> str:
    """The text as it can be told to others: bytes that were no UTF-8 become the sign for that."""
    return content.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def replace_text(path: Path, content: str) -> None:
    """Put a new text in a file's place in one step, keeping its mode and, if it is a link, the link."""
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
    data = content.encode("utf-8", "surrogateescape" if _round_trips(content) else "replace")
    write_atomically(target, data, mode=mode)


def _round_trips(content: str) -> bool:
    """Whether its surrogates stand for bytes of the old file; a model may also write ones that stand for nothing."""
    try:
        content.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def structured_patch(old: str, new: str) -> list[dict[str, Any]]:
    """The hunks that lead from `old` to `new`, with three lines of context; none for very long texts."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_LINES:
        return []
    hunks: list[dict[str, Any]] = []
    for line in difflib.unified_diff(before, after, lineterm=""):
        head = HUNK.match(line)
        if head:
            hunks.append(_hunk(head))
        elif hunks:
            hunks[-1]["lines"].append(line)
    return hunks


def _hunk(head: re.Match[str]) -> dict[str, Any]:
    start, count, new_start, new_count = (int(group) if group else 1 for group in head.groups())
    return {"oldStart": start, "oldLines": count, "newStart": new_start, "newLines": new_count, "lines": []}
