"""Where every request stands: asked, answered, cancelled. Tables, and one class that keeps to them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from hookline.errors import ProtocolError, RequestClosed, RequestIdReused, StrayResponse

State = Literal["new", "open", "answered", "cancelled"]
Step = Literal["ask", "answer", "cancel"]

REMEMBERED = 16_384  # at least so many closed ids are kept, per direction, to notice a second answer or a reused id

# A cancellation that crosses the answer on the wire is no one's fault.
HARMLESS: frozenset[tuple[State, Step]] = frozenset({("answered", "cancel"), ("cancelled", "cancel")})
PROBLEM: Mapping[tuple[State, Step], Callable[[str, State], ProtocolError]] = {
    ("open", "ask"): lambda rid, state: RequestIdReused(rid),
    ("answered", "ask"): lambda rid, state: RequestIdReused(rid),
    ("cancelled", "ask"): lambda rid, state: RequestIdReused(rid),
    ("new", "answer"): lambda rid, state: StrayResponse(rid),
    ("new", "cancel"): lambda rid, state: StrayResponse(rid),
    ("answered", "answer"): RequestClosed,
    ("cancelled", "answer"): RequestClosed,
}


class PendingRequests:
    """Where every request of one direction stands; closed ones are remembered, up to a bound."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._now: dict[str, State] = {}
        self._before: dict[str, State] = {}
        self._remembered = self._full = remembered

    @property
    def open(self) -> list[str]:
        """The ids of the requests that wait for an answer."""
        return [request_id for request_id, state in self._now.items() if state == "open"]

    def state(self, request_id: str) -> State:
        return self._now.get(request_id) or self._before.get(request_id, "new")

    def ask(self, request_id: str) -> None:
        """A request is made; its id must be new."""
        if request_id in self._now or request_id in self._before:
            self._not_allowed(request_id, "ask")
        self._now[request_id] = "open"
        if len(self._now) > self._full:
            self._turn_the_page()

    def answer(self, request_id: str) -> None:
        """A request is answered; only an open one can be."""
        if self._now.get(request_id) != "open":
            self._not_allowed(request_id, "answer")
        self._now[request_id] = "answered"

    def cancel(self, request_id: str) -> bool:
        """A request is cancelled; False when it was closed before."""
        if self._now.get(request_id) != "open":
            return self._not_allowed(request_id, "cancel")
        self._now[request_id] = "cancelled"
        return True

    def _turn_the_page(self) -> None:
        """Forget what was remembered longest; open requests are never forgotten."""
        self._before, self._now = self._now, dict.fromkeys(self.open, "open")
        self._full = self._remembered + len(self._now)

    def _not_allowed(self, request_id: str, step: Step) -> bool:
        """False for a step that is harmless in this state; raises the `ProtocolError` of any other."""
        state = self.state(request_id)
        if (state, step) in HARMLESS:
            return False
        raise PROBLEM[state, step](request_id, state)
