"""The client, with a CLI in memory at the other end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from hookline import Hooks
from hookline.core.engine import Context
from hookline.errors import (
    ClaudeError,
    CliDied,
    CliProtocolError,
    CliSilent,
    HooksIgnored,
    HooksNotHonoured,
    RequestRefused,
)
from hookline.events import PermissionRequest, PostToolUse, PreToolUse, SessionEnd, SessionStart, Stop, UserPromptSubmit
from hookline.hosts.claude_code import ClaudeClient, ResultMessage, ToolServer, query
from hookline.hosts.claude_code.messages import (
    CallbackMatcher,
    CanUseTool,
    ControlCancel,
    Failure,
    HookCallback,
    Initialize,
    Interrupt,
    McpMessage,
    OtherRequest,
    SetModel,
    SetPermissionMode,
    Success,
)
from hookline.replies import Reply, allow, ask, context, deny, keep_going, rewrite, specific, stop
from tests.hosts.claude_code.fakes import RESULT, TODAY, FakeCli, message

BASH = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}


def denied(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def replying(reply: Any) -> Any:
    """A hook that always answers the same."""

    async def answer(event: Any) -> Any:
        return reply

    return answer


async def asked(hooks: Hooks, **event: Any) -> dict[str, Any]:
    """What the client answers when the CLI calls the first callback."""
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        answer = await cli.answer_to(cli.call("hook_0", **event))
    assert isinstance(answer, Success)
    return answer.data()


# ── registering ──────────────────────────────────────────────────────────────────────────────────


async def test_hooks_are_registered_one_callback_an_event() -> None:
    """The CLI gets each event once: the union of the matchers, a timeout beyond ours, and the failure policy."""
    hooks = Hooks()
    hooks.on(PreToolUse, match="Write|Edit", timeout=2, name="a")(replying(None))
    hooks.on(PreToolUse, match="Bash", timeout=3, name="b")(replying(None))
    hooks.on(PostToolUse, timeout=4, name="c")(replying(None))
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        pass

    [opening] = cli.requests
    assert opening == Initialize(
        hooks={
            "PreToolUse": [
                CallbackMatcher(
                    matcher="Edit|Write|Bash", callback_ids=["hook_0"], timeout=2 * (3 + 4) + 5, on_failure="block"
                )
            ],
            "PostToolUse": [CallbackMatcher(callback_ids=["hook_1"], timeout=5 + 5)],
        }
    )


@pytest.mark.parametrize(
    "matchers, sent",
    [
        ((None,), None),
        (("Bash", None), None),
        (("Bash", "Bash|Read"), "Bash|Read"),
        (("mcp__*",), None),
        (("Bash", "mcp__.*"), None),
        ((str.isupper,), None),
    ],
)
async def test_the_matcher_sent_leaves_out_nothing_a_hook_means(matchers: tuple[Any, ...], sent: str | None) -> None:
    """What the CLI may read differently from us is not sent at all; the engine decides then."""
    hooks = Hooks()
    for number, matcher in enumerate(matchers):
        hooks.on(PreToolUse, match=matcher, name=str(number))(replying(None))
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        pass

    assert cli.requests[0].hooks["PreToolUse"][0].matcher == sent


async def test_hooks_added_later_are_registered_before_the_next_prompt() -> None:
    """A second `initialize` replaces the callbacks, so a hook added in between is not forgotten."""
    hooks = Hooks()
    cli = FakeCli(turns=[[RESULT], [RESULT]])
    async with ClaudeClient(hooks=hooks, transport=cli) as claude:
        await claude.send("one")
        hooks.on(Stop)(replying(None))
        await claude.send("two")
        await claude.send("three")

    assert [list(one.hooks or {}) for one in cli.requests] == [[], ["Stop"]]
    assert cli.prompts == ["one", "two", "three"]


async def test_a_hook_that_must_block_refuses_a_cli_that_cannot() -> None:
    """`on_failure="block"` is a promise; a CLI that drops it is not started with."""
    hooks = Hooks()
    hooks.on(PreToolUse, on_failure="block", name="guard")(replying(None))
    cli = FakeCli({"hooks_applied": True})

    with pytest.raises(HooksNotHonoured, match="guard"):
        await ClaudeClient(hooks=hooks, transport=cli).connect()
    assert cli.closed


async def test_a_cli_that_knows_no_hooks_is_warned_about() -> None:
    """Hooks that will never run are not passed over in silence."""
    hooks = Hooks()
    hooks.on(PreToolUse)(replying(None))

    with pytest.warns(HooksIgnored, match="it will not call them"):
        async with ClaudeClient(hooks=hooks, transport=FakeCli({})):
            pass


async def test_a_cli_that_is_too_old_is_warned_about() -> None:
    """A version before the protocol of today may not do what is asked of it."""
    with pytest.warns(HooksIgnored, match=r"1\.0\.5.*2\.0\.0 or later"):
        async with ClaudeClient(transport=FakeCli({**TODAY, "claude_code_version": "1.0.5"})):
            pass


async def test_session_hooks_run_though_the_cli_never_calls_them() -> None:
    """The real CLI registers these callbacks and never calls them (FACTS §10), so the client fires; ours calls them."""
    for info, expected in (
        (TODAY, ["SessionStart", "SessionEnd"]),
        ({**TODAY, "session_hooks_supported": True}, []),
    ):
        hooks, heard = Hooks(), list[Any]()

        @hooks.on(SessionStart, SessionEnd)
        async def note(event: Any, heard: list[Any] = heard) -> Reply | None:
            heard.append(event)
            return context("remember") if isinstance(event, SessionStart) else None

        cli = FakeCli(info)
        async with ClaudeClient(hooks=hooks, transport=cli, session_id="s1", cwd="/p") as claude:
            await claude.send("one")
            await claude.send("two")

        assert [one.event_name for one in heard] == expected
        assert {(one.session_id, one.cwd) for one in heard} <= {("s1", "/p")}
        assert [("remember" in text, text[-3:]) for text in cli.prompts] == [(bool(expected), "one"), (False, "two")]


async def test_a_session_start_hook_that_blocks_refuses_the_conversation() -> None:
    """Nothing is sent to the model, and the CLI is ended."""
    hooks, cli = Hooks(), FakeCli()
    hooks.on(SessionStart)(replying(deny("wrong place")))

    with pytest.raises(ClaudeError, match="refused the session: wrong place"):
        await ClaudeClient(hooks=hooks, transport=cli).connect()

    assert cli.closed
    assert cli.prompts == []


async def test_clients_and_hooks_of_several_threads_do_not_mix() -> None:
    """Each thread's client answers with its own hooks, and hooks registered from many threads are all there."""
    shared = Hooks()
    got: dict[int, str] = {}

    def work(number: int) -> None:
        hooks = Hooks()
        hooks.on(PreToolUse)(replying(deny(f"thread {number}")))
        shared.on(Stop, name=f"stop {number}")(replying(None))
        said = asyncio.run(asked(hooks, **BASH))
        got[number] = said["hookSpecificOutput"]["permissionDecisionReason"]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert got == {number: f"thread {number}" for number in range(8)}
    assert {hook.name for hook in shared.hooks} == {f"stop {number}" for number in range(8)}


# ── answering ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "event, reply, said",
    [
        (PreToolUse, deny("no"), denied("no")),
        (PreToolUse, None, {}),
        (
            PreToolUse,
            allow("ok") | rewrite({"command": "pwd"}),
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "allow",
                    "permissionDecisionReason": "ok",
                    "updatedInput": {"command": "pwd"},
                }
            },
        ),
        (PreToolUse, stop("enough"), {"continue": False, "stopReason": "enough", **denied("enough")}),
        (UserPromptSubmit, deny("bad"), {"decision": "block", "reason": "bad"}),
        (Stop, keep_going("more"), {"decision": "block", "reason": "more"}),
        (
            PostToolUse,
            context("CTX"),
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "CTX"}},
        ),
    ],
)
async def test_a_verdict_goes_back_in_the_clis_words(event: Any, reply: Reply | None, said: dict[str, Any]) -> None:
    """What hooks decided is what the CLI is told; a stopped gate is denied too, since the CLI would go on."""
    hooks = Hooks()
    hooks.on(event)(replying(reply))

    body = {**BASH, "tool_response": "x", "prompt": "p", "hook_event_name": event.event_name}
    assert await asked(hooks, **body) == said


async def test_a_plain_function_is_a_hook_too() -> None:
    """`hookline.Hooks` runs `def` hooks in a thread; the CLI sees no difference."""
    async with Hooks() as hooks:

        @hooks.on("PreToolUse", match="Bash")
        def no(event: PreToolUse) -> Reply:
            return deny("from a thread")

        assert await asked(hooks, **BASH) == denied("from a thread")


async def test_what_runs_is_what_was_judged() -> None:
    """A guard judges the input another hook made, though the CLI would have asked them separately (law 4)."""
    hooks = Hooks()

    @hooks.on(PreToolUse, priority=10)
    async def guard(event: PreToolUse) -> Reply | None:
        return deny("no rm") if event.tool_input["command"].startswith("rm") else None

    @hooks.on(PreToolUse)
    async def rewriter(event: PreToolUse) -> Reply | None:
        return rewrite({"command": "rm -rf /"}) if event.tool_input["command"] == "ls" else None

    said = (await asked(hooks, **BASH))["hookSpecificOutput"]
    assert (said["permissionDecision"], said["permissionDecisionReason"]) == ("deny", "no rm")


async def test_a_crashing_hook_denies_at_a_gate_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The CLI takes an error for silence, so a gate answers with a deny; the traceback is in the log."""
    hooks = Hooks()

    @hooks.on(PreToolUse)
    async def broken(event: PreToolUse) -> None:
        raise ZeroDivisionError("oops")

    said = await asked(hooks, **BASH)

    assert "ZeroDivisionError: oops" in said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "Traceback" in caplog.text


async def test_hooks_that_cannot_be_asked_deny_at_a_gate_and_fail_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    """A closed set of hooks, or an event that cannot be read, fails closed too."""
    hooks = Hooks()
    hooks.on(PreToolUse)(replying(None))
    hooks.on(PostToolUse)(replying(None))
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        unreadable = await cli.answer_to(cli.call("hook_0", hook_event_name="PreToolUse", tool_name=5))
        await hooks.aclose()
        gate = await cli.answer_to(cli.call("hook_0", **BASH))
        after = {**BASH, "hook_event_name": "PostToolUse", "tool_response": 1}
        watch = await cli.answer_to(cli.call("hook_1", **after))

    for answer in (unreadable, gate):
        assert isinstance(answer, Success)
        assert answer.data()["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert isinstance(watch, Failure)
    assert watch.error_code == "hook_failed"
    assert "an event could not be read: PreToolUse: `tool_name`" in caplog.text
    assert "hooks on PreToolUse could not be asked: these hooks were closed" in caplog.text


async def test_an_answer_that_is_no_json_denies_at_a_gate() -> None:
    """A rewrite with a value that cannot be sent is caught before it is sent."""
    hooks = Hooks()
    hooks.on(PreToolUse)(replying(rewrite({"command": object()})))

    said = await asked(hooks, **BASH)

    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_an_unknown_callback_is_a_structured_error(caplog: pytest.LogCaptureFixture) -> None:
    """The CLI is told `unknown_callback`, and the log says so."""
    cli = FakeCli()
    async with ClaudeClient(transport=cli):
        request = {"subtype": "hook_callback", "callback_id": "hook_9", "input": {}}
        cli.cli.ours.ask("x1")
        cli.raw(msgspec.json.encode({"type": "control_request", "request_id": "x1", "request": request}) + b"\n")
        answer = await cli.answer_to("x1")

    assert isinstance(answer, Failure)
    assert answer.error_code == "unknown_callback"
    assert "hook_9" in caplog.text


async def test_a_cancel_request_cancels_the_running_hook() -> None:
    """The hook hears of it (`ctx.cancelled`), and nothing is answered."""
    hooks = Hooks()
    began, ended = asyncio.Event(), asyncio.Event()
    told: list[bool] = []

    @hooks.on(PreToolUse)
    async def slow(event: PreToolUse, ctx: Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.cancelled.is_set())
            ended.set()

    hooks.on(Stop)(replying(None))
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli), asyncio.timeout(10):
        request_id = cli.call("hook_0", **BASH)
        await began.wait()
        cli.say(ControlCancel(request_id))
        await ended.wait()
        following = cli.call("hook_1", hook_event_name="Stop")
        await cli.answer_to(following)

    answered = [one.request_id for one in cli.heard if isinstance(one, (Success, Failure))]
    assert (told, answered) == ([True], [following])


async def test_a_request_cancelled_before_it_was_served_never_runs() -> None:
    """It may come in the same chunk as its cancellation."""
    hooks = Hooks()
    ran: list[str] = []

    @hooks.on(PreToolUse)
    async def note(event: PreToolUse) -> None:
        ran.append(event.tool_name)

    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        callback = HookCallback(callback_id="hook_0", input=Raw(msgspec.json.encode({**BASH, "tool_name": "First"})))
        first = cli.cli.ask(callback)
        cli.say(first, ControlCancel(first.request_id))
        await cli.answer_to(cli.call("hook_0", **BASH))

    assert ran == ["Bash"]


async def test_what_cannot_be_served_is_refused_with_a_code(caplog: pytest.LogCaptureFixture) -> None:
    """A permission nobody decides, a message that is no JSON-RPC, a server that breaks: each is answered."""

    class Broken:
        async def handle(self, message: dict[str, Any]) -> None:
            raise ZeroDivisionError("oops")

        async def aclose(self) -> None: ...

    cli = FakeCli()
    async with ClaudeClient(mcp_servers={"bad": Broken()}, transport=cli):
        requests = [
            cli.cli.ask(CanUseTool(tool_name="Bash", input={})),
            cli.cli.ask(McpMessage(server_name="bad", message=Raw(b"[1]"))),
            cli.cli.ask(McpMessage(server_name="bad", message=Raw(b'{"id":1,"method":"x"}'))),
        ]
        cli.say(*requests)
        undecided, unreadable, broken = [await cli.answer_to(one.request_id) for one in requests]

    assert [one.error_code for one in (undecided, unreadable) if isinstance(one, Failure)] == [
        "unsupported_request",
        "invalid_request",
    ]
    assert isinstance(broken, Success)
    assert "ZeroDivisionError: oops" in broken.data()["mcp_response"]["error"]["message"]
    assert "Traceback" in caplog.text


async def test_a_slow_hook_holds_nobody_up() -> None:
    """Requests that come with a slow one, or after it, are answered meanwhile."""
    hooks = Hooks()
    release = asyncio.Event()

    @hooks.on(PreToolUse)
    async def sometimes_slow(event: PreToolUse) -> Reply:
        if event.tool_input["command"] == "slow":
            await release.wait()
        return deny(event.tool_input["command"])

    def body(command: str) -> dict[str, Any]:
        return {**BASH, "tool_input": {"command": command}}

    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        slow, *quick = [cli.call("hook_0", **body(one)) for one in ("slow", "a", "b", "c")]
        for request_id in quick:
            await cli.answer_to(request_id)
        release.set()
        await cli.answer_to(slow)

    answers = [one.request_id for one in cli.heard if isinstance(one, Success)]
    assert answers == [*quick, slow]


async def test_a_burst_is_answered_in_order_with_one_write() -> None:
    """A thousand quick callbacks that arrive together leave together."""
    hooks = Hooks()

    @hooks.on(PreToolUse)
    async def quiet(event: PreToolUse) -> None:
        return None

    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli):
        before = len(cli.writes)
        callback = HookCallback(callback_id="hook_0", input=Raw(msgspec.json.encode(BASH)))
        burst = [cli.cli.ask(callback) for _ in range(1000)]
        cli.say(*burst)
        await cli.answer_to(burst[-1].request_id)

    assert len(cli.writes) == before + 1
    assert [one.request_id for one in cli.heard if isinstance(one, Success)] == [one.request_id for one in burst]


@pytest.mark.parametrize("cli_dies", [False, True])
async def test_the_end_of_the_conversation_stops_running_hooks(cli_dies: bool) -> None:
    """Nothing of a hook is left, whether the client is closed or the CLI is gone."""
    hooks = Hooks()
    began, stopped = asyncio.Event(), asyncio.Event()

    @hooks.on(PreToolUse)
    async def slow(event: PreToolUse) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli), asyncio.timeout(10):
        cli.call("hook_0", **BASH)
        await began.wait()
        if cli_dies:
            cli.end(1)
            await stopped.wait()

    assert stopped.is_set()
    assert cli.closed


# ── permissions and tools ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "decided, said",
    [
        (allow(), {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        (True, {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        (rewrite({"command": "pwd"}), {"behavior": "allow", "updatedInput": {"command": "pwd"}}),
        (
            allow() | specific(updated_permissions=({"type": "setMode"},)),
            {
                "behavior": "allow",
                "updatedInput": {"command": "ls"},
                "updatedPermissions": [{"type": "setMode"}],
            },
        ),
        (deny("no"), {"behavior": "deny", "message": "no"}),
        (deny("no") | stop(), {"behavior": "deny", "message": "no", "interrupt": True}),
        (ask("who knows"), {"behavior": "deny", "message": "who knows"}),
        (False, {"behavior": "deny", "message": "the host denied it"}),
        (None, {"behavior": "deny", "message": "the host denied it"}),
        ({"behavior": "deny", "message": "raw"}, {"behavior": "deny", "message": "raw"}),
        (ZeroDivisionError("x"), {"behavior": "deny", "message": "the host could not decide: ZeroDivisionError: x"}),
    ],
)
async def test_the_host_decides_on_tools(decided: Any, said: dict[str, Any]) -> None:
    """A reply, a bool or the CLI's own words; whoever decides nothing, or crashes, denies."""

    async def decide(request: CanUseTool) -> Any:
        if isinstance(decided, Exception):
            raise decided
        return decided

    cli = FakeCli()
    async with ClaudeClient(can_use_tool=decide, transport=cli):
        request = cli.cli.ask(CanUseTool(tool_name="Bash", input={"command": "ls"}))
        cli.say(request)
        answer = await cli.answer_to(request.request_id)

    assert isinstance(answer, Success)
    assert answer.data() == said


PERMISSION = {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "rm -rf keep"}}


def permission_callback(cli: FakeCli, call_id: str) -> str:
    """The CLI asks the PermissionRequest hooks about a call; returns the request's id."""
    payload = Raw(msgspec.json.encode(PERMISSION))
    asked = cli.cli.ask(HookCallback(callback_id="hook_0", input=payload, tool_use_id=call_id))
    cli.say(asked)
    return asked.request_id


def permission_question(cli: FakeCli, call_id: str | None) -> str:
    """The CLI asks the host about a call; returns the request's id."""
    asked = cli.cli.ask(CanUseTool(tool_name="Bash", input={"command": "rm -rf keep"}, tool_use_id=call_id))
    cli.say(asked)
    return asked.request_id


async def test_the_host_is_asked_only_once_permission_hooks_have_not_decided() -> None:
    """However the two requests for one call arrive, the hooks come first, and what they decide is final."""
    rows = [
        (deny("NO"), {"behavior": "deny", "message": "NO"}, []),
        (allow(), {"behavior": "allow", "updatedInput": {"command": "rm -rf keep"}}, []),
        (None, {"behavior": "allow", "updatedInput": {"command": "rm -rf keep"}}, ["rm -rf keep"]),
        (ZeroDivisionError("x"), "ZeroDivisionError", []),
    ]
    for said, expected, host_asked in rows:
        for question_first in (True, False):
            hooks, asked_host, heard = Hooks(), list[str](), list[str]()

            async def judge(event: PermissionRequest, said: Any = said, heard: list[str] = heard) -> Any:
                heard.append(event.tool_name)
                await asyncio.sleep(0)
                if isinstance(said, Exception):
                    raise said
                return said

            async def host(request: CanUseTool, asked_host: list[str] = asked_host) -> bool:
                asked_host.append(request.input["command"])
                return True

            hooks.on(PermissionRequest)(judge)
            cli = FakeCli()
            async with ClaudeClient(hooks=hooks, can_use_tool=host, transport=cli):
                if question_first:
                    question, _ = permission_question(cli, "t1"), permission_callback(cli, "t1")
                else:
                    _, question = permission_callback(cli, "t1"), permission_question(cli, "t1")
                answer = await cli.answer_to(question)

            row = f"{said!r}, question first: {question_first}"
            assert isinstance(answer, Success), row
            if isinstance(expected, str):
                assert answer.data()["behavior"] == "deny", row
                assert expected in answer.data()["message"], row
            else:
                assert answer.data() == expected, row
            assert (asked_host, heard) == (host_asked, ["Bash"]), row


async def test_permission_hooks_are_heard_though_their_callback_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CLI that names no call, or sends no callback for it, does not get past the hooks."""
    monkeypatch.setattr("hookline.hosts.claude_code.requests.ARRIVES_WITHIN", 0.0)
    for call_id in (None, "t1"):
        hooks = Hooks()
        hooks.on(PermissionRequest, match="Bash")(replying(deny("NO")))
        cli = FakeCli()
        async with ClaudeClient(hooks=hooks, can_use_tool=replying(True), transport=cli):
            answer = await cli.answer_to(permission_question(cli, call_id))

        assert isinstance(answer, Success)
        assert answer.data() == {"behavior": "deny", "message": "NO"}, call_id


async def test_hooks_for_other_tools_do_not_hold_the_host_up() -> None:
    """The CLI calls no callback where no matcher fits, so there is nothing to wait for."""
    hooks = Hooks()
    hooks.on(PermissionRequest, match="Write")(replying(deny("NO")))
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, can_use_tool=replying(True), transport=cli):
        answer = await cli.answer_to(permission_question(cli, "t1"))

    assert isinstance(answer, Success)
    assert answer.data()["behavior"] == "allow"


async def test_a_permission_callback_that_is_cancelled_denies_the_call() -> None:
    """A hook that was stopped in the middle has not agreed."""
    hooks, begun = Hooks(), asyncio.Event()

    @hooks.on(PermissionRequest)
    async def think(event: PermissionRequest) -> None:
        begun.set()
        await asyncio.Event().wait()

    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, can_use_tool=replying(True), transport=cli):
        question, callback = permission_question(cli, "t1"), permission_callback(cli, "t1")
        await begun.wait()
        cli.say(ControlCancel(callback))
        answer = await cli.answer_to(question)

    assert isinstance(answer, Success)
    assert answer.data() == {"behavior": "deny", "message": "the hooks' answer was no longer waited for"}


async def test_in_process_tools_are_announced_and_served() -> None:
    """The CLI learns of the server in `initialize` and reaches it by `mcp_message`."""

    async def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    cli = FakeCli()
    async with ClaudeClient(mcp_servers={"sums": ToolServer([add])}, transport=cli):

        async def rpc(server: str, method: str, **params: Any) -> dict[str, Any]:
            body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            request = cli.cli.ask(McpMessage(server_name=server, message=Raw(body)))
            cli.say(request)
            answer = await cli.answer_to(request.request_id)
            assert isinstance(answer, Success)
            response: dict[str, Any] = answer.data()["mcp_response"]
            return response

        listed = await rpc("sums", "tools/list")
        called = await rpc("sums", "tools/call", name="add", arguments={"a": 2})
        wrong = await rpc("sums", "tools/call", name="add", arguments={"a": "x"})
        nobody = await rpc("others", "tools/list")

    assert cli.requests[0].sdk_mcp_servers == ["sums"]
    assert [one["name"] for one in listed["result"]["tools"]] == ["add"]
    assert listed["result"]["tools"][0]["inputSchema"]["required"] == ["a"]
    assert called["result"] == {"content": [{"type": "text", "text": "3"}], "isError": False}
    assert wrong["result"]["isError"] is True
    assert "error" in nobody


# ── the conversation ─────────────────────────────────────────────────────────────────────────────


async def test_a_conversation_has_turns() -> None:
    """`receive` ends with the turn's result; the next `send` starts another."""
    cli = FakeCli(turns=[[{"type": "assistant", "message": {"content": "hi"}}, RESULT], [RESULT]])
    async with ClaudeClient(transport=cli) as claude:
        await claude.send("one")
        first = [one.type async for one in claude.receive()]
        await claude.send([{"type": "text", "text": "two"}])
        second = [one.type async for one in claude.receive()]

    assert (first, second, cli.prompts) == (["assistant", "result"], ["result"], ["one", "two"])


async def test_query_closes_the_input_once_the_cli_is_idle() -> None:
    """A result ends a turn; the run is over when the CLI says `idle`, and that note is not the caller's."""
    state = {"type": "system", "subtype": "session_state_changed", "sdk_host_only": True}
    cli = FakeCli(turns=[[{**state, "state": "running"}, RESULT]])

    seen = []
    async for one in query("go", transport=cli):
        seen.append(one.type)
        assert not cli.input_ended
        cli.say(message({**state, "state": "idle"}))

    assert seen == ["result"]
    assert cli.input_ended


async def test_query_streams_its_prompts() -> None:
    """The input is closed after the last prompt has its result."""

    async def prompts() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    cli = FakeCli(turns=[[RESULT], [RESULT]])
    results = [one async for one in query(prompts(), transport=cli) if isinstance(one, ResultMessage)]

    assert len(results) == 2
    assert cli.prompts == ["one", "two"]


async def test_a_stream_of_prompts_that_fails_is_not_swallowed() -> None:
    """The input is closed, and the caller sees what went wrong."""

    async def prompts() -> AsyncIterator[str]:
        yield "one"
        raise ZeroDivisionError("no more")

    cli = FakeCli(turns=[[RESULT]])

    with pytest.raises(ZeroDivisionError):
        async for _ in query(prompts(), transport=cli):
            pass
    assert cli.input_ended


async def test_controls_go_over_the_wire_and_refusals_come_back() -> None:
    """interrupt, set_model, set_permission_mode and any other request; an error is a `RequestRefused` with its code."""
    cli = FakeCli()
    async with ClaudeClient(transport=cli) as claude:
        await claude.interrupt()
        await claude.set_model("m")
        await claude.set_permission_mode("plan")
        await claude.request("mcp_status", all=True)
        cli.silent = True
        waiting = asyncio.ensure_future(claude.set_model("x"))
        await cli.until(lambda: len(cli.requests) == 6)
        cli.answer("req_6", Failure("", "no", "blocked_by_hook"))
        with pytest.raises(RequestRefused) as refused:
            await waiting

    assert cli.requests[1:5] == [
        Interrupt(),
        SetModel(model="m"),
        SetPermissionMode(mode="plan"),
        OtherRequest("mcp_status", Raw(b'{"subtype":"mcp_status","all":true}')),
    ]
    assert refused.value.code == "blocked_by_hook"


async def test_initialize_answered_with_an_error_ends_the_start() -> None:
    """The client does not go on as if nothing had happened."""
    cli = FakeCli(Failure("", "bad hooks"))

    with pytest.raises(RequestRefused, match="bad hooks"):
        await ClaudeClient(transport=cli).connect()
    assert cli.closed


async def test_initialize_never_answered_is_one_clear_error() -> None:
    """It says how long it waited and what the CLI said last."""
    cli = FakeCli()
    cli.silent = True

    with pytest.raises(CliSilent, match=r"(?s)`initialize` within 0.05 s.*the last words"):
        await ClaudeClient(transport=cli, initialize_timeout=0.05).connect()
    assert cli.closed


async def test_a_cli_that_ends_too_early_fails_whoever_waits() -> None:
    """Readers and requests get the same error, with exit code and last words."""
    cli = FakeCli()
    async with ClaudeClient(transport=cli) as claude:
        cli.silent = True
        await claude.send("go")
        asking = asyncio.ensure_future(claude.interrupt())
        await cli.until(lambda: len(cli.requests) == 2)
        cli.end(7)
        with pytest.raises(CliDied, match=r"(?s)exit code 7.*the last words") as reading:
            async for _ in claude.receive():
                pass
        with pytest.raises(CliDied):
            await asking
        with pytest.raises(CliDied):
            await claude.send("more")

    assert (reading.value.exit_code, reading.value.stderr) == (7, "the last words")


async def test_an_error_result_is_a_message_not_an_exception() -> None:
    """After it the CLI ends with exit code 1 on purpose; the result says why."""
    failed = {"type": "result", "subtype": "error_max_turns", "is_error": True, "errors": ["too many"]}
    cli = FakeCli(turns=[[failed]])
    async with ClaudeClient(transport=cli) as claude:
        await claude.send("go")
        cli.end(1)
        seen = [one async for one in claude.messages()]

    assert [one.errors for one in seen if isinstance(one, ResultMessage)] == [["too many"]]


async def test_a_broken_line_ends_the_conversation() -> None:
    """What begins as JSON and is none means that a message was lost."""
    cli = FakeCli()
    async with ClaudeClient(transport=cli) as claude:
        cli.raw(b'{"type":"assistant",\n')
        await cli.until(lambda: cli.closed)
        cli.end(-15)
        with pytest.raises(CliProtocolError, match=r"not JSON.*exit code -15"):
            async for _ in claude.messages():
                pass


async def test_a_stray_print_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """A line that is no JSON at all is somebody's print."""
    cli = FakeCli(turns=[[RESULT]])
    async with ClaudeClient(transport=cli) as claude:
        cli.raw(b"[debug] hello\n")
        await claude.send("go")
        seen = [one.type async for one in claude.receive()]

    assert seen == ["result"]
    assert "[debug] hello" in caplog.text


async def test_a_reader_who_is_slow_holds_up_neither_a_hook_nor_a_request() -> None:
    """Hooks are asked down the same pipe: one that were not read would be a gate that the CLI waits for in vain."""
    hooks = Hooks()
    hooks.on(PreToolUse)(replying(deny("NO")))
    cli = FakeCli()
    async with ClaudeClient(hooks=hooks, transport=cli) as claude:
        for _ in range(4):
            cli.say(message({"type": "assistant", "message": {"content": "x" * (10 * 1024 * 1024)}}))
        answer = await cli.answer_to(cli.call("hook_0", tool_name="Bash", tool_input={"command": "ls"}))
        await claude.interrupt()
        unread = 0
        async for said in claude.messages():
            unread += len(said.line)
            if unread > 40 * 1024 * 1024:
                break

    assert isinstance(answer, Success)
    assert answer.data()["hookSpecificOutput"]["permissionDecision"] == "deny"


async def test_a_client_that_is_not_connected_says_so() -> None:
    """The mistake is named, with what to do."""
    with pytest.raises(ClaudeError, match="async with"):
        await ClaudeClient(transport=FakeCli()).send("go")


@pytest.fixture(autouse=True)
def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hookline")


@pytest.mark.parametrize("answer, said", [
    (None, {"continue": True, "decision": ""}),
    (deny("no"), {"continue": False, "decision": "block", "reason": "no"}),
])  # fmt: skip
async def test_a_line_of_type_hook_event_is_answered_with_a_hook_response(
    answer: Reply | None, said: dict[str, Any]
) -> None:
    """seeds/004: the other way for a CLI to ask; nobody reads it as something the model said."""
    hooks = Hooks()
    hooks.on(PreToolUse)(replying(answer))
    cli = FakeCli()
    line = {"type": "hook_event", "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": {},
            "tool_use_id": "t9"}  # fmt: skip
    async with ClaudeClient(hooks=hooks, transport=cli):
        cli.news.clear()
        cli._receiver.received(msgspec.json.encode(line) + b"\n")  # type: ignore[union-attr]
        await cli.news.wait()
        response = msgspec.json.decode(cli.writes[-1])

    assert (response["type"], response["tool_use_id"]) == ("hook_response", "t9")
    assert said.items() <= response.items()
