"""`hookline mcp`: hooks and pins in front of an MCP server; `pin`, `diff` and `accept` for what is pinned."""

import asyncio
import hashlib
import os
import re
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import urlsplit

from hookline.api import Hooks, ask_inbox
from hookline.cli.main import USAGE
from hookline.cli.options import hooks_from, hooks_of, parser_for, run, with_fleet_policy
from hookline.cli.person import find_agent, require_person
from hookline.cli.style import agreed
from hookline.core.files import state_folder
from hookline.core.interpreter import GIVEN, launch_argv
from hookline.core.wire.json_text import write
from hookline.display import one_line
from hookline.errors import ConfigError, EventError
from hookline.hosts.gateway.gateway import Gateway, Pipe, ServerProgram, Upstream, serve
from hookline.hosts.gateway.judging import HostNotes
from hookline.hosts.gateway.messages import request
from hookline.hosts.gateway.pins import Definitions, PinFile, Pins, Send, diff
from hookline.hosts.install.entries import HookSource
from hookline.processes.stdout import claim_stdout

_LAUNCHERS = {"npx", "uvx", "node", "python", "python3", "uv", "run", "tool", "docker", "bun", "bunx", "deno", "env"}
_VERSION = "2025-06-18"
_CLIENT = {"name": "hookline", "version": "0"}


def main(argv: list[str]) -> int:
    """Stand between a client and a server, on stdio or at an address, or look after a server's pins."""
    cut = argv.index("--") if "--" in argv else len(argv)
    words, command = argv[:cut], argv[cut + 1 :]
    if words[:1] in (["pin"], ["diff"], ["accept"]):
        return _administer(words[0], words[1:], command)
    at_address = words[:1] == ["serve"]
    flags = parser_for("mcp serve" if at_address else "mcp")
    args = flags.parse_args(words[1:] if at_address else words)
    if not command:
        flags.error("nothing to put hooks in front of; end with `-- COMMAND …` or `-- URL`")
    args.name = args.name or name_of(command)
    if at_address:
        return run(_listen(_hooks(args), args, command))
    source = os.dup(0)
    if not sys.stdin.isatty():  # hooks that read stdin must not take the client's messages
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with claim_stdout() as sink:
        return run(_serve(lambda: _hooks(args), args, command, source, sink.fileno()))


async def _serve(load: Callable[[], Hooks], args: Namespace, command: list[str], source: int, sink: int) -> int:
    """Serve the client on these descriptors; the server starts first, and gets ready while the hooks are loaded."""
    upstream = await _connect(args, command)
    try:
        pins = Pins(pin_file(args.pins or args.name))
        async with await asyncio.to_thread(load) as hooks:
            client = Pipe(sink)
            has_left = await serve(_gateway(hooks, args, pins, client.send, upstream), client, source)
    finally:
        await upstream.close()
    return 0 if has_left else 1


async def _listen(hooks: Hooks, args: Namespace, command: list[str]) -> int:
    """Serve clients at an address; one that cannot be protected is refused."""
    from hookline.hosts.gateway.listen import PATH, Listener

    if args.login and ("://" not in command[0] or args.token or args.header or args.bind != "127.0.0.1"):
        raise ConfigError("--login", "is for a URL, on this machine, without --token and --header")
    if args.bind not in ("127.0.0.1", "::1", "localhost") and not args.token:
        raise ConfigError("--bind", "other machines can reach this; name a variable with a token: --token VARIABLE")
    token = None if args.login else _variable("--token", args.token) if args.token else secrets.token_urlsafe(32)

    async def open_one(to_client: Send, headers: Mapping[str, str]) -> Gateway:
        login = {"Authorization": headers["authorization"]} if args.login and "authorization" in headers else {}
        pins, upstream = Pins(pin_file(args.pins or args.name)), await _connect(args, command, login)
        return await _gateway(hooks, args, pins, to_client, upstream).open()

    def ready(port: int) -> None:
        shown = "" if args.token or token is None else f"\nAuthorization: Bearer {token}"
        print(f"http://{args.bind}:{port}{PATH}{shown}", flush=True)

    async with hooks:
        await Listener(open_one, token, args.bind).serve(args.port, ready)
    return 0


def _gateway(hooks: Hooks, args: Namespace, pins: Pins, to_client: Send, server: Upstream) -> Gateway:
    hooks.engine.fallback = partial(ask_inbox, host=f"MCP server {args.name}")
    notes = None
    if args.agent:
        from hookline.hosts.table import find

        host = find(args.agent)
        notes = HostNotes(host.name, _source(args).flags, "replace" in host.says.get("PostToolUse", {}))
    return Gateway(hooks, args.name, pins, to_client, server, ask_seconds=args.ask_seconds, host=notes)


def _held(args: Namespace, command: list[str]) -> list[str]:
    """The command as the kernel is to hold it, if it is; what cannot be held is not started."""
    if args.sha256:
        _check_files(command, args.sha256)
    given = {name: getattr(args, name) or [] for name in ("write", "read", "host")}
    if not args.confine and not any(given.values()):
        return command
    if "://" in command[0]:
        raise ConfigError("--confine", "a server at an address is not ours to hold; name a program")
    from hookline.sandbox.main import UsageError, missing, parse

    flags = [word for name, values in given.items() for value in values for word in (f"--{name}", value)]
    words = [*flags, *([] if given["host"] else ["--no-network"]), "--", *command]
    try:
        problem = missing(parse(words)[0])
    except UsageError as wrong:
        problem = str(wrong)
    if problem:
        raise ConfigError("--confine", problem)
    return [*launch_argv(), *words]


def _source(args: Namespace) -> HookSource:
    return HookSource(args.hooks or "", args.settings or "", args.audit)


def _hooks(args: Namespace) -> Hooks:
    """The hooks of an entry that `install` wrote are those of the host's hook; else those of the flags."""
    if not args.agent and not args.audit:
        return hooks_of(args)
    return with_fleet_policy(hooks_from(_source(args), args.project, trust="error"))


def _administer(what: str, words: list[str], command: list[str]) -> int:
    """Pin a server, show what it offers instead of what is pinned, or pin that if a person says so."""
    flags = parser_for(f"mcp {what}")
    if command and what != "pin":
        flags.error("a command is for `pin` alone")
    args = flags.parse_args(words)
    if what == "pin":
        return _pin(args, command)
    if what == "accept":
        require_person("mcp accept")
    file = pin_file(args.name)
    if (definitions := file.read()) is None:
        raise ConfigError(file.server, "no such server is pinned")
    for line in diff(definitions, getattr(args, "tool", ())):
        print(line)
    if what == "diff":
        return 1 if definitions.offered else 0
    if definitions.offered and not agreed(f"Let `{args.name}` offer this from now on?"):
        print("nothing was accepted", file=sys.stderr)
        return 1
    accepted = file.accept(args.tool, definitions.offered)
    print("\n".join(f"accepted {one_line(name) or '(instructions)'}" for name in accepted) or "nothing has changed")
    return 0


def _pin(args: Namespace, command: list[str]) -> int:
    """Pin a server before a client meets it: what the first use would pin."""
    if not command:
        print("hookline mcp pin: name the server; end with `-- COMMAND …` or `-- URL`", file=sys.stderr)
        return USAGE
    if found := find_agent():
        raise ConfigError("mcp pin", f"this is for a person or a script, not for an agent: {found}")
    file = pin_file(args.name)
    if file.read() is not None:
        raise ConfigError(args.name, f"it is pinned; see `hookline mcp diff {args.name}`, or remove `{file.path}`")
    began = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": _CLIENT}
    asked = [request(0, "initialize", began), request(1, "tools/list", {})]
    lines = [write(one, "a request", EventError) + b"\n" for one in asked]
    lines.insert(1, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    source, feed = os.pipe()
    os.write(feed, b"".join(lines))
    os.close(feed)
    args.ask_seconds, args.pins, args.agent = 0.0, args.name, ""
    with open(os.devnull, "wb") as sink:  # noqa: PTH123 - a device
        code = run(_serve(Hooks, args, command, source, sink.fileno()))
    for name in (file.read() or Definitions()).pinned:
        print(one_line(name) or "(instructions)")
    return code


def pin_file(server: str) -> PinFile:
    """A server's pins in the user's state folder; what happens to them is in the audit log beside them."""
    folder = state_folder() / "mcp"

    def log(record: dict[str, Any]) -> None:
        from hookline.records.audit.log_file import AuditFile  # most starts have nothing to note

        AuditFile(folder / "audit.jsonl").append([record])

    return PinFile(server, folder, log)


def _check_files(command: list[str], wanted: str) -> None:
    """Refuse a command whose program or other files are not those that are meant."""
    words = [which(command[0], path=(GIVEN or os.environ).get("PATH")) or command[0], *command[1:]]
    sums = [hashlib.sha256(Path(word).read_bytes()).hexdigest() for word in words if Path(word).is_file()]
    found = hashlib.sha256("\n".join(sums).encode()).hexdigest()
    if found != wanted.removeprefix("sha256:").lower():
        raise ConfigError("--sha256", f"the files of this command are others: expected {wanted}, found sha256:{found}")


async def _connect(args: Namespace, command: list[str], login: Mapping[str, str] | None = None) -> Upstream:
    """The server behind a command or a URL; headers are in environment variables, so that no command line has one."""
    command, headers = _held(args, command), dict(login or {})
    if "://" in command[0]:
        from hookline.hosts.gateway.http import ServerAddress

        for text in args.header:
            name, _, variable = text.partition("=")
            wrong = f"NAME=VARIABLE with a variable that is set, got `{one_line(text)}`"
            headers[name] = _variable("--header", variable, wrong)
        return ServerAddress(command[0], headers)
    if args.header:
        raise ConfigError("--header", "a program has no headers; name a URL")
    return await ServerProgram.start(command, GIVEN or os.environ)


def _variable(flag: str, name: str, expected: str = "a variable that is set") -> str:
    if not (found := (GIVEN or os.environ).get(name)):
        raise ConfigError(flag, f"expected {expected}")
    return found


def name_of(command: list[str]) -> str:
    """A server's name from its command: the first word that is neither a launcher nor an option."""
    words = [Path(word).name for word in command if not word.startswith("-")]
    word = next((word for word in words if word not in _LAUNCHERS), words[0] if words else "server")
    host = urlsplit(command[0]).hostname if "://" in command[0] else None
    name = re.sub(r"[^A-Za-z0-9._-]", "-", host or word.removesuffix(".py").removesuffix(".js"))
    return name.strip(".-_")[:64] or "server"
