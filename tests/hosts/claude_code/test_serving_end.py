"""The CLI's end: what the host says arrives in order, what we ask is answered once, taken back, or never."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline.errors import HostGone, RequestRefused
from hookline.hosts.claude_code.channels import CliChannel
from hookline.hosts.claude_code.messages import CanUseTool, ControlRequest, UserMessage


class Wire:
    """What the server wrote, line by line."""

    def __init__(self) -> None:
        self.data = b""

    def __call__(self, data: bytes) -> None:
        self.data += data

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.splitlines()]


def _line(**message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


QUESTION = CanUseTool(tool_name="Bash", input={"command": "ls"})


async def test_what_the_host_says_arrives_in_order_and_ends_with_none() -> None:
    """Requests and prompts are handed out as they came, then None for good."""
    server = CliChannel(Wire())
    server.received(_line(type="control_request", request_id="r", request={"subtype": "initialize"}))
    server.received(_line(type="user", message={"role": "user", "content": "go"}))
    server.ended()

    first, second = await server.next(), await server.next()
    assert isinstance(first, ControlRequest)
    assert isinstance(second, UserMessage)
    assert await server.next() is None


async def test_a_question_is_answered_by_the_response_of_its_id() -> None:
    """The answer comes back decoded."""
    wire = Wire()
    server = CliChannel(wire)
    asked = asyncio.create_task(server.ask(QUESTION))
    await asyncio.sleep(0)
    (sent,) = wire.lines
    answer = {"subtype": "success", "request_id": sent["request_id"], "response": {"behavior": "allow"}}
    server.received(_line(type="control_response", response=answer))

    assert await asked == {"behavior": "allow"}


async def test_an_error_response_is_raised() -> None:
    """The host could not do what it was asked."""
    wire = Wire()
    server = CliChannel(wire)
    asked = asyncio.create_task(server.ask(QUESTION))
    await asyncio.sleep(0)
    answer = {"subtype": "error", "request_id": wire.lines[0]["request_id"], "error": "broke"}
    server.received(_line(type="control_response", response=answer))

    with pytest.raises(RequestRefused, match="broke"):
        await asked


async def test_a_question_nobody_waits_for_is_taken_back() -> None:
    """Cancelling sends control_cancel_request; the late answer is nobody's."""
    wire = Wire()
    server = CliChannel(wire)
    asked = asyncio.create_task(server.ask(QUESTION))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    request_id = wire.lines[0]["request_id"]
    answer = {"subtype": "success", "request_id": request_id, "response": {}}
    server.received(_line(type="control_response", response=answer))

    assert wire.lines[1] == {"type": "control_cancel_request", "request_id": request_id}


async def test_a_host_that_is_gone_answers_nothing() -> None:
    """Open questions fail at once, and so do new ones."""
    server = CliChannel(Wire())
    asked = asyncio.create_task(server.ask(QUESTION))
    await asyncio.sleep(0)
    server.ended()

    with pytest.raises(HostGone):
        await asked
    with pytest.raises(HostGone):
        await server.ask(QUESTION)


async def test_a_request_nobody_serves_is_refused() -> None:
    """The host is told, not left waiting."""
    wire = Wire()
    server = CliChannel(wire)
    server.received(_line(type="control_request", request_id="r", request={"subtype": "no_such_thing"}))

    (refusal,) = wire.lines
    assert refusal["response"]["error_code"] == "unsupported_request"
