"""The same policy for macOS: a Seatbelt profile, as `sandbox-exec -f` takes it. Generated only, and not yet run there.

Where two rules match, the later one counts. What Seatbelt cannot hold stands in the profile as a comment.
"""

import os
import re
from collections.abc import Iterable

from hookline.sandbox.policy import Policy
from hookline.sandbox.protected import GIT_FILES, NAMES

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/System", "/Library", "/opt/homebrew", "/opt/local", "/private/etc",
    "/private/var/db/timezone", "/private/var/select", "/dev", "/Applications/Xcode.app", "/nix",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
_RESOLVER = "/private/var/run/mDNSResponder"
_NETWORKS = {
    "all": ["(allow network* system-socket)", '(deny network-outbound (subpath "/"))'],
    "loopback": ["(allow system-socket)", '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))'],
    "none": [],
}
_NETWORKS["hosts"] = _NETWORKS["loopback"]
"""A loopback is the machine's own there, which has no other. A path is a Unix socket's: those outside are doors."""


def profile(policy: Policy, writable: Iterable[str], hidden: Iterable[str] = (), protected: Iterable[str] = ()) -> str:
    """The profile for a policy: `writable` is all that may be written to, `protected` are expressions for paths in it.

    What is denied comes last.
    """
    with open(os.path.join(os.path.dirname(__file__), "seatbelt.sb")) as file:
        head = file.read().rstrip("\n")
    read = "" if policy.read is None else f" {_below([*_SYSTEM, *policy.read, *writable])}"
    write = "" if policy.write is None else f" {_below(writable)}"
    lines = [
        head,
        "(allow file-read-metadata file-test-existence)",  # names are seen everywhere: a program resolves paths
        f"(allow file-read*{read})",
        f'(allow file-write* {_exactly(_DEVICES)} (regex #"^/dev/ttys[0-9]+$"))',
        f"(allow file-write*{write})",
        "(deny file-write-setugid)",
        *_network(policy),
    ]
    if found := [*hidden]:
        lines.append(f"(deny file-read* file-write* {_below(found)})")
    if found := [f"(regex #{_quoted(expression)})" for expression in protected]:
        lines.append(f"(deny file-write* {' '.join(found)})")
    for pattern in policy.block:
        lines += _program(pattern)
    if open_ends := [*(f"--{name}" for name in policy.limits), *(f"--token {token}" for token in policy.tokens)]:
        lines.append(f"; not held by Seatbelt: {', '.join(open_ends)}")
    return "\n".join(lines) + "\n"


def _network(policy: Policy) -> list[str]:
    named = [*policy.sockets, *([_RESOLVER] if policy.network == "all" else [])]
    note = "; names are not seen by Seatbelt; a proxy on this machine can hold them: --host"
    lines = [f"{note} {host}" for host in policy.hosts]
    return [*lines, *_NETWORKS[policy.network], *([f"(allow network-outbound {_exactly(named)})"] if named else [])]


def protected_expressions() -> list[str]:
    """What is protected in any folder, by its name: what agents, editors and git run later."""
    names = "|".join(re.escape(name) for name in sorted(NAMES))
    git = "|".join(("hooks", *GIT_FILES, "info/attributes"))
    return [f"/({names})(/|$)", rf"/\.git/({git})(/|$)"]


def _program(pattern: str) -> list[str]:
    """A pattern that names a program and nothing more can be held, by the program's path; words are not seen."""
    name, _, rest = pattern.partition(" ")
    if rest.strip() not in ("", "*"):
        return [f"; not held by Seatbelt, which sees no words: --block {_quoted(pattern)}"]
    text = re.escape(name).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return [f"(deny process-exec* (regex #{_quoted(f'^(.*/)?{text}$')}))"]


def _below(paths: Iterable[str]) -> str:
    return " ".join(f"(subpath {_quoted(path)})" for path in dict.fromkeys(paths)) or '(literal "/dev/null")'


def _exactly(paths: Iterable[str]) -> str:
    return " ".join(f"(literal {_quoted(path)})" for path in paths)


def _quoted(text: str) -> str:
    """A text of Seatbelt's language, in which a quote and a backslash are special."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
