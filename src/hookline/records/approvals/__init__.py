"""Approvals: an `ask` that a host cannot put to a person waits in an inbox, which the resident service keeps.

`questions` has the open ones and what a yes is for, `config` the people and how they are reached. `Inbox` is what hooks
ask; `server` is the process that keeps the questions, shows them (`web`) and sends links (`transports`).
"""

from hookline.records.approvals.inbox import Inbox

__all__ = ["Inbox"]
