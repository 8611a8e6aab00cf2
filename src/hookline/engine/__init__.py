"""Input → select → execute → merge → verdict."""

from hookline.engine.composition import Mode, OnAsk, Order
from hookline.engine.context import Cancelled, Context
from hookline.engine.engine import Engine
from hookline.engine.hook_set import HookSet
from hookline.engine.observers import HookProgress, HookResponse, HookStarted, Notice, Observer
from hookline.engine.outcome import Answer, Outcome, RunnerResult, Status
from hookline.engine.runner import Runner, RunnerFactory
from hookline.engine.verdict import Verdict

__all__ = [
    "Answer",
    "Cancelled",
    "Context",
    "Engine",
    "HookProgress",
    "HookResponse",
    "HookSet",
    "HookStarted",
    "Mode",
    "Notice",
    "Observer",
    "OnAsk",
    "Order",
    "Outcome",
    "Runner",
    "RunnerFactory",
    "RunnerResult",
    "Status",
    "Verdict",
]
