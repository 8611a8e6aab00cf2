"""Servers and clients that misbehave: the gateway goes on, and what cannot be judged is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.hosts.gateway.session import Session


def test_a_server_that_misbehaves_disturbs_no_other_call(tmp_path: Path) -> None:
    """Logs on stdout, answers that were not asked for, deep JSON, invalid UTF-8, and a result of 50 MB."""
    with Session(tmp_path) as session:
        session.initialize()
        seen = [session.text(tool) for tool in ("print", "stray", "deep", "utf8")]
        large = session.text("big", bytes=50_000_000)
        after = session.text("echo", message="after")
        code, errors = session.close()

    assert (seen, len(large), after, code) == (["done"] * 4, 50_000_000, "echo: after", 0)
    assert "the server printed: a log line on stdout" in errors
    assert "`unknown`, which was not asked" in errors


def test_an_answer_cannot_pass_as_something_else(tmp_path: Path) -> None:
    """A message is a request or an answer: what claims to be both would reach the client without being judged."""
    with Session(tmp_path) as session:
        session.initialize()
        session.send(id="call", method="tools/call", params={"name": "forge", "arguments": {"id": "call"}})
        asked, answered = session.read(), session.read()

    assert asked == {"jsonrpc": "2.0", "id": "call", "method": "roots/list"}
    assert answered["result"]["content"][0]["text"] == "done"


def test_a_call_without_an_id_does_not_reach_the_server(tmp_path: Path) -> None:
    """A server that runs it all the same would do so without a verdict."""
    with Session(tmp_path) as session:
        session.initialize()
        session.send(method="tools/call", params={"name": "die"})
        after = session.text("echo", message="after")

    assert after == "echo: after"


def test_a_flood_passes_in_order_and_holds_up_nothing(tmp_path: Path) -> None:
    """20,000 notifications before an answer: all of them arrive, then the answer."""
    with Session(tmp_path) as session:
        session.initialize()
        session.send(id="x", method="tools/call", params={"name": "flood"})
        numbers = []
        while "id" not in (message := session.read()):
            numbers.append(message["params"]["data"])

    assert numbers == list(range(20_000))
    assert message["result"]["content"][0]["text"] == "done"


def test_a_server_that_asks_in_a_loop_is_refused(tmp_path: Path) -> None:
    """After 30 questions between two requests of the client."""
    with Session(tmp_path) as session:
        session.initialize(elicitation={})
        session.send(id="x", method="tools/call", params={"name": "loop"})
        asked = 0
        while (message := session.read()).get("method") == "elicitation/create":
            asked += 1
            session.send(id=message["id"], result={"action": "decline"})

    assert (asked, message["result"]["content"][0]["text"]) == (30, "stopped at 30")


def test_a_server_that_dies_fails_what_is_under_way(tmp_path: Path) -> None:
    """Each open call is answered with an error; the gateway ends with exit code 1."""
    with Session(tmp_path) as session:
        session.initialize()
        failed = session.ask("tools/call", name="die")
        code, _ = session.close()

    assert failed["error"] == {"code": -32603, "message": "the server has ended (exit code 3)"}
    assert code == 1


def test_a_server_that_hangs_is_ended_when_the_client_leaves(tmp_path: Path) -> None:
    """What it was doing does not keep it alive."""
    with Session(tmp_path) as session:
        session.initialize()
        session.send(id="x", method="tools/call", params={"name": "hang"})
        session.send(method="notifications/cancelled", params={"requestId": "x"})
        code, _ = session.close()

    assert code == 0


def test_a_server_that_hangs_is_ended_when_the_gateway_is(tmp_path: Path) -> None:
    """A client that ends the gateway by a signal leaves nothing behind."""
    with Session(tmp_path) as session:
        session.initialize()
        server = int(session.text("reach", how="run", what="echo $PPID"))
        session.send(id="x", method="tools/call", params={"name": "hang"})
        session.process.terminate()
        code, _ = session.close()

    assert code == 143
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_a_server_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    """And exit code 1."""
    with Session(tmp_path, command=["./not-there"]) as session:
        code, errors = session.close()

    assert (code, errors.splitlines()[-1]) == (
        1, "hookline mcp: ./not-there: the server could not be started: No such file or directory",
    )  # fmt: skip


def test_a_client_that_misbehaves_gets_errors(tmp_path: Path) -> None:
    """Two requests with one id, invalid UTF-8, deep JSON, no object, no id, arguments that are none."""
    codes = []
    with Session(tmp_path) as session:
        session.initialize()
        for line in (b"\xff", b"[" * 100_000, b"7", b'{"jsonrpc": "2.0", "id": null, "method": "tools/call"}',
                     b'{"id": 90, "method": "tools/call", "params": {"name": "echo", "arguments": 7}}',
                     b'{"jsonrpc": "2.0", "id": 91, "method": "tools/call", "params": {"name": 7}}'):  # fmt: skip
            session.write(line)
            codes.append(session.read()["error"]["code"])
        session.send(id="two", method="tools/call", params={"name": "echo", "arguments": {"message": "HANG"}})
        session.send(id="two", method="tools/call", params={"name": "echo", "arguments": {"message": "second"}})
        second = session.read()
        session.send(method="notifications/cancelled", params={"requestId": "two"})
        after = session.text("echo", message="after")

    assert codes == [-32700, -32700, -32700, -32600, -32602, -32602]
    assert second["error"] == {"code": -32600, "message": "a request with the id `two` is under way"}
    assert after == "echo: after"


def test_the_gateway_does_not_import_the_sdk(tmp_path: Path) -> None:
    """Its start is every server's start."""
    hooks = tmp_path / "hooks.py"
    written = "atexit.register(lambda: open('modules.json', 'w').write(json.dumps(sorted(sys.modules))))"
    hooks.write_text(f"import atexit, json, sys\nfrom hookline import Hooks\nhooks = Hooks()\n{written}\n")
    with Session(tmp_path, hooks=hooks) as session:
        session.initialize()
        session.call("echo", message="x")
        session.close()
    modules = set(json.loads((tmp_path / "modules.json").read_text()))

    assert modules & {"mcp", "mcp_types", "pydantic", "anyio", "jsonschema", "aiohttp", "hookline.agent"} == set()
