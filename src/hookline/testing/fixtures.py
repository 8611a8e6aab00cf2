"""The plugin's fixtures under short names, on request: `pytest_plugins = ["hookline.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hookline import Hooks, Verdict
    from hookline.testing import Recorder


@pytest.fixture
def hooks(hookline_hooks: Hooks) -> Hooks:
    """A fresh set of hooks, closed after the test."""
    return hookline_hooks


@pytest.fixture
def fire(hookline_fire: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """`fire(hook_or_hooks, event)` in a test that is not `async`."""
    return hookline_fire


@pytest.fixture
def recorder(hookline_recorder: Recorder) -> Recorder:
    """Remembers everything that the `hooks` of this test do."""
    return hookline_recorder
