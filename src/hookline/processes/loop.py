"""The event loop of a command: made when it is needed, or ahead, while nothing waits for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_ahead: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: a fork must not use its parent's."""


def prepare() -> None:
    """Make the loop of this process's next `run` now, unless it is there."""
    if os.getpid() not in _ahead:
        _ahead[os.getpid()] = asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    with asyncio.Runner(loop_factory=lambda: _ahead.pop(os.getpid(), None) or asyncio.new_event_loop()) as runner:
        return runner.run(work)
