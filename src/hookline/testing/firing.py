"""One event through one hook, with or without `async`."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Unpack, get_args
from weakref import WeakKeyDictionary, finalize

from hookline.api import Hooks
from hookline.core.engine import Verdict
from hookline.core.hooks.actions import Action
from hookline.core.hooks.declare import Options
from hookline.core.hooks.hook import HookLike
from hookline.errors import HookError, HooklineError
from hookline.events import Event


async def fire(what: Any, event: Event, **options: Unpack[Options]) -> Verdict:
    """Send `event` through a set of hooks, or through a hook that is not registered anywhere yet.

    `what` is a `Hooks`, a function or an action such as `Command(…)`, or whatever `hooks.add` takes. A function or an
    action is asked about every event of the given kind, unless `options` (those of `hooks.on`) say otherwise.
    """
    if isinstance(what, Hooks):
        return await what.fire(event)
    async with Hooks() as hooks:
        register(hooks, what, event, **options)
        return await hooks.fire(event)


def register(hooks: Hooks, what: Any, event: Event, **options: Unpack[Options]) -> None:
    """Add whatever a test calls a hook; what does not name its events gets those of `event`'s kind."""
    if _is_bare(what):
        hooks.add(type(event), what, **options)
    elif options:
        raise HookError(f"{', '.join(options)}: a hook that names its own events has its own options; set them there")
    else:
        hooks.add(what)


def _is_bare(what: Any) -> bool:
    """Whether it is only something to run: a function, or an action."""
    named = inspect.isclass(what) or hasattr(what, "hooks") or isinstance(what, HookLike)
    return isinstance(what, get_args(Action)) or (callable(what) and not named)


_RUNNERS: WeakKeyDictionary[Hooks, asyncio.Runner] = WeakKeyDictionary()


def fire_sync(what: Any, event: Event, **options: Unpack[Options]) -> Verdict:
    """As `fire`, for tests that are not `async`. A set of hooks keeps its own event loop from one call to the next."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if isinstance(what, Hooks):
            return runner_of(what).run(what.fire(event))
        return asyncio.run(fire(what, event, **options))
    raise HooklineError("`fire_sync` was called where an event loop runs; write `await fire(…)` instead")


def runner_of(hooks: Hooks) -> asyncio.Runner:
    """The event loop in which `fire_sync` asks this set of hooks; it ends with the set."""
    runner = _RUNNERS.get(hooks)
    if runner is None:
        runner = _RUNNERS[hooks] = asyncio.Runner()
        finalize(hooks, _end, runner)
    return runner


def _end(runner: asyncio.Runner) -> None:
    """Close the loop of a set that was not closed; in a thread where another runs: a Python that ends starts none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        runner.close()
        return
    thread = threading.Thread(target=runner.close)
    thread.start()
    thread.join()


def close_sync(hooks: Hooks) -> None:
    """End a set of hooks in the loop it was used in."""
    with runner_of(hooks) as runner:
        runner.run(hooks.aclose())
    del _RUNNERS[hooks]
