"""Policy files of a hook: found by a pattern, read again when one of them changes."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from hookline.core.engine import Context
from hookline.core.hooks.actions import Cedar, Rego
from hookline.errors import HookFailed

T = TypeVar("T")
State = tuple[tuple[str, tuple[int, ...]], ...]


@contextmanager
def unchanged(action: Cedar | Rego, ctx: Context) -> Iterator[None]:
    """Policies of a project are compared with what was trusted, before they are read and afterwards."""
    if action.seal is None:
        yield
        return
    check_again = action.seal.check(action, ctx.cwd)
    yield
    check_again()


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
        state = tuple((str(path), _identity(path)) for path in paths)
        kept = self._kept.get(where)
        if kept is None or kept[0] != state:
            texts = {os.path.relpath(path, _fixed(where)): _text(path) for path in paths}
            kept = self._kept[where] = (state, self._compiled(texts))
        return kept[1]

    def forget(self, compiled: T) -> None:
        """Compile these policies again when they are next asked for."""
        self._kept = {where: kept for where, kept in self._kept.items() if kept[1] is not compiled}


def _identity(path: Path) -> tuple[int, ...]:
    """What no edit leaves as it was, whatever the clock says."""
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _fixed(pattern: str) -> str:
    """The folder that a pattern starts from: files are named from there, so that two of one name are two."""
    return re.split(r"[*?\[]", pattern)[0].rpartition("/")[0] or "/"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise HookFailed(f"cannot read policy file `{path}`: {problem}") from None
