"""Telling others what hooks do, without letting them slow a hook down or break it.

An inline observer is called on the spot, for those who must keep order (the agent's output) or must not miss a line
(the audit log); any other is called from a thread of its own, through a bounded queue.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import msgspec

from hookline.core.engine.context import Context
from hookline.core.engine.verdict import Outcome, Status, Verdict
from hookline.errors import HookError
from hookline.replies import NOTHING, Reply

log: logging.Logger = logging.getLogger("hookline.observers")
_MOST_WAITING = 10_000


_Word = Literal["success", "error", "cancelled"]


class _AboutHook(msgspec.Struct, frozen=True, kw_only=True):
    hook_id: str
    hook_name: str
    hook_event: str
    session_id: str = ""
    hook: str = ""


class HookStarted(_AboutHook, frozen=True, kw_only=True):
    """A hook began to run."""

    status_message: str | None = None
    limit: float = 0.0  # seconds it may take


class HookProgress(_AboutHook, frozen=True, kw_only=True):
    """A hook that still runs printed something."""

    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponse(_AboutHook, frozen=True, kw_only=True):
    """A hook is done; `result` is its outcome in full."""

    output: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: _Word = "success"
    result: Outcome | None = None


Notice = HookStarted | HookProgress | HookResponse | Verdict
Observer = Callable[[Notice], Any]
"""Any callable that takes a notice; an inline one may return a `Reply` to a verdict, which is merged into it.

One that has `verdicts_only = True` need not be told of single hooks, which is cheaper; one that has `always_inline`
set is inline in any case; one that has `events` wants to hear of these even from an agent that announces only what it
is asked to (the Claude CLI); one that has a `close` is closed with the set."""


class Observers:
    """The observers of one set of hooks."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._inline: tuple[Observer, ...] = ()
        self._aside: tuple[Observer, ...] = ()
        self.detailed: bool = False
        self._queue: deque[Notice] = deque()
        self._wake = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self.dropped: int = 0

    def __bool__(self) -> bool:
        return bool(self._inline or self._aside)

    def __contains__(self, observer: object) -> bool:
        return observer in self._inline or observer in self._aside

    @property
    def wanted(self) -> frozenset[str]:
        """The events that observers want to hear of, whether there are hooks on them or not."""
        return frozenset(name for one in (*self._inline, *self._aside) for name in getattr(one, "events", ()))

    @property
    def logs(self) -> tuple[Path, ...]:
        """The files that observers write: what happened before can be read there."""
        found = (getattr(getattr(one, "file", None), "path", None) for one in (*self._inline, *self._aside))
        return tuple(path for path in found if isinstance(path, Path))

    def add(self, observer: Observer, *, inline: bool) -> None:
        """Watch from now on."""
        if not callable(observer):
            raise HookError(f"an observer must be a function that takes a notice, got `{observer!r}`")
        if inspect.iscoroutinefunction(observer) or inspect.iscoroutinefunction(getattr(observer, "__call__", None)):  # noqa: B004
            raise HookError("an observer must be a plain function; it may hand the notice to a task of its own")
        if inline or getattr(observer, "always_inline", False):
            self._set((*self._inline, observer), self._aside)
        else:
            self._set(self._inline, (*self._aside, observer))

    def remove(self, observer: Observer) -> None:
        """Watch no longer."""
        self._set(tuple(o for o in self._inline if o != observer), tuple(o for o in self._aside if o != observer))

    def take(self) -> list[tuple[Observer, bool]]:
        """Every observer, and whether it is inline; none of them watches any longer."""
        taken = [*((one, True) for one in self._inline), *((one, False) for one in self._aside)]
        self._set((), ())
        return taken

    def _set(self, inline: tuple[Observer, ...], aside: tuple[Observer, ...]) -> None:
        self._inline, self._aside = inline, aside
        self.detailed = not all(getattr(one, "verdicts_only", False) for one in (*inline, *aside))
        self._changed()

    def notify(self, notice: Notice) -> Reply:
        """Pass a notice on; what inline observers answer to it comes back merged."""
        reply = NOTHING
        for observer in self._inline:
            answer = _notified(observer, notice)
            if isinstance(answer, Reply):
                reply = reply | answer
        if self._aside:
            self._enqueue(notice)
        return reply

    def _enqueue(self, notice: Notice) -> None:
        with self._wake:
            if self._closed or len(self._queue) >= _MOST_WAITING:
                self.dropped += 1
                return
            self._queue.append(notice)
            if self._thread is None:
                self._thread = threading.Thread(target=self._deliver, name="hookline-observers", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def _deliver(self) -> None:
        while True:
            with self._wake:
                self._busy = False
                self._wake.notify_all()
                self._wake.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return
                notice = self._queue.popleft()
                self._busy = True
            for observer in self._aside:
                _notified(observer, notice)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything said so far was delivered; `False` if it took too long."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._queue and not self._busy, timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Deliver what waits, up to `timeout`, then end the thread."""
        self.flush(timeout)
        with self._wake:
            self._closed = True
            self.dropped += len(self._queue)
            self._queue.clear()
            self._wake.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(timeout)
        for observer in (*self._inline, *self._aside):  # one that writes finishes; it may be told of more later
            try:
                getattr(observer, "close", lambda: None)()
            except Exception:
                log.exception("an observer could not be closed")
        if self.dropped:
            log.warning("observers were too slow: %d notices were dropped", self.dropped)

    async def aclose(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109 - it bounds the waiting only
        """As `close`, while the event loop goes on."""
        if self._thread is None:
            self.close(0)
            return
        loop, closed = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self.close(timeout)
            loop.call_soon_threadsafe(closed.set)

        closing = threading.Thread(target=close, name="hookline-observers-close", daemon=True)  # may hang for ever
        closing.start()
        await closed.wait()
        closing.join()


def _notified(observer: Observer, notice: Notice) -> Any:
    try:
        return observer(notice)
    except (Exception, SystemExit, KeyboardInterrupt):
        log.exception("an observer failed on %s; hooks go on", type(notice).__name__)
        return None


def announce_start(ctx: Context, observers: Observers) -> None:
    """Tell that a hook begins to run, and from now on what it prints."""
    ctx.hook_id = uuid4().hex
    names = _names(ctx)
    observers.notify(HookStarted(**names, status_message=ctx.hook.status_message, limit=ctx.timeout))
    printed = {"stdout": "", "stderr": ""}

    def progress(stream: str, text: str) -> None:
        printed[stream] += text
        observers.notify(HookProgress(**names, **printed, output=printed["stdout"] + printed["stderr"]))

    ctx.on_progress = progress


def _names(ctx: Context) -> dict[str, str]:
    event = ctx.event
    name = f"{event.event_name}:{event.subject}" if event.subject else event.event_name
    return {
        "hook_id": ctx.hook_id, "hook_name": name, "hook_event": event.event_name,
        "session_id": event.session_id, "hook": ctx.hook.name,
    }  # fmt: skip


def response_of(ctx: Context, outcome: Outcome) -> HookResponse:
    """What is told of a hook that is done."""
    cancelled = outcome.status in (Status.TIMEOUT, Status.CANCELLED)
    word: _Word = "cancelled" if cancelled else "success" if outcome.ok else "error"
    return HookResponse(
        **_names(ctx), output=outcome.stdout + outcome.stderr, stdout=outcome.stdout, stderr=outcome.stderr,
        exit_code=outcome.exit_code, outcome=word, result=outcome,
    )  # fmt: skip
