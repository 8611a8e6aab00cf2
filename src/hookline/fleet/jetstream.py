"""JetStream, asked once more: a server that reads its list of users again does not answer for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nats.js import JetStreamContext
from nats.js.api import PubAck
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError

T = TypeVar("T")
PATIENCE = 5.0
"""Seconds in which the server has to answer."""
_PAUSE = 0.05


class PatientJetStream(JetStreamContext):
    """A request without an answer has changed nothing, so it may be sent again."""

    async def _api_request(self, *args: Any, **options: Any) -> dict[str, Any]:
        return await _answered(lambda: super(PatientJetStream, self)._api_request(*args, **options))

    async def publish(self, *args: Any, **options: Any) -> PubAck:
        return await _answered(lambda: super(PatientJetStream, self).publish(*args, **options))


async def _answered(ask: Callable[[], Awaitable[T]]) -> T:
    clock = asyncio.get_running_loop().time
    until = clock() + PATIENCE
    while True:
        try:
            return await ask()
        except (NoStreamResponseError, ServiceUnavailableError):
            if clock() > until:
                raise
        await asyncio.sleep(_PAUSE)
