"""`Engine`: input → select → execute → merge → verdict, and the parts that do it."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import msgspec

from hookline.core.engine.composition import Mode, OnAsk, Order, Resolution, checked_order, lifted, resolved, unenforced
from hookline.core.engine.context import RunnerFactory, RunnerPool
from hookline.core.engine.dispatch import Background, Dispatcher, EventRun
from hookline.core.engine.fast_path import FastPaths, Fire
from hookline.core.engine.observers import Observer, Observers
from hookline.core.engine.select import EventHooks, HookIndex, Registry, applies_to, row_of, select_from
from hookline.core.engine.verdict import Approval, Outcome, Verdict
from hookline.core.hooks.hook import Hook, check_seconds
from hookline.core.wire.dialects import detect, dialect
from hookline.errors import Closed, HookError
from hookline.events import Event
from hookline.replies import NOTHING, Decision, Reply

log: logging.Logger = logging.getLogger("hookline")
AnyEvent = Event | Mapping[str, Any]  # the latter as it goes over the wire
Firing = Coroutine[Any, Any, Verdict]
_warned_off = False


class Engine:
    """What is behind a set of hooks: a registry, a dispatcher, runners and observers.

    Which runner performs which kind of action is handed in (`runners`), made at first use and closed with the set.
    """

    def __init__(
        self,
        *,
        order: Order = "sequential",
        timeout: float | None = None,
        runners: RunnerFactory | None = None,
        env: Mapping[str, str] | None = None,
        project_dir: str = "",
        grace: float = 1.0,
        clock: Callable[[], float] = perf_counter,
        mode: Mode = "enforce",
        on_ask: OnAsk | None = None,
    ) -> None:
        if timeout is not None:
            check_seconds(timeout, "timeout")
        if grace:
            check_seconds(grace, "grace")
        if mode not in ("enforce", "evaluate_only"):
            raise HookError(f"mode must be `enforce` or `evaluate_only`, got `{mode}`")
        self.order = checked_order(order)
        self.mode = mode
        self.on_ask = on_ask
        self.fallback: OnAsk | None = None  # asked by a host, framework or gateway that cannot ask a person
        self.timeout = timeout
        self.env = env
        self.project_dir = project_dir  # what conditions on paths are relative to, or the empty string
        self.grace = grace
        self.clock = clock
        self.on_late: Callable[[Outcome], Any] | None = None
        """Told of each late outcome as it comes, by a host that can wake its agent; `pending()` has it all the same."""
        self.fast: dict[Any, Fire] = {}  # what takes events of a kind through their hooks at once; others take `fire`
        self.unheard: Collection[type[Event]] = ()
        """Kinds of events that need not be made, or not be sent to an event loop: no hook or observer hears of them."""
        self._refresh: Callable[[], Any] | None = None
        self._closed = False
        self._enabled = _switched_on()
        self.observers: Observers = Observers(changed=self._forget)
        self.runners: RunnerPool = RunnerPool(runners)
        self.registry: Registry = Registry(project_dir, str(Path.home()), self._forget)
        self.dispatcher: Dispatcher = Dispatcher(self, self.registry, self.runners, self.observers)
        self.background: Background = self.dispatcher.background
        self._forget()

    @property
    def enabled(self) -> bool:
        """Whether hooks are asked at all; `HOOKLINE_ENABLED=0` in the environment switches them off."""
        return self._enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._enabled = on
        self._forget()

    def _forget(self) -> None:
        """Something changed: nothing that was cached holds for events from now on."""
        self._paths = FastPaths(self.dispatcher, self._fire)
        self.fast = {} if self._refresh is not None else self._paths.of
        self.unheard = () if self._refresh is not None else self._paths.unheard

    def refresh_with(self, refresh: Callable[[], Any]) -> None:
        """Call `refresh` before every event: a set that follows its settings files looks for edits there."""
        self._refresh = refresh
        self._forget()

    def fire(self, event: AnyEvent, deadline: float | None = None, only: str | None = None) -> Firing:
        if self._refresh is not None:
            self._refresh()
        return self._fire(event, deadline, only)

    async def _fire(self, event: AnyEvent, deadline: float | None = None, only: str | None = None) -> Verdict:
        if isinstance(event, Mapping):
            event = dialect(detect(event)).decode_event(event)
        if self._closed:
            raise Closed("these hooks were closed; make a new set")
        paths, spec = self._paths, row_of(event)
        among = HookIndex()
        if self._enabled:
            among = self.registry.index if only is None else self.registry.only(only)
        row = among.rows.get(spec.cls)
        chosen = self.registry.unspent(select_from(row, event, among))
        if only is None and self._enabled and self._fast_path_allowed(row, chosen):
            path = paths.remember(event, row, chosen, among, self.notify if self.observers else None)
            if deadline is None:
                return await path(event)
        run = EventRun(event, spec, chosen, among, None if deadline is None else self.clock() + deadline)
        verdict = await self.dispatcher.dispatch(run, self.order)
        verdict.chosen = chosen
        if self.mode == "evaluate_only":
            verdict.evaluated = verdict.reply  # observers are told what it would be
            return unenforced(self.notify(verdict) if self.observers else verdict)
        if self.on_ask is not None and verdict.decision is Decision.ASK:
            verdict = await lifted(verdict, self.on_ask, run.deadline and run.deadline - self.clock())
        return self.notify(verdict) if self.observers else verdict

    def _fast_path_allowed(self, row: EventHooks | None, chosen: tuple[Hook, ...]) -> bool:
        looked_at = self.observers.detailed or self.mode != "enforce" or self.on_ask is not None
        if looked_at or (row is not None and row.conditional) or not all(hook.plain for hook in chosen):
            return False
        return self.order == "sequential" or len(chosen) <= 1

    def notify(self, verdict: Verdict) -> Verdict:
        """The verdict, once the observers know it and have added what they must."""
        added = self.observers.notify(verdict)
        return verdict if added is NOTHING else msgspec.structs.replace(verdict, reply=verdict.reply | added)

    def record_approval(self, verdict: Verdict, approval: Approval) -> Reply:
        """What a person's answer to a verdict of `ask` lets happen; the observers are told who answered."""
        if self.observers:
            self.notify(resolved(msgspec.structs.replace(verdict, approval=approval), approval.reply))
        return approval.reply

    def applies_to(self, hook: Hook, event: Event) -> bool:
        return applies_to(hook, event, self.registry.index)

    async def end_background(self, limit: float = 0.0) -> list[Outcome]:
        """Give background hooks `limit` more seconds, then cancel those that still run; the set stays open."""
        late = await self.background.drain(limit)
        return late + await self.background.aclose()

    async def aclose(self, limit: float = 5.0) -> list[Outcome]:
        """Wait for background hooks up to `limit` seconds, cancel the rest, end every runner; safe to call twice."""
        late = await self.background.drain(limit)
        self._closed = True
        self._forget()
        late += await self.background.aclose()
        await self.runners.aclose()
        await self.observers.aclose()
        return late


def _switched_on() -> bool:
    global _warned_off  # noqa: PLW0603 - one warning a process is what was asked for
    off = os.environ.get("HOOKLINE_ENABLED", "1").strip().lower() in ("0", "false", "no", "off")
    if off and not _warned_off:
        _warned_off = True
        log.warning("hooks are switched off: HOOKLINE_ENABLED is 0, so nothing is judged or blocked")
    return not off


class FiresAsync(Protocol):
    """Takes an event, gives the verdict."""

    def fire(self, event: Event, /) -> Firing: ...


def has_no_listeners(hooks: object, kind: type[Event]) -> bool:
    """Whether no hook or observer would hear of such an event, as far as is known: then it need not be made."""
    engine = getattr(hooks, "engine", None)
    return engine is not None and kind in engine.unheard


async def ask_people(hooks: object, verdict: Verdict, on_ask: OnAsk | None = None) -> Resolution:
    """The answer to a verdict of `ask`, from `on_ask` or the set's own fallback; `None` if there is no one to ask."""
    engine = getattr(hooks, "engine", None)
    on_ask = on_ask or getattr(engine, "fallback", None)
    if on_ask is None:
        return None
    answer = on_ask(verdict)
    answer = await answer if inspect.isawaitable(answer) else answer
    if isinstance(answer, Approval) and engine is not None:
        reply: Reply = engine.record_approval(verdict, answer)
        return reply
    return None if answer is NotImplemented else answer


class Fires(FiresAsync, Protocol):
    """The same for callers that cannot await, too: `Hooks`."""

    def fire_sync(self, event: Event) -> Verdict: ...


class HookSet(Protocol):
    """What `hookline.Hooks`, which documents all of this, is to an agent, a host or a replay."""

    @property
    def engine(self) -> Engine: ...
    @property
    def hooks(self) -> tuple[Hook, ...]: ...
    def add(self, *things: Any, **options: Any) -> tuple[Hook, ...]: ...
    def remove(self, name: str) -> Hook: ...
    def fire(self, event: AnyEvent, deadline: float | None = None, only: str | None = None) -> Firing: ...
    def observe(self, observer: Observer, *, inline: bool = False) -> Observer: ...
    def pending(self) -> list[Outcome]: ...
    async def drain(self, timeout: float | None = None) -> list[Outcome]: ...  # noqa: ASYNC109 - bounds the waiting only
    async def aclose(self, limit: float = 5.0) -> list[Outcome]: ...
