"""Policy files of a hook: found by a pattern, read again when one of them changes."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from hookline.engine import Context
from hookline.errors import HookFailed

T = TypeVar("T")
State = tuple[tuple[str, int, int], ...]


class PolicyCache(Generic[T]):
    """What a set of files was compiled to, for as long as none of them changes."""

    def __init__(self, compiled: Callable[[dict[str, str]], T]) -> None:
        self._compiled = compiled
        self._kept: dict[str, tuple[State, T]] = {}

    def get(self, pattern: str, ctx: Context) -> T:
        """The compiled policies; a pattern that matches no file is a failure, so a gate stays closed."""
        where = str(Path(ctx.project_dir or ctx.cwd or ".", Path(pattern).expanduser()))
        paths = sorted(path for path in map(Path, glob.glob(where, recursive=True)) if path.is_file())  # noqa: PTH207 - patterns may be absolute
        if not paths:
            raise HookFailed(f"found no policy file for `{pattern}`")
        state = tuple((str(path), (now := path.stat()).st_mtime_ns, now.st_size) for path in paths)
        kept = self._kept.get(where)
        if kept is None or kept[0] != state:
            kept = self._kept[where] = (state, self._compiled({path.name: _text(path) for path in paths}))
        return kept[1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise HookFailed(f"cannot read policy file `{path}`: {problem}") from None
