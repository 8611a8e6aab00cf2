"""Files that hooks watch: FileChanged fires when one of them changes, comes or goes."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from hookline.agent.tools import SessionState
from hookline.core.engine import Verdict
from hookline.core.hooks.hook import Hook
from hookline.events import Event, FileChanged
from hookline.settings.watcher import signature

INTERVAL = 0.25
LITERAL = re.compile(r"[\w .,|-]+", re.ASCII)


def names_in(hooks: Iterable[Hook]) -> list[str]:
    """The file names that FileChanged matchers spell out; a pattern alone watches nothing (FACTS.md §5)."""
    patterns = [hook.matcher.pattern for hook in hooks if FileChanged in hook.events]
    literal = [pattern for pattern in patterns if LITERAL.fullmatch(pattern)]
    return [name.strip() for pattern in literal for name in re.split(r"[|,]", pattern) if name.strip()]


class _FiresEvents(Protocol):
    """The conversation whose hooks are told."""

    state: SessionState

    async def fire(self, kind: type[Event], **fields: Any) -> Verdict: ...


class FileWatcher:
    """Looks at some files again and again, and says what became of them."""

    def __init__(self, conversation: _FiresEvents) -> None:
        self._talk = conversation
        self._seen: dict[str, tuple[int, ...] | None] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, paths: Iterable[str]) -> None:
        """Watch these too."""
        fresh = [os.path.realpath(Path(self._talk.state.cwd, path)) for path in paths]
        self._seen.update(zip(fresh, signature(fresh), strict=True))
        if self._seen and self._task is None:
            self._task = asyncio.create_task(self._watch(), name="watch files")

    async def aclose(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            paths = list(self._seen)
            for path, now in zip(paths, signature(paths), strict=True):
                before, self._seen[path] = self._seen[path], now
                if now != before:
                    await self._tell(path, "add" if before is None else "unlink" if now is None else "change")

    async def _tell(self, path: str, what: str) -> None:
        verdict = await self._talk.fire(FileChanged, file_path=path, event=what)
        if verdict.reply.specific is not None:
            self.add(verdict.reply.specific.watch_paths)
