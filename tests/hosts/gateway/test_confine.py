"""`hookline mcp --confine`: the server itself is held by the kernel, whatever a call makes it do."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hookline.guards.sandboxing import unavailable
from tests.hosts.gateway.session import Session
from tests.hosts.gateway.test_pins import hookline

WHY = unavailable()


@pytest.mark.skipif(bool(WHY), reason=f"nothing can be confined here: {WHY}")
def test_a_server_writes_and_connects_only_where_it_may(tmp_path: Path) -> None:
    """Its tools work; what it would do elsewhere, itself or in a shell that it starts, is refused."""
    allowed, outside = tmp_path / "allowed", tmp_path / "outside"
    for folder in (allowed, outside):
        folder.mkdir()
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("a key")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with Session(tmp_path, flags=("--confine", "--write", str(allowed))) as session:
            session.initialize()
            seen = {
                "a call": session.text("echo", message="a"),
                "inside": session.text("reach", how="write", what=f"{allowed}/a"),
                "outside": session.text("reach", how="write", what=f"{outside}/a"),
                "by a shell": session.text("reach", how="run", what=f"echo x > {outside}/b; ls {outside}"),
                "a key": session.text("reach", how="read", what=f"{tmp_path}/.ssh/id_rsa"),
                "the pins": session.text("reach", how="write", what=f"{tmp_path}/state/hookline/mcp/s.json"),
                "the network": session.text("reach", how="connect", what=str(port)),
            }
            code, _ = session.close()

    refused = {name: text.startswith("refused") for name, text in seen.items() if name not in ("a call", "by a shell")}
    assert (seen["a call"], seen["by a shell"].strip(), code) == ("echo: a", "", 0)
    assert refused == {"inside": False, "outside": True, "a key": True, "the pins": True, "the network": True}
    assert (allowed / "a").exists()


@pytest.mark.skipif(bool(WHY), reason=f"nothing can be confined here: {WHY}")
def test_a_server_reaches_the_hosts_that_it_is_given(tmp_path: Path) -> None:
    """By address and port; another port of the same machine is not one of them."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [str(each.getsockname()[1]) for each in (one, other)]
        with Session(tmp_path, flags=("--host", f"127.0.0.1:{ports[0]}")) as session:
            session.initialize()
            seen = [session.text("reach", how="connect", what=port).partition(":")[0] for port in ports]

    assert seen[1] == "refused"
    assert seen[0].startswith("<socket")


def test_what_cannot_be_held_is_refused(tmp_path: Path) -> None:
    """A URL is not a process of ours; flags are read before anything starts."""
    url = hookline(tmp_path, "--name", "s", "--confine", "--", "https://example.com/mcp")
    wrong = hookline(tmp_path, "--name", "s", "--write", "/no/such/folder", "--", "true")

    assert (url[0], "a server at an address is not ours to hold" in url[1]) == (1, True)
    assert wrong[0] == 1
