"""The four ways in which a story of seeds/004 is played, and what is seen of each.

`agent`: hooks on `Agent(hooks=…)`. `run`: `hookline run` with a settings file or a hooks file. `client`: `ClaudeClient`
with the real Claude CLI. `sdk`: the official Python SDK with `for_sdk`, and the same CLI. The model is always scripted.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from hookline import Hooks, Verdict
from hookline.agent import Agent
from hookline.agent.messages import ToolOutput, User
from hookline.agent.models.scripted import Scripted
from hookline.core.engine import Notice
from hookline.events.kinds import ToolEvent
from hookline.guards.permissions import read_rules
from hookline.hosts.claude_code import ClaudeClient, for_sdk
from hookline.hosts.claude_code.process import bundled_cli
from tests import forked
from tests.environ import clean_environ
from tests.hosts.claude_code.hosts import Stage, stage_for

BIN = Path(sys.executable).parent
WAYS = ("agent", "run", "client", "sdk")
SECONDS = 120

Turn = dict[str, Any]


class Told(msgspec.Struct, frozen=True):
    """A tool result as the model reads it."""

    is_error: bool
    text: str


class Decided(msgspec.Struct, frozen=True):
    """What hooks made of one event about a tool."""

    event: str
    tool: str
    about: str
    decision: str
    reason: str


class Played(msgspec.Struct):
    """What was seen of a story."""

    folder: Path
    decided: list[Decided] = []
    told: list[Told] = []
    results: list[str] = []

    def decision(self, event: str, tool: str, about: str) -> Decided:
        """The one verdict on an event about this call."""
        (found,) = [one for one in self.decided if (one.event, one.tool, one.about) == (event, tool, about)]
        return found


class Story(msgspec.Struct, kw_only=True):
    """What is played: the model's turns, the hooks in Python, and the same in files."""

    turns: list[Turn]
    hooks: Callable[[Path], Hooks]
    allowed: tuple[str, ...] = ()
    permissions: dict[str, list[str]] = {}
    #: hooks of a settings file: for `run`, and for what the Claude CLI tells no host
    settings: Callable[[Path], dict[str, Any]] = lambda folder: {}
    session_settings: Callable[[Path], dict[str, Any]] = lambda folder: {}
    #: further flags for `run`
    flags: Callable[[Path], list[str]] = lambda folder: []


def command(*words: str, **more: Any) -> dict[str, Any]:
    """A command hook that calls `hookline`."""
    return {"type": "command", "command": " ".join((f'"{BIN / "hookline"}"', *words)), "timeout": 60, **more}


def play(way: str, story: Story, folder: Path) -> Played:
    """Play a story once; a story that hangs fails."""
    played = Played(folder)
    (folder / "project").mkdir()
    asyncio.run(asyncio.wait_for(PLAY[way](story, played), SECONDS))
    return played


# -- our agent -----------------------------------------------------------------------------------------------------


async def by_agent(story: Story, played: Played) -> None:
    model = Scripted.of(*story.turns)
    hooks = _watched(story, played)
    rules = read_rules(story.permissions, allowed=story.allowed)
    project = played.folder / "project"
    environ = _environ(played.folder)
    async with Agent(model=model, hooks=hooks, cwd=project, rules=rules, environ=environ) as agent:
        result = await agent.run("go")
    await hooks.aclose()
    played.results.append(result.subtype)
    blocks = [block for one in model.requests[-1].messages if isinstance(one, User) for block in one.content]
    played.told += [Told(one.is_error, _text(one.content)) for one in blocks if isinstance(one, ToolOutput)]


async def by_command_line(story: Story, played: Played) -> None:
    folder = played.folder
    (folder / "turns.json").write_text(json.dumps(story.turns))
    hooks = {**story.settings(folder), **story.session_settings(folder)}
    (folder / "settings.json").write_text(json.dumps({"hooks": hooks, "permissions": story.permissions}))
    words = ["--output-format", "stream-json", "--verbose", "--include-hook-events", *story.flags(folder)]
    words += ["--allowedTools", *story.allowed] if story.allowed else []
    start = ["run", "-p", "go", "--trust", "--model", f"scripted:{folder / 'turns.json'}"]
    start += ["--settings", str(folder / "settings.json"), *words]
    done = await asyncio.to_thread(forked.run, start, cwd=folder / "project", env=_environ(folder))
    assert done.returncode == 0, done.stderr.decode()
    _read_stream([json.loads(line) for line in done.stdout.splitlines()], played)


def _read_stream(said: list[dict[str, Any]], played: Played) -> None:
    """What a stream of messages says: results, and what command hooks printed about which call."""
    calls: list[dict[str, Any]] = []
    for note in said:
        content = note["message"]["content"] if note["type"] in ("assistant", "user") else []
        calls += [block for block in content if block["type"] == "tool_use"]
        if note["type"] == "user":
            played.told += [Told(bool(b.get("is_error")), _text(b["content"])) for b in content if "tool_use_id" in b]
        elif note["type"] == "result":
            played.results.append(note["subtype"])
        elif note.get("subtype") == "hook_response" and calls:
            played.decided.append(_printed(note, calls[-1]))


def _printed(note: dict[str, Any], call: dict[str, Any]) -> Decided:
    answer = json.loads(note["stdout"] or "{}")
    more = answer.get("hookSpecificOutput", {})
    asked = more.get("decision", {})
    decision = more.get("permissionDecision") or asked.get("behavior") or "pass"
    reason = more.get("permissionDecisionReason") or asked.get("message") or ""
    return Decided(note["hook_event"], call["name"], _about(call["input"]), decision, reason)


# -- the Claude CLI ------------------------------------------------------------------------------------------------


async def by_client(story: Story, played: Played) -> None:
    with _Real(story, played) as real:
        hooks = _watched(story, played)
        client = ClaudeClient(
            hooks=hooks, cli=real.stage.cli, cwd=real.stage.cwd, env=real.stage.env,
            allowed_tools=list(story.allowed), settings=json.dumps(real.settings),
        )  # fmt: skip
        async with client:
            await client.send("go")
            client.end_input()  # it ends by itself: SessionEnd hooks have the time they need, not a few seconds
            async for message in client.messages():
                if message.type == "result":
                    played.results.append(str(message.data["subtype"]))
        await hooks.aclose()


async def by_sdk(story: Story, played: Played) -> None:
    sdk = pytest.importorskip("claude_agent_sdk", reason="needs `hookline[claude]`, as `make test-all` has")

    with _Real(story, played) as real:
        hooks = _watched(story, played)
        options = sdk.ClaudeAgentOptions(
            hooks=for_sdk(hooks), cli_path=real.stage.cli, cwd=real.stage.cwd, env=real.stage.env,
            allowed_tools=list(story.allowed), settings=json.dumps(real.settings),
        )  # fmt: skip
        async for message in sdk.query(prompt="go", options=options):  # until the CLI has ended by itself, as above
            if isinstance(message, sdk.ResultMessage):
                played.results.append(message.subtype)
        await hooks.aclose()


class _Real:
    """The real CLI's surroundings: a scripted API, a home and a project of its own."""

    def __init__(self, story: Story, played: Played) -> None:
        found = bundled_cli()
        if found is None:
            pytest.skip("needs `hookline[claude]`, as `make test-all` has")
        self._played = played
        self._api = importlib.import_module("tests.contract.api").Api(story.turns)
        (played.folder / "project").rmdir()
        stage = stage_for(str(found), played.folder, self._api)
        env = {**stage.env, "PATH": _environ(played.folder)["PATH"], "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "60000"}
        self.stage = Stage(stage.cli, stage.cwd, env)
        self.settings = {"hooks": story.session_settings(played.folder), "permissions": story.permissions}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()
        asked = [one["request"] for one in self._api.requests if one["lane"] == "main"]
        messages = asked[-1]["messages"] if asked else []
        blocks = [block for one in messages if isinstance(one["content"], list) for block in one["content"]]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        self._played.told += [Told(bool(one.get("is_error")), _text(one["content"])) for one in results]


PLAY = {"agent": by_agent, "run": by_command_line, "client": by_client, "sdk": by_sdk}


# -- what all of them share ----------------------------------------------------------------------------------------


def _environ(folder: Path) -> dict[str, str]:
    """A home of its own; programs in `bin` of the story's folder come first."""
    path = os.pathsep.join((str(folder / "bin"), "/usr/bin", "/bin"))
    return clean_environ(folder / "home", PATH=path, USER=os.environ.get("USER", "ada"))


def _watched(story: Story, played: Played) -> Hooks:
    """The story's hooks, with an observer that notes what they decide about calls."""
    hooks = story.hooks(played.folder)

    def note(notice: Notice) -> None:
        if isinstance(notice, Verdict) and isinstance(notice.event, ToolEvent):
            event = notice.event
            about = _about(event.tool_input)
            made = Decided(event.event_name, event.tool_name, about, str(notice.decision), notice.reason or "")
            played.decided.append(made)

    hooks.observe(note, inline=True)
    return hooks


def _about(given: dict[str, Any]) -> str:
    return str(given.get("file_path") or given.get("command") or "")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(block.get("text", "")) for block in content)
