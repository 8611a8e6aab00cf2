"""`hookline run --input-format stream-json` and hosts that misbehave: real processes, nothing lost, nothing hangs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.events import Event
from hookline.hosts.claude_code import ClaudeClient, query
from hookline.hosts.claude_code.messages import ResultMessage

HOOKLINE = Path(sys.executable).parent / "hookline"
HANG_GUARD = 60.0
BROKEN_PIPE = 141
BASH = ["Bash", {"command": "echo ran >> out.txt", "description": "d"}]
CALL_THEN_FINAL: list[dict[str, Any]] = [{"tools": [BASH]}, {"text": "final"}]
PRE = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["h0"]}]}

Line = dict[str, Any]


class Served:
    """A `hookline run` in a process of its own, and what it said."""

    def __init__(self, process: asyncio.subprocess.Process, cwd: Path) -> None:
        self.process, self.cwd = process, cwd
        self.said: list[Line] = []

    def write(self, *lines: bytes | Line) -> None:
        """Say something; bytes as they are, messages as one line each."""
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    async def drain(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.drain()

    def hang_up(self) -> None:
        """Close the host's end."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def abandon(self) -> None:
        """Be gone altogether: nothing is said any more, and nothing read."""
        assert self.process.stdout is not None
        self.hang_up()
        transport = self.process._transport  # type: ignore[attr-defined]
        transport.get_pipe_transport(1).close()
        await self.process.stdout.read()  # the loop closes the pipe a moment later, and then this ends

    async def until(self, wanted: Callable[[Line], bool]) -> Line:
        """Read on to the first message like this."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.said.append(json.loads(line))
            if wanted(self.said[-1]):
                return self.said[-1]
        raise AssertionError(f"the server ended before that: {await self._last_words()}")

    async def callback(self) -> str:
        """The id of the next hook callback."""
        asked = await self.until(lambda line: line.get("request", {}).get("subtype") == "hook_callback")
        return str(asked["request_id"])

    async def result(self) -> Line:
        return await self.until(lambda line: line["type"] == "result")

    async def answer(self, request_id: str) -> Line:
        """What the server answered to a request of ours."""
        found = await self.until(
            lambda line: line["type"] == "control_response" and line["response"]["request_id"] == request_id
        )
        response: Line = found["response"]
        return response

    async def end(self) -> tuple[int, str]:
        """Hang up and wait for the end: the exit code, and what it said on stderr."""
        self.hang_up()
        assert self.process.stdout is not None
        self.said += [json.loads(line) for line in (await self.process.stdout.read()).splitlines()]
        words = await self._last_words()
        return await self.process.wait(), words

    async def _last_words(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    @property
    def ran(self) -> bool:
        return (self.cwd / "out.txt").exists()

    def count(self, kind: str) -> int:
        return sum(line["type"] == kind for line in self.said)


@asynccontextmanager
async def serving(folder: Path, turns: list[dict[str, Any]], *flags: str) -> AsyncIterator[Served]:
    """The server on a scripted model; it is gone at the end, and a test that hangs fails."""
    (folder / "turns.json").write_text(json.dumps(turns))
    project = folder / "project"
    project.mkdir()
    words = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
    process = await asyncio.create_subprocess_exec(
        str(HOOKLINE), "run", "--trust", "--model", f"scripted:{folder / 'turns.json'}", *words, *flags,
        cwd=project, env={**os.environ, "HOME": str(folder)}, limit=2**20,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(HANG_GUARD):
            yield Served(process, project)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def prompt(text: str = "go") -> Line:
    return {"type": "user", "session_id": "", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


def request(request_id: str, subtype: str, **fields: Any) -> Line:
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}


def respond(request_id: str, **response: Any) -> Line:
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    }


def denial(reason: str) -> Line:
    decided = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": decided}


def tool_results(said: list[Line]) -> list[Line]:
    blocks = [block for line in said if line["type"] == "user" for block in line["message"]["content"]]
    return [block for block in blocks if block.get("type") == "tool_result"]


async def test_a_prompt_before_initialize_is_answered(tmp_path: Path) -> None:
    """A host that does not introduce itself has no callbacks, and is served all the same."""
    async with serving(tmp_path, [{"text": "one"}]) as served:
        served.write(prompt())
        result = await served.result()
        code, _ = await served.end()

    assert (result["result"], code) == ("one", 0)


async def test_half_a_line_at_the_end_is_told_and_what_came_before_is_done(tmp_path: Path) -> None:
    """The prompt before it is worked on to its end; the half line is named on stderr."""
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(prompt(), b'{"type":"user","mess')
        code, words = await served.end()

    assert [line["result"] for line in served.said if line["type"] == "result"] == ["final"]
    assert served.ran
    assert code == 0
    assert "the last line was cut off" in words


async def test_lines_that_are_no_messages_are_told_and_passed_over(tmp_path: Path) -> None:
    """Garbage, invalid UTF-8, JSON that is no message: each is named on stderr; the prompts around them are served."""
    async with serving(tmp_path, [{"text": "one"}, {"text": "two"}]) as served:
        served.write(prompt(), b"garbage\n", b'{"type":"user","message":"\xff\xfe"}\n', b"[1,2]\n", b"\n", prompt())
        results = [await served.result(), await served.result()]
        code, words = await served.end()

    assert [result["result"] for result in results] == ["one", "two"]
    assert code == 0
    assert "not JSON" in words
    assert "not UTF-8" in words
    assert "not a message of the protocol" in words


async def test_a_request_in_invalid_utf8_is_refused_rather_than_left_waiting(tmp_path: Path) -> None:
    """Its id can still be read, so the host hears what was wrong."""
    async with serving(tmp_path, [{"text": "one"}]) as served:
        served.write(b'{"type":"control_request","request_id":"r1","request":{"subtype":"interrupt","x":"\xff"}}\n')
        refused = await served.answer("r1")
        await served.end()

    assert (refused["subtype"], refused["error_code"]) == ("error", "invalid_request")
    assert "UTF-8" in refused["error"]


async def test_a_line_of_200_megabytes_is_read_whole(tmp_path: Path) -> None:
    """It holds nothing up for good: it is answered, and so is what comes after it."""
    padding = b"x" * 1_000_000
    async with serving(tmp_path, [{"text": "one"}]) as served:
        served.write(b'{"type":"control_request","request_id":"big","request":{"subtype":"mcp_status","padding":"')
        for _ in range(200):
            served.write(padding)
            await served.drain()
        served.write(b'"}}\n', prompt())
        answered = await served.answer("big")
        result = await served.result()
        await served.end()

    assert answered["subtype"] == "success"
    assert result["result"] == "one"


async def test_responses_to_nothing_and_second_responses_change_nothing(tmp_path: Path) -> None:
    """The first answer to a callback counts; the second, and one nobody asked for, are named on stderr."""
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(respond("never_asked", **denial("STRAY")), request("i", "initialize", hooks=PRE), prompt())
        callback = await served.callback()
        served.write(respond(callback, **denial("FIRST")), respond(callback))
        await served.result()
        _, words = await served.end()

    assert not served.ran
    assert "FIRST" in str(tool_results(served.said))
    assert "never_asked" in words
    assert callback in words


async def test_a_reused_request_id_is_told_and_answered_once(tmp_path: Path) -> None:
    """No request is answered twice, so the second of one id is not served."""
    async with serving(tmp_path, [{"text": "one"}]) as served:
        served.write(request("same", "mcp_status"), request("same", "mcp_status"), prompt())
        await served.result()
        _, words = await served.end()

    assert served.count("control_response") == 1
    assert "`same`" in words


async def test_a_second_initialize_replaces_the_callbacks(tmp_path: Path) -> None:
    """Both are answered; only the hooks of the second are asked."""
    second = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["other"]}]}
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(request("i1", "initialize", hooks=PRE), request("i2", "initialize", hooks=second), prompt())
        answers = [await served.answer("i1"), await served.answer("i2")]
        asked = await served.until(lambda line: line["type"] == "control_request")
        served.write(respond(asked["request_id"], **denial("OTHER")))
        await served.result()
        await served.end()

    assert [answer["subtype"] for answer in answers] == ["success", "success"]
    assert asked["request"]["callback_id"] == "other"
    assert served.count("control_request") == 1
    assert not served.ran


async def test_an_initialize_without_hooks_leaves_the_callbacks(tmp_path: Path) -> None:
    """A host that says nothing of hooks has not taken its guards away."""
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(request("i1", "initialize", hooks=PRE), request("i2", "initialize", hooks=None), prompt())
        served.write(respond(await served.callback(), **denial("STILL")))
        await served.result()
        await served.end()

    assert not served.ran


async def test_an_initialize_that_makes_no_sense_is_refused_and_another_one_serves(tmp_path: Path) -> None:
    """The host learns what is wrong with it and can go on."""
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(request("i1", "initialize", hooks={"PreToolUse": "nonsense"}))
        refused = await served.answer("i1")
        served.write(request("i2", "initialize", hooks=PRE), prompt())
        served.write(respond(await served.callback(), **denial("NO")))
        await served.result()
        await served.end()

    assert (refused["subtype"], refused["error_code"]) == ("error", "invalid_request")
    assert not served.ran


async def test_an_unknown_request_is_refused_with_a_code(tmp_path: Path) -> None:
    """A host newer than we are can tell what is not there."""
    async with serving(tmp_path, [{"text": "one"}]) as served:
        served.write(request("r1", "of_the_future"), {"type": "of_the_future_too"}, prompt())
        refused = await served.answer("r1")
        await served.result()
        await served.end()

    assert refused["error_code"] == "unsupported_request"


async def test_a_host_that_hangs_up_while_its_hook_runs_has_not_agreed(tmp_path: Path) -> None:
    """The tool is not run, the model hears of it, and the turn comes to its end."""
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(request("i", "initialize", hooks=PRE), prompt())
        await served.callback()
        code, _ = await served.end()

    assert not served.ran
    assert [block["is_error"] for block in tool_results(served.said)] == [True]
    assert [line["result"] for line in served.said if line["type"] == "result"] == ["final"]
    assert code == 0


async def test_an_answer_after_the_timeout_comes_too_late(tmp_path: Path) -> None:
    """The question is taken back, the tool stays unrun even if the host then agrees, and the session goes on."""
    hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["h0"], "timeout": 0.2}]}
    async with serving(tmp_path, [*CALL_THEN_FINAL, {"text": "later"}]) as served:
        served.write(request("i", "initialize", hooks=hooks), prompt())
        callback = await served.callback()
        cancelled = await served.until(lambda line: line["type"] == "control_cancel_request")
        served.write(respond(callback), prompt("again"))
        results = [await served.result(), await served.result()]
        _, words = await served.end()

    assert cancelled["request_id"] == callback
    assert not served.ran
    assert [result["result"] for result in results] == ["final", "later"]
    assert callback in words


async def test_an_interrupt_during_a_hook_takes_the_question_back_and_the_next_prompt_is_served(tmp_path: Path) -> None:
    """The turn ends with an error; the session does not."""
    async with serving(tmp_path, [*CALL_THEN_FINAL, {"text": "later"}]) as served:
        served.write(request("i", "initialize", hooks=PRE), prompt())
        callback = await served.callback()
        served.write(request("stop", "interrupt"))
        cancelled = await served.until(lambda line: line["type"] == "control_cancel_request")
        first = await served.result()
        served.write(prompt("again"))
        second = await served.result()
        await served.end()

    assert cancelled["request_id"] == callback
    assert (first["subtype"], second["subtype"]) == ("error_during_execution", "success")
    assert not served.ran


async def test_an_interrupt_while_stop_hooks_are_asked_leaves_what_was_said(tmp_path: Path) -> None:
    """The agent had answered: the question is taken back, and the turn is over as it would have been."""
    hooks = {"Stop": [{"matcher": None, "hookCallbackIds": ["h0"]}]}
    async with serving(tmp_path, [{"text": "said"}]) as served:
        served.write(request("i", "initialize", hooks=hooks), prompt())
        callback = await served.callback()
        served.write(request("stop", "interrupt"))
        cancelled = await served.until(lambda line: line["type"] == "control_cancel_request")
        result = await served.result()
        code, _ = await served.end()

    assert cancelled["request_id"] == callback
    assert (result["subtype"], result["result"], result["num_turns"], code) == ("success", "said", 1, 0)


async def test_a_subagent_does_not_start_while_the_host_is_silent(tmp_path: Path) -> None:
    """A SubagentStart callback that takes too long has not agreed; the main agent hears of it and goes on."""
    task = ["Agent", {"description": "d", "prompt": "SUB", "run_in_background": False}]
    hooks = {"SubagentStart": [{"matcher": None, "hookCallbackIds": ["h0"], "timeout": 0.1}]}
    async with serving(tmp_path, [{"tools": [task]}, {"text": "final"}], "--allowedTools", "Agent") as served:
        served.write(request("i", "initialize", hooks=hooks), prompt())
        result = await served.result()
        await served.end()

    assert result["result"] == "final"
    (told,) = tool_results(served.said)
    assert told["is_error"]
    assert "did not respond" in json.dumps(told["content"])


async def test_many_prompts_at_once_are_answered_in_order(tmp_path: Path) -> None:
    """A host need not wait for one turn to be over before it asks for the next."""
    turns = [{"text": f"answer {number}"} for number in range(20)]
    async with serving(tmp_path, turns) as served:
        served.write(*(prompt(f"question {number}") for number in range(20)))
        code, _ = await served.end()

    assert [line["result"] for line in served.said if line["type"] == "result"] == [one["text"] for one in turns]
    assert code == 0


async def test_a_host_that_hangs_up_during_can_use_tool_has_not_agreed(tmp_path: Path) -> None:
    """The call is refused, and the model is told why."""
    asks: list[Line] = [{"tools": [["Write", {"file_path": "out.txt", "content": "ran"}]]}, {"text": "final"}]
    async with serving(tmp_path, asks, "--permission-prompt-tool", "stdio") as served:
        served.write(request("i", "initialize"), prompt())
        await served.until(lambda line: line.get("request", {}).get("subtype") == "can_use_tool")
        code, _ = await served.end()

    assert not served.ran
    assert [block["is_error"] for block in tool_results(served.said)] == [True]
    assert code == 0


async def test_a_host_whose_mcp_servers_answer_nonsense_gets_its_prompt_served(tmp_path: Path) -> None:
    """The servers are reported as failed, and the rest goes on."""
    answers: dict[str, Any] = {"nothing": None, "number": {"mcp_response": 7}}
    config = json.dumps({"mcpServers": {name: {"type": "sdk", "name": name} for name in answers}})
    async with serving(tmp_path, [{"text": "one"}], "--mcp-config", config) as served:
        served.write(request("i", "initialize"), prompt())
        for _ in answers:
            asked = await served.until(lambda line: line.get("request", {}).get("subtype") == "mcp_message")
            answer = answers[asked["request"]["server_name"]]
            response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
            served.write({"type": "control_response", "response": response})
        result = await served.result()
        await served.end()

    init = next(line for line in served.said if line.get("subtype") == "init")
    assert init["mcp_servers"] == [{"name": name, "status": "failed"} for name in answers]
    assert result["result"] == "one"


async def test_our_client_s_hooks_hear_of_the_session_s_start_and_end(tmp_path: Path) -> None:
    """Where the Claude CLI calls nobody, ours asks the host's hooks, also at the end, before stdin is closed."""
    (tmp_path / "turns.json").write_text(json.dumps([{"text": "one"}]))
    hooks = Hooks()
    seen: list[tuple[str, str | None]] = []

    @hooks.on("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
    async def note(event: Event) -> None:
        seen.append((event.event_name, event.subject))

    words = [str(HOOKLINE), "run", "--trust", "--model", f"scripted:{tmp_path / 'turns.json'}"]
    env = {**os.environ, "HOME": str(tmp_path)}
    async with asyncio.timeout(HANG_GUARD), ClaudeClient(hooks=hooks, cli=words, cwd=tmp_path, env=env) as client:
        await client.send("go")
        async for _ in client.receive():
            pass

    assert seen == [("SessionStart", "startup"), ("UserPromptSubmit", None), ("Stop", None), ("SessionEnd", "other")]


@pytest.mark.parametrize("way", ["query", "end_input", "end_input first"])
async def test_a_session_s_end_is_told_however_the_input_ends(way: str, tmp_path: Path) -> None:
    """`query()` and `end_input()` close the CLI's stdin by themselves; it asks about SessionEnd before that."""
    (tmp_path / "turns.json").write_text(json.dumps([{"text": "one"}]))
    hooks = Hooks()
    seen: list[str] = []

    @hooks.on("Stop", "SessionEnd")
    async def note(event: Event) -> None:
        seen.append(event.event_name)

    words = [str(HOOKLINE), "run", "--trust", "--model", f"scripted:{tmp_path / 'turns.json'}"]
    options: dict[str, Any] = {"cli": words, "cwd": tmp_path, "env": {**os.environ, "HOME": str(tmp_path)}}
    async with asyncio.timeout(HANG_GUARD):
        if way == "query":
            said = [message async for message in query("go", hooks=hooks, **options)]
        else:
            async with ClaudeClient(hooks=hooks, **options) as client:
                await client.send("go")
                if way == "end_input first":
                    client.end_input()
                    said = [message async for message in client.messages()]
                else:
                    said = [message async for message in client.receive()]
                    client.end_input()
                    said += [message async for message in client.messages()]

    assert seen == ["Stop", "SessionEnd"]
    assert [message for message in said if isinstance(message, ResultMessage)]


async def test_a_session_that_is_ended_works_on_nothing_more(tmp_path: Path) -> None:
    """`end_session` stops the turn under way, asks SessionEnd hooks, and leaves later prompts alone."""
    hooks = {**PRE, "SessionEnd": [{"matcher": None, "hookCallbackIds": ["end"]}]}
    async with serving(tmp_path, CALL_THEN_FINAL) as served:
        served.write(request("i", "initialize", hooks=hooks), prompt())
        await served.callback()
        served.write(request("end", "end_session", reason="logout"), prompt("too late"))
        asked = await served.until(lambda line: line.get("request", {}).get("callback_id") == "end")
        served.write(respond(asked["request_id"]))
        answered = await served.answer("end")
        await served.end()

    assert asked["request"]["input"]["reason"] == "logout"
    assert answered["subtype"] == "success"
    assert [line["subtype"] for line in served.said if line["type"] == "result"] == ["error_during_execution"]
    assert not served.ran


async def test_a_host_that_dies_ends_the_session_and_its_hooks_hear_of_it(tmp_path: Path) -> None:
    """With nobody left to tell, no further tool is run, SessionEnd fires, and the process is gone."""
    wait = "until [ -e go ]; do sleep 0.05; done"
    turns: list[Line] = [{"tools": [["Bash", {"command": wait, "description": "d"}]]}, *CALL_THEN_FINAL]
    ended = {"type": "command", "command": f'touch "{tmp_path}/ended"', "timeout": 30}
    settings = json.dumps({"hooks": {"SessionEnd": [{"hooks": [ended]}]}})
    async with serving(tmp_path, turns, "--settings", settings) as served:
        served.write(prompt())
        await served.until(lambda line: line["type"] == "assistant")
        await served.abandon()
        (served.cwd / "go").touch()
        code = await served.process.wait()

    assert code == BROKEN_PIPE
    assert not served.ran
    assert (tmp_path / "ended").exists()


ELICITING = Path(__file__).parents[2] / "contract" / "mcp_server.py"
ANSWERED = {"action": "accept", "content": {"name": "Bob"}}


async def test_the_host_answers_what_an_mcp_server_asks(tmp_path: Path) -> None:
    """An `elicitation` goes to the host as the Claude CLI sends it; an answer that makes no sense is cancel."""
    turns: list[Line] = [*[{"tools": [["mcp__srv__ask", {"text": "x"}]]}] * 2, {"text": "final"}]
    config = json.dumps({"mcpServers": {"srv": {"command": sys.executable, "args": [str(ELICITING)]}}})
    async with serving(tmp_path, turns, "--mcp-config", config, "--allowedTools", "mcp__srv__ask") as served:
        served.write(prompt())
        asked = []
        for answer in (ANSWERED, {}):
            asked.append(await served.until(lambda line: line.get("request", {}).get("subtype") == "elicitation"))
            served.write(respond(asked[-1]["request_id"], **answer))
        await served.result()
        await served.end()

    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    about = {"mcp_server_name": "srv", "message": "Your name?", "mode": "form", "requested_schema": schema}
    assert [one["request"] for one in asked] == [{"subtype": "elicitation", **about, "property_order": ["name"]}] * 2
    for given, result in zip((ANSWERED, {"action": "cancel"}), tool_results(served.said), strict=True):
        assert f"elicited {json.dumps(given)}" in json.dumps(result["content"]).replace('\\"', '"')


async def test_a_system_prompt_that_makes_no_sense_is_refused_and_the_next_one_served(tmp_path: Path) -> None:
    """A host that is told what is wrong can try again; nothing hangs."""
    wrong: dict[str, Any] = {"number": 5, "object": {"a": 1}, "list": [1], "bool": True}
    async with serving(tmp_path, [{"text": "one"}]) as served:
        served.write(*(request(name, "initialize", systemPrompt=value) for name, value in wrong.items()),
                     request("right", "initialize", systemPrompt="be brief"))  # fmt: skip
        refused = [await served.answer(name) for name in wrong]
        answered = await served.answer("right")
        served.write(prompt())
        result = await served.result()
        await served.end()

    assert [(one["subtype"], "systemPrompt" in one["error"]) for one in refused] == [("error", True)] * len(wrong)
    assert (answered["subtype"], result["result"]) == ("success", "one")
