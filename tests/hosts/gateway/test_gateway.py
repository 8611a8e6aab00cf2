"""A call through the gateway: judged before and after, in both eras; everything else passes as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.hosts.gateway.session import Session

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
WORDS = {
    "plain": "echo: plain",
    "DENY": "`echo` was denied: not this one",
    "REWRITE": "echo: rewritten",
    "UNFIT": "`echo` was denied: a hook's rewrite does not fit the tool: /message: 7 is not of type 'string'",
    "NOTE": "echo: NOTE\na note of the house",
    "REDACT": "[redacted]",
    "ASK": "`echo` needs approval, and this client has no way to ask a person: a person must say yes",
}


def test_a_call_is_judged_before_and_after(tmp_path: Path) -> None:
    """Deny, rewrite, context, replaced output and `ask`, in either era; hooks that print disturb nothing."""
    with Session(tmp_path) as session:
        session.initialize()
        seen = {word: session.text("echo", message=word) for word in WORDS}
        raised = session.text("echo", message="RAISE")
        meta = {**MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        modern = [session.ask("tools/call", name="echo", arguments={"message": word}, _meta=meta) for word in WORDS]

    assert seen == WORDS
    assert "broken hook" in raised
    assert [one["result"]["content"][0]["text"] for one in modern] == [
        text.partition("\n")[0] for text in WORDS.values()
    ]
    assert {one["result"]["resultType"] for one in modern} == {"complete"}


def test_structured_output_stays_valid(tmp_path: Path) -> None:
    """A replaced output fits the tool's `outputSchema`, or the result is an error, which clients do not validate."""
    with Session(tmp_path) as session:
        session.initialize()
        plain, fits, text = (session.call("measure", message=word) for word in ("abc", "STRUCT", "REDACT"))

    assert plain["structuredContent"] == {"length": 3}
    assert fits["structuredContent"] == {"length": 0}
    assert text == {"content": [{"type": "text", "text": "[redacted]"}], "isError": True}


def test_everything_else_passes_as_it_is(tmp_path: Path) -> None:
    """Methods that the gateway does not know, with their parameters and results, and before any list of tools."""
    with Session(tmp_path) as session:
        session.initialize()

        assert session.ask("resources/list", cursor="x")["result"] == {"passed": "resources/list"}
        assert session.ask("future/method", a=[1, {"b": None}])["result"] == {"passed": "future/method"}


def test_the_result_of_a_task_is_judged_when_it_is_fetched(tmp_path: Path) -> None:
    """A call may be answered with a task; what comes out of that is the call's result."""
    with Session(tmp_path) as session:
        session.initialize()
        begun = session.call("task", message="REDACT")
        fetched = session.ask("tasks/result", taskId="t1")["result"]

    assert begun == {"task": {"taskId": "t1", "status": "working"}}
    assert fetched == {"content": [{"type": "text", "text": "[redacted]"}]}


def test_calls_run_at_once_and_one_that_is_cancelled_never_reaches_the_server(tmp_path: Path) -> None:
    """A hook that takes its time holds up its own call alone."""
    with Session(tmp_path) as session:
        session.initialize()
        session.send(id="slow", method="tools/call", params={"name": "echo", "arguments": {"message": "HANG"}})
        during = session.text("echo", message="meanwhile")
        session.send(method="notifications/cancelled", params={"requestId": "slow"})
        after = session.text("echo", message="after")
        code, _ = session.close()

    assert (during, after, code) == ("echo: meanwhile", "echo: after", 0)


def approve(session: Session, **answer: Any) -> str:
    """Call what is asked about, and answer the question that comes."""
    session.send(id="asked", method="tools/call", params={"name": "echo", "arguments": {"message": "ASK"}})
    question = session.read()
    assert question["method"] == "elicitation/create"
    assert 'mcp__s__echo {"message":"ASK"}' in question["params"]["message"]
    session.send(id=question["id"], result=answer)
    return str(session.read()["result"]["content"][0]["text"])


def test_ask_is_an_elicitation_where_the_client_declared_it(tmp_path: Path) -> None:
    """Only a clear yes lets the call run."""
    no = "`echo` was not approved: a person must say yes"
    with Session(tmp_path) as session:
        session.initialize(elicitation={})

        assert approve(session, action="accept", content={"approve": True}) == "echo: ASK"
        assert approve(session, action="accept", content={"approve": False}) == no
        assert approve(session, action="accept", content={}) == no
        assert approve(session, action="decline") == no


def test_an_answer_in_the_retry_scheme_fits_one_call_once(tmp_path: Path) -> None:
    """In the stateless era the client makes the call again; another call, a second use, a no and a forgery fail."""
    call: dict[str, Any] = {"name": "echo", "arguments": {"message": "ASK"}, "_meta": MODERN}
    with Session(tmp_path) as session:
        states = [session.ask("tools/call", **call)["result"]["requestState"] for _ in range(3)]
        yes = {"hookline": {"action": "accept", "content": {"approve": True}}}
        other = {**call, "arguments": {"message": "ASK for more"}}
        again = [
            session.ask("tools/call", **call, requestState=states[0], inputResponses=yes)["result"],
            session.ask("tools/call", **call, requestState=states[0], inputResponses=yes)["result"],
            session.ask("tools/call", **other, requestState=states[1], inputResponses=yes)["result"],
            session.ask(
                "tools/call", **call, requestState=states[2], inputResponses={"hookline": {"action": "decline"}}
            )["result"],
        ]
        forged = session.ask("tools/call", **call, requestState=states[2][:-8] + "AAAAAAA=", inputResponses=yes)[
            "result"
        ]

    assert [one["content"][0]["text"] for one in again] == [
        "echo: ASK",
        *["`echo` was not approved: a person must say yes"] * 3,
    ]
    assert forged["resultType"] == "input_required"


def test_what_the_server_asks_is_an_event(tmp_path: Path) -> None:
    """A hook declines an elicitation before the user sees it; another one reaches the client, and so does sampling."""
    with Session(tmp_path) as session:
        session.initialize(elicitation={}, sampling={})
        declined = session.text("ask", message="your password?")
        session.send(id="a", method="tools/call", params={"name": "ask", "arguments": {"message": "your name?"}})
        question = session.read()
        session.send(id=question["id"], result={"action": "accept", "content": {"name": "ada"}})
        answered = session.read()
        session.send(id="b", method="tools/call", params={"name": "sample"})
        sampling = session.read()
        session.send(
            id=sampling["id"], result={"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}}
        )
        sampled = session.read()

    assert declined == '{"action": "decline"}'
    assert question["params"]["message"] == "your name?"
    assert '"ada"' in answered["result"]["content"][0]["text"]
    assert sampling["method"] == "sampling/createMessage"
    assert "hello" in sampled["result"]["content"][0]["text"]


def test_what_does_not_show_is_removed_with_a_note(tmp_path: Path) -> None:
    """From descriptions and results; a tool whose very name hides something is not offered."""
    note = "[hookline removed 3 escape sequence(s) or invisible character(s) here]"
    with Session(tmp_path) as session:
        session.initialize()
        tools = {tool["name"]: tool for tool in session.ask("tools/list")["result"]["tools"]}
        result = session.text("hidden")

    assert tools["sly"]["description"] == f"harmless text\n\n{note}"
    assert not [name for name in tools if name.startswith("veiled")]
    assert result == f"seen and hidden\n{note}"


def test_answers_to_a_servers_questions_are_judged_in_every_request(tmp_path: Path) -> None:
    """In the retry scheme `prompts/get` and `resources/read` come back with answers, as calls do."""
    given = {"q": {"action": "accept", "content": {"text": "SECRET"}}}
    with Session(tmp_path) as session:
        refused = [
            session.ask(method, inputResponses=given, _meta=MODERN)["error"]["message"]
            for method in ("prompts/get", "resources/read")
        ]
        given["q"]["content"] = {"text": "fine"}
        passed = session.ask("prompts/get", inputResponses=given, _meta=MODERN)["result"]["passed"]

    assert refused == [
        f"`{method}` was refused: a hook refused an answer to the server"
        for method in ("prompts/get", "resources/read")
    ]
    assert passed == "prompts/get"


def test_a_session_begins_and_ends(tmp_path: Path) -> None:
    """Hooks are told once each; what they print goes to stderr."""
    with Session(tmp_path) as session:
        session.initialize()
        _, errors = session.close()

    assert [line for line in errors.splitlines() if line.startswith("a session")] == [
        "a session: SessionStart", "a session: SessionEnd",
    ]  # fmt: skip
