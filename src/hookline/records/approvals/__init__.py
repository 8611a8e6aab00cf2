"""Approvals: an `ask` that a host cannot put to a person waits in an inbox, which the resident service keeps.

`questions` has the open ones and what a yes is for. `inbox` is what hooks ask, and the settings that say who answers;
`server` is the process that keeps the questions, shows them on a page and sends links (`transports`).
"""

from hookline.records.approvals.inbox import Inbox

__all__ = ["Inbox"]
