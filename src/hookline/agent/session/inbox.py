"""Prompts that no person typed: a background task is over, a hook wakes the agent."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple


class _Prompt(NamedTuple):
    text: str
    cause: Any


class Inbox:
    """What waits for the agent to react to, in the order it came."""

    def __init__(self) -> None:
        self._prompts: list[_Prompt] = []
        self._came = asyncio.Event()

    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._prompts

    def put(self, text: str, cause: object = None) -> None:
        """Let the agent react to `text`; `cause` is what `withdraw` knows it by."""
        self._prompts.append(_Prompt(text, cause))
        self._came.set()

    def withdraw(self, cause: object) -> bool:
        """Take back what `cause` put here; `False` if the agent has reacted to it already."""
        kept = [prompt for prompt in self._prompts if prompt.cause is not cause]
        found = len(kept) < len(self._prompts)
        self._prompts = kept
        return found

    async def wait(self) -> None:
        """Return once something waits."""
        while not self._prompts:
            self._came.clear()
            await self._came.wait()

    async def get(self) -> str:
        """The prompt that came first, as soon as there is one."""
        await self.wait()
        return self._prompts.pop(0).text
