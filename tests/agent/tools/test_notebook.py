"""Cells of a notebook, changed one by one; what is left is a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.tools import ToolEnv, ToolResult, default_tools
from hookline.errors import ToolInputInvalid
from hookline.guards.permissions import read_rules
from tests.agent.driving import agent_on

EDIT, READ = default_tools()["NotebookEdit"], default_tools()["Read"]
CODE = {"cell_type": "code", "execution_count": 3, "id": "one", "metadata": {"tags": ["x"]},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}], "source": ["one()\n", "2"],
        }  # fmt: skip
NOTE = {"cell_type": "markdown", "id": "two", "metadata": {}, "source": "# Notes"}
BOOK = {"cells": [CODE, NOTE], "metadata": {"language_info": {"name": "julia"}}, "nbformat": 4, "nbformat_minor": 5}


def write(env: ToolEnv, book: Any = BOOK) -> Path:
    path = env.path("a.ipynb")
    path.write_text(book if isinstance(book, str) else json.dumps(book, indent=1) + "\n")
    return path


async def edit(env: ToolEnv, path: Path, **given: Any) -> ToolResult | str:
    """Read the notebook, then edit it as the agent does: validated, checked, run."""
    await READ.run({"file_path": str(path)}, env)
    valid = EDIT.validate({"notebook_path": str(path), "new_source": "", **given})
    return await EDIT.check(valid, env) or await EDIT.run(valid, env)


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return found


async def test_a_cell_of_code_is_replaced_and_has_not_run(env: ToolEnv) -> None:
    """Its outputs are gone with the code that made them; everything else of the file stays as it was."""
    path = write(env)
    done = await edit(env, path, cell_id="one", new_source="a\nb")

    assert isinstance(done, ToolResult)
    assert (done.is_error, done.response["cell_type"], done.response["language"]) == (False, "code", "julia")
    assert cells(path) == [{**CODE, "execution_count": None, "outputs": [], "source": ["a\n", "b"]}, NOTE]
    assert path.read_text().endswith("}\n")


async def test_a_cell_may_become_one_of_the_other_kind(env: ToolEnv) -> None:
    """With the fields that its kind has, and no others."""
    path = write(env)
    await edit(env, path, cell_id="one", cell_type="markdown", new_source="text")
    await edit(env, path, cell_id="cell-1", cell_type="code", new_source="1 + 1")
    text, code = cells(path)

    assert sorted(text) == ["cell_type", "id", "metadata", "source"]
    assert (code["outputs"], code["execution_count"], code["source"], code["id"]) == ([], None, "1 + 1", "two")


@pytest.mark.parametrize("after, at", [(None, 0), ("one", 1), ("two", 2), ("cell-0", 1)])
async def test_a_new_cell_comes_after_the_one_that_is_named(env: ToolEnv, after: str | None, at: int) -> None:
    """Or first; it has an id of its own."""
    path = write(env)
    done = await edit(
        env, path, edit_mode="insert", cell_type="code", new_source="x", **({"cell_id": after} if after else {})
    )

    assert isinstance(done, ToolResult)
    new = cells(path)[at]
    assert (len(cells(path)), new["source"], new["id"]) == (3, ["x"], done.response["cell_id"])
    assert new["id"] not in ("one", "two")


async def test_a_notebook_older_than_ids_gets_none(env: ToolEnv) -> None:
    """`cell-N` names its cells."""
    bare = [{name: value for name, value in cell.items() if name != "id"} for cell in (CODE, NOTE)]
    path = write(env, {**BOOK, "cells": bare, "nbformat_minor": 4})
    await edit(env, path, edit_mode="insert", cell_type="markdown", new_source="x", cell_id="cell-1")
    await edit(env, path, edit_mode="delete", cell_id="cell-0")

    assert [(cell["cell_type"], "id" in cell) for cell in cells(path)] == [("markdown", False), ("markdown", False)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cell_id": "nobody"}, 'Cell with ID "nobody" not found'),
    ({"cell_id": "cell-9", "edit_mode": "delete"}, 'Cell with ID "cell-9" not found'),
    ({}, "Cell ID must be specified"),
    ({"edit_mode": "delete"}, "Cell ID must be specified"),
    ({"edit_mode": "insert"}, "Cell type is required"),
]


@pytest.mark.parametrize("given, why", REFUSED)
async def test_what_cannot_be_done_is_told_before_hooks_are_asked(
    env: ToolEnv, given: dict[str, Any], why: str
) -> None:
    """And the file stays as it was."""
    path = write(env)
    before = path.read_text()

    assert why in str(await edit(env, path, **given))
    assert path.read_text() == before


@pytest.mark.parametrize("book", ["{", "[]", '{"cells": 5}', '{"cells": [1]}', '{"worksheets": []}'])
async def test_what_is_not_a_notebook_is_refused(env: ToolEnv, book: str) -> None:
    """Whatever its name says."""
    assert "Notebook is not" in str(await edit(env, write(env, book), cell_id="one"))


async def test_a_notebook_must_have_been_read_and_be_one(env: ToolEnv) -> None:
    """As with every other file; and an unknown way to edit is not one."""
    path = write(env)
    given = EDIT.validate({"notebook_path": str(path), "new_source": "", "cell_id": "one"})

    assert "has not been read" in str(await EDIT.check(given, env))
    assert "must be a Jupyter notebook" in str(await EDIT.check({**given, "notebook_path": "a.py"}, env))
    assert "does not exist" in str(await EDIT.check({**given, "notebook_path": "b.ipynb"}, env))
    with pytest.raises(ToolInputInvalid):
        EDIT.validate({**given, "edit_mode": "append"})


@pytest.mark.parametrize("mode, deny, where, changed", [
    ("acceptEdits", [], "a.ipynb", True), ("default", [], "a.ipynb", False),
    ("acceptEdits", [], "../outside.ipynb", False), ("bypassPermissions", ["Edit(./a.ipynb)"], "a.ipynb", False),
    ("acceptEdits", ["Read(./a.ipynb)"], "a.ipynb", False), ("plan", [], "a.ipynb", False),
])  # fmt: skip
async def test_permissions_are_those_of_an_edit(
    tmp_path: Path, mode: str, deny: list[str], where: str, *, changed: bool
) -> None:
    """The mode, the folder and the rules for `Edit` and `Read` hold for notebooks."""
    project = tmp_path / "project"
    project.mkdir()
    path = project / where
    path.write_text(json.dumps(BOOK))
    calls = [["Read", {"file_path": str(path)}],
             ["NotebookEdit", {"notebook_path": str(path), "cell_id": "one", "new_source": "x"}]]  # fmt: skip
    rules = read_rules({"deny": deny, "allow": ["Read(//**)"]})
    turns = [{"tools": [call]} for call in calls]
    async with agent_on(project, *turns, "done", rules=rules, permission_mode=mode) as agent:
        agent.conversation.state.files_read[str(path)] = path.stat().st_mtime_ns  # a rule may deny the reading
        await agent.run("go")

    assert (cells(path)[0]["source"] == ["x"]) is changed
