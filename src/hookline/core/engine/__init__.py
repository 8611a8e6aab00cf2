"""Input → select → execute → merge → verdict."""

from hookline.core.engine.composition import Mode, OnAsk, Order
from hookline.core.engine.context import Cancelled, Context, Runner, RunnerFactory
from hookline.core.engine.engine import Engine, HookSet
from hookline.core.engine.observers import HookProgress, HookResponse, HookStarted, Notice, Observer
from hookline.core.engine.verdict import Answer, Approval, Outcome, RunnerResult, Status, Verdict

__all__ = [
    "Answer", "Approval", "Cancelled", "Context", "Engine", "HookProgress", "HookResponse", "HookSet", "HookStarted",
    "Mode", "Notice", "Observer", "OnAsk", "Order", "Outcome", "Runner", "RunnerFactory", "RunnerResult", "Status",
    "Verdict",
]  # fmt: skip
