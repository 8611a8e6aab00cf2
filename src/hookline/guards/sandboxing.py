"""Handing a shell line to the kernel: where it can be held, a guard has that done instead of asking about it.

Our own agent is told the policy and holds the line to it as it runs. Any other host is given another line to run:
`hookline confine … -- bash -c '<line>'`. What the guard's text reading is sure of it still denies at
once; what reading cannot tell is left to the kernel, which judges every program as it starts and every file as it is
opened. What was refused there is told after the call, as the guard's answer to PostToolUse.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from hookline.core.calls import call_notes
from hookline.core.files import private, state_folder
from hookline.core.interpreter import PACKAGES, hookline_argv, shell_command
from hookline.core.paths import inside_any
from hookline.core.shell import parse_line
from hookline.core.shell.targets import CHANGES_FOLDER
from hookline.errors import HookError
from hookline.events import PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse
from hookline.processes.service import address
from hookline.replies import Reply, context, rewrite
from hookline.sandbox.main import UsageError, missing, no_notifications, parse
from hookline.sandbox.policy import Policy, records
from hookline.sandbox.warm import launcher_path

Confine = Literal["auto", "off"] | None
TOOL = "Bash"  # the tool whose lines run in a shell of this machine; hosts' other names for it are turned into this one
AFTERWARDS = (PostToolUse, PostToolUseFailure)
host_rewrites: ContextVar[bool] = ContextVar("host_rewrites", default=True)
"""Whether the host can be given another command to run; a host that cannot gets the answer of the text alone."""


class HeldLine(list[tuple[Policy, str]]):
    """What guards, on any thread, hold one shell line of our agent to, and where refusals are noted."""

    @property
    def policy(self) -> Policy | None:
        """What all guards allow, or nothing if none of them held it."""
        joined = None
        for policy, call in tuple(self):
            joined = (joined or Policy(None)).intersected(policy)
            joined.call = call
        return joined


by_agent: ContextVar[HeldLine | Literal[False] | None] = ContextVar("by_agent", default=None)
"""The line of our own agent, which confines unless a guard says `off`; False where the agent was told not to."""

_FOLLOW = ("{ d=$(", ' 9>&1 1>&8 8>&-); } 8>&1; s=$?; cd "${d:-.}"; (exit $s)')
"""Put around a line that changes the folder, so that the shell it came from follows."""
_TELL_FOLDER = ("--tell-folder", "9")
_MOST_LINES = 20


def checked(confine: Confine) -> Confine:
    """What a guard was told; anything but `auto`, `off` and nothing is refused at registration."""
    if confine not in ("auto", "off", None):
        raise HookError(f"confine must be `auto` or `off`, got `{confine}`")
    return confine


def wanted(confine: Confine) -> bool:
    """Whether a guard that was told this has lines confined for the host that asks."""
    asked = by_agent.get()
    return asked is not False and (confine == "auto" or (confine is None and asked is not None))


def unavailable() -> str:
    """Why lines cannot be confined here, or nothing."""
    return missing(Policy()) or no_notifications()


def applies_to(event: PreToolUse, confine: Confine) -> bool:
    """Whether a call is a shell line that is to be held, and can be."""
    return wanted(confine) and is_shell_line(event) and host_rewrites.get() and not unavailable()


def own_places(folders: tuple[str, ...]) -> tuple[str, ...]:
    """What decides about lines and lies in some folders: files that hooks came from, their folders, and Hookline."""
    files = [file for file in _hook_files(len(sys.modules)) if inside_any(file, folders)]
    parents = [parent for file in files if (parent := str(Path(file).parent)) not in folders]
    installed = os.path.realpath(PACKAGES)
    own = [f"{installed}/hookline"] if "-packages" in installed and inside_any(installed, folders) else []
    return tuple(dict.fromkeys([*files, *parents, *own]))


@lru_cache(1)  # not of a guard: the service makes one for each event, and finds this made
def _hook_files(_modules: int) -> tuple[str, ...]:
    """The files of this process that define hooks, by the name that every hook file gives them."""
    found = [one for one in tuple(sys.modules.values()) if type(getattr(one, "hooks", None)).__name__ == "Hooks"]
    return tuple(os.path.realpath(str(module.__file__)) for module in found if getattr(module, "__file__", None))


def is_shell_line(event: PreToolUse | PostToolUse | PostToolUseFailure | PermissionRequest) -> bool:
    """Whether a call runs a line in a shell of this machine."""
    return event.tool_name == TOOL and isinstance(event.tool_input.get("command"), str)


def without_confinement(event: PreToolUse | PermissionRequest) -> Mapping[str, Any]:
    """The call as it was before a guard put a confinement around its line."""
    return {**event.tool_input, "command": line_of(event)} if is_shell_line(event) else event.tool_input


def line_of(event: PreToolUse | PostToolUse | PostToolUseFailure | PermissionRequest) -> str:
    """The line that was asked for, without a confinement that is already around it."""
    command: str = event.tool_input["command"]
    return (unwrapped(command) or (None, command))[1]


def hold(event: PreToolUse, policy: Policy) -> Reply | None:
    """The same call, held to a policy and to what already holds it; None if its line does not have to change."""
    command: str = event.tool_input["command"]
    found = unwrapped(command)
    before, line = found or (Policy(None), command)
    call = call_file(event, line)
    if isinstance(agent := by_agent.get(), HeldLine):
        agent.append((policy, call))
        return None
    _only_granted(before, call)
    joined = before.intersected(policy)
    joined.call = call
    with open(f"{call}.policy", "ab", opener=private) as file:  # where two guards rewrite at once, one rewrite is lost
        file.write(policy.record())
    if found is not None and joined == before:
        return None
    return rewrite({**event.tool_input, "command": wrapped(line, joined)})


def _only_granted(before: Policy, call: str) -> None:
    """Take from a policy that a line's own text may say the sockets and tokens which no guard of the call grants."""
    granted = []
    with suppress(FileNotFoundError, UsageError):
        granted = [parse([*words, "--", ":"])[0] for words in records(Path(f"{call}.policy").read_bytes())]
    before.sockets = tuple(path for path in before.sockets if any(path in one.sockets for one in granted))
    before.tokens = tuple(token for token in before.tokens if any(token in one.tokens for one in granted))


def launcher(*, warm: bool = True) -> list[str]:
    """The `hookline` of this interpreter, by its whole path: a project's own `hookline` must not be taken for it.

    Before it stands what starts the line without a new interpreter, where the resident service keeps a crew for that.
    """
    words, name = hookline_argv("confine"), address.instance()
    if not warm or not name:
        return words
    path, lines = Path(launcher_path(str(state_folder()))), Path(f"{address.folder()}/{name}.lines")
    return [str(path), str(lines), str(len(words)), *words] if lines.exists() and path.exists() else words


def wrapped(line: str, policy: Policy) -> str:
    """The line as it is to be run."""
    moves = any(part.name in CHANGES_FOLDER and not part.scope for part in parse_line(line).commands)
    flags = [*policy.arguments(), *(_TELL_FOLDER if moves else ())]
    text = shell_command([*launcher(), *flags, "--", "bash", "-c", line])
    return text.join(_FOLLOW) if moves else text


def unwrapped(command: str) -> tuple[Policy, str] | None:
    """The policy and the line inside a command that `wrapped` made, or one that reads exactly like it."""
    if " confine " not in command:  # a word of every launcher
        return None
    if command.startswith(_FOLLOW[0]) and command.endswith(_FOLLOW[1]):
        command = command[len(_FOLLOW[0]) : -len(_FOLLOW[1])]
    starts = (words for words in (launcher(), launcher(warm=False)) if command.startswith(f"{shell_command(words)} "))
    if (words := next(starts, None)) is None:
        return None
    try:
        policy, inner = parse([*_words(command[len(shell_command(words)) :])])
    except (ValueError, UsageError):
        return None
    known = inner[:2] == ["bash", "-c"] and len(inner) == 3
    made = (shell_command([*words, *policy.arguments(), *extra, "--", *inner]) for extra in ((), _TELL_FOLDER))
    # it says the policy and the line and nothing besides
    return (policy, inner[2]) if known and command in made else None


@lru_cache(8)  # guards ask about the same command several times before it runs
def _words(command: str) -> tuple[str, ...]:
    return tuple(shlex.split(command))


def call_file(event: PreToolUse | PostToolUse | PostToolUseFailure, line: str) -> str:
    """Where a call's policies and refusals are noted, without an ending; outside of what the line may write to."""
    return str(call_notes(event.session_id, event.tool_use_id, line))


def afterwards(event: PostToolUse | PostToolUseFailure, guard: str) -> Reply | None:
    """What the kernel refused of a call on this guard's behalf, which the text of the line had not shown."""
    if not is_shell_line(event):
        return None
    call = call_file(event, line_of(event))
    Path(f"{call}.policy").unlink(missing_ok=True)
    path = Path(f"{call}.{guard}")
    if not path.is_file():
        return None
    lines = path.read_text(errors="replace").splitlines()
    path.unlink(missing_ok=True)
    told = "\n".join(dict.fromkeys(lines[:_MOST_LINES]))
    return context(f"{guard} refused this while the line ran; its text had not shown it:\n{told}")
