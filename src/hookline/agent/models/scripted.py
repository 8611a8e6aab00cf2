"""A model that says what it was told to say: for demos, tests and reproducing what a real model did.

A script is a list of turns, or an object `{"turns": […], "lanes": {name: {"first": regex, "turns": […]}}}`. A turn is
`{"text", "tools": [[name, input], …], "status", "error", "delay", "usage", "stop_reason", "blocks"}`, every key
optional. A lane answers the requests whose `system`, `first` or `last` user text its regular expressions find
(subagents, prompt hooks). Past its end a script repeats its last turn, unless that turn calls tools: an endless loop
is of no use.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hookline.agent.messages import Assistant, Block, Text, ToolUse, User, decode_block, decode_usage
from hookline.agent.models.base import ModelRequest, OnEvent, api_error
from hookline.agent.models.stream import answer_events
from hookline.errors import ModelError

DEFAULT_USAGE = {"input_tokens": 10, "output_tokens": 5}


class Turn(Struct, frozen=True, forbid_unknown_fields=True):
    """One scripted answer."""

    text: str | None = None
    tools: list[tuple[str, Any]] = []
    status: int = 200
    error: dict[str, Any] | None = None
    delay: float = 0
    usage: dict[str, int] = {}
    stop_reason: str | None = None
    blocks: list[dict[str, Any]] = []


class Lane(Struct, forbid_unknown_fields=True):
    """Turns for the requests whose texts its expressions find."""

    turns: list[Turn]
    system: str | None = None
    first: str | None = None
    last: str | None = None


class ModelScript(Struct, forbid_unknown_fields=True):
    """A script file."""

    turns: list[Turn] = []
    lanes: dict[str, Lane] = {}


@dataclass
class Scripted:
    """Answers turn by turn; `requests` remembers what it was asked."""

    script: ModelScript
    name: str = "scripted"
    requests: list[ModelRequest] = field(default_factory=list)
    _at: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, *turns: Mapping[str, Any] | str, lanes: Mapping[str, Any] | None = None) -> "Scripted":
        """A model from turns written in Python; a string is a turn of text."""
        rows = [{"text": turn} if isinstance(turn, str) else dict(turn) for turn in turns]
        return cls(read({"turns": rows, "lanes": dict(lanes or {})}, "script"))

    @classmethod
    def load(cls, path: str | Path) -> "Scripted":
        """A model from a JSON file."""
        try:
            return cls(read(msgspec.json.decode(Path(path).read_bytes()), str(path)))
        except OSError as problem:
            raise ModelError(f"cannot read script `{path}`: {problem.strerror}", "invalid_request") from problem
        except msgspec.DecodeError as problem:
            raise ModelError(f"script `{path}` is not valid: {problem}", "invalid_request") from problem

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> Assistant:
        self.requests.append(request)
        serial = len(self.requests)
        turn = self._next(request)
        if turn.delay:
            await asyncio.sleep(turn.delay)
        if turn.status != 200:
            raise api_error(turn.status, turn.error or {"error": {"message": "scripted"}}, model=self.name)
        message = answer(turn, serial, request.model or self.name)
        if on_event:
            for event in answer_events(message):
                on_event(event)
        return message

    def _next(self, request: ModelRequest) -> Turn:
        lanes = {**self.script.lanes, "": Lane(self.script.turns)}
        lane = next(name for name, lane in lanes.items() if claims(lane, request))
        if not lane and request.output_schema is not None:
            return Turn(text="{}")  # a side question the script foresaw no lane for must not use up the main turns
        turns, at = lanes[lane].turns, self._at.get(lane, 0)
        self._at[lane] = at + 1
        if not turns:
            return Turn(text="done")
        if at >= len(turns) and turns[-1].tools:
            where = f"lane `{lane}`" if lane else "the script"
            what = f"{where} ends after {len(turns)} turns with a tool call; add a turn that answers it"
            raise ModelError(what, "invalid_request")
        return turns[min(at, len(turns) - 1)]


def read(script: Any, where: str) -> ModelScript:
    """A script from decoded JSON: a list of turns, or an object with turns and lanes."""
    whole = {"turns": script} if isinstance(script, list) else script
    try:
        return msgspec.convert(whole, ModelScript)
    except msgspec.ValidationError as problem:
        what = f"{where}: {problem}; see the turns of `hookline.agent.models.scripted`"
        raise ModelError(what, "invalid_request") from problem


def claims(lane: Lane, request: ModelRequest) -> bool:
    """Whether each of the lane's expressions finds its text in the request."""
    users = [message.text for message in request.messages if isinstance(message, User)]
    first, last = (users[0], users[-1]) if users else ("", "")
    texts = {"system": "\n".join(request.system), "first": first, "last": last}
    wanted = {part: pattern for part in texts if (pattern := getattr(lane, part)) is not None}
    return all(re.search(pattern, texts[part], re.DOTALL) for part, pattern in wanted.items())


def answer(turn: Turn, serial: int, model: str) -> Assistant:
    """The turn as an answer of the model."""
    blocks: list[Block] = [decode_block(block) for block in turn.blocks]
    blocks += [] if turn.text is None else [Text(turn.text)]
    for number, (name, given) in enumerate(turn.tools):
        use = {"type": "tool_use", "id": f"toolu_{serial}_{number}", "name": name, "input": given}
        blocks.append(decode_block(use))
    calls = any(isinstance(block, ToolUse) for block in blocks)
    stop = turn.stop_reason or ("tool_use" if calls else "end_turn")
    return Assistant(tuple(blocks), f"msg_{serial}", model, stop, decode_usage({**DEFAULT_USAGE, **turn.usage}))
