"""The Python blocks of a page, as somebody who copies them in order would run them."""

import ast
import asyncio
import contextlib
import inspect
import io
import tempfile
from pathlib import Path
from typing import Any

from tests.pages import blocks


class ReadPage:
    """A page whose imports are done: all that its first block does up to the last of them."""

    def __init__(self, path: Path) -> None:
        self._texts = [block.text for block in blocks(path.read_text()) if block.language == "python"]
        opening = ast.parse(self._texts[0]).body
        last = max(at for at, node in enumerate(opening) if isinstance(node, ast.Import | ast.ImportFrom))
        exec(compile(ast.Module(opening[: last + 1], []), "page", "exec"), {"__name__": "__main__"})

    def play(self) -> list[str]:
        """What each block prints; they share names, a loop and an empty folder."""
        names: dict[str, Any] = {"__name__": "__main__"}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), asyncio.Runner() as loop:
            return [self._run(text, names, loop) for text in self._texts]

    @staticmethod
    def _run(text: str, names: dict[str, Any], loop: asyncio.Runner) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = eval(compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.iscoroutine(result):
                loop.run(result)
        return out.getvalue()
