"""Credential placeholders: the line never has the token, and requests to its host do."""

# ruff: noqa: E501 - lines of a shell
from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from hookline.sandbox.placeholders import placeholder
from tests.sandbox import internet
from tests.sandbox.internet import TOKEN

pytestmark = [
    pytest.mark.skipif(bool(internet.possible()), reason=internet.possible() or "there is a world"),
    pytest.mark.timeout(200),
]
FLAGS = ("--host", "code.example", "api.code.example", "pypi.example", "--token", "GITHUB_TOKEN=code.example")
AUTH = '-H "Authorization: Bearer $GITHUB_TOKEN"'


@pytest.fixture(scope="module")
def world() -> Iterator[internet.World]:
    with internet.world() as made:
        yield made


def run(world: internet.World, line: str, **options: Any) -> dict[str, Any]:
    variables: dict[str, Any] = {"GITHUB_TOKEN": TOKEN, "COPY": f"x{TOKEN}y"}
    return world.confined("bash", "-c", line, flags=FLAGS, **options, **variables)


def test_a_placeholder_looks_like_its_token() -> None:
    """Same length, same kind, another value."""
    made = placeholder(TOKEN)

    assert (len(made), made[:4], made != TOKEN) == (len(TOKEN), "ghp_", True)
    assert [a.isdigit() for a in made] == [a.isdigit() for a in TOKEN]


CLIENTS = {
    "curl": f"curl -sS -m 9 {AUTH} https://code.example/private/hello",
    "curl key": 'curl -sS -m 9 -H "X-Api-Key: $GITHUB_TOKEN" https://code.example/private/hello',
    "curl basic": 'curl -sS -m 9 -u "user:$GITHUB_TOKEN" https://code.example/private/hello',
    "curl plain": f"curl -sS -m 9 {AUTH} http://code.example/private/hello",
    "curl twice": f"curl -sS -m 9 {AUTH} https://code.example/private/hello -d abc https://code.example/private/hello",
    "python": "python3 -c 'import os, urllib.request as u; print(u.urlopen(u.Request(\"https://code.example/private/hello\", headers={\"Authorization\": \"Bearer \" + os.environ[\"GITHUB_TOKEN\"]})).read())'",
    "node": "node -e 'fetch(\"https://code.example/private/hello\", {headers: {Authorization: \"Bearer \" + process.env.GITHUB_TOKEN}}).then(r => r.text()).then(console.log)'",
    "git": 'git ls-remote "https://user:$GITHUB_TOKEN@code.example/private/demo.git" && echo hello from the world',
    "git header": 'git -c http.extraHeader="Authorization: Bearer $GITHUB_TOKEN" ls-remote https://code.example/private/demo.git && echo hello from the world',
}  # fmt: skip


@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "none"])
@pytest.mark.parametrize("user", [False, True], ids=["root", "user"])
def test_clients_are_let_in_without_having_the_token(world: internet.World, user: bool, namespaces: bool) -> None:
    """By TLS that ends in the broker, or by plain HTTP that it makes TLS of."""
    wrong = {}
    for name, line in CLIENTS.items():
        if shutil.which(line.split()[0]) is None:
            continue
        done = run(world, line, user=user, namespaces=namespaces)
        web = [entry for entry in done["log"] if entry.startswith("web")]
        if "hello from the world" not in done["out"] or not web or any(" tls " not in entry for entry in web):
            wrong[name] = done

    assert wrong == {}


LEAKS = {
    "its own variables": "env; cat /proc/self/environ",
    "those who hold it": "for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done; :",
    "an answer that repeats it": f"curl -sS -m 9 {AUTH} https://code.example/echo",
    "an answer in pieces": f"for i in 1 2 3; do curl -sS -m 9 {AUTH} --compressed https://code.example/echo; done",
    "another host": f"curl -sS -m 9 {AUTH} https://api.code.example/echo; curl -sS -m 9 {AUTH} https://pypi.example/echo",
    "another host in TLS": f"curl -sS -m 9 {AUTH} -H 'Host: pypi.example' https://code.example/echo; :",
    "the address line": 'curl -sS -m 9 "https://code.example/echo?$GITHUB_TOKEN"',
    "the body": 'curl -sS -m 9 -d "$GITHUB_TOKEN" https://code.example/echo',
    "another field": 'curl -sS -m 9 -H "User-Agent: $GITHUB_TOKEN" https://code.example/echo',
    "the authority's file": 'cat "$SSL_CERT_FILE"; ls -la "$TMPDIR"',
}  # fmt: skip


def test_the_token_is_nowhere_else(world: internet.World) -> None:
    """Neither in the line nor with any other host."""
    found = {}
    for name, line in LEAKS.items():
        done = run(world, line)
        elsewhere = [entry for entry in done["log"] if TOKEN in entry and " code.example " not in entry]
        if TOKEN in done["out"] + done["err"] or elsewhere:
            found[name] = done
        if name in ("the address line", "the body", "another field"):
            assert not any(TOKEN in entry for entry in done["log"]), done

    assert found == {}


def test_a_host_without_a_token_is_not_looked_into(world: internet.World) -> None:
    """Its own certificate reaches the line; that of a host with a token is the line's own."""
    line = "echo | openssl s_client -connect {0}:443 -servername {0} 2>/dev/null | openssl x509 -noout -fingerprint"
    inside = run(world, line.format("pypi.example"))
    outside = world.run("bash", "-c", line.format("pypi.example"))
    swapped = run(world, line.format("code.example"))
    bare = world.run("bash", "-c", line.format("code.example"))

    assert inside["out"] == outside["out"] != ""
    assert swapped["out"] != bare["out"] != ""


def test_a_server_that_cannot_be_trusted_gets_no_token(world: internet.World) -> None:
    """The broker verifies what the line cannot."""
    line = f"curl -sS -k -m 9 {AUTH} https://code.example/echo; :"
    done = world.confined(
        "bash", "-c", line, flags=FLAGS, GITHUB_TOKEN=TOKEN, SSL_CERT_FILE="/etc/ssl/certs/ca-certificates.crt"
    )

    assert "its certificate cannot be verified" in done["err"], done
    assert [entry for entry in done["log"] if entry.startswith("web")] == []
