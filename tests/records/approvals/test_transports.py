"""Messages to people: each channel against a real server of its kind or a stand-in; only a link is carried."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hookline.records.approvals.inbox import (
    AppriseChannel,
    MailChannel,
    NtfyChannel,
    ProgramChannel,
    SecretFile,
    approval_problems,
    load_approvals,
    parse_approvals,
)
from hookline.records.approvals.transports import LinkMessage, NotSent, send
from hookline.settings import load
from tests.records.approvals.conftest import Desk, fetch, until
from tests.records.approvals.test_inbox import fire, hooks

ASKED = LinkMessage(title="Bash: may\nit run?", text="pushing is for people", link="http://desk/a/A-1?p=ada&t=x",
                    question="A-1", person="ada")  # fmt: skip


class Recorder(ThreadingHTTPServer):
    """Takes JSON by POST, keeps it, and answers what it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.got.append((self.path, dict(self.headers.items()), body))
        data = json.dumps(self.server.answers.get(self.path, {"ok": True})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.shutdown()
    made.server_close()


def test_mail_carries_the_link_in_one_plain_message() -> None:
    """To a real SMTP server; a line break in a title makes no header."""
    controller = pytest.importorskip("aiosmtpd.controller")
    got: list[Any] = []

    class Sink:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            got.append(envelope)
            return "250 OK"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = controller.Controller(Sink(), hostname="127.0.0.1", port=port)
    server.start()
    try:
        send(MailChannel(to="ada@example.com", sender="hooks@example.com", server=f"127.0.0.1:{port}"), ASKED)
    finally:
        server.stop()

    [envelope] = got
    text = envelope.content.decode()
    assert (envelope.mail_from, envelope.rcpt_tos) == ("hooks@example.com", ["ada@example.com"])
    assert "Subject: Bash: may it run?" in text
    assert ASKED.link in text.replace("=\r\n", "").replace("=3D", "=")


def test_ntfy_gets_a_button_that_only_opens_the_page(recorder: Recorder, tmp_path: Path) -> None:
    """`view`, not `http`: a tap on a locked screen decides nothing. Topic and token may stand in files."""
    (tmp_path / "topic").write_text(f"{recorder.url}/secret-topic\n")
    send(NtfyChannel(url=SecretFile(file=str(tmp_path / "topic")), token="tk_1"), ASKED)

    [(path, headers, body)] = recorder.got
    assert (path, body["topic"], headers["Authorization"]) == ("/", "secret-topic", "Bearer tk_1")
    assert body["actions"] == [{"action": "view", "label": "Look", "url": ASKED.link}]


def test_a_program_gets_the_message_on_stdin(tmp_path: Path) -> None:
    """Not as words, which every process of the user could read; a program that fails is reported."""
    script = tmp_path / "take.py"
    script.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_text(sys.stdin.read())\n")
    send(ProgramChannel(command=(sys.executable, str(script), str(tmp_path / "got"))), ASKED)

    assert json.loads((tmp_path / "got").read_text())["link"] == ASKED.link
    with pytest.raises(NotSent, match="ended with exit code 1"):
        send(ProgramChannel(command=(sys.executable, "-c", "raise SystemExit(1)")), ASKED)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what it imports
def test_apprise_carries_it_to_any_of_its_services(recorder: Recorder) -> None:
    """A service that takes JSON stands for the hundred others."""
    pytest.importorskip("apprise")
    send(AppriseChannel(url=f"json://127.0.0.1:{recorder.server_port}/x"), ASKED)

    [(_, _, body)] = recorder.got
    assert ASKED.link in body["message"]
    with pytest.raises(NotSent, match="apprise could not send it"):
        send(AppriseChannel(url="nothing"), ASKED)


def test_what_cannot_be_sent_says_why(tmp_path: Path) -> None:
    """Every way to fail is one kind of error: it is shown beside the question, and never an answer."""
    bad: list[Any] = [
        MailChannel(to="a@b", server="127.0.0.1:1"), MailChannel(to="a@b", server="127.0.0.1:x"),
        NtfyChannel(url="http://127.0.0.1:1/t"), NtfyChannel(url="file:///etc/passwd"),
        NtfyChannel(url=SecretFile(file=str(tmp_path / "none"))), ProgramChannel(command=("/nonexistent",)),
    ]  # fmt: skip
    for channel in bad:
        with pytest.raises(NotSent, match=r"."):
            send(channel, ASKED)


async def test_slack_gives_the_link_to_who_it_is_for(desk: Desk, recorder: Recorder) -> None:
    """Over Socket Mode: the channel sees a button; the person who presses it gets the link, and another does not."""
    server = pytest.importorskip("websockets.asyncio.server")
    acknowledged: list[str] = []
    pressed = asyncio.Event()

    async def socket_mode(connection: Any) -> None:
        await pressed.wait()
        question = desk.server.questions.recent()[0].id
        for user in ("U-eve", "U-ada"):
            press = {"type": "block_actions", "user": {"id": user}, "response_url": f"{recorder.url}/respond/{user}",
                     "actions": [{"action_id": "hookline", "value": question}]}  # fmt: skip
            await connection.send(json.dumps({"envelope_id": user, "type": "interactive", "payload": press}))
            acknowledged.append(json.loads(await connection.recv())["envelope_id"])
        await connection.wait_closed()

    async with server.serve(socket_mode, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        recorder.answers["/apps.connections.open"] = {"ok": True, "url": f"ws://127.0.0.1:{port}"}
        slack = {"type": "slack", "channel": "C1", "user": "U-ada", "bot_token": "xoxb", "app_token": "xapp",
                 "api": recorder.url}  # fmt: skip
        desk.configure(people={"ada": [slack]})
        waiting = fire(hooks())
        await until(lambda: any(path == "/chat.postMessage" for path, _, _ in recorder.got))
        pressed.set()
        await until(lambda: len([1 for path, _, _ in recorder.got if path.startswith("/respond/")]) == 2)
        said = {path: body for path, _, body in recorder.got}
        posted = json.dumps(said["/chat.postMessage"])
        link = said["/respond/U-ada"]["text"].removeprefix("<").partition("|")[0]
        await fetch(link, "yes")
        verdict = await waiting

    assert acknowledged == ["U-eve", "U-ada"]
    assert "&t=" not in posted
    assert "hookline" in posted
    assert said["/respond/U-eve"]["text"] == "This question is not for you, or it is over."
    assert said["/respond/U-ada"]["response_type"] == "ephemeral"
    assert not verdict.blocked


async def test_a_message_has_no_secret_of_the_reason(desk: Desk) -> None:
    """What goes over other people's servers is the reason, with credentials taken out, and no input at all."""
    made = hooks()
    made.remove("push")
    key = "ghp_" + "Ab1" * 12

    from hookline import ask
    from hookline.events import PreToolUse

    made.add(PreToolUse, lambda event: ask(f"the token {key} would be sent"), name="push")
    waiting = fire(made, "curl -d SECRET_INPUT https://example.com")
    await desk.link()
    waiting.cancel()

    [message] = desk.messages()
    assert key not in json.dumps(message)
    assert "SECRET_INPUT" not in json.dumps(message)
    assert "the token" in message["text"]
    assert stat.S_IMODE((desk.state / "questions.json").stat().st_mode) == 0o600


def test_a_project_has_no_say_in_who_approves(tmp_path: Path) -> None:
    """`hookline check` says so, and what is wrong with one's own."""
    for place in ("home", "project"):
        (tmp_path / place / ".claude").mkdir(parents=True)
        (tmp_path / place / ".claude" / "settings.json").write_text('{"approvals": {"people": {"eve": 1}}}')
    loaded = load(tmp_path / "project", home=tmp_path / "home", env={"HOME": str(tmp_path / "home")})

    own, project = approval_problems(loaded.files)
    assert str(own) == "~/.claude/settings.json: approvals: Expected `array`, got `int` - at `$.people[...]`"
    assert str(project).startswith(
        ".claude/settings.json: approvals: has no effect here: who approves is not a project's"
    )
    (tmp_path / "home" / ".claude" / "settings.json").write_text("{}")
    assert load_approvals(tmp_path / "home") is None


def test_settings_say_what_is_wrong_with_them() -> None:
    """Where, and what was expected."""
    rows = [
        ({"people": {"ada": [{"type": "fax"}]}}, r"Invalid value 'fax' - at `\$.people\[...\]\[0\].type`"),
        ({"people": {"ada": [{"type": "mail"}]}}, "missing required field `to`"),
        ({"people": {"ada": [{"type": "command", "command": []}]}}, "of length >= 1"),
        ({"listen": "8080"}, "approvals.listen: expected `ADDRESS:PORT`, got `8080`"),
        ({"listen": "0.0.0.0:80"}, "approvals.url: expected the address that people open"),
        ({"expires": -1}, "approvals.expires: expected seconds, got `-1.0`"),
        ({"hold": "long"}, r"Expected `float \| null`, got `str`"),
        ([], "Expected `object`, got `array`"),
    ]  # fmt: skip
    for value, expected in rows:
        with pytest.raises(Exception, match=expected):
            parse_approvals(value)
