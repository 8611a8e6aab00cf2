"""Hooks as the CLI's callbacks: what `initialize` registers, and what a CLI must promise in return.

One callback stands for one event: when the CLI calls it, the whole set is asked, so that order, rewriting and the laws
hold there as they do everywhere. (A callback per hook would let the CLI ask them all at once and run an input that no
hook has judged: law 4.) The matcher sent along has the names that the hooks mean, so that the CLI does not call for
nothing; the engine still asks only the hooks that are meant. What observers want to hear of is registered, too.
"""

import asyncio
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from hookline.core.engine import Engine, HookSet, Verdict
from hookline.core.engine.coroutine_driver import UNWANTED
from hookline.core.hooks.hook import Hook
from hookline.core.wire import claude
from hookline.errors import HooksIgnored, HooksNotHonoured, extra
from hookline.events import CATALOG, Event, spec_of
from hookline.hosts.answer import answer, fails_closed, refusal
from hookline.hosts.claude_code.messages import CallbackMatcher
from hookline.replies import deny

NEVER_CALLED = ("SessionStart", "SessionEnd")
"""Events on which the CLI registers callbacks and never calls them (FACTS.md: sdk_sessionstart, sdk_sessionend).

`ClaudeClient` fires them itself, unless the CLI promises `session_hooks_supported`; `for_sdk` warns.
"""
MARGIN = 5.0  # seconds the CLI waits beyond the engine's own limits, so that it is the engine that answers


class Registration(Struct, frozen=True):
    """What to register for a set of hooks: the entries of `initialize`, and each callback's event."""

    hooks: dict[str, list[CallbackMatcher]] = {}
    events: dict[str, type[Event]] = {}
    must_block: tuple[str, ...] = ()  # names of the hooks that say on_failure="block" themselves
    missed: tuple[str, ...] = ()  # events no host is told of, with hooks that do not say on_failure="continue"


def plan(hook_set: HookSet | None) -> Registration:
    """The callbacks for the hooks there are now: `hook_0`, `hook_1`, … one for each event."""
    if hook_set is None:
        return Registration()
    engine = hook_set.engine
    wanted = engine.observers.wanted
    by_event: dict[type[Event], list[Hook]] = {CATALOG[name].cls: [] for name in CATALOG if name in wanted}
    for hook in hook_set.hooks:
        for event in hook.events:
            by_event.setdefault(event, []).append(hook)
    entries: dict[str, list[CallbackMatcher]] = {}
    events: dict[str, type[Event]] = {}
    for number, (event, hooks) in enumerate(by_event.items()):
        callback_id = f"hook_{number}"
        events[callback_id] = event
        entries[event.event_name] = [
            CallbackMatcher(
                matcher=None if event.event_name in wanted else union(event, hooks),
                callback_ids=[callback_id],
                timeout=limit(engine, event, hooks),
                on_failure="block" if any(hook.fails_closed(event) for hook in hooks) else None,
            )
        ]
    must_block = tuple(hook.name for hook in hook_set.hooks if hook.on_failure == "block")
    never_called = ((event.event_name, hooks) for event, hooks in by_event.items() if event.event_name in NEVER_CALLED)
    missed = tuple(name for name, hooks in never_called if any(hook.on_failure != "continue" for hook in hooks))
    return Registration(entries, events, must_block, missed)


def limit(engine: Engine, event: type[Event], hooks: Iterable[Hook]) -> float:
    """Seconds after which the CLI may give up on us: more than the engine can take with all of these hooks."""
    limits = [hook.limit(engine.timeout) + engine.grace for hook in hooks if not hook.background]
    once = sum(limits) if engine.order.startswith("sequential") else max(limits, default=0.0)
    rounds = 2 if "input" in spec_of(event).fields else 1  # a rewritten input is judged again
    return once * rounds + MARGIN


def union(event: type[Event], hooks: Iterable[Hook]) -> str | None:
    """The names that the hooks mean, for the CLI; `None` is everything, where one of them is not by names alone."""
    names: list[str] = []
    for hook in hooks:
        exact = getattr(hook.matcher.test, "__self__", None)
        if event.subject_field is None or not isinstance(exact, frozenset):
            return None  # the CLI may read a pattern differently
        names += sorted(exact)
    return "|".join(dict.fromkeys(names))


def unsupported_features(planned: Registration, response: Mapping[str, Any]) -> list[str]:
    """What a CLI that answered `initialize` like this will not do, to be told to the user.

    Raises `HooksNotHonoured` when a hook says on_failure="block" and the CLI would let its failure pass.
    """
    if not planned.hooks:
        return []
    version = response.get("claude_code_version", "unknown")
    applied = response.get("hooks_applied") is True
    if planned.must_block and not (applied and response.get("hook_on_failure_supported") is True):
        names = ", ".join(f"`{name}`" for name in planned.must_block)
        raise HooksNotHonoured(
            f'the CLI (version {version}) does not honour on_failure="block", which {names} asks for; '
            "run `claude update`, or leave on_failure out"
        )
    if not applied:
        only = "it will not call them, and only lines of type `hook_event` are answered"
        return [f"the CLI (version {version}) did not register the hooks: {only}; run `claude update`"]
    return []


# -- inside programs that use the official Python SDK, with one line: `ClaudeAgentOptions(hooks=for_sdk(hooks))` ------


def for_sdk(hooks: HookSet) -> dict[Any, list[Any]]:
    """What `ClaudeAgentOptions(hooks=…)` takes: one `HookMatcher` for each event the hooks there are now listen to.

    Hooks on events that the CLI never sends to the SDK are warned about.
    """
    with extra("for_sdk()", "claude"):
        from claude_agent_sdk import HookMatcher
    planned = plan(hooks)
    for name in planned.missed:
        problem = f"the Claude CLI never calls the SDK's hooks on {name}; put that hook in a settings file"
        warnings.warn(f"{problem}, or use `ClaudeClient`", HooksIgnored, stacklevel=3)
    return {
        name: [
            HookMatcher(
                matcher=entry.matcher,
                hooks=[_SdkCallback(hooks, planned.events[entry.callback_ids[0]])],
                timeout=entry.timeout,
                on_failure=entry.on_failure,  # type: ignore[arg-type]
            )
        ]
        for name, (entry,) in planned.hooks.items()
    }


class _SdkCallback(Struct, frozen=True):
    """What the SDK calls for one event, with dictionaries in and out; a gate that crashes denies, the rest raises."""

    hooks: HookSet
    kind: type[Event]

    async def __call__(self, payload: Any, tool_use_id: str | None, context: Any) -> Any:
        return await answer(self, payload, self)

    async def fire(self, event: Event) -> Verdict:
        """The hooks' verdict; they are told when the SDK cancels its callback: their answer is no longer wanted."""
        task = asyncio.ensure_future(self.hooks.fire(event))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel(UNWANTED)
            await asyncio.wait([task])
            raise

    decode = staticmethod(claude.decode_event)
    encode = staticmethod(claude.reply_object)

    def refuse(self, problem: BaseException, payload: Any, event: Event | None) -> dict[str, Any]:
        if not fails_closed(self.kind):
            raise problem
        return claude.reply_object(deny(refusal(problem, self.kind)), self.kind.event_name)
