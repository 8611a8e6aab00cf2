"""Messages between the pipe and their reader, with a bound on how much may lie there."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from hookline.hosts.claude_code.messages import Message

HIGH, LOW = 32 * 1024 * 1024, 8 * 1024 * 1024  # bytes


class MessageQueue:
    """A queue that has the pipe pause while it holds more than `high` bytes; it ends once, well or with an error."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None], high: int = HIGH, low: int = LOW) -> None:
        self._pause, self._resume = pause, resume
        self._high, self._low = high, low
        self._messages: deque[Message] = deque()
        self._size = 0
        self._paused = False
        self._held_open = 0
        self._ended = False
        self._error: Exception | None = None
        self._news: asyncio.Event = asyncio.Event()

    def put(self, message: Message) -> None:
        self._messages.append(message)
        self._size += len(message.line)
        self._news.set()
        self._balance()

    def end(self, error: Exception | None = None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._news.set()

    async def get(self) -> Message | None:
        """The next message; `None` after the last; raises what ended the conversation."""
        while not self._messages:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._size -= len(message.line)
        self._balance()
        return message

    def hold_open(self, more: int) -> None:
        """While a caller waits for an answer that comes down the same pipe, it is not paused."""
        self._held_open += more
        self._balance()

    def _balance(self) -> None:
        full = self._size > (self._low if self._paused else self._high)
        pause = full and not self._held_open and not self._ended
        if pause and not self._paused:
            self._pause()
        elif self._paused and not pause:
            self._resume()
        self._paused = pause
