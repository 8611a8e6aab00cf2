"""Which hosts shell lines and web tools may reach, by name.

A confined line reaches these hosts and no others, whatever program it runs. Where lines cannot be confined, hosts that
are named in the text are judged, which explains and holds nothing back that hides.
"""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from hookline.core.engine import Context
from hookline.core.files import private, private_folder, state_folder
from hookline.core.git_settings import read_settings
from hookline.core.hooks import Hook, make_hook
from hookline.errors import HookError
from hookline.events import PostToolUse, PostToolUseFailure, PreToolUse
from hookline.guards import sandboxing
from hookline.guards.commands import PRIORITY, shell_lines
from hookline.guards.sandboxing import Confine
from hookline.guards.tool_inputs import named_texts, plain_name
from hookline.replies import Reply, ask, deny
from hookline.sandbox.hosts import Hosts, read_host
from hookline.sandbox.policy import Policy

_URL = re.compile(r"\b(?:https?|wss?|ssh|git|ftp)://(?:[^\s/@'\"]*@)?(\[[^\]]+\]|[\w.-]+)(?::(\d+))?", re.IGNORECASE)
_SECURE_COPY = re.compile(r"(?<![\w/:.-])[\w.-]+@([\w-]+(?:\.[\w-]+)+):(?!\d)")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)+\.?")
_PORTS = {"http": 80, "ws": 80, "ssh": 22, "git": 9418, "ftp": 21}
_REFUSED = re.compile(r"refused to look up `([\w.-]+)`")
_ADDRESSES = ("url", "uri", "href", "link", "endpoint", "urls", "uris", "links")
"""How the names of parameters end in which a tool is given an address."""
_MOST_ASKED = 3


def only(
    hosts: Iterable[str],
    *,
    sockets: Iterable[str] = (),
    tokens: Iterable[str] = (),
    ask_for_others: bool = False,
    confine: Confine = None,
    name: str = "network.only",
) -> Hook:
    """Let lines reach these hosts and no others: `network.only(["pypi.org", "*.example.com:443", "git.corp:22"])`.

    `sockets` are Unix sockets outside that a line may connect to, and `tokens` (`NAME=HOST`) variables in which it sees
    a random value: only requests to that host carry the real one. With `ask_for_others` a host that a line was refused
    is asked about once, with the next line; a yes holds for the project. Without confinement the text is judged.
    """
    known = tuple(hosts)
    try:
        judged = Hosts(known)
    except ValueError as error:
        raise HookError(str(error)) from None
    if not known:
        raise HookError("name at least one host; `confine --no-network` closes the network")
    doors, swapped = tuple(os.path.expandvars(path) for path in sockets), tuple(tokens)

    def policy(*others: str) -> Policy:
        return Policy(None, hosts=(*known, *others), sockets=doors, tokens=swapped, host_guard=name)

    async def judge(event: PreToolUse | PostToolUse | PostToolUseFailure, ctx: Context) -> Reply | None:
        if not isinstance(event, PreToolUse):
            return sandboxing.afterwards(event, name) if sandboxing.wanted(confine) else None
        if not sandboxing.applies_to(event, confine):
            return _judged(event, judged)
        if not ask_for_others:
            return sandboxing.hold(event, policy())
        answers = _Answers(ctx.project_dir or event.cwd, name)
        asked = answers.open()[:_MOST_ASKED]
        held = sandboxing.hold(event, policy(*answers.allowed, *asked))
        if not asked:
            return held
        answers.note(asked, sandboxing.call_file(event, sandboxing.line_of(event)))
        named = ", ".join(f"`{host}`" for host in asked)
        question = ask(f"an earlier line tried to reach {named}; may this line and later ones?")
        return question | held if held is not None else question

    events = (PreToolUse, *sandboxing.AFTERWARDS)
    hook = make_hook(events, judge, match="*", name=name, priority=PRIORITY)
    return msgspec.structs.replace(hook, confines=sandboxing.checked(confine) == "auto")


def _judged(event: PreToolUse, hosts: Hosts) -> Reply | None:
    """What the text of a call says: a web tool's address is certain, a line's is worth a question."""
    for field, text in named_texts(event.tool_input, documents=False):
        found = _URL.match(text.strip()) if plain_name(field).endswith(_ADDRESSES) else None
        if found and not _allowed(found, hosts):
            return deny(f"`{found[1]}` is not among the hosts")
    from hookline.guards.flow.coding import flow_of  # only lines that cannot be confined need its tables

    for line in shell_lines(event):
        names = [found[1] for found in _URL.finditer(line.text) if not _allowed(found, hosts)]
        names += [name for name in _SECURE_COPY.findall(line.text) if 22 not in hosts.ports(name)]
        names += [name for name in flow_of(line.text).hosts if _NAME.fullmatch(name) and not hosts.ports(name.lower())]
        if names:
            return ask(f"`{names[0]}` is not among the hosts, and this line cannot be confined")
    return None


def _allowed(found: re.Match[str], hosts: Hosts) -> bool:
    scheme = found[0].partition(":")[0].lower()
    return int(found[2] or _PORTS.get(scheme, 443)) in hosts.ports(found[1].strip("[]").lower().rstrip("."))


class _Answers:
    """What the user has said about hosts that lines of a project were refused."""

    def __init__(self, project: str, guard: str) -> None:
        key = hashlib.sha256(os.path.realpath(project or ".").encode("utf-8", "replace")).hexdigest()[:16]
        self._path, self._notes = state_folder() / "hosts" / key, state_folder() / "confine"
        self._guard = guard
        self._said: dict[str, str] = {}
        with suppress(OSError, ValueError):
            self._said = {str(host): str(call) for host, call in json.loads(self._path.read_text()).items()}

    @property
    def allowed(self) -> tuple[str, ...]:
        """The hosts whose question was answered with yes: the call that was asked about has run."""
        ran = [host for host, call in self._said.items() if call != "yes" and Path(f"{call}.effect").exists()]
        if ran:
            self.note(ran, "yes")
        return tuple(host for host, said in self._said.items() if said == "yes")

    def open(self) -> list[str]:
        """Hosts that a line was refused and that have not been asked about."""
        found: dict[str, None] = {}
        for path in sorted(self._notes.glob(f"*.{self._guard}")):
            with suppress(OSError):
                found |= dict.fromkeys(_REFUSED.findall(path.read_text(errors="replace")))
        return [host for host in found if host not in self._said]

    def note(self, hosts: Iterable[str], said: str) -> None:
        """Note that these are asked about with a call, or have been answered."""
        self._said |= dict.fromkeys(hosts, said)
        private_folder(self._path.parent)
        with open(self._path, "w", opener=private, encoding="utf-8") as file:
            json.dump(self._said, file)


_INDEX = re.compile(r"(?:index|registry|url|source|proxy|insteadof)", re.IGNORECASE)
_REMOTE = re.compile(r"remote\..*\.(?:push)?url")


def hosts_in_use(project: str, env: Mapping[str, str]) -> list[str]:
    """The package registries and code hosts that a project and its user have configured, as `only` takes them."""
    table = tomllib.loads(Path(__file__).with_name("registries.toml").read_text("utf-8"))
    root, home, configuration = Path(project), Path(env.get("HOME") or Path.home()), table["configuration"]
    rows = [row for row in table["registry"] if any((root / file).exists() for file in row["files"])]
    found = [host for row in rows for host in row["hosts"]]
    for name in configuration["files"]:
        path = home / name[2:] if name.startswith("~/") else root / name
        with suppress(OSError):
            lines = path.read_text(errors="replace").splitlines()
            found += _hosts_of("\n".join(line for line in lines if _INDEX.search(line)))
    found += _hosts_of(" ".join(env.get(name, "") for name in configuration["variables"]))
    with suppress(OSError):
        settings = read_settings((root / ".git" / "config").read_text(errors="replace"))
        found += [host for key, value in settings if _REMOTE.fullmatch(key) for host in _hosts_of(value)]
    found += [other for host in found for other in table["companions"].get(host.partition(":")[0], ())]
    return list(dict.fromkeys(found))


def _hosts_of(text: str) -> Iterator[str]:
    """The hosts that a text names and that can be reached by name."""
    named = [(match[1], match[2] or ("22" if match[0][:4].lower() == "ssh:" else "")) for match in _URL.finditer(text)]
    for name, port in (*named, *((name, "22") for name in _SECURE_COPY.findall(text))):
        host = f"{name.lower()}:{port}" if port else name.lower()
        with suppress(ValueError):
            read_host(host)
            yield host
