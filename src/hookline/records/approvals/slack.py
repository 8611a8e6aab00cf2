"""Slack's Socket Mode: who presses the button under a question gets the link, if it is theirs, and no one else does.

The connection goes out from here, so Slack needs no address of this machine. It lives as long as questions are open.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

from hookline.errors import MissingExtra
from hookline.records.approvals.config import ApprovalSettings, SlackChannel
from hookline.records.approvals.transports import NotSent, call_slack, post

log: logging.Logger = logging.getLogger("hookline.approvals")
RETRY_SECONDS = 2.0


class SocketMode:
    """One connection for each app; `link_for` gives the link of a question for a user of Slack, or nothing."""

    def __init__(self, link_for: Callable[[str, str], str]) -> None:
        self._link_for = link_for
        self._kept: dict[Any, asyncio.Task[None]] = {}

    def keep(self, settings: ApprovalSettings) -> None:
        """Stay connected for every app that the settings name."""
        for channels in settings.people.values():
            for channel in channels:
                if isinstance(channel, SlackChannel) and channel.app_token not in self._kept:
                    self._kept[channel.app_token] = asyncio.ensure_future(self._stay(channel))

    async def aclose(self) -> None:
        """Disconnect."""
        for task in self._kept.values():
            task.cancel()
        await asyncio.gather(*self._kept.values(), return_exceptions=True)

    async def _stay(self, channel: SlackChannel) -> None:
        try:
            from websockets.asyncio.client import connect
            from websockets.exceptions import WebSocketException
        except ImportError:
            log.warning("%s", MissingExtra("a channel of type `slack`", "notify"))
            return
        while True:
            try:
                found = await asyncio.to_thread(call_slack, channel, "apps.connections.open", {}, app=True)
                async with connect(found["url"]) as connection:
                    async for text in connection:
                        envelope = json.loads(text)
                        if "envelope_id" in envelope:  # within three seconds, or Slack shows a failure
                            await connection.send(json.dumps({"envelope_id": envelope["envelope_id"]}))
                            await asyncio.to_thread(self._pressed, envelope.get("payload") or {})
            except (OSError, WebSocketException, NotSent, ValueError, KeyError) as problem:
                log.warning("Slack cannot be reached: %s", problem)
            await asyncio.sleep(RETRY_SECONDS)

    def _pressed(self, payload: dict[str, Any]) -> None:
        """Give the link to who pressed the button; Slack says who that is."""
        for action in payload.get("actions") or ():
            if action.get("action_id") == "hookline":
                link = self._link_for(str(action.get("value")), str(payload.get("user", {}).get("id")))
                text = f"<{link}|Open the question>" if link else "This question is not for you, or it is over."
                try:
                    post(
                        payload["response_url"], {"response_type": "ephemeral", "replace_original": False, "text": text}
                    )
                except (OSError, NotSent) as problem:
                    log.warning("Slack cannot be answered: %s", problem)
