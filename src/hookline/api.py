"""`Hooks`: a set of hooks, everything that they can be, and every place they can come from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

from hookline.core.engine import Engine, Mode, Observer, OnAsk, Order, Outcome, Runner, Verdict
from hookline.core.engine.loop_thread import run_sync
from hookline.core.engine.tools import Approve, OnDeny, wrap_tool
from hookline.core.hooks import Hook, declared, make_hook
from hookline.core.hooks.declare import EventLike, F, Options, hooks_of_event, is_bare, is_event, is_group
from hookline.errors import ConfigError, HookError
from hookline.events import Event
from hookline.replies import NOTHING
from hookline.runners import Services, runner_for

if TYPE_CHECKING:
    from pathlib import Path

    from hookline.settings import Policy, Problem, Trust
    from hookline.settings.watcher import LiveSettings

P = ParamSpec("P")
R = TypeVar("R")
Before = Callable[[Event], Sequence[str]]
RunnerFor = Callable[[type[Any], Callable[[], Services]], Runner]
"""Makes the runner of one kind of action, which may ask for the services of its set."""


async def ask_inbox(verdict: Verdict, host: str = "", *, able: bool = False, before: Before | None = None) -> Any:
    """Put an `ask` to the people in `approvals` of the user's settings, if there are any."""
    from hookline.records.approvals import Inbox

    inbox = Inbox.configured(host=host, able=able, before=before)
    return NotImplemented if inbox is None else await inbox(verdict)


def report_trouble(notice: object) -> None:
    """An observer that tells the people of `approvals` what went wrong, if they want to know (`alerts`)."""
    if isinstance(notice, Verdict) and (notice.blocked or notice.failures):
        import asyncio

        from hookline.records.approvals.inbox import report

        asyncio.run(report(notice))


class Hooks:
    """A set of hooks and their engine: `on`, `add`, `fire`.

    `order="parallel"` runs all hooks of an event at once; `sequential/run_all` and `parallel/unanimous` are stricter
    profiles. `mode="evaluate_only"` makes and records verdicts of which nothing counts. `on_ask` may
    lift an `ask`: it gets the verdict and returns `True`, `False` or a reply. `timeout` is the set's own default in
    seconds. `env` is what hooks see as their environment; `project_dir` is what conditions on paths are relative to.

    Hooks may be added and removed from any thread while events fire: a running `fire` keeps the set it started with.
    """

    settings: LiveSettings | None = None
    """What the settings files say, in a set that was made by `from_settings`."""

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
        mode: Mode = "enforce",
        on_ask: OnAsk | None = None,
    ) -> None:
        self.services: Services = Services()
        self.engine: Engine = Engine(
            order=order, timeout=timeout, runners=lambda kind: runners(kind, lambda: self.services), env=env,
            project_dir=project_dir, grace=grace, clock=clock, mode=mode, on_ask=on_ask,
        )  # fmt: skip

    @classmethod
    def from_settings(
        cls,
        project_dir: str | Path = ".",
        *,
        settings: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
        setting_sources: str | Iterable[str] | None = None,
        plugin_dirs: Iterable[str | Path] = (),
        bare: bool = False,
        trust: Policy = "error",
        watch: bool = True,
        on_problem: Callable[[Problem], Any] | None = None,
        home: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        managed: str | Path | None = None,
        trusted: Trust | None = None,
        order: Order = "parallel",
        timeout: float | None = None,
        runners: RunnerFor = runner_for,
        mode: Mode = "enforce",
        on_ask: OnAsk | None = None,
    ) -> Self:
        """The hooks that settings files declare for a project: managed, user, project, local, `settings`, plugins.

        A project's own hooks must be trusted (`hookline trust`), or `UntrustedHooks` is raised. `trust="all"` runs
        them all the same; a function gets the `Status` and says whether to trust it. With `watch` an edit takes effect
        with the next event. What is wrong with the files goes to `on_problem` (else it is logged) and is in
        `hooks.settings.loaded.problems`; no file can make this fail.
        """
        from hookline.settings import LoadedSettings, Reloader, Trust, load
        from hookline.settings.sources import absolute_path, resolve_paths
        from hookline.settings.watcher import LiveSettings

        project, given = absolute_path(project_dir), resolve_paths(settings)
        plugins = [absolute_path(folder) for folder in plugin_dirs]
        wanted = setting_sources if setting_sources is None or isinstance(setting_sources, str) else (*setting_sources,)

        def read() -> LoadedSettings:
            return load(
                project, settings=given, setting_sources=wanted, plugin_dirs=plugins, bare=bare, home=home,
                env=env, managed=managed,
            )  # fmt: skip

        reloader = Reloader(read, policy=trust, trust=trusted or Trust.load(env=env, home=home))
        folder = str(reloader.loaded.places.project_dir)
        made = cls(order=order, timeout=timeout, runners=runners, project_dir=folder, mode=mode, on_ask=on_ask)
        made.engine.fallback = ask_inbox
        made.settings = LiveSettings(made.engine, reloader, env, on_problem)
        if "approvals" in reloader.loaded.raw:
            made.observe(report_trouble)
        made._add_flow(reloader.loaded.raw.get("flow"))
        if watch:
            made.engine.refresh_with(made.settings.refresh)
        return made

    def _add_flow(self, wanted: Any) -> None:
        """The flow guard, where the settings want it; a table that cannot be read counts as the strictest."""
        if wanted in (None, False):
            return
        from hookline.guards.flow import flow
        from hookline.settings.files import Problem

        try:
            self.add(*flow(**(wanted if isinstance(wanted, dict) else {})))
        except (ConfigError, TypeError) as error:
            self.add(*flow(strict=True))
            if self.settings is not None:
                self.settings.report([Problem("flow", str(error))])

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All hooks, in the order they run."""
        return self.engine.registry.index.hooks

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
            self.engine.registry.add([make_hook(events, call, **options)], named="name" in options)
            return call

        return register

    def add(self, *things: Any, **options: Unpack[Options]) -> tuple[Hook, ...]:
        """Register hooks: `add(hook)`, `add(object_with_hooks)`, or `add(PreToolUse, function_or_action, match=…)`.

        What the official SDK takes is taken, too: `add({"PreToolUse": [HookMatcher(matcher="Bash", hooks=[f])]})`.
        """
        if not things:
            raise HookError("nothing to add; write `hooks.add(PreToolUse, function)` or `hooks.add(hook)`")
        if is_event(things[0]):
            *events, run = things
            if not events:
                raise HookError(f"nothing to run on `{run}`; write `hooks.add(PreToolUse, function)`")
            return self.engine.registry.add(hooks_of_event(tuple(events), run, **options), named="name" in options)
        if options:
            raise HookError(f"{', '.join(options)}: only with events and a function: `hooks.add(PreToolUse, run, …)`")
        named = not any(isinstance(thing, Mapping) or is_group(thing) for thing in things)
        return self.engine.registry.add([hook for thing in things for hook in declared(thing)], named=named)

    def remove(self, name: str) -> Hook:
        """Take a hook out of the set; events that already fire still see it."""
        return self.engine.registry.remove(name)

    def fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Coroutine[Any, Any, Verdict]:
        """Send an event through the hooks it concerns; one verdict comes back, whatever they did.

        A mapping is read as an event of the wire: `{"hook_event_name": "PreToolUse", …}`. `deadline` bounds all hooks
        together, in seconds from now; `only` names a single hook to ask.
        """
        if deadline is None and only is None:
            try:
                return self.engine.fast[type(event)](event)
            except KeyError:  # the first of its kind
                pass
        return self.engine.fire(event, deadline, only)

    def fire_sync(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Verdict:
        """As `fire`, for programs without asyncio; hooks run on a private event loop, one after another.

        It works in any thread: hooks run in the caller's until one has to wait, and from then on in the loop's own.
        Where another event loop is running, prefer `await hooks.fire(…)`: that loop stands still meanwhile.
        """
        if isinstance(event, Event) and type(event) in self.engine.unheard and only is None:
            return Verdict(event, NOTHING)
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

    def for_sdk(self) -> dict[Any, list[Any]]:
        """What `ClaudeAgentOptions(hooks=…)` of the official SDK takes, so that its programs get this engine."""
        from hookline.hosts.claude_code import for_sdk

        return for_sdk(self)

    def observe(self, observer: Observer, *, inline: bool = False) -> Observer:
        """Tell `observer` of every hook that starts, prints and responds, and of every verdict."""
        self.engine.observers.add(observer, inline=inline)
        return observer

    def pending(self) -> list[Outcome]:
        """Late outcomes of background hooks since the last call."""
        return self.engine.background.collect()

    async def drain(self, timeout: float | None = None) -> list[Outcome]:  # noqa: ASYNC109 - it bounds the waiting only
        """Wait for background hooks that still run, and return their outcomes."""
        return await self.engine.background.drain(timeout)

    async def aclose(self, limit: float = 5.0) -> list[Outcome]:
        """Wait for background hooks up to `limit` seconds, cancel the rest, end every runner; safe to call twice."""
        return await self.engine.aclose(limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
