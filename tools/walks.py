"""The four walks of docs/explanation/architecture.md, traced: which modules an event passes, in how many calls.

    python -m tools.walks [--json]

Each walk fires one `PreToolUse` of `Bash` that one hook denies. It is walked once before it is traced, so that imports
and caches are behind it; then every Python call inside `hookline` is counted, in every thread.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import hookline
from hookline import Hooks, deny
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.events import PreToolUse
from hookline.settings import watcher

SRC = Path(hookline.__file__).parent
BASH = {"command": "rm -rf build"}
Walk = Callable[[], Awaitable[object]]


class Trace:
    """The modules that were entered, in order, and the number of calls into them."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and (module := module_of(frame.f_code.co_filename)) is not None:
            self.calls += 1
            if module not in self.modules:
                self.modules.append(module)

    async def of(self, walk: Walk) -> None:
        """Walk, and note the way."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            await walk()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def module_of(filename: str) -> str | None:
    """`engine.merge` for a file of the package, None for any other."""
    try:
        parts = Path(filename).relative_to(SRC).with_suffix("").parts
    except ValueError:
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "hookline"


def guarded() -> Hooks:
    """A set with one hook, which denies."""
    hooks = Hooks()

    @hooks.on(PreToolUse, match="Bash")
    def keep(event: PreToolUse) -> Any:
        return deny("keep it")

    return hooks


def event() -> PreToolUse:
    """What is about to happen."""
    return PreToolUse(tool_name="Bash", tool_input=BASH)


def python_hook(folder: Path) -> Walk:
    """1. A Python hook: a function in the same process."""
    hooks = guarded()
    return lambda: hooks.fire(event())


def settings_command(folder: Path) -> Walk:
    """2. A settings command: a program that a settings file names."""
    row = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [row]}}))
    watcher._FRESH = 0  # noqa: SLF001 - what was just written is read again with every event; this file is older
    hooks = Hooks.from_settings(folder, home=folder / "home", trust="all")
    return lambda: hooks.fire(event())


def own_agent(folder: Path) -> Walk:
    """3. Our agent: a whole session on a scripted model, with one tool call."""
    turns = ({"tools": [["Bash", BASH]]}, "done")

    async def walk() -> None:
        async with Agent(model=Scripted.of(*turns), hooks=guarded(), cwd=folder, persist=False) as agent:
            await agent.run("clean up")

    return walk


def sdk_run(folder: Path) -> Walk:
    """4. An SDK-driven run: the callback that the official SDK calls for an event of the Claude CLI."""
    [matcher] = guarded().for_sdk()["PreToolUse"]
    [callback] = matcher.hooks
    payload = {"hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": str(folder),
               "tool_name": "Bash", "tool_input": BASH, "tool_use_id": "t"}  # fmt: skip
    return lambda: callback(payload, "t", {"signal": None})


WALKS = (python_hook, settings_command, own_agent, sdk_run)


async def traced(make: Callable[[Path], Walk]) -> Trace:
    """One walk after another that warms up."""
    with tempfile.TemporaryDirectory() as folder:
        walk, trace = make(Path(folder)), Trace()
        await walk()
        await trace.of(walk)
        return trace


def main(argv: list[str] | None = None) -> int:
    """Print each walk, its figures and its modules in the order they are entered."""
    flags = argparse.ArgumentParser(prog="python -m tools.walks", description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--json", action="store_true", help="print JSON")
    as_json = flags.parse_args(argv).json
    found = {make.__name__: asyncio.run(traced(make)) for make in WALKS}
    if as_json:
        print(json.dumps({name: {"calls": trace.calls, "modules": trace.modules} for name, trace in found.items()}))
        return 0
    for make in WALKS:
        trace = found[make.__name__]
        print(f"{(make.__doc__ or '').strip()}\n   {len(trace.modules)} modules, {trace.calls} calls")
        print("".join(f"   {number:3} {module}\n" for number, module in enumerate(trace.modules, 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
