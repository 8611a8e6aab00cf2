"""Who gets in: only this machine's browser, from the console's own page, with its token. Asked over real sockets."""

import http.client
import json
import socket
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from hookline.records.console.server import Gatekeeper
from tests.processes.service.conftest import until
from tests.records.console.place import Log, Running

Start = Callable[..., Running]


class Client:
    """Raw requests to a console."""

    def __init__(self, console: Running) -> None:
        self.host = console.url.removeprefix("http://").rstrip("/")
        self.console = console

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Host": self.host, **named})
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    @cached_property
    def token(self) -> str:
        """What its ticket is worth, traded when first asked for."""
        status, body, _ = self.ask("POST", "/api/login", self.console.ticket)
        assert status == 200
        token: str = json.loads(body)["token"]
        return token


@pytest.fixture(scope="module")
def client(idle: Running) -> Client:
    """One whose console has read its log: until then it puts off whatever is asked."""
    made = Client(idle)
    until(lambda: json.loads(made.ask("GET", "/api/status", Authorization=f"Bearer {made.token}")[1])["ready"])
    return made


@pytest.fixture
def own(start: Start, log: Log) -> Client:
    """A console that nobody has asked yet."""
    log.bash("ls")
    return Client(start(log.path))


def test_data_needs_the_token(client: Client) -> None:
    """Without one, or with another, every question is refused."""
    paths = ["status", "events", "facets", "timeline", "event?id=1", "sessions", "hooks", "coverage", "health", "live"]

    for path in paths:
        assert client.ask("GET", f"/api/{path}")[0] == 401
        assert client.ask("GET", f"/api/{path}", Authorization="Bearer nope")[0] == 401
    assert client.ask("GET", "/api/status", Authorization=f"Bearer {client.token}")[0] == 200


def test_a_ticket_works_once(own: Client) -> None:
    """What is left of it in a history or a process list opens nothing."""
    assert own.token

    assert own.ask("POST", "/api/login", own.console.ticket)[0] == 403
    assert own.ask("POST", "/api/login", "")[0] == 403
    assert own.ask("POST", "/api/login", "x" * 100_000)[0] == 413


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost.evil.example", ""])
def test_another_host_name_is_refused(client: Client, host: str) -> None:
    """A page that made its own name point here (DNS rebinding) gets nothing, not even the page."""
    token = client.token

    assert client.ask("GET", "/", Host=host)[0] == 403
    assert client.ask("GET", "/api/events", Host=host, Authorization=f"Bearer {token}")[0] == 403


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}]
)
def test_another_origin_is_refused(client: Client, headers: dict[str, str]) -> None:
    """Also with the token, and also for the ticket."""
    token = client.token

    assert client.ask("GET", "/api/events", Authorization=f"Bearer {token}", **headers)[0] == 403
    assert client.ask("POST", "/api/login", "x", **headers)[0] == 403


def test_the_page_allows_no_code_but_its_own_files(client: Client) -> None:
    """The policy is strict, on every answer."""
    for path in ("/", "/static/main.js", "/api/status", "/nowhere"):
        headers = client.ask("GET", path)[2]
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["../server.py", "..%2fserver.py", "%2e%2e/server.py", "vendor/../../server.py", "/etc/passwd", "", "x.js"]
)
def test_only_the_pages_own_files_are_served(client: Client, path: str) -> None:
    """No way leads out of the folder."""
    assert client.ask("GET", f"/static/{path}")[0] == 404


def test_it_listens_on_this_machine_only(client: Client) -> None:
    """Its socket is bound to the loopback interface."""
    port = int(client.host.rpartition(":")[2])
    outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        outside.connect(("192.0.2.1", 9))  # sends nothing; says which address this machine has
        address = outside.getsockname()[0]
    except OSError:
        pytest.skip("this machine has no address but the loopback one")
    finally:
        outside.close()
    with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
        socket.create_connection((address, port), timeout=5).close()


def test_nothing_of_the_token_is_printed(own: Client) -> None:
    """What was asked is not logged, and the token is on no stream."""
    token = own.token
    own.ask("GET", "/api/events", Authorization=f"Bearer {token}")

    said = own.console.stop()

    assert token not in said + "".join(own.console.said)
    assert "/api/" not in said + "".join(own.console.said)


@pytest.mark.parametrize(
    "question", ["events?since=soon", "events?limit=x", "event?id=x", "session?name=x", "event?id=99", "hook?name=x"]
)
def test_a_question_that_makes_no_sense_is_refused_politely(client: Client, question: str) -> None:
    """With a status and a sentence, not with a stack."""
    status, body, _ = client.ask("GET", f"/api/{question}", Authorization=f"Bearer {client.token}")

    assert status in (400, 404)
    assert json.loads(body)["problem"]


def test_only_the_last_twenty_unused_tickets_stay_good() -> None:
    """Making tickets cannot fill the memory."""
    keeper = Gatekeeper()
    tickets = [keeper.ticket() for _ in range(30)]

    assert [keeper.trade(ticket) is not None for ticket in tickets] == [False] * 10 + [True] * 20
