"""`Engine`: a set of hooks, and the sequence input → select → execute → merge → verdict."""

from __future__ import annotations

import logging
import os
import threading
from asyncio import CancelledError
from collections import ChainMap
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec

from hookline.engine.answers import failure, understood
from hookline.engine.background import Background, as_coroutine
from hookline.engine.context import Context
from hookline.engine.execute import Run, answered, parallel, sequential, unwrapped
from hookline.engine.loop_thread import run_sync
from hookline.engine.merge import merge
from hookline.engine.observers import Notice, Observer, Observers
from hookline.engine.outcome import Outcome, Runner, Status
from hookline.engine.select import Index, Place, class_of, index, meant, select, wanted
from hookline.engine.step import Limits, Suspended, finish, first_step
from hookline.engine.tools import Approve, OnDeny, wrap_tool
from hookline.engine.verdict import Verdict
from hookline.engine.ways import Ways
from hookline.errors import Closed, DuplicateHook, HookCancelled, HookError, HooklineError, UnknownHook
from hookline.events import Event, spec_of
from hookline.hooks.actions import Action
from hookline.hooks.declare import EventLike, F, Options, declared, is_bare, is_event, make_hook
from hookline.hooks.hook import Hook, check_seconds
from hookline.replies import NOTHING, Reply
from hookline.wire.dialects import detect, dialect

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger("hookline")
Order = Literal["sequential", "parallel"]
RunnerFor = Callable[["Engine", type[Any]], Runner]
_warned_off = False


class Engine:
    """A set of hooks that events are sent through.

    Hooks may be added and removed from any thread while events fire: a running `fire` keeps the set it started with.
    Which runner performs which kind of action is handed in (`runners`), made at first use and closed with the set.
    """

    def __init__(
        self,
        *,
        order: Order = "sequential",
        timeout: float | None = None,
        runners: RunnerFor | None = None,
        env: Mapping[str, str] | None = None,
        project_dir: str = "",
        grace: float = 1.0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        if order not in ("sequential", "parallel"):
            raise HookError(f"order must be `sequential` or `parallel`, got `{order}`")
        if timeout is not None:
            check_seconds(timeout, "timeout")
        self.order: Order = order
        self.timeout = timeout
        self.env = env
        self.grace = grace
        self.clock = clock
        self.observers = Observers(changed=self._forget_ways)
        self._runner_for = runners
        self._runners: dict[type[Any], Runner] = {}
        self._background = Background()
        self.on_late: Callable[[Outcome], Any] | None = None
        """Told of each late outcome as it comes, by a host that can wake its agent; `pending()` has it all the same."""
        self._lock = threading.RLock()
        self._place = Place(project_dir, str(Path.home()))
        self._hooks: list[Hook] = []
        self._names: dict[str, Hook] | None = None
        self._index: Index | None = None
        self._ways = Ways(self._fire)
        self._quick = self._ways.of
        self._spent: set[str] = set()
        self._closed = False
        self._enabled = _switched_on()

    # -- registering ---------------------------------------------------------------------------------------------

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All hooks, in the order they run."""
        return self._picture().hooks

    @property
    def place(self) -> Place:
        """Where conditions on paths are read from."""
        return self._place

    @overload
    def on(self, *events: EventLike, **options: Unpack[Options]) -> Callable[[F], F]: ...

    @overload
    def on(self, call: F, /) -> F: ...

    def on(self, *events: Any, **options: Unpack[Options]) -> Any:
        """Register the decorated function for `events`: `@hooks.on(PreToolUse, match="Write|Edit", timeout=5)`.

        Without events, or as a bare `@hooks.on`, for those that its parameter is annotated with.
        """
        if is_bare(events):
            return self.on(**options)(events[0])

        def register(call: F) -> F:
            self._register([make_hook(events, call, **options)], named="name" in options)
            return call

        return register

    def add(self, *things: Any, **options: Unpack[Options]) -> tuple[Hook, ...]:
        """Register hooks: `add(hook)`, `add(object_with_hooks)`, or `add(PreToolUse, function_or_action, match=…)`."""
        if not things:
            raise HookError("nothing to add; write `hooks.add(PreToolUse, function)` or `hooks.add(hook)`")
        if is_event(things[0]):
            if len(things) == 1:
                raise HookError(f"nothing to run on `{things[0]}`; write `hooks.add(PreToolUse, function)`")
            *events, run = things
            hooks = [make_hook(events, run, **options)]
            named = "name" in options
        elif options:
            raise HookError(f"{', '.join(options)}: only with events and a function: `hooks.add(PreToolUse, run, …)`")
        else:
            hooks = [hook for thing in things for hook in declared(thing)]
            named = True
        return self._register(hooks, named=named)

    def _register(self, hooks: list[Hook], *, named: bool) -> tuple[Hook, ...]:
        with self._lock:
            if self._names is None:
                self._names = {hook.name: hook for hook in self._hooks}
            added: dict[str, Hook] = {}
            for hook in hooks:
                fresh = _with_free_name(hook, ChainMap(added, self._names), named=named)
                added[fresh.name] = fresh
            self._names.update(added)
            self._hooks.extend(added.values())
            self._forget_ways()
        return tuple(added.values())

    def remove(self, name: str) -> Hook:
        """Take a hook out of the set; events that already fire still see it."""
        with self._lock:
            for hook in self._hooks:
                if hook.name == name:
                    self._spent.discard(name)
                    self.replace([other for other in self._hooks if other is not hook])
                    return hook
        raise UnknownHook(name, [hook.name for hook in self.hooks])

    def replace(self, hooks: Iterable[Hook]) -> None:
        """Put another set of hooks in place of all there are, at once (a settings file was edited)."""
        with self._lock:
            self._hooks, self._names = list(hooks), None
            self._forget_ways()

    def _picture(self) -> Index:
        """The set as it is now, sorted for selection; made when the first event after a change fires."""
        picture = self._index
        if picture is None:
            with self._lock:
                picture = self._index = index(self._hooks, self._place)
                self._names = None
        return picture

    def _forget_ways(self) -> None:
        """Something changed: events from now on find their way anew."""
        with self._lock:
            self._index, self._ways = None, Ways(self._fire)
            self._quick = self._ways.of

    @property
    def enabled(self) -> bool:
        """Whether hooks are asked at all; `HOOKLINE_ENABLED=0` in the environment switches them off."""
        return self._enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._enabled = on
        self._forget_ways()

    # -- firing --------------------------------------------------------------------------------------------------

    def fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Coroutine[Any, Any, Verdict]:
        """Send an event through the hooks it concerns; one verdict comes back, whatever they did.

        A mapping is read as an event of the wire: `{"hook_event_name": "PreToolUse", …}`. `deadline` bounds all hooks
        together, in seconds from now; `only` names a single hook to ask.
        """
        if deadline is None and only is None:
            try:
                way: Callable[[Any], Coroutine[Any, Any, Verdict]] = self._quick[event.__class__]  # type: ignore[index]
            except KeyError:
                way = self._fire
            return way(event)
        return self._fire(event, deadline, only)

    def fire_sync(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Verdict:
        """As `fire`, for programs without asyncio; hooks run on a private event loop in a thread of its own.

        It works in any thread. Where an event loop is running, prefer `await hooks.fire(…)`: that loop stands still
        until the verdict is there.
        """
        return run_sync(self.fire(event, deadline, only))

    def wrap_tool(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        exclude: Collection[str] = (),
        on_deny: OnDeny = "raise",
        approve: Approve | None = None,
        on_verdict: Callable[[Verdict], Any] | None = None,
        session_id: str = "",
        cwd: str | None = None,
    ) -> Callable[P, R]:
        """The function as a tool that hooks govern, sync or async as it is; its name and signature stay.

        Before a call PreToolUse is fired with the arguments by name (not those in `exclude`), afterwards PostToolUse or
        PostToolUseFailure. A rewritten input is what the function is called with, a replaced output what it returns. A
        denied call raises `ToolDenied` with the reason, or returns the reason with `on_deny="return"`; so does a result
        that a PostToolUse hook blocks. When a hook asks, PermissionRequest hooks decide, else `approve`, else the
        answer is no. `on_verdict` is told of every verdict.
        """
        return wrap_tool(
            self, function, name=name, exclude=exclude, on_deny=on_deny, approve=approve, on_verdict=on_verdict,
            session_id=session_id, cwd=cwd,
        )  # fmt: skip

    async def _fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Verdict:
        if isinstance(event, Mapping):
            event = dialect(detect(event)).decode_event(event)
        ways = self._ways
        among = self._among(only)
        chosen = self._not_spent(select(event, among))
        if only is None and self.enabled and not self.observers.detailed:
            way = ways.remember(self, event, chosen, among)
            if way is not None and deadline is None:
                return await way(event)
        run = Run(self, event, chosen, among, None if deadline is None else self.clock() + deadline)
        at_once = self.order == "parallel" and len(chosen) > 1
        verdict = merge(event, await parallel(run) if at_once else await sequential(run))
        return self.told(verdict) if self.observers else verdict

    def _among(self, only: str | None) -> Index:
        """The hooks an event may meet."""
        if self._closed:
            raise Closed("these hooks were closed; make a new set")
        if not self.enabled:
            return Index()
        picture = self._picture()
        if only is None:
            return picture
        named = [hook for hook in picture.hooks if hook.name == only]
        if not named:
            raise UnknownHook(only, [hook.name for hook in picture.hooks])
        return index(named, self._place)

    def told(self, verdict: Verdict) -> Verdict:
        """The verdict, once the observers know it and have added what they must."""
        added = self.observers.tell(verdict)
        return verdict if added is NOTHING else msgspec.structs.replace(verdict, reply=verdict.reply | added)

    def _not_spent(self, chosen: tuple[Hook, ...]) -> tuple[Hook, ...]:
        """Leave out hooks declared `once` that have run."""
        if not self._spent:
            return chosen
        return tuple(hook for hook in chosen if not (hook.once and hook.name in self._spent))

    def claim(self, hook: Hook) -> bool:
        """Whether a hook declared `once` may run now; of several events at once, one gets it."""
        with self._lock:
            free = hook.name not in self._spent
            self._spent.add(hook.name)
        return free

    def give_back(self, hook: Hook) -> None:
        """A hook declared `once` has run in vain and may run again."""
        with self._lock:
            self._spent.discard(hook.name)
            self._forget_ways()  # those found meanwhile lead past it

    def concerns(self, hook: Hook, event: Event) -> bool:
        """Whether `hook` would be asked about `event`."""
        return class_of(event) in hook.events and meant(hook, event.subject) and wanted(hook, event, self._place)

    # -- in the background ---------------------------------------------------------------------------------------

    def go_on_later(self, hook: Hook, event: Event, ctx: Context, reply: Reply | None) -> Outcome:
        """Let a hook go on by itself; its late outcome is collected by `pending()` and `drain()`.

        What else `reply` says counts now.
        """
        self._background.start(self._later(hook, event, ctx, reply), self.on_late)
        now = msgspec.structs.replace(reply or NOTHING, background=False, background_timeout=None, later=None)
        return Outcome(
            hook=hook.name, source=hook.source, event=event.event_name, status=Status.BACKGROUND,
            reply=NOTHING if now == NOTHING else now, ms=(self.clock() - (ctx.started or 0.0)) * 1000,
        )  # fmt: skip

    async def _later(self, hook: Hook, event: Event, ctx: Context, reply: Reply | None) -> Outcome:
        spec = spec_of(event)
        started = self.clock()
        more = ctx.more and msgspec.structs.replace(ctx.more, fire_deadline=None)
        late = msgspec.structs.replace(ctx, started=started, more=more)
        try:
            answer = await (answered(self, hook, event, late) if reply is None else self._work(hook, late, reply))
            ran = understood(answer, event, spec)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - a late failure is an outcome too
            lenient = msgspec.structs.replace(hook, on_failure="continue")
            closing = HookCancelled("was cancelled in the background") if isinstance(error, CancelledError) else error
            return failure(lenient, event, spec, closing, (self.clock() - started) * 1000)
        return Outcome(
            hook=hook.name, source=hook.source, event=event.event_name, reply=ran.reply or NOTHING,
            ms=(self.clock() - started) * 1000, exit_code=ran.exit_code, stdout=ran.stdout, stderr=ran.stderr,
        )  # fmt: skip

    async def _work(self, hook: Hook, late: Context, reply: Reply) -> Any:
        """What a reply of `background(work)` left to do."""
        step = first_step(as_coroutine(reply.later))
        if isinstance(step, Suspended):
            seconds = reply.background_timeout or hook.limit(self.timeout)
            step = await finish(step, Limits(seconds, self.grace, late.cancel))
        return unwrapped(step)

    def pending(self) -> list[Outcome]:
        """Late outcomes of background hooks since the last time somebody asked."""
        return self._background.collect()

    async def drain(self, timeout: float | None = None) -> list[Outcome]:  # noqa: ASYNC109 - it bounds the waiting only
        """Wait for background hooks that still run, and return their outcomes."""
        return await self._background.drain(timeout)

    async def end_background(self, limit: float = 0.0) -> list[Outcome]:
        """Give background hooks `limit` more seconds, then cancel those that still run; the set stays open."""
        late = await self._background.drain(limit)
        return late + await self._background.aclose()

    @property
    def abandoned(self) -> int:
        """How many `def` hooks still run in a thread although nobody waits for them any more."""
        return sum(getattr(runner, "abandoned", 0) for runner in list(self._runners.values()))

    # -- being watched, and ending -------------------------------------------------------------------------------

    def observe(self, observer: Observer, *, inline: bool = False) -> Observer:
        """Tell `observer` of every hook that starts, prints and responds, and of every verdict."""
        self.observers.add(observer, inline=inline)
        return observer

    def tell(self, notice: Notice) -> None:
        """Pass a notice on to the observers."""
        self.observers.tell(notice)

    def runner_of(self, hook: Hook) -> Runner:
        """The runner that performs the hook's action."""
        kind = type(hook.action)
        with self._lock:
            runner = self._runners.get(kind)
            if runner is None:
                if self._runner_for is None:
                    raise HooklineError(f"no runner for {kind.__name__} hooks; use `hookline.Hooks`, or pass runners=")
                runner = self._runners[kind] = self._runner_for(self, kind)
        return runner

    async def aclose(self, limit: float = 5.0) -> list[Outcome]:
        """Wait for background hooks up to `limit` seconds, cancel the rest, end every runner; safe to call twice."""
        late = await self._background.drain(limit)
        self._closed = True
        self._forget_ways()
        late += await self._background.aclose()
        with self._lock:
            runners, self._runners = list(self._runners.values()), {}
        for runner in runners:
            close = getattr(runner, "aclose", None)
            if close is not None:
                await close()
        await self.observers.aclose()
        return late

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _with_free_name(hook: Hook, known: Mapping[str, Hook], *, named: bool) -> Hook:
    """The hook under a name that is free; a chosen name that is taken, or the same hook again, is refused."""
    other = known.get(hook.name)
    if other is None:
        return hook
    if named or _same(hook, other):
        raise DuplicateHook(hook.name)
    number = 2
    while f"{hook.name}#{number}" in known:
        number += 1
    return msgspec.structs.replace(hook, name=f"{hook.name}#{number}")


def _same(a: Hook, b: Hook) -> bool:
    def run(action: Action) -> Any:
        return getattr(action, "call", action)

    return run(a.action) == run(b.action) and a.events == b.events and a.matcher.pattern == b.matcher.pattern


def _switched_on() -> bool:
    global _warned_off  # noqa: PLW0603 - one warning a process is what was asked for
    off = os.environ.get("HOOKLINE_ENABLED", "1").strip().lower() in ("0", "false", "no", "off")
    if off and not _warned_off:
        _warned_off = True
        log.warning("hooks are switched off: HOOKLINE_ENABLED is 0, so nothing is judged or blocked")
    return not off
