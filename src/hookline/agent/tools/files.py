"""Read, Write, Edit and NotebookEdit: files as the model sees and changes them.

A file that exists must have been read in this session before it is written or edited, and not changed by someone else
since; both are checked before any hook is asked, as in Claude Code. Writes replace the file in one step, so a crash
leaves either the old text or the new.
"""

import base64
import difflib
import json
import os
import re
from pathlib import Path
from secrets import token_hex
from typing import Any

from hookline.agent.hook_messages import TEXTS
from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, failure
from hookline.core.files import write_atomically

LINE_LIMIT = 2000
LINE_WIDTH = 2000
BYTE_LIMIT = 10 << 20
IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
IMAGE_LIMIT = 5 << 20
UPDATED = "The file {path} has been updated successfully."

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
MOST_LINES = 20_000  # beyond this many lines a comparison costs more than anyone gains from it


class Read(Tool):
    """Read a file: text with line numbers (up to 2000 lines; use offset and limit for more), or an image."""

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        path = env.path(given["file_path"])
        problem = unreadable(path, env)
        if problem:
            return failure(problem)
        try:
            data = path.read_bytes()
        except OSError as error:
            return failure(f"cannot read {path}: {error.strerror}")
        if path.suffix.lower() in IMAGES:
            return image(path, data)
        if b"\0" in data[:8192]:
            return failure(f"This tool cannot read binary files. {path} is a binary file of {len(data)} bytes.")
        seen(path, env)
        return page(path, data.decode("utf-8", "replace"), given.get("offset") or 1, given.get("limit") or LINE_LIMIT)


class Write(Tool):
    """Write a whole file. An existing file must have been read first."""

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        path = env.path(given["file_path"])
        return unknown(path, env) if path.is_file() else None

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        path, content = env.path(given["file_path"]), given["content"]
        try:
            old = printable(text(path)) if path.exists() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, content)
        except OSError as error:
            return failure(f"cannot write {path}: {error.strerror}")
        seen(path, env)
        kind, told, patch = "create", f"File created successfully at: {path}", []
        if old is not None:
            kind, told, patch = "update", UPDATED.format(path=path), structured_patch(old, content)
        response = {"type": kind, "filePath": str(path), "content": content, "structuredPatch": patch}
        return ToolResult(told, {**response, "originalFile": old, "userModified": False})


class Edit(Tool):
    """Replace a piece of text in a file that has been read.

    The piece must be unique, unless replace_all is true.
    """

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        path, old = env.path(given["file_path"]), given["old_string"]
        if old == given["new_string"]:
            return "No changes to make: old_string and new_string are exactly the same."
        if not path.is_file():
            return None if not old and not path.exists() else missing(env)
        return unknown(path, env) or misplaced(text(path), old, all_of_them=given.get("replace_all", False))

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Replace it; what `check` found is checked again, since a hook may have changed the input."""
        path, old, new = env.path(given["file_path"]), given["old_string"], given["new_string"]
        every, original = given.get("replace_all", False), ""
        try:
            if path.exists() or old:
                original = text(path)
            problem = misplaced(original, old, all_of_them=every)
            if problem:
                return failure(problem)
            path.parent.mkdir(parents=True, exist_ok=True)
            changed = original.replace(old, new, -1 if every else 1) if old else new
            replace_text(path, changed)
        except OSError as error:
            return failure(f"cannot edit {path}: {error.strerror}")
        seen(path, env)
        response = {"filePath": str(path), "oldString": old, "newString": new, "originalFile": printable(original)}
        patch = structured_patch(printable(original), printable(changed))
        more = {"structuredPatch": patch, "userModified": False, "replaceAll": every}
        return ToolResult(UPDATED.format(path=path), {**response, **more})


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


def image(path: Path, data: bytes) -> ToolResult:
    """An image as a block the model can look at."""
    if len(data) > IMAGE_LIMIT:
        return failure(f"{path} is {len(data)} bytes; images may have {IMAGE_LIMIT}")
    kind, coded = IMAGES[path.suffix.lower()], base64.b64encode(data).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": kind, "data": coded}}
    return ToolResult([block], {"type": "image", "file": {"base64": coded, "type": kind, "originalSize": len(data)}})


def page(path: Path, whole: str, start: int, limit: int) -> ToolResult:
    """Some lines of a text, numbered."""
    lines = whole.split("\n")
    shown = lines[start - 1 : start - 1 + limit]
    counts = {"numLines": len(shown), "startLine": start, "totalLines": len(lines)}
    told = "\n".join(f"{number}\t{line[:LINE_WIDTH]}" for number, line in enumerate(shown, start)).rstrip("\t")
    if not whole or not shown:
        beyond = f"the file has {len(lines)} lines, fewer than the offset {start}"
        note = beyond if whole else "the file exists but the contents are empty."
        told = f"<system-reminder>Warning: {note}</system-reminder>"
    file = {"filePath": str(path), "content": "\n".join(shown), **counts}
    return ToolResult(told, {"type": "text", "file": file})


def seen(path: Path, env: ToolEnv) -> None:
    """Remember that the model knows the file as it is now."""
    env.state.files_read[str(path)] = path.stat().st_mtime_ns


def unknown(path: Path, env: ToolEnv) -> str | None:
    """Why the model may not change the file yet, or None."""
    if str(path) not in env.state.files_read:
        return TEXTS["unread"]
    return TEXTS["stale"] if path.stat().st_mtime_ns > env.state.files_read[str(path)] else None


def misplaced(original: str, old: str, *, all_of_them: bool) -> str | None:
    """Why `old` cannot be replaced in a text, or None."""
    if not old:
        return "Cannot create new file - file already exists." if original else None
    count = original.count(old)
    if count == 0:
        return f"String to replace not found in file.\nString: {old}"
    if count == 1 or all_of_them:
        return None
    return TEXTS["many_matches"].format(count=count, old=old)


def text(path: Path) -> str:
    """A file's text, line ends as they are; bytes that are no UTF-8 survive a round trip."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def printable(content: str) -> str:
    """The text as it can be told to others: bytes that were no UTF-8 become the sign for that."""
    return content.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def replace_text(path: Path, content: str) -> None:
    """Put a new text in a file's place in one step, keeping its mode and, if it is a link, the link."""
    target = Path(os.path.realpath(path))
    mask = os.umask(0o077)
    os.umask(mask)
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~mask
    try:
        data = content.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a model may write surrogates that stand for no byte of the old file
        data = content.encode("utf-8", "replace")
    write_atomically(target, data, mode=mode)


def structured_patch(old: str, new: str) -> list[dict[str, Any]]:
    """The hunks that lead from `old` to `new`, with three lines of context; none for very long texts."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_LINES:
        return []
    hunks: list[dict[str, Any]] = []
    for line in difflib.unified_diff(before, after, lineterm=""):
        head = HUNK.match(line)
        if head:
            start, count, new_start, new_count = (int(group) if group else 1 for group in head.groups())
            hunk = {"oldStart": start, "oldLines": count, "newStart": new_start, "newLines": new_count, "lines": []}
            hunks.append(hunk)
        elif hunks:
            hunks[-1]["lines"].append(line)
    return hunks


POSITION = re.compile(r"cell-(\d+)")
WITH_IDS = (4, 5)  # the first version of the format whose cells have ids
DONE = {"replace": "Updated cell {id} with {source}", "insert": "Inserted cell {id} with {source}",
        "delete": "Deleted cell {id}"}  # fmt: skip


class NotebookEdit(Tool):
    """Replace, insert or delete one cell of a Jupyter notebook (.ipynb) that has been read.

    A cell of code that is replaced loses its outputs.
    """

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        path = env.path(given["notebook_path"])
        if path.suffix != ".ipynb":
            return "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the Edit tool."
        if not path.is_file():
            return missing(env)
        done = unknown(path, env) or edited(text(path), given)
        return done if isinstance(done, str) else None

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Change it; what `check` found is checked again, since a hook may have changed the input."""
        path, mode, source = env.path(given["notebook_path"]), given["edit_mode"], given["new_source"]
        try:
            original = text(path)
            done = edited(original, given)
            if isinstance(done, str):
                return failure(done)
            changed, cell = done
            replace_text(path, changed)
        except OSError as error:
            return failure(f"cannot edit {path}: {error.strerror}")
        seen(path, env)
        response = {"new_source": source, **cell, "edit_mode": mode, "error": "", "notebook_path": str(path)}
        files = {"original_file": printable(original), "updated_file": printable(changed)}
        return ToolResult(DONE[mode].format(id=cell["cell_id"], source=source), {**response, **files})


def edited(original: str, given: dict[str, Any]) -> tuple[str, dict[str, str]] | str:
    """The notebook after the edit and what hooks are told of the cell, or why there is none."""
    try:
        notebook = json.loads(original)
        cells = notebook["cells"]
        version = (int(notebook.get("nbformat", 4)), int(notebook.get("nbformat_minor", 0)))
    except (ValueError, TypeError, KeyError):
        return "Notebook is not valid JSON, or not of nbformat 4."
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return "Notebook is not of nbformat 4: its `cells` are not a list of cells."
    mode, wanted, kind = given["edit_mode"], given.get("cell_id"), given.get("cell_type")
    if mode == "insert" and not kind:
        return "Cell type is required when using edit_mode=insert."
    if wanted is None and mode != "insert":
        return "Cell ID must be specified when not inserting a new cell."
    at = -1 if wanted is None else _position(cells, wanted)
    if at is None:
        return f'Cell with ID "{wanted}" not found in notebook.'
    if mode == "insert":
        at += 1
        new = {"id": token_hex(4)} if version >= WITH_IDS else {}
        empty: dict[str, Any] = {"cell_type": kind, **new, "metadata": {}, "source": []}
        cells.insert(at, _cell(empty, str(kind), given["new_source"]))
    cell = cells[at]
    if mode == "delete":
        del cells[at]
    elif mode == "replace":
        cells[at] = cell = _cell(cell, kind or cell.get("cell_type", "code"), given["new_source"])
    language = str((notebook.get("metadata") or {}).get("language_info", {}).get("name") or "python")
    written = json.dumps(notebook, indent=1, ensure_ascii=False) + ("\n" if original.endswith("\n") else "")
    about = {"cell_id": str(cell.get("id") or f"cell-{at}"), "cell_type": str(cell.get("cell_type"))}
    return written, {**about, "language": language}


def _position(cells: list[dict[str, Any]], wanted: str) -> int | None:
    """Where the cell is: ids first, since a cell's own may be spelled like a position."""
    by_id = next((at for at, cell in enumerate(cells) if cell.get("id") == wanted), None)
    numbered = POSITION.fullmatch(wanted)
    if by_id is not None or numbered is None:
        return by_id
    return int(numbered[1]) if int(numbered[1]) < len(cells) else None


def _cell(cell: dict[str, Any], kind: str, source: str) -> dict[str, Any]:
    """The cell with another text, with the fields that a cell of its kind has; the text in the form it had."""
    kept = {name: value for name, value in cell.items() if name not in ("execution_count", "outputs")}
    ran: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    lines = source.splitlines(keepends=True) if isinstance(cell.get("source"), list) else source
    if kind != "markdown":
        kept.pop("attachments", None)
    return {**kept, **ran, "cell_type": kind, "source": lines}
