"""`install --mcp`: the gateway in front of each configured server, in every host's own form, and out again."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.events import PreToolUse
from hookline.hosts.host import Host
from hookline.hosts.install.commands import install, uninstall
from hookline.hosts.install.entries import HookSource
from hookline.hosts.install.servers import is_wrapped, put_in, servers_path, take_out
from hookline.hosts.table import HOSTS, find

ELEVEN = [host for host in HOSTS.values() if host.servers]
SOURCE = HookSource(hooks="/some where/hooks.py")


def configuration(host: Host) -> str:
    """A file as the host's user has it: a program, an address with a header, one with a login, and other things."""
    form = host.servers
    assert form is not None
    if form.kind == "toml":
        return (
            'model = "m" # mine\n\n[mcp_servers.files]\ncommand = "npx"  # it\nargs = [\n  "-y",\n  "files",\n]\n'
            'startup_timeout_sec = 2.5\n[mcp_servers.files.env]\nKEY = "v"\n\n[mcp_servers.web]\nurl = "https://h/mcp"\n'
            'headers = {X-Key = "secret"}\n\n[mcp_servers.login]\nurl = "https://l/mcp"\n\n[other]\nx = 1\n'
        )
    if form.kind == "rows":
        return (
            'x = 1\n\n[[mcp_servers]]\nname = "files"\ntransport = "stdio"\ncommand = "npx"\nargs = ["-y", "files"]\n'
            'startup_timeout_sec = 2.5\nenv = {KEY = "v"}\n\n[[mcp_servers]]\nname = "web"\ntransport = "http"\n'
            'url = "https://h/mcp"\nheaders = {X-Key = "secret"}\n\n[[mcp_servers]]\nname = "login"\n'
            'transport = "http"\nurl = "https://l/mcp"\n\n[z]\ny = 2\n'
        )
    program = (
        '"command": ["npx", "-y", "files"]' if form.as_list else '"command": "npx",\n      "args": ["-y", "files"]'
    )
    servers = (
        f'{{\n    "files": {{ {program},  "{form.env}": {{"KEY": "v"}}, "timeout": 2.5 }}, // mine\n'
        f'    "web": {{"type": "http", "{form.url}": "https://h/mcp", "headers": {{"X-Key": "secret"}}}},\n'
        f'    "login": {{"{form.url}": "https://l/mcp", "oauth": {{}}}},\n'
        '    "sse": {"type": "sse", "url": "https://s/sse"},\n    "odd": 7\n  }'
    )
    nested = f',\n  "{form.nested}": {{"/p": {{"{form.key}": {{"inner": {{"command": "x"}}}}}}}}' if form.nested else ""
    return f'{{\n  "theme": "dark",\n  "{form.key}": {servers}{nested}\n}}\n'


def entries(host: Host, path: Path) -> dict[str, Any]:
    """What the host would read."""
    form = host.servers
    assert form is not None
    if form.kind == "json":
        text = "\n".join(line.partition(" // ")[0] for line in path.read_text().splitlines())
        return dict(json.loads(text)[form.key])
    values = tomllib.loads(path.read_text())[form.key]
    return {row["name"]: row for row in values} if isinstance(values, list) else values


def words(entry: dict[str, Any]) -> list[str]:
    command = entry["command"]
    return command if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.parametrize("host", ELEVEN, ids=lambda host: host.name)
def test_every_server_that_can_be_is_put_behind_the_gateway(host: Host, home: Path) -> None:
    """Its environment and limits stay; a header's value moves to a variable; what stays as it is is said with why."""
    path = servers_path(host, "user")
    assert path is not None
    assert host.servers is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(configuration(host))
    notes = put_in(host, SOURCE, "user")
    found = entries(host, path)
    files, web = words(found["files"]), words(found["web"])
    head = ["mcp", "--name", "files", "--pins"]
    start = next(at for at in range(len(files)) if files[at : at + 4] == head)

    assert files[start + 5 :] == [
        "--agent", host.name, "--hooks", "/some where/hooks.py", "--", "npx", "-y", "files",
    ]  # fmt: skip
    assert found["files"][host.servers.env] == {"KEY": "v"}
    assert 2.5 in found["files"].values()
    assert web[-4:] == ["--header", "X-Key=HOOKLINE_HEADER_0", "--", "https://h/mcp"]
    assert found["web"][host.servers.env] == {"HOOKLINE_HEADER_0": "secret"}
    assert not {"url", "httpUrl", "headers"} & {*found["web"]}
    assert host.servers.marks.items() <= found["web"].items()
    assert {name for name, entry in found.items() if is_wrapped(entry)} == {"files", "web"}
    assert "MCP server `files` is behind the gateway" in notes
    assert any(note.startswith("MCP server `login` is not behind the gateway: it ") for note in notes)


@pytest.mark.parametrize("host", ELEVEN, ids=lambda host: host.name)
def test_the_gateway_is_taken_out_to_the_byte(host: Host, home: Path) -> None:
    """Also after a second installation, with Windows' line ends, and where the host has written its file since."""
    path = servers_path(host, "user")
    assert path is not None
    assert host.servers is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in (configuration(host), configuration(host).replace("\n", "\r\n")):
        path.write_bytes(text.encode())
        put_in(host, SOURCE, "user")
        once = path.read_bytes()
        put_in(host, SOURCE, "user")

        assert path.read_bytes() == once
        assert once != text.encode()
        assert take_out(host, "user") == [path]
        assert path.read_bytes() == text.encode()
        assert take_out(host, "user") == []
    text = configuration(host)
    path.write_text(text)
    put_in(host, SOURCE, "user")
    added = "# added\n" if host.servers.kind != "json" else "\n"
    path.write_text(path.read_text() + added)
    take_out(host, "user")
    restored = path.read_text()

    if host.servers.kind == "json":
        assert restored == text + added
    else:
        assert entries_of(restored) == entries_of(text + added)


def entries_of(text: str) -> Any:
    """A TOML file's values; the rows of an array may have changed places."""
    values = tomllib.loads(text)
    servers = values["mcp_servers"]
    values["mcp_servers"] = sorted(servers, key=lambda row: row["name"]) if isinstance(servers, list) else servers
    return values


@pytest.mark.parametrize("host", ELEVEN, ids=lambda host: host.name)
def test_hooks_and_gateway_are_taken_out_together_to_the_byte(host: Host, home: Path) -> None:
    """Also where a host has both in one file."""
    path = servers_path(host, "user")
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(configuration(host))
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: None, name="gate")
    install(host, hooks.hooks, SOURCE, trust=True)
    put_in(host, SOURCE, "user")
    uninstall(host)

    assert path.read_text() == configuration(host)


ODD = {
    "codex": (
        'mcp_servers.a.command = "x"\nmcp_servers.a.args = ["1"]\n', '[mcp_servers]\n', "mcp_servers = 3\n",
        'mcp_servers = {a = {command = "x"}, b = {url = "http://127.0.0.1:1/mcp"}}\n',
        '[mcp_servers]\na = {command = "x"}\n[mcp_servers.b]\ncommand="y"\n',
        '[[mcp_servers]]\nname="a"\ncommand="x"\n',
        '[mcp_servers."my server"]\ncommand = "x y"\n# c\n\n[mcp_servers."my server".env]\nA="1"\n',
        '[mcp_servers.a]\nurl="http://localhost:3/mcp"\n[mcp_servers.a.http_headers]\nX="1"\n',
        '[mcp_servers.a]\ncommand = """x"""\nargs = ["""multi\nline"""]', "[mcp_servers.a]\ncommand = 3\n",
    ),
    "vibe": (
        '[[mcp_servers]]\nname="a"\ncommand="x"\n[[mcp_servers]]\nname="a"\ncommand="y"\n', "mcp_servers=[]\n",
        'mcp_servers = [{name="a", command="x"}]\n', '[[mcp_servers]]\ncommand="x"\n',
        '[[mcp_servers]]\nname="a"\ncommand="x"\n[mcp_servers.env]\nA="1"\n# tail\n[other]\nx=1\n',
    ),
    "claude": (
        '{"mcpServers": []}', '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"},},}', "[]", "",
        '// c\n{"mcpServers": {"a b/\u00fc": {"command": "x", "args": ["\\u00e9"]}}}',
        '{"mcpServers": {"a": null, "b": {"command": ""}, "c": {"command": "x", "args": "s"}, "d": {"args": ["x"]}}}',
        '{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}, "/q": 3}}',
        '{"mcpServers": {"a": {"url": "http://127.0.0.1:1/x", "headers": {"A": 1}}}}',
    ),
}  # fmt: skip


def test_files_of_odd_forms_are_wrapped_as_far_as_they_can_be_and_put_back(home: Path) -> None:
    """What cannot be edited stays as it is; the file can be read, and what the host adds to it stays."""
    wrong: list[object] = []
    for name, texts in ODD.items():
        host = find(name)
        path = servers_path(host, "user")
        assert path is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        for text in texts:
            path.write_text(text)
            notes = put_in(host, SOURCE, "user")
            names = {*re.findall(r"MCP server `(.*?)` is", "\n".join(notes))}
            take_out(host, "user")
            if path.read_text() != text or not all(f"`{one}` is" in " ".join(notes) for one in names):
                wrong.append((name, text, path.read_text()))
            put_in(host, SOURCE, "user")
            path.write_text(path.read_text() + "\n")
            take_out(host, "user")
            left = path.read_text()
            same = tomllib.loads(left) == tomllib.loads(text) if path.suffix == ".toml" else left == text + "\n"
            wrong += [] if same else [(name, text, left)]

    assert wrong == []


def test_an_entry_that_is_ours_no_longer_stays(home: Path) -> None:
    """The user has put another server in its place since."""
    host = find("kimi")
    path = servers_path(host, "user")
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    put_in(host, SOURCE, "user")
    changed = json.loads(path.read_text())
    changed["mcpServers"]["b"] = {"command": "another"}
    path.write_text(json.dumps(changed))
    take_out(host, "user")

    assert json.loads(path.read_text())["mcpServers"] == {"a": {"command": "x"}, "b": {"command": "another"}}


def test_a_host_without_servers_says_so(home: Path) -> None:
    """No file is made."""
    notes = put_in(find("gemini"), SOURCE, "user")

    assert notes == [f"Gemini CLI has no MCP servers in {home}/.gemini/settings.json: nothing is behind the gateway"]
    assert not (home / ".gemini").exists()
