"""The engine in one process: events through Python hooks, beside a bare await and the peers' own dispatch.

Every candidate does the same work: an async hook that looks at nothing and answers (pluggy's are plain functions, it
has no async). Hookline and pydantic-ai run with a timeout on every hook, the others have none. Each is one call of an
async function that awaits it, as an agent's step would; that is how DESIGN's figures for the peers come out (ADK 4.6,
pluggy 7, pydantic-ai 75). The note of a row says what is left of the ratio when that call is taken out as well.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import Batch, Candidate, Measured, Row, Unavailable, at_least, at_most, interleave
from hookline import Hooks, deny
from hookline.events import PreToolUse

TOOL, OTHER = "Bash", "Write"
EVENT = PreToolUse(tool_name=TOOL, tool_input={"command": "ls"}, tool_use_id="t1", cwd="/work")
DENY = deny("no")
MAPPING = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
    }
}
ROUNDS = 41


def rows() -> Iterator[Row]:
    bare = "× a bare await"
    yield Row("core.none", "one hook `(event, ctx)` that answers None", at_most(4, bare), none)
    yield Row("core.none_event", "the same, a hook that takes `(event)` only", at_most(4, bare), none_event)
    yield Row("core.none_await", "the same, with an await in it that is not reached", at_most(4, bare), none_await)
    yield Row("core.reply", "one hook that answers a Reply", at_most(6, bare), reply)
    yield Row("core.mapping", "one hook that answers a dict, validated", at_most(10, bare), mapping)
    yield Row("core.ten", "ten hooks, five matching, all None", at_most(4, "× five bare awaits"), ten)
    yield Row("core.suspend", "one hook that suspends once", at_least(2, "× as fast as pydantic-ai"), suspend)
    yield Row("core.memory", "memory per registered hook", at_most(250, "B over the function"), memory)


# -- one hook ------------------------------------------------------------------------------------------------------


async def none() -> Measured:
    async def hook(event: Any, ctx: Any) -> None:
        return None

    return await _beside(hook, _peers(1, 0))


async def none_event() -> Measured:
    async def hook(event: Any) -> None:
        return None

    async def bare() -> None:
        await hook(EVENT)

    async def bare_loop(count: int) -> None:
        for _ in range(count):
            await hook(EVENT)

    return await _measured(_set_of(hook), bare, bare_loop, {})


async def none_await() -> Measured:
    async def hook(event: Any, ctx: Any) -> None:
        if event is None:
            await asyncio.sleep(0)

    return await _beside(hook, {})


async def reply() -> Measured:
    async def hook(event: Any, ctx: Any) -> Any:
        return DENY

    return await _beside(hook, {})


async def mapping() -> Measured:
    async def hook(event: Any, ctx: Any) -> Any:
        return MAPPING

    return await _beside(hook, {})


async def _beside(hook: Callable[..., Any], peers: dict[str, Any]) -> Measured:
    async def bare() -> None:
        await hook(EVENT, None)

    async def bare_loop(count: int) -> None:
        for _ in range(count):
            await hook(EVENT, None)

    return await _measured(_set_of(hook), bare, bare_loop, peers)


def _set_of(hook: Callable[..., Any]) -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse, timeout=5)(hook)
    return hooks


def _firing(hooks: Hooks) -> Candidate:
    async def run() -> None:
        await hooks.fire(EVENT)

    return run


def _firing_in_a_loop(hooks: Hooks) -> Batch:
    async def run(count: int) -> None:
        for _ in range(count):
            await hooks.fire(EVENT)

    return Batch(run)


# -- ten hooks, and hooks that wait --------------------------------------------------------------------------------


async def ten() -> Measured:
    async def hook(event: Any, ctx: Any) -> None:
        return None

    async def five() -> None:
        await hook(EVENT, None)
        await hook(EVENT, None)
        await hook(EVENT, None)
        await hook(EVENT, None)
        await hook(EVENT, None)

    async def five_in_a_loop(count: int) -> None:
        for _ in range(count):
            await hook(EVENT, None)
            await hook(EVENT, None)
            await hook(EVENT, None)
            await hook(EVENT, None)
            await hook(EVENT, None)

    hooks = Hooks()
    for number in range(5):
        for tool in (TOOL, OTHER):
            hooks.on(PreToolUse, match=tool, timeout=5, name=f"{tool}{number}")(hook)
    return await _measured(hooks, five, five_in_a_loop, _peers(5, 5))


async def suspend() -> Measured:
    async def hook(event: Any, ctx: Any) -> None:
        await asyncio.sleep(0)

    async def bare() -> None:
        await hook(EVENT, None)

    async def theirs(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return kwargs["args"]

    hooks = _set_of(hook)
    try:
        peer = pydantic_ai(1, 0, theirs)
    except ImportError as problem:
        raise Unavailable(f"pydantic-ai is not installed ({problem.name})") from None
    times = await interleave({"bare": bare, "ours": _firing(hooks), "theirs": peer}, rounds=ROUNDS)
    ours, peers = times.ratio("ours", "bare"), times.ratio("theirs", "bare")
    note = f"over a bare await: ours {ours:.1f} ×, pydantic-ai {peers:.1f} ×"
    return Measured(times.ratio("theirs", "ours"), note=note)


async def _measured(hooks: Hooks, bare: Candidate, bare_loop: Any, peers: dict[str, Any]) -> Measured:
    """Ours over bare, and each peer over bare; a peer that is not installed says so."""
    missing = {name: str(peer) for name, peer in peers.items() if isinstance(peer, Unavailable)}
    running = {name: peer for name, peer in peers.items() if name not in missing}
    inlined = {"bare loop": Batch(bare_loop), "our loop": _firing_in_a_loop(hooks)}
    times = await interleave({"bare": bare, "ours": _firing(hooks), **inlined, **running}, rounds=ROUNDS)
    ratios: dict[str, float | str] = {name: times.ratio(name, "bare") for name in running}
    uncalled = f"{times.ratio('our loop', 'bare loop'):.2f} × without the call"
    note = f"{times.seconds('ours') * 1e9:.0f} ns, {uncalled}"
    return Measured(times.ratio("ours", "bare"), {**ratios, **missing}, note=note)


# -- the peers -----------------------------------------------------------------------------------------------------


def _peers(matching: int, others: int) -> dict[str, Any]:
    """Each peer's dispatch of one tool call to so many hooks."""
    makers = {"ADK": adk, "pluggy (sync)": pluggy, "Strands": strands, "pydantic-ai": pydantic_ai}
    found: dict[str, Any] = {}
    for name, make in makers.items():
        try:
            found[name] = make(matching, others)
        except ImportError as problem:
            found[name] = Unavailable(f"not installed ({problem.name})")
    return found


def adk(matching: int, others: int) -> Candidate:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.plugins.plugin_manager import PluginManager

    class Matching(BasePlugin):  # type: ignore[misc]
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            return None

    class Other(BasePlugin):  # type: ignore[misc]
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            if tool == OTHER:
                raise AssertionError

    plugins = [Matching(name=f"m{n}") for n in range(matching)] + [Other(name=f"o{n}") for n in range(others)]
    manager = PluginManager(plugins=plugins)

    async def run() -> None:
        await manager.run_before_tool_callback(tool=TOOL, tool_args=EVENT.tool_input, tool_context=None)

    return run


def pluggy(matching: int, others: int) -> Candidate:
    import pluggy as library

    spec, implementation = library.HookspecMarker("bench"), library.HookimplMarker("bench")

    class Spec:
        @spec
        def before_tool(self, tool: Any, args: Any) -> None: ...

    class Matching:
        @implementation
        def before_tool(self, tool: Any, args: Any) -> None:
            return None

    class Other:
        @implementation
        def before_tool(self, tool: Any, args: Any) -> None:
            if tool == OTHER:
                raise AssertionError

    manager = library.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for plugin in [Matching() for _ in range(matching)] + [Other() for _ in range(others)]:
        manager.register(plugin)

    async def run() -> None:
        manager.hook.before_tool(tool=TOOL, args=EVENT.tool_input)

    return run


def strands(matching: int, others: int) -> Candidate:
    from strands.hooks import BeforeToolCallEvent, HookRegistry

    async def hook(event: Any) -> None:
        return None

    async def other(event: Any) -> None:
        if event.tool_use["name"] == OTHER:
            raise AssertionError

    registry = HookRegistry()
    for call in [hook] * matching + [other] * others:
        registry.add_callback(BeforeToolCallEvent, call)
    use: Any = {"name": TOOL, "input": EVENT.tool_input, "toolUseId": "t1"}
    event = BeforeToolCallEvent(agent=None, selected_tool=None, tool_use=use, invocation_state={})

    async def run() -> None:
        await registry.invoke_callbacks_async(event)

    return run


def pydantic_ai(matching: int, others: int, hook: Callable[..., Any] | None = None) -> Candidate:
    from pydantic_ai.capabilities.hooks import Hooks as Theirs
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition

    async def nothing(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args

    theirs = Theirs()
    for tool in [TOOL] * matching + [OTHER] * others:
        theirs.on.before_tool_execute(tools=[tool], timeout=5.0)(hook or nothing)
    call, definition = ToolCallPart(tool_name=TOOL, args={}), ToolDefinition(name=TOOL)

    async def run() -> None:
        await theirs.before_tool_execute(None, call=call, tool_def=definition, args=EVENT.tool_input)

    return run


# -- memory --------------------------------------------------------------------------------------------------------


async def memory() -> Measured:
    """What a set of 5,000 hooks holds after its first event, the functions themselves not counted."""
    count = 5000
    calls = [_function(f"hook_{number}") for number in range(count)]
    gc.collect()
    tracemalloc.start()
    try:
        hooks = Hooks()
        before = tracemalloc.get_traced_memory()[0]
        for call in calls:
            hooks.on(PreToolUse, match=OTHER, timeout=5)(call)
        await hooks.fire(EVENT)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return Measured(held / count, note=f"{count:,} hooks")


def _function(name: str) -> Callable[[Any], Any]:
    async def hook(event: Any) -> None:
        return None

    hook.__name__ = name
    return hook
