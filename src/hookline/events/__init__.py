"""What happened: one frozen class per event, and the catalogue that lists them."""

from hookline.events import kinds
from hookline.events.base import Event
from hookline.events.catalog import CATALOG, OWN_EVENTS, EventSpec, HookEvent, spec_of
from hookline.events.kinds import *  # noqa: F403 - every event, as listed there

__all__ = ["CATALOG", "OWN_EVENTS", "Event", "EventSpec", "HookEvent", "spec_of"]
__all__ += kinds.__all__
