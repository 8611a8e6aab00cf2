"""The Python blocks of a page, as somebody who copies them in order would run them."""

import ast
import contextlib
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
        """What each block prints; they share names and an empty folder, as parts of one script."""
        names: dict[str, Any] = {"__name__": "__main__"}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            return [self._run(text, names) for text in self._texts]

    @staticmethod
    def _run(text: str, names: dict[str, Any]) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, "page", "exec"), names)
        return out.getvalue()
