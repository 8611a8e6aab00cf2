"""Reading a tool's input with types."""

from pathlib import Path

import pytest
from mypy import api

from hookline.errors import EventError
from hookline.events import PreToolUse
from hookline.events.tool_inputs import BashInput, EditInput
from tests.pages import ROOT


def test_the_common_arguments_have_accessors() -> None:
    """An argument that is missing, or is not a text, is the empty string."""
    bash = PreToolUse(tool_name="Bash", tool_input={"command": "ls", "file_path": 3})
    notebook = PreToolUse(tool_name="NotebookEdit", tool_input={"notebook_path": "/a.ipynb", "url": "https://x"})

    assert (bash.command, bash.file_path, bash.url) == ("ls", "", "")
    assert (notebook.command, notebook.file_path, notebook.url) == ("", "/a.ipynb", "https://x")


def test_an_input_has_its_tools_shape_or_is_refused() -> None:
    """What comes back is an ordinary dict of one's own."""
    event = PreToolUse(tool_name="Bash", tool_input={"command": "ls", "timeout": 5})
    given = event.input_as(BashInput)
    given["command"] = "changed"

    assert event.command == "ls"
    with pytest.raises(EventError, match="input of `Bash` is not a EditInput"):
        event.input_as(EditInput)


SAMPLE = """
from hookline import Context, HookAnswer, Hooks, deny
from hookline.events import PreToolUse
from hookline.events.tool_inputs import BashInput

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash", timeout=5)
async def guard(event: PreToolUse, ctx: Context) -> HookAnswer:
    given: BashInput = event.input_as(BashInput)
    if "rm" in given["command"]:
        return deny("no")
    return None

@hooks.on
def second(event: PreToolUse) -> HookAnswer:
    return {"decision": "block"} if event.command else None

def tool(path: str, size: int = 3) -> list[str]:
    return [path] * size

wrapped: list[str] = hooks.wrap_tool(tool)("a", size=2)
blocked: bool = hooks.fire_sync({"hook_event_name": "Stop"}).blocked
"""


def test_what_people_write_passes_a_strict_type_checker(tmp_path: Path) -> None:
    """Decorators keep their functions' types, and so do wrapped tools."""
    file = tmp_path / "sample.py"
    file.write_text(SAMPLE)

    said, problems, code = api.run(["--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(file)])

    assert (code, problems) == (0, ""), said
