"""HTTP endpoints as hooks, on real sockets (FACTS §8)."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
from typing import Any

import pytest

from hookline import Hooks, Http, Reply, Verdict, context, deny
from hookline.core.engine import Status
from hookline.core.wire import claude
from hookline.events import PreToolUse, SessionStart, UserPromptSubmit
from hookline.events.base import Event
from hookline.runners import http
from tests.runners.endpoint import Answer, Endpoint, answers, endpoint, hang_up, no_end, silence

BASH = PreToolUse(session_id="s1", cwd="/p", tool_name="Bash", tool_input={"command": "ls"})
DENY = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
    }
}


async def ask(url: str, event: Event = BASH, *, env: dict[str, str] | None = None, **options: Any) -> Verdict:
    kept = {name: options.pop(name) for name in ("headers", "allowed_env", "allowed_urls", "body") if name in options}
    async with Hooks(env=env) as hooks:
        hooks.add(type(event), Http(url=url, **kept), name="it", **options)
        return await hooks.fire(event)


@pytest.mark.parametrize(
    "answer, reply",
    [
        (answers(200, DENY), deny("no")),
        (answers(201, DENY), deny("no")),
        (answers(299, DENY), deny("no")),
        (answers(200, {}), Reply()),
        (answers(200, ""), Reply()),
        (answers(200, " \n"), Reply()),
        (answers(204), Reply()),
    ],
)
async def test_any_2xx_with_an_object_or_nothing_is_an_answer(answer: Answer, reply: Reply) -> None:
    """The body is the reply; an empty one says nothing."""
    async with endpoint(answer) as place:
        verdict = await ask(place.url)

    assert verdict.outcomes[0].status is Status.OK
    assert verdict.outcomes[0].reply == reply
    assert verdict.outcomes[0].exit_code in (200, 201, 204, 299)


FAULTS: dict[str, tuple[Answer, str]] = {
    "moved": (answers(302, "", Location="http://127.0.0.1:9/"), "give the final address"),
    "to a file": (answers(301, "", Location="file:///etc/passwd"), "redirects are not followed"),
    "to the metadata": (answers(307, "", Location="http://169.254.169.254/"), "got 307 from"),
    "not found": (answers(404, DENY), "got 404 from"),
    "broken": (answers(500, DENY), "got 500 from http:"),
    "unmodified": (answers(304), "got 304 from"),
    "text": (answers(200, "hello"), "JSON"),
    "text that says why": (answers(200, "not here"), "it answered: not here"),
    "half an object": (answers(200, '{"decision": '), "JSON"),
    "two objects": (answers(200, "{}{}"), "JSON"),
    "a list": (answers(200, "[1]"), "object"),
    "bad schema": (answers(200, {"decision": 7}), "decision"),
    "another event": (answers(200, {"hookSpecificOutput": {"hookEventName": "Stop"}}), "Stop"),
    "hangs up": (hang_up, "isconnected"),
    "no HTTP": (lambda _, writer: _says(writer, b"SSH-2.0-nope\r\n\r\n"), "127.0.0.1"),
    "endless header": (lambda _, writer: _says(writer, b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000), "127.0.0.1"),
    "huge": (no_end, "got more than"),
}


async def _says(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_everything_else_is_a_failure(fault: str, policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded with its reason, and `on_failure` decides what follows."""
    monkeypatch.setattr(http, "MOST_BYTES", 1_000_000)
    answer, said = FAULTS[fault]
    async with endpoint(answer) as place:
        verdict = await ask(place.url, on_failure=policy, timeout=20)
        await place.closed()

    outcome = verdict.outcomes[0]
    assert outcome.status is Status.FAILED
    assert said in (outcome.error or "")
    assert verdict.blocked is (policy == "block")


async def test_a_redirect_is_not_followed() -> None:
    """One request is made, and none to where it points."""
    async with endpoint(answers(200, DENY)) as target, endpoint(answers(302, "", Location=target.url)) as place:
        verdict = await ask(place.url, on_failure="continue")

    assert (len(place.requests), len(target.requests)) == (1, 0)
    assert not verdict.blocked
    assert verdict.outcomes[0].exit_code == 302


@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_nobody_at_home(policy: Any) -> None:
    """A refused connection is a failure that says so."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # never listens
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        verdict = await ask(url, on_failure=policy)

    assert verdict.blocked is (policy == "block")
    assert verdict.outcomes[0].error is not None
    assert "Connect call failed" in verdict.outcomes[0].error


@pytest.mark.parametrize("answer", [silence, no_end])
@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_a_slow_endpoint_is_given_up_on(answer: Answer, policy: Any) -> None:
    """The hook's timeout bounds it, also while a body trickles in, and its connection is closed."""
    async with endpoint(answer) as place:
        verdict = await ask(place.url, timeout=0.2, on_failure=policy)
        await place.closed()

    assert verdict.outcomes[0].status in (Status.TIMEOUT, Status.FAILED)
    assert verdict.blocked is (policy == "block")


async def test_what_is_sent() -> None:
    """A POST of the event as a command would read it on stdin, without the newline."""
    async with endpoint(answers(204)) as place:
        await ask(place.url)

    first, headers, body = place.requests[0]
    assert first == "POST /hook HTTP/1.1"
    assert headers["content-type"] == "application/json"
    assert headers["accept"] == "application/json, text/plain, */*"
    assert body == claude.encode_event(BASH)
    assert json.loads(body)["hook_event_name"] == "PreToolUse"


async def test_a_header_of_the_hook_takes_the_place_of_ours() -> None:
    """However it is written; the others stay."""
    async with endpoint(answers(204)) as place:
        await ask(place.url, headers={"content-TYPE": "application/vnd.event+json"})

    headers = place.requests[0][1]
    assert headers["content-type"] == "application/vnd.event+json"
    assert headers["accept"] == "application/json, text/plain, */*"


async def test_headers_carry_only_the_variables_that_are_allowed() -> None:
    """`$V` and `${V}` are filled in if allowed; others, and those that are not set, become nothing."""
    async with endpoint(answers(204)) as place:
        await ask(
            place.url,
            headers={"Authorization": "Bearer $TOKEN", "X-Both": "${TOKEN}-$SECRET-$UNSET", "X-Plain": "5$"},
            allowed_env=("TOKEN", "UNSET"),
            env={"TOKEN": "t0k", "SECRET": "hidden"},
        )

    headers = place.requests[0][1]
    assert headers["authorization"] == "Bearer t0k"
    assert headers["x-both"] == "t0k--"
    assert headers["x-plain"] == "5$"
    assert "hidden" not in str(place.requests)


async def test_a_header_with_a_line_break_is_refused() -> None:
    """A variable cannot smuggle in a header of its own, and the failure does not print the variable."""
    async with endpoint(answers(204)) as place:
        verdict = await ask(
            place.url, headers={"X": "$V"}, allowed_env=("V",), env={"V": "s3cret\r\nX-Admin: 1"}, on_failure="block"
        )

    assert verdict.blocked
    assert place.requests == []
    assert "s3cret" not in (verdict.outcomes[0].error or "")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "file:///etc/passwd", "127.0.0.1:80", "http://", "http://[::"])
@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_only_http_addresses(url: str, policy: Any) -> None:
    """Anything else is refused without a connection."""
    verdict = await ask(url, on_failure=policy)

    assert verdict.outcomes[0].status is Status.FAILED
    assert f"cannot ask `{url}`: it is not an http or https address" in (verdict.outcomes[0].error or "")
    assert verdict.blocked is (policy == "block")


@pytest.mark.parametrize(
    "allowed, asked",
    [(("*",), 1), (("http://127.0.0.1:*/hook",), 1), (("http://127.0.0.1:*/other",), 0), (("https://*",), 0), ((), 0)],
)
async def test_the_allow_list_names_the_urls(allowed: tuple[str, ...], asked: int) -> None:
    """A URL that is not on it is a failure, and no request is made."""
    async with endpoint(answers(200, DENY)) as place:
        verdict = await ask(place.url, allowed_urls=allowed, on_failure="continue")

    assert len(place.requests) == asked
    assert verdict.blocked is bool(asked)


async def test_text_is_never_context() -> None:
    """On UserPromptSubmit a command's text would be context; an endpoint's is a failure."""
    async with endpoint(answers(200, "hello")) as place:
        verdict = await ask(place.url, UserPromptSubmit(prompt="p"), on_failure="continue")

    assert verdict.context == ()
    assert verdict.outcomes[0].status is Status.FAILED


async def test_it_works_on_every_event() -> None:
    """Claude Code skips HTTP hooks on SessionStart; here they run, on purpose."""
    said = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "on"}}
    async with endpoint(answers(200, said)) as place:
        verdict = await ask(place.url, SessionStart(source="startup"))

    assert verdict.outcomes[0].reply == context("on")


async def test_connections_are_kept() -> None:
    """Twenty events, one connection; at the end it is closed."""
    async with endpoint(answers(200, {})) as place:
        async with Hooks() as hooks:
            hooks.add(PreToolUse, Http(url=place.url))
            for _ in range(20):
                await hooks.fire(BASH)
            assert (len(place.requests), place.connections, place.open) == (20, 1, 1)
        await place.closed()


async def test_a_connection_that_the_server_closed_is_replaced() -> None:
    """A server that hangs up after each answer does not fail the next event."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answers(200, DENY)(reader, writer)
        writer.close()

    async with endpoint(once) as place, Hooks() as hooks:
        hooks.add(PreToolUse, Http(url=place.url))
        verdicts = [await hooks.fire(BASH) for _ in range(5)]

    assert [verdict.reason for verdict in verdicts] == ["no"] * 5


async def test_a_connection_whose_answer_was_not_read_to_its_end_is_not_used_again() -> None:
    """What is left of an answer nobody waited for is not taken for the next one's."""
    late = b'{"continue": false}'

    async def stumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(place.requests) > 1:
            return await answers(200, DENY)(reader, writer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(late))
        await reader.read()
        return writer.write(late)

    async with endpoint(stumble) as place, Hooks() as hooks:
        hooks.add(PreToolUse, Http(url=place.url), timeout=60, on_failure="continue")
        verdicts = [await hooks.fire(BASH, deadline=2), await hooks.fire(BASH)]

        await place.closed(but=1)
        assert (place.connections, place.open) == (2, 1)
    assert [(verdict.stop, verdict.reason) for verdict in verdicts] == [(False, ""), (False, "no")]


async def test_many_at_once() -> None:
    """Events in parallel do not wait for each other's connection."""
    reached, all_here = 0, asyncio.Event()

    async def together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal reached
        reached += 1
        if reached == 10:
            all_here.set()
        await all_here.wait()
        await answers(200, {})(reader, writer)

    async with endpoint(together) as place, Hooks() as hooks:
        hooks.add(PreToolUse, Http(url=place.url), timeout=20)
        verdicts = await asyncio.gather(*(hooks.fire(BASH) for _ in range(10)))

    assert all(verdict.outcomes[0].status is Status.OK for verdict in verdicts)


class _Elsewhere:
    """An endpoint in a thread and loop of its own, so that the loops of a test may come and go."""

    def __init__(self) -> None:
        self.ready, self.done = threading.Event(), threading.Event()
        self.place: Endpoint
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        async with endpoint(answers(200, DENY)) as self.place:
            self.ready.set()
            await asyncio.to_thread(self.done.wait, 120)
            await self.place.closed()

    def __enter__(self) -> Endpoint:
        self.thread.start()
        assert self.ready.wait(60)
        return self.place

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.mark.filterwarnings("error")
def test_one_set_in_several_loops_one_after_the_other() -> None:
    """Each loop has connections of its own, which end with it; nothing is left open or warned about."""
    hooks = Hooks()
    with _Elsewhere() as place:
        hooks.add(PreToolUse, Http(url=place.url))
        for _ in range(3):
            assert asyncio.run(hooks.fire(BASH)).reason == "no"
        asyncio.run(hooks.aclose())
        assert place.connections == 3
    gc.collect()


def test_one_set_in_two_loops_at_once() -> None:
    """`aclose` in one loop closes the connections of the other too."""
    hooks = Hooks()
    opened, may_end = threading.Event(), threading.Event()

    async def other() -> None:
        await hooks.fire(BASH)
        opened.set()
        await asyncio.to_thread(may_end.wait, 120)

    async def here(place: Endpoint) -> None:
        await hooks.fire(BASH)
        assert place.open == 2
        await hooks.aclose()
        await place.closed()

    with _Elsewhere() as place:
        hooks.add(PreToolUse, Http(url=place.url))
        thread = threading.Thread(target=lambda: asyncio.run(other()))
        thread.start()
        assert opened.wait(60)
        asyncio.run(here(place))
        may_end.set()
        thread.join(60)
        assert not thread.is_alive()


async def test_without_aiohttp_the_failure_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(__import__("sys").modules, "aiohttp", None)
    verdict = await ask("http://127.0.0.1:9/")

    assert "pip install 'hookline[http]'" in (verdict.outcomes[0].error or "")


async def test_a_body_of_its_own_is_filled_in_from_the_event() -> None:
    """Slack and its like want their own words, and answer `ok`, which is no reply of a hook."""
    body = {"text": "${tool_name} runs `${tool_input.command}`${nothing}", "blocks": [{"id": 1, "of": "${session_id}"}]}
    async with endpoint(answers(200, "ok")) as place:
        verdict = await ask(place.url, body=body)

    assert json.loads(place.requests[0][2]) == {"text": "Bash runs `ls`", "blocks": [{"id": 1, "of": "s1"}]}
    assert (verdict.outcomes[0].status, verdict.blocked) == (Status.OK, False)


async def test_a_body_of_its_own_may_fail_all_the_same() -> None:
    """The status still counts."""
    async with endpoint(answers(500, "down")) as place:
        verdict = await ask(place.url, body={"text": "hi"})

    assert verdict.outcomes[0].status is not Status.OK
