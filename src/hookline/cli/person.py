"""Commands that decide for a person (`mcp accept`, `inbox approve`): refused to whatever an agent started.

An agent with a shell could answer its own questions with them. They need a terminal, and no process above may be an
agent or carry an agent's mark in its environment, which `env -i`, `setsid` and `script` do not take from the processes
above. What cleared its environment, left its parents and made a terminal of its own is not told from a person: a
confined agent (`hookline confine`, `--confine`) cannot write the state folder at all, and `guards.protect` asks before
a line that names such a command.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hookline.cli.style import has_terminal
from hookline.errors import ConfigError

_MARKS = re.compile(  # variables that agents set for the programs that they start
    rb"(?:^|\0)(CLAUDECODE|CLAUDE_CODE_SESSION_ID|AI_AGENT|AGENT|CODEX_(?:THREAD_ID|CI|SANDBOX\w*)|GEMINI_CLI|QWEN_CODE|"
    rb"COPILOT_CLI|COPILOT_AGENT\w*|OPENCODE|CLINE_ACTIVE|CURSOR_AGENT|HOOKLINE_HOOK_ID)=[^\0]"
)
_OWN = ("run", "mcp", "confine", "prove")
_HOOKLINE = re.compile(r"(^|/)hookline(/__main__\.py|\.cli\.main)?$")
_MOST = 64


def require_person(command: str) -> None:
    """Go on only for a person at a terminal; else a `ConfigError` that says what was found."""
    if found := find_agent():
        raise ConfigError(command, f"this is for a person, not for an agent: {found}; run it in a terminal of your own")
    if not has_terminal():
        raise ConfigError(command, "this is for a person: run it in a terminal")


def find_agent(pid: int | None = None) -> str:
    """By what an agent is seen above a process (this one, if none is named); an empty text if none is."""
    environ = "\0".join(f"{name}={value}" for name, value in os.environ.items()) if pid is None else ""
    if mark := _mark(environ.encode(errors="replace")):
        return f"`{mark}` is set"
    from hookline.hosts.table import HOSTS

    agents = {host.executable for host in HOSTS.values()}
    for parent, words, environment in _parents(os.getppid() if pid is None else pid):
        named = (name for word in words[:3] for name in _names(word) if name in agents)
        if name := next(named, "") or _own_agent(words):
            return f"process {parent} is `{name}`"
        if mark := _mark(environment):
            return f"process {parent} has `{mark}`"
    return ""


def _mark(environment: bytes) -> str:
    found = _MARKS.search(environment)
    return found[1].decode() if found else ""


def _names(word: str) -> tuple[str, str]:
    """What a word of a command line may run: `/x/bin/claude`, `gemini.js`, the `openhands-1` of a tmux server."""
    name = Path(word.removeprefix("-L")).name
    return name, re.split(r"[-.@ ]", name)[0]


def _own_agent(words: list[str]) -> str:
    """Whether this is an agent of ours, or stands before one."""
    at = next((at for at, word in enumerate(words) if _HOOKLINE.search(word)), len(words)) + 1
    return f"hookline {words[at]}" if at < len(words) and words[at] in _OWN else ""


def _parents(pid: int) -> Iterator[tuple[int, list[str], bytes]]:
    """A process and those above it: command line and, where it can be read, the environment it was started with."""
    for _ in range(_MOST):
        if pid <= 1:
            return
        entry = Path("/proc") / str(pid)
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            above = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            above, words = _ask_ps(pid)
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            environment = b""
        yield pid, words, environment
        pid = above


def _ask_ps(pid: int) -> tuple[int, list[str]]:
    """The same where there is no `/proc`; a process that cannot be seen is the last one."""
    asked = ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)]
    try:
        words = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return 0, []
    return int(words[0]), words[1:]
