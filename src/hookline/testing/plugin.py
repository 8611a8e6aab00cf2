"""The pytest plugin that ships with Hookline; it imports the rest of the package only when a fixture is used.

Its fixtures have names that collide with no others; `hookline.testing.fixtures` has them under short ones.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hookline import Hooks, Verdict
    from hookline.testing import Recorder


@pytest.fixture
def hookline_hooks(request: pytest.FixtureRequest) -> Iterator[Hooks]:
    """A fresh set of hooks, closed after the test: nothing a hook started outlives it."""
    from hookline import Hooks
    from hookline.core.engine.loop_thread import run_sync

    made = Hooks()
    is_async = inspect.iscoroutinefunction(request.function)
    if is_async:
        request.node.obj = _closing(request.node.obj, made)
    yield made
    if not is_async:
        run_sync(made.aclose())


def _closing(test: Callable[..., Any], hooks: Hooks) -> Callable[..., Any]:
    """The test, with the set closed in the loop it was used in, which is gone once the test is over."""

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        async with hooks:
            await test(*args, **kwargs)

    return run


@pytest.fixture
def hookline_fire() -> Callable[..., Verdict]:
    """`hookline_fire(hook_or_hooks, event)` in a test that is not `async`; else `await hookline_hooks.fire(event)`."""
    from hookline.testing import fire_sync

    return fire_sync


@pytest.fixture
def hookline_recorder(hookline_hooks: Hooks) -> Recorder:
    """Remembers everything that the `hookline_hooks` of this test do."""
    from hookline.testing import Recorder

    made = Recorder()
    hookline_hooks.observe(made, inline=True)
    return made
