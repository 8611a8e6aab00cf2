"""`Hooks`: the engine with everything that hooks can be, and every place they can come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter

from hookline.engine import Engine, Order, RunnerFor
from hookline.runners import runner_for
from hookline.runners.services import Services


class Hooks(Engine):
    """A set of hooks and their engine: `on`, `add`, `fire`.

    `order="parallel"` runs all hooks of an event at once. `timeout` is the set's own default in seconds. `env` is what
    hooks see as their environment; `project_dir` is what conditions on paths are relative to.
    """

    def __init__(
        self,
        *,
        order: Order = "sequential",
        timeout: float | None = None,
        runners: RunnerFor = runner_for,
        env: Mapping[str, str] | None = None,
        project_dir: str = "",
        grace: float = 1.0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        super().__init__(
            order=order, timeout=timeout, runners=runners, env=env, project_dir=project_dir, grace=grace, clock=clock
        )
        self.services = Services()
