"""Who may ask the console: this machine's browser, from the console's own page, with its token. Pure but for secrets.

The address that is opened carries a ticket behind `#`, which browsers do not send. The page trades it, once, for a
token that it sends in a header; a page of another origin can neither read it nor make the browser send it.
"""

from __future__ import annotations

import hmac
import secrets
import threading

_MOST_TICKETS = 20


class Gatekeeper:
    """Checks who asks; `ticket()` makes one more way in."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._tickets: list[str] = []
        self._lock = threading.Lock()

    def ticket(self) -> str:
        """A ticket, good for one trade; only the last twenty that were not used stay good."""
        made = secrets.token_urlsafe(24)
        with self._lock:
            self._tickets = [*self._tickets[1 - _MOST_TICKETS :], made]
        return made

    def trade(self, ticket: str) -> str | None:
        """The token for a ticket, which is used up by this."""
        with self._lock:
            good = [one for one in self._tickets if hmac.compare_digest(one.encode(), ticket.encode())]
            if not good:
                return None
            self._tickets.remove(good[0])
        return self._token

    def knows(self, authorization: str) -> bool:
        """Whether a request's `Authorization` header carries the token."""
        return hmac.compare_digest(authorization.encode("utf-8", "replace"), f"Bearer {self._token}".encode())
