"""Where every request stands: asked, answered, cancelled. Tables, and one class that keeps to them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from hookline.claude.messages import OtherRequest, Request
from hookline.errors import ProtocolError, RequestClosed, RequestIdReused, StrayResponse

State = Literal["new", "open", "answered", "cancelled"]
Step = Literal["ask", "answer", "cancel"]

REMEMBERED = 16_384  # at least so many closed ids are kept, per direction, to notice a second answer or a reused id

# The life of a request, the same in both directions.
NEXT: Mapping[tuple[State, Step], State] = {
    ("new", "ask"): "open",
    ("open", "answer"): "answered",
    ("open", "cancel"): "cancelled",
}
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


class Ledger:
    """Where every request of one direction stands; closed ones are remembered, up to a bound."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.open: dict[str, Request | OtherRequest | None] = {}
        self._closed: dict[str, State] = {}
        self._older: dict[str, State] = {}
        self._remembered = remembered

    def state(self, request_id: str) -> State:
        if request_id in self.open:
            return "open"
        for closed in (self._closed, self._older):
            if request_id in closed:
                return closed[request_id]
        return "new"

    def ask(self, request_id: str, request: Request | OtherRequest | None = None) -> None:
        """A request is made; its id must be new."""
        if request_id in self.open or request_id in self._closed or request_id in self._older:
            self._not_allowed(request_id, "ask")
        self.open[request_id] = request

    def answer(self, request_id: str) -> None:
        """A request is answered; only an open one can be."""
        if request_id not in self.open:
            self._not_allowed(request_id, "answer")
        del self.open[request_id]
        self._closed[request_id] = "answered"
        if len(self._closed) >= self._remembered:
            self._turn_the_page()

    def cancel(self, request_id: str) -> bool:
        """A request is cancelled; False when it was closed before."""
        if request_id not in self.open:
            return self._not_allowed(request_id, "cancel")
        del self.open[request_id]
        self._closed[request_id] = "cancelled"
        return True

    def _turn_the_page(self) -> None:
        self._closed, self._older = {}, self._closed

    def _not_allowed(self, request_id: str, step: Step) -> bool:
        """False for a step that is harmless in this state; raises the `ProtocolError` of any other."""
        state = self.state(request_id)
        if (state, step) in HARMLESS:
            return False
        raise PROBLEM[state, step](request_id, state)
