"""A Python file with `hooks = Hooks()`, wherever it lies and whatever it is called."""

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()


@hooks.on(PreToolUse)
def never(event):
    return deny(REASON)
"""


def fired(file: Path) -> str:
    """What a process of its own says of an event."""
    words = [sys.executable, "-P", "-m", "hookline", "fire", "-", "--hooks", str(file), "--json"]
    event = b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}'
    done = subprocess.run(words, input=event, capture_output=True, check=False, cwd=file.parent,
                          env={"HOOKLINE_SERVICE": "0", "HOME": str(file.parent)})  # fmt: skip
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize(
    "name", ["hooks.py", "my-hooks.v2.py", "types.py", "json.py", "hookline.py", "asyncio.py", "ü b.py"]
)
def test_a_hook_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Also one that a module of Python's or Hookline's own has: it takes the place of none of them."""
    file = tmp_path / "my hooks ü" / name
    file.parent.mkdir()
    file.write_text("REASON = 'told by the file'" + HOOKS)

    assert "told by the file" in fired(file)


@pytest.mark.parametrize(
    "line", ["from .rules import REASON", "from rules import REASON", "from . import rules; REASON = rules.REASON"]
)
def test_a_hook_file_imports_what_lies_beside_it(tmp_path: Path, line: str) -> None:
    """With or without a dot."""
    (tmp_path / "rules.py").write_text("REASON = 'told by its neighbour'")
    (tmp_path / "hooks.py").write_text(line + HOOKS)

    assert "told by its neighbour" in fired(tmp_path / "hooks.py")


@pytest.mark.parametrize("name", ["hooks.py", "rules.py"])
def test_a_hook_file_is_what_its_text_says(tmp_path: Path, name: str) -> None:
    """Byte code beside it, planted or of an earlier text of the same length and second, does not count."""
    for file, text in (("hooks.py", "from rules import REASON" + HOOKS), ("rules.py", "REASON = 'now'")):
        (tmp_path / file).write_text(text)
    planted = tmp_path / name
    times = planted.stat()
    text = planted.read_text()
    planted.write_text(text.replace("REASON)", "'old')").replace("'now'", "'old'").ljust(len(text)))
    os.utime(planted, ns=(times.st_atime_ns, times.st_mtime_ns))
    py_compile.compile(str(planted), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    planted.write_text(text)
    os.utime(planted, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert "now" in fired(tmp_path / "hooks.py")
