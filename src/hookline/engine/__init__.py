"""Input → select → execute → merge → verdict."""

from hookline.engine.context import Cancelled, Context
from hookline.engine.engine import Engine, Order, RunnerFor
from hookline.engine.observers import HookProgress, HookResponse, HookStarted, Notice, Observer
from hookline.engine.outcome import Answer, Outcome, Ran, Runner, Status
from hookline.engine.verdict import Verdict

__all__ = [
    "Answer",
    "Cancelled",
    "Context",
    "Engine",
    "HookProgress",
    "HookResponse",
    "HookStarted",
    "Notice",
    "Observer",
    "Order",
    "Outcome",
    "Ran",
    "Runner",
    "RunnerFor",
    "Status",
    "Verdict",
]
