"""The files that decide whether an agent is guarded at all: none of its tools writes to them without being asked about.

An agent that writes a host's settings, a git hook or the hook file is free in its next session. A path is judged by
where it leads, a shell line by its text; a line that hides what it writes and names such a file counts.
"""

# ruff: noqa: PTH111, PTH118, PTH120 - paths are judged as the system reads them, as texts

import os
import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any

from hookline.core.engine import Context
from hookline.core.files import other_names, state_folder
from hookline.core.git_settings import is_harmless_setting
from hookline.core.hooks import Hook, make_hook
from hookline.core.interpreter import PACKAGES, off_switch
from hookline.core.paths import inside_any
from hookline.core.shell import parse_line, writes
from hookline.events import PreToolUse
from hookline.guards import sandboxing
from hookline.guards.commands import PRIORITY, Undecided, answer_to_doubts, shell_lines
from hookline.guards.off_loop import judge_lines
from hookline.guards.paths import line_folder, paths_of, seems_to_read
from hookline.guards.permissions import file_access
from hookline.guards.permissions.path_on_disk import TooMany, UnresolvablePath, matches, places_of
from hookline.guards.permissions.readonly_commands import WorkingFolders
from hookline.replies import Reply

_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_COPIES = frozenset({"cp", "mv", "rsync", "install", "ln"})
_ADMINISTERS = re.compile(
    r"\bhookline\b(?:\.cli\.main|/__main__\.py)?\W+"
    r"(?:mcp\W+(?:accept|pin)|inbox\W+approve|learn|trust|uninstall|service\W+off)\b"
)
"""Commands that accept, approve or switch off: for the user alone."""


def own_files(
    also: Iterable[str | Path] = (), *, answer: Undecided = "ask", held: bool = False, name: str = "protect.own_files"
) -> Hook:
    """Ask before any tool writes to the files that switch guards off, or deny it with `answer="deny"`.

    These are settings of agents, editors and git, a shell's start-up files, the Python files that hooks came from,
    Hookline and its state, folders of PATH in the project, and `also`. A user who answers yes allows the one call.
    With `held` another guard has shell lines confined where that can be; there the kernel refuses what goes by name.
    """
    kept = tuple(os.path.realpath(os.path.expanduser(str(one))) for one in also)
    reply = answer_to_doubts(answer, "answer")

    def says(found: str) -> Reply | None:
        return reply(f"{found}; it can switch guards off") if found else None

    async def judge(event: PreToolUse, ctx: Context) -> Reply | None:
        project = ctx.project_dir or ctx.env.get("CLAUDE_PROJECT_DIR") or event.cwd
        files, folder = ProtectedFiles(kept, project or os.getcwd()), line_folder(event)  # noqa: PTH109
        given = () if seems_to_read(event.tool_name) else paths_of(event, read=False)
        judge_line = files.held_line if held and sandboxing.applies_to(event, "auto") else files.line
        found = next(filter(None, (files.problem(path, event.cwd) for _, path in given)), "")
        return says(found) or await judge_lines(
            shell_lines(event), lambda line: says(judge_line(line.text, folder)), disk=True
        )

    return make_hook((PreToolUse,), judge, name=name, priority=PRIORITY)


class ProtectedFiles:
    """Which paths are protected, for an agent in one project."""

    def __init__(self, also: tuple[str, ...], project: str) -> None:
        self._project = os.path.realpath(project)
        self._below = (*_hook_files(len(sys.modules)), *also, str(state_folder()))
        """What no folder that is written as a whole may hold."""
        self._places = (*self._below, *_fixed_places(self._project, os.environ.get("PATH", "")))

    def line(self, line: str, cwd: str) -> str:
        """Why a shell line may not run, as far as its text tells."""
        found, folders = writes(line), WorkingFolders(cwd, [cwd], str(Path.home()))
        try:
            paths = [path for target in found.targets for path in matches(target, cwd)]
        except TooMany:
            return "the line's wildcards stand for more files than can be looked at"
        if problem := next(filter(None, (self.problem(path, cwd, folder=True) for path in paths)), ""):
            return problem
        brought = [word for part in parse_line(line).commands if part.name in _COPIES for word in part.words[1:-1]]
        unsure = found.undecidable or found.notes
        named = [
            file_access.writes_protected(line, folders, file_access.SETS_UP),
            *(file_access.MENTION.findall(line.lower().translate(file_access.NO_QUOTES)) if unsure else ()),
            *(one for one in brought if file_access.brings_protected(one, folders)),
        ]
        written = next((f"the line may write to `{one}`" for one in named if one), "")
        return _decides(line) or written or _sets_git(line)

    def held_line(self, line: str, cwd: str) -> str:
        """The same for a line that the kernel holds: what it plainly writes inside, and orders to Hookline."""
        for target in writes(line).targets:
            path = os.path.realpath(os.path.join(cwd, os.path.expanduser(target)))
            if inside_any(path, (self._project, *self._places)) and (problem := self.problem(target, cwd)):
                return problem
        return _decides(line)

    def problem(self, path: Any, cwd: str, *, folder: bool = False) -> str:
        """Why a path may not be written to; with `folder` also because of what lies below it."""
        try:
            leads = list(places_of(path, cwd))
        except UnresolvablePath:
            return ""  # it is for `stay_inside` to say what cannot be judged
        for spelt in (os.path.normpath(os.path.join(cwd, os.path.expanduser(str(path)))), *leads):
            if file_access.protected_name(spelt, file_access.SETS_UP) or inside_any(spelt, self._places):
                return f"`{path}` is a file that sets up what guards this agent"
            if other_names(spelt):
                return f"`{path}` is a hard link, and its other name may be that of a file that guards this agent"
            if folder and any(inside_any(place, (spelt,)) for place in self._below):
                return f"`{path}` holds a file that guards this agent"
        return ""


@lru_cache(1)  # not of a guard: the service makes one for each event, and finds this made
def _hook_files(_modules: int) -> tuple[str, ...]:
    """Python files that this process has loaded and that came neither with Python nor with what is installed."""
    files = [file for module in tuple(sys.modules.values()) if isinstance(file := getattr(module, "__file__", 0), str)]
    real = {os.path.realpath(file) for file in files if "-packages/" in file or not file.startswith(_LIBRARY)}
    installed = (sys.prefix, sys.base_prefix, PACKAGES)
    return tuple(file for file in real if not inside_any(file, installed) and "-packages/" not in file)


@lru_cache(16)
def _fixed_places(project: str, path: str) -> tuple[str, ...]:
    """Hookline, its environment and its switch, and the folders of PATH that lie in the project."""
    entries = [os.path.realpath(entry) for entry in path.split(os.pathsep) if entry]
    own = [f"{PACKAGES}/hookline", off_switch(), *([sys.prefix] if sys.prefix != sys.base_prefix else [])]
    return (*own, *(entry for entry in entries if inside_any(entry, (project,)) and entry != project))


def _decides(line: str) -> str:
    """Whether a line runs, and does not only mention, such a command of Hookline's."""
    plain = line.translate(file_access.NO_QUOTES)
    if "hookline" not in plain:
        return ""
    commands = parse_line(line).commands
    texts = (" ".join(word if word.split() == [word] else "-" for word in one.words) for one in commands)
    runs = any(map(_ADMINISTERS.search, texts)) or (writes(line).undecidable and _ADMINISTERS.search(plain))
    return "the line runs a command of Hookline's that decides for the user" if runs else ""


def _sets_git(line: str) -> str:
    """A setting that git would run something for, as `git config` is asked to write it."""
    for command in parse_line(line).commands:
        rest = [*dropwhile(lambda word: word != "config", command.words if command.name == "git" else ())]
        pairs = [(key, value) for key, value in pairwise(rest) if re.fullmatch(r"[A-Za-z][\w-]*\.\S+", key)]
        if {"-e", "--edit", "edit"} & {*rest} or (pairs and not is_harmless_setting(*pairs[0])):
            return f"`{command.text[:200]}` sets up git to run something"
    return ""
