"""The control protocol without I/O, both roles."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from hookline.errors import (
    BadLine,
    NotInitialized,
    ProtocolError,
    RequestClosed,
    RequestIdReused,
    StrayResponse,
    UnknownCallback,
)
from hookline.hosts.claude_code.messages import (
    CallbackMatcher,
    CanUseTool,
    ControlCancel,
    ControlRequest,
    Failure,
    HookCallback,
    Initialize,
    Interrupt,
    KeepAlive,
    McpMessage,
    OtherMessage,
    OtherRequest,
    Received,
    ResultMessage,
    Sendable,
    SetModel,
    SetPermissionMode,
    Success,
    UserMessage,
    Violation,
)
from hookline.hosts.claude_code.protocol import Connection, PendingRequests, Role
from tests.hosts.claude_code.fakes import message

TRANSCRIPT = [json.loads(line) for line in (Path(__file__).parent / "transcript.jsonl").read_text().splitlines()]
TO_HOST = [json.dumps(step["msg"]).encode() + b"\n" for step in TRANSCRIPT if step["dir"] == "cli->host"]
TO_CLI = [json.dumps(step["msg"]).encode() + b"\n" for step in TRANSCRIPT if step["dir"] == "host->cli"]
CLI_ASKED = [
    step["msg"]["request_id"] for step in TRANSCRIPT if step["dir"] == "cli->host" and "request" in step["msg"]
]
HOOKS = {"PreToolUse": [CallbackMatcher(matcher="Bash", callback_ids=["hook_0"], timeout=1.5, on_failure="block")]}


def opened() -> tuple[Connection, Connection]:
    """A host and a CLI that have met."""
    host, cli = Connection("host"), Connection("cli")
    cli.receive(host.send(host.ask(Initialize(hooks=HOOKS))))
    host.receive(cli.send(Success("req_1")))
    return host, cli


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def problems(received: Sequence[Received]) -> list[ProtocolError]:
    return [one.error for one in received if isinstance(one, Violation)]


def test_initialize_registers_the_callbacks_on_both_ends() -> None:
    """After `initialize` both ends know each callback's event."""
    host, cli = opened()

    expected = {"hook_0": "PreToolUse"}
    assert (host.callbacks, cli.callbacks, host.initialized, cli.initialized) == (expected, expected, True, True)


def test_a_second_initialize_replaces_the_callbacks() -> None:
    """What was registered before is gone (FACTS: sdk_reinit)."""
    host, cli = opened()
    later = {"Stop": [CallbackMatcher(callback_ids=["hook_9"])]}

    cli.receive(host.send(host.ask(Initialize(hooks=later))))

    assert list(cli.callbacks) == list(host.callbacks) == ["hook_9"]


REQUESTS: list[tuple[Role, Any]] = [
    ("host", Initialize(hooks=HOOKS, sdk_mcp_servers=["srv"])),
    ("host", Interrupt()),
    ("host", SetPermissionMode(mode="plan")),
    ("host", SetModel(model="m")),
    ("host", SetModel()),
    ("cli", HookCallback(callback_id="hook_0", input=Raw(b'{"a":1}'), tool_use_id="t")),
    ("cli", CanUseTool(tool_name="Bash", input={"command": "ls"}, tool_use_id="t", decision_reason="r")),
    ("cli", McpMessage(server_name="srv", message=Raw(b'{"jsonrpc":"2.0"}'))),
]


@pytest.mark.parametrize("role, request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_what_one_end_asks_the_other_receives(role: Role, request_: Any) -> None:
    """Every request survives the wire, and so does its answer."""
    host, cli = opened()
    asking, asked = (host, cli) if role == "host" else (cli, host)
    request = asking.ask(request_)

    assert asked.receive(asking.send(request)) == [request]
    assert asking.receive(asked.send(Success(request.request_id, Raw(b'{"x":1}')))) == [
        Success(request.request_id, Raw(b'{"x":1}'))
    ]


def test_a_failure_carries_its_error_and_code() -> None:
    """The one who asked sees what went wrong, in words and as a code."""
    host, cli = opened()
    request = host.ask(SetModel(model="m"))
    cli.receive(host.send(request))

    failure = Failure(request.request_id, "no", "blocked_by_hook")
    assert host.receive(cli.send(failure)) == [failure]


@pytest.mark.parametrize(
    "message_",
    [KeepAlive(), UserMessage.of("go"), message({"type": "result", "subtype": "success"})],
    ids=lambda m: type(m).__name__,
)
def test_what_is_said_passes_whole(message_: Sendable) -> None:
    """Messages of the conversation arrive as they were written."""
    host, cli = opened()

    assert cli.receive(host.send(message_)) == [message_]


def test_an_unknown_type_is_passed_on() -> None:
    """A message of a newer CLI is not lost."""
    host, _ = opened()

    [received] = host.receive(b'{"type":"rate_limit_event","left":3}\n')

    assert isinstance(received, OtherMessage)
    assert (received.type, received.data["left"]) == ("rate_limit_event", 3)


def test_an_unknown_subtype_is_refused_once() -> None:
    """The peer gets `unsupported_request` instead of silence."""
    host, cli = opened()
    request = cli.ask(OtherRequest.of("no_such_thing", {"x": 1}))

    [violation] = host.receive(cli.send(request))
    [failure] = cli.receive(host.outgoing())

    assert isinstance(violation, Violation)
    assert failure == Failure(request.request_id, "`no_such_thing` is not supported here", "unsupported_request")
    assert host.outgoing() == b""


def test_a_subtype_that_is_served_is_delivered() -> None:
    """`also` names what a server understands beyond the protocol's own."""
    cli = Connection("cli", also=["mcp_status"])

    [received] = cli.receive(line({"type": "control_request", "request_id": "1", "request": {"subtype": "mcp_status"}}))

    assert received == ControlRequest("1", OtherRequest("mcp_status", Raw(b'{"subtype": "mcp_status"}')))


def test_an_unknown_callback_is_refused() -> None:
    """A callback nobody registered is answered with `unknown_callback`."""
    host, _ = opened()
    asked = {"subtype": "hook_callback", "callback_id": "hook_7", "input": {}}

    received = host.receive(line({"type": "control_request", "request_id": "1", "request": asked}))

    assert [type(one) for one in problems(received)] == [UnknownCallback]
    assert b'"error_code":"unknown_callback"' in host.outgoing()


def test_a_cli_does_not_call_what_was_not_registered() -> None:
    """The mistake shows at the one who makes it."""
    _, cli = opened()

    with pytest.raises(UnknownCallback):
        cli.send(cli.ask(HookCallback(callback_id="hook_7", input=Raw(b"{}"))))


@pytest.mark.parametrize(
    "request_", [{"subtype": "hook_callback"}, {"subtype": "can_use_tool", "input": 3}, {}, 5, None]
)
def test_a_request_that_cannot_be_read_is_refused(request_: object) -> None:
    """The CLI is told `invalid_request`, so it does not wait for ever."""
    host, _ = opened()

    received = host.receive(line({"type": "control_request", "request_id": "1", "request": request_}))

    assert [type(one) for one in problems(received)] == [BadLine]
    assert b'"error_code":"invalid_request"' in host.outgoing()


def test_a_request_is_answered_once() -> None:
    """The second answer is an error of the one who gives it, not a second line."""
    host, cli = opened()
    request = cli.ask(HookCallback(callback_id="hook_0", input=Raw(b"{}")))
    host.receive(cli.send(request))
    host.send(Success(request.request_id))

    with pytest.raises(RequestClosed, match="answered"):
        host.send(Success(request.request_id))
    with pytest.raises(RequestClosed, match="answered"):
        host.send(Failure(request.request_id))


def test_a_cancelled_request_takes_no_answer() -> None:
    """After `control_cancel_request` a late answer is refused here and reported there."""
    host, cli = opened()
    request = cli.ask(HookCallback(callback_id="hook_0", input=Raw(b"{}")))
    host.receive(cli.send(request))

    assert host.receive(cli.send(ControlCancel(request.request_id))) == [ControlCancel(request.request_id)]
    with pytest.raises(RequestClosed, match="cancelled"):
        host.send(Success(request.request_id))
    late = cli.receive(
        line({"type": "control_response", "response": {"subtype": "success", "request_id": request.request_id}})
    )
    assert [type(one) for one in problems(late)] == [RequestClosed]


def test_a_cancellation_that_crosses_the_answer_is_harmless() -> None:
    """Both ends did right, so nobody hears of it."""
    host, cli = opened()
    request = cli.ask(HookCallback(callback_id="hook_0", input=Raw(b"{}")))
    host.receive(cli.send(request))
    answer = host.send(Success(request.request_id))
    cancel = cli.send(ControlCancel(request.request_id))

    assert host.receive(cancel) == []
    assert cli.send(ControlCancel(request.request_id)) == b""
    assert [type(one) for one in problems(cli.receive(answer))] == [RequestClosed]


def test_a_response_to_nothing_is_reported() -> None:
    """A stray response is a value, and what follows it is still delivered."""
    host, _ = opened()
    stray = line({"type": "control_response", "response": {"subtype": "success", "request_id": "nope", "response": {}}})

    first, second = host.receive(stray + b'{"type":"keep_alive"}\n')

    assert isinstance(first, Violation)
    assert isinstance(first.error, StrayResponse)
    assert second == KeepAlive()


def test_two_responses_to_one_request_count_once() -> None:
    """The first answer stands."""
    host, cli = opened()
    request = host.ask(Interrupt())
    cli.receive(host.send(request))
    answer = cli.send(Success(request.request_id))

    first, second = host.receive(answer + answer)

    assert first == Success(request.request_id)
    assert isinstance(second, Violation)
    assert isinstance(second.error, RequestClosed)


@pytest.mark.parametrize("answered", [True, False])
def test_a_reused_id_is_reported_and_not_answered(answered: bool) -> None:
    """An id stands for one request, open or closed."""
    host, cli = opened()
    request = cli.ask(HookCallback(callback_id="hook_0", input=Raw(b"{}")))
    data = cli.send(request)
    host.receive(data)
    if answered:
        host.send(Success(request.request_id))

    assert [type(one) for one in problems(host.receive(data))] == [RequestIdReused]
    assert host.outgoing() == b""


def test_a_host_opens_the_conversation_before_it_prompts() -> None:
    """A prompt before `initialize` is the host's mistake; a CLI takes it all the same, as the real one does."""
    host, cli = Connection("host"), Connection("cli")
    prompt = UserMessage.of("go")

    with pytest.raises(NotInitialized):
        host.send(prompt)
    assert cli.receive(prompt.line + b"\n") == [prompt]
    assert not cli.initialized


def test_half_a_line_at_the_end_is_a_violation() -> None:
    """A peer that dies in the middle of a line is told from one that finished."""
    host, _ = opened()
    host.receive(b'{"type":"assi')

    [error] = problems(host.end())

    assert isinstance(error, BadLine)
    assert (error.kind, error.line) == ("cut_off", b'{"type":"assi')
    assert host.end() == []


@pytest.mark.parametrize(
    "bad, kind",
    [
        (b"hello", "not_json"),
        (b'{"type":', "not_json"),
        (b'{"type":"result"\xff}', "not_utf8"),
        (b'{"type":"result","x":"\xff"}', "not_utf8"),
        (b"[1,2]", "not_a_message"),
        (b'"text"', "not_a_message"),
        (b"{}", "not_a_message"),
        (b'{"type":5}', "not_a_message"),
        (b'{"type":"control_response"}', "not_a_message"),
        (b'{"type":"control_cancel_request"}', "not_a_message"),
        (b'{"type":"control_request","request":{"subtype":"interrupt"}}', "not_a_message"),
        (b'{"type":"later","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not_json"),
    ],
)
def test_a_bad_line_is_one_violation_among_the_others(bad: bytes, kind: str) -> None:
    """What came with it is not lost."""
    host, _ = opened()

    first, second, third = host.receive(b'{"type":"keep_alive"}\n' + bad + b'\n{"type":"result"}\n')

    assert first == KeepAlive()
    assert isinstance(second, Violation)
    assert isinstance(second.error, BadLine)
    assert second.error.kind == kind
    assert isinstance(third, ResultMessage)


def test_a_request_with_broken_text_is_refused() -> None:
    """Invalid UTF-8 inside a request still gets an answer, because its id can be read."""
    host, _ = opened()

    host.receive(b'{"type":"control_request","request_id":"1","request":{"subtype":"hook_callback","input":"\xff"}}\n')

    assert b'"request_id":"1"' in host.outgoing()


def test_blank_lines_say_nothing() -> None:
    """Empty lines and carriage returns between messages are not messages."""
    host, _ = opened()

    assert host.receive(b'\n\r\n  \n{"type":"keep_alive"}\r\n') == [KeepAlive()]


def test_a_line_over_the_limit_is_reported_once_and_skipped() -> None:
    """Memory is bounded, and the next line is read as usual."""
    host = Connection("host", line_limit=100)
    received: list[Received] = []
    for chunk in (
        b'{"type":"x","y":"',
        b"a" * 90,
        b"b" * 90,
        b"c" * 1000,
        b'"}\n{"type":"keep',
        b'_alive"}\n' + b"d" * 101 + b"\n",
    ):
        received += host.receive(chunk)

    first, second, third = received
    assert [error.kind for error in problems([first, third]) if isinstance(error, BadLine)] == ["too_long", "too_long"]
    assert second == KeepAlive()
    assert host.end() == []


def test_a_long_line_within_the_limit_is_one_message() -> None:
    """A line of 20 MB in small pieces is read once it is whole."""
    host, _ = opened()
    chunk = b"x" * 65_536
    host.receive(b'{"type":"result","result":"')
    for _ in range(320):
        assert host.receive(chunk) == []

    [received] = host.receive(b'"}\n')

    assert isinstance(received, ResultMessage)
    assert len(received.result) == 320 * 65_536


STEPS = {"ask": PendingRequests.ask, "answer": PendingRequests.answer, "cancel": PendingRequests.cancel}
WAY_TO: dict[str, tuple[str, ...]] = {
    "new": (), "open": ("ask",), "answered": ("ask", "answer"), "cancelled": ("ask", "cancel")
}  # fmt: skip


NEXT = {("new", "ask"): "open", ("open", "answer"): "answered", ("open", "cancel"): "cancelled"}
"""The life of a request, the same in both directions."""
HARMLESS = {("answered", "cancel"), ("cancelled", "cancel")}
"""A cancellation that crosses the answer on the wire is no one's fault."""
PROBLEM: dict[tuple[str, str], type[ProtocolError]] = {
    ("open", "ask"): RequestIdReused,
    ("answered", "ask"): RequestIdReused,
    ("cancelled", "ask"): RequestIdReused,
    ("new", "answer"): StrayResponse,
    ("new", "cancel"): StrayResponse,
    ("answered", "answer"): RequestClosed,
    ("cancelled", "answer"): RequestClosed,
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("state", WAY_TO)
def test_the_life_of_a_request_is_a_whole_table(state: Any, step: Any) -> None:
    """Every state meets every step: it leads on, is harmless, or has its error; the ledger keeps to the tables."""
    ledger = PendingRequests()
    for taken in WAY_TO[state]:
        STEPS[taken](ledger, "r")
    move = (state, step)

    if move in PROBLEM:
        with pytest.raises(PROBLEM[move]):
            STEPS[step](ledger, "r")
        assert ledger.state("r") == state
    else:
        STEPS[step](ledger, "r")
        assert ledger.state("r") == NEXT.get(move, state)
    assert [move in NEXT, move in HARMLESS, move in PROBLEM].count(True) == 1


def test_the_ledger_remembers_a_bounded_number_of_closed_requests() -> None:
    """At least the last N closed ids are known, and every open one; memory does not grow with the conversation."""
    ledger = PendingRequests(remembered=10)
    ledger.ask("patient")
    for n in range(1000):
        ledger.ask(str(n))
        ledger.answer(str(n))

    assert [ledger.state(str(n)) for n in range(990, 1000)] == ["answered"] * 10
    assert sum(ledger.state(str(n)) != "new" for n in range(1000)) <= 25
    assert ledger.open == ["patient"]


def test_many_open_requests_are_all_remembered() -> None:
    """The bound is on closed ones."""
    ledger = PendingRequests(remembered=10)
    for n in range(100):
        ledger.ask(str(n))
    for n in range(100):
        ledger.answer(str(n))

    assert {ledger.state(str(n)) for n in range(100)} == {"answered"}


# ── random splits, reorderings and corruptions of the real conversation ──────────────────────────


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def converse(role: Role, chunks: list[bytes]) -> tuple[list[Received], list[bytes]]:
    """One end hears the chunks and answers every request it is given, twice over; returns what it heard and wrote."""
    end = Connection(role)
    heard: list[Received] = []
    wrote: list[bytes] = []
    if role == "host":
        hooks = {"PreToolUse": [CallbackMatcher(callback_ids=[f"hook_{n}" for n in range(4)])]}
        wrote.append(end.send(ControlRequest("req_0", Initialize(hooks=hooks))))
        wrote.append(end.send(ControlRequest("req_24", SetPermissionMode(mode="acceptEdits"))))
    else:
        wrote += [end.send(ControlRequest(one, CanUseTool(tool_name="Bash", input={}))) for one in CLI_ASKED]
    for chunk in chunks:
        for one in end.receive(chunk):
            heard.append(one)
            if isinstance(one, ControlRequest):
                with suppress(RequestClosed):  # cancelled in the same chunk
                    wrote.append(end.send(Success(one.request_id)))
                with pytest.raises(ProtocolError):
                    end.send(Failure(one.request_id))
        wrote.append(end.outgoing())
    heard += end.end()
    return heard, wrote


def said(heard: list[Received]) -> list[Received]:
    return [one for one in heard if not isinstance(one, ControlCancel)]


def answered_ids(wrote: list[bytes]) -> list[str]:
    written = [json.loads(one) for one in b"".join(wrote).splitlines()]
    return [one["response"]["request_id"] for one in written if one["type"] == "control_response"]


@pytest.mark.parametrize("role, lines", [("host", TO_HOST), ("cli", TO_CLI)])
@given(cuts=st.lists(st.integers(min_value=0, max_value=1 << 20), max_size=60))
def test_how_the_bytes_are_split_changes_nothing(role: Role, lines: list[bytes], cuts: list[int]) -> None:
    """Any chunks of the real conversation give the same messages, and nothing in it is a violation.

    Only a cancellation may be missing: when the answer had been given before it came.
    """
    heard, wrote = converse(role, split(b"".join(lines), cuts))

    assert said(heard) == said(converse(role, lines)[0])
    assert problems(heard) == []
    assert len(answered_ids(wrote)) == len(set(answered_ids(wrote)))


@pytest.mark.parametrize("role, lines", [("host", TO_HOST), ("cli", TO_CLI)])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_corruption_raises_or_is_answered_twice(role: Role, lines: list[bytes], data: st.DataObject) -> None:
    """Shuffled, repeated, cut and damaged bytes end as values; no request id is ever answered twice."""
    order = data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=2 * len(lines)))
    damaged = bytearray(b"".join(order))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)), max_size=40)):
        damaged[at] = value
    cuts = data.draw(st.lists(st.integers(min_value=0, max_value=len(damaged)), max_size=20))

    heard, wrote = converse(role, split(bytes(damaged), cuts))

    ids = answered_ids(wrote)
    assert len(ids) == len(set(ids))
    assert all(isinstance(error, ProtocolError) for error in problems(heard))


@given(chunks=st.lists(st.binary(max_size=300), max_size=20))
def test_noise_is_violations_and_nothing_else(chunks: list[bytes]) -> None:
    """Bytes that never were a conversation give no message, no answer and no exception."""
    heard, wrote = converse("cli", chunks)

    assert all(isinstance(one, (Violation, OtherMessage)) for one in heard)
    assert answered_ids(wrote) == []
