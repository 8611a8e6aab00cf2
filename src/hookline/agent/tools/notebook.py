"""NotebookEdit: cells of a Jupyter notebook, replaced, inserted and deleted; the file stays a valid notebook."""

from __future__ import annotations

import json
import re
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, failure
from hookline.agent.tools.files import missing, printable, replace_text, seen, text, unknown

__all__ = ["NotebookEdit"]

POSITION = re.compile(r"cell-(\d+)")
#: the first version of the format whose cells have ids
WITH_IDS = (4, 5)
DONE = {"replace": "Updated cell {id} with {source}", "insert": "Inserted cell {id} with {source}",
        "delete": "Deleted cell {id}"}  # fmt: skip


class NotebookEditInput(Struct, frozen=True):
    notebook_path: Annotated[str, Meta(description="the notebook's absolute path")]
    new_source: Annotated[str, Meta(description="the cell's new text")]
    cell_id: (
        Annotated[
            str,
            Meta(
                description="the cell's id, or `cell-N` for the one at position N, from 0; with `insert` the new cell "
                "comes after it, or first without one"
            ),
        ]
        | UnsetType
    ) = UNSET
    cell_type: (
        Annotated[
            Literal["code", "markdown"], Meta(description="what kind of cell it is from now on; needed with `insert`")
        ]
        | UnsetType
    ) = UNSET
    edit_mode: Annotated[Literal["replace", "insert", "delete"], Meta(description="what to do")] = "replace"


class NotebookEdit(Tool):
    """Changes one cell of a notebook."""

    name = "NotebookEdit"
    description = (
        "Replace, insert or delete one cell of a Jupyter notebook (.ipynb) that has been read. A cell of code that is "
        "replaced loses its outputs."
    )
    Input = NotebookEditInput

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """The notebook must be one, known to the model as it is now, and have the cell."""
        path = env.path(given["notebook_path"])
        if path.suffix != ".ipynb":
            return "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the Edit tool."
        if not path.is_file():
            return missing(env)
        problem = unknown(path, env)
        if problem is None:
            _, problem = edited(text(path), given)
        return problem

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Change it; what `check` found is checked again, since a hook may have changed the input."""
        path: Path = env.path(given["notebook_path"])
        try:
            original = text(path)
            change, problem = edited(original, given)
            if change is None:
                return failure(problem or "the notebook cannot be edited")
            replace_text(path, change.text)
        except OSError as error:
            return failure(f"cannot edit {path}: {error.strerror}")
        seen(path, env)
        response = {
            "new_source": given["new_source"],
            "cell_id": change.cell_id,
            "cell_type": change.cell_type,
            "language": change.language,
            "edit_mode": given["edit_mode"],
            "error": "",
            "notebook_path": str(path),
            "original_file": printable(original),
            "updated_file": printable(change.text),
        }
        told = DONE[given["edit_mode"]].format(id=change.cell_id, source=given["new_source"])
        return ToolResult(told, response)


class NotebookChange(Struct, frozen=True):
    """A notebook after an edit."""

    text: str
    cell_id: str
    cell_type: str
    language: str


def edited(original: str, given: dict[str, Any]) -> tuple[NotebookChange | None, str | None]:
    """The notebook after the edit, or why there is none."""
    try:
        notebook = json.loads(original)
        cells = notebook["cells"]
        version = (int(notebook.get("nbformat", 4)), int(notebook.get("nbformat_minor", 0)))
    except (ValueError, TypeError, KeyError):
        return None, "Notebook is not valid JSON, or not of nbformat 4."
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return None, "Notebook is not of nbformat 4: its `cells` are not a list of cells."
    mode, wanted, kind = given["edit_mode"], given.get("cell_id"), given.get("cell_type")
    if mode == "insert" and not kind:
        return None, "Cell type is required when using edit_mode=insert."
    if wanted is None and mode != "insert":
        return None, "Cell ID must be specified when not inserting a new cell."
    at = -1 if wanted is None else _position(cells, wanted)
    if at is None:
        return None, f'Cell with ID "{wanted}" not found in notebook.'
    if mode == "insert":
        at += 1
        new = {"id": token_hex(4)} if version >= WITH_IDS else {}
        cells.insert(
            at, _cell({"cell_type": kind, **new, "metadata": {}, "source": []}, str(kind), given["new_source"])
        )
    cell = cells[at]
    if mode == "delete":
        del cells[at]
    elif mode == "replace":
        cells[at] = cell = _cell(cell, kind or cell.get("cell_type", "code"), given["new_source"])
    language = str((notebook.get("metadata") or {}).get("language_info", {}).get("name") or "python")
    written = json.dumps(notebook, indent=1, ensure_ascii=False) + ("\n" if original.endswith("\n") else "")
    return NotebookChange(written, str(cell.get("id") or f"cell-{at}"), str(cell.get("cell_type")), language), None


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
