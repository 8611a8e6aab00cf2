"""Programs and scripts that a hook's command plainly needs, and that are not there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from hookline.core.hooks.actions import Command
from hookline.core.shell import ShellLine, SimpleCommand, parse_line
from hookline.core.shell.folders import placed
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELL_VALUED, SHELLS
from hookline.settings.trust.script_programs import CODE, OTHER_VALUED, PYTHON_VALUED

_BUILTINS = frozenset(
    """
    . : [ alias bg bind break builtin caller cd command compgen complete continue coproc declare dirs disown echo enable
    eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd
    read readarray readonly return select set shift shopt source suspend test time times trap true type typeset ulimit
    umask unalias unset wait
    """.split()  # noqa: SIM905 - reads better than a column of quotes
)
_LOOKS = {"command": ("-v", "-V"), "which": (), "hash": (), "type": ()}
"""Commands that ask whether a program is there, and the option that makes them ask."""
_TESTS = re.compile(r"""(?:\[\[?|\btest)\s+(?:!\s+)?-[a-zA-Z]\s+["']?([^\s"'\];]+)""")
_FUNCTIONS = re.compile(r"(?:^|[\s;&|{(])(?:function\s+([\w-]+)|([\w-]+)\s*\(\s*\))")
_NO_SCRIPT = re.compile(r"-(?:[a-zA-Z]*[cm]|e|-eval|p|-print)")
_PROJECT, _PLUGIN, _HOME = "/:project:", "/:plugin:", "/:home:"


def missing_from(action: Command, project: str) -> Iterator[str]:
    """What is wrong with each program or script that the command needs, in the words of the user."""
    if action.args is not None:
        words = tuple(_Places(action, project).filled(word) for word in (action.command, *action.args))
        line = ShellLine((SimpleCommand(name=words[0].rsplit("/", 1)[-1], words=words),))
        yield from _Reader(action, project, line, "").problems()
        return
    text = _Places(action, project).marked(action.command)
    yield from _Reader(action, project, parse_line(text), text).problems()


class _Places:
    """The folders that a command names by variables; as single words while it is read, since they may have blanks."""

    def __init__(self, action: Command, project: str) -> None:
        home = str(Path.home())
        self._values = {_PROJECT: project, _PLUGIN: action.plugin_root or "", _HOME: home}
        self._names = {"CLAUDE_PROJECT_DIR": _PROJECT, "CLAUDE_PLUGIN_ROOT": _PLUGIN, "HOME": _HOME}

    def marked(self, text: str) -> str:
        for name, mark in self._names.items():
            text = re.sub(rf"\$\{{{name}(?::[-=?][^}}]*)?\}}|\${name}\b", mark, text)
        return text

    def filled(self, text: str) -> str:
        text = self.marked(text)
        for mark, value in self._values.items():
            text = text.replace(mark, value)
        return text


class _Reader:
    """One command, read for what it starts."""

    def __init__(self, action: Command, project: str, line: ShellLine, text: str) -> None:
        self._project, self._line = project, line
        self._places = _Places(action, project)
        self._tested = {self._places.filled(found[1]).removeprefix("./") for found in _TESTS.finditer(text)}
        self._known = {name for found in _FUNCTIONS.finditer(text) for name in found.groups() if name}
        self._own_path = "PATH" in action.env or re.search(r"\bPATH=", text) is not None
        for command in line.commands:
            if command.name in _LOOKS and set(_LOOKS[command.name]) <= {*command.words, *_LOOKS[command.name][1:]}:
                self._known.update(command.words[1:])

    def problems(self) -> Iterator[str]:
        for command, bases in placed(self._line):
            if not command.words or 0 in command.unknown:
                continue
            folders = [Path(self._project, self._places.filled(base)) for base in bases]
            program = self._places.filled(command.words[0])
            script = self._script(command)
            if script is not None and _is_script(script) and not self._is_there(script, folders):
                yield f"`{script}` does not exist"
            if command.via and "/" not in program:  # `uv run check.py`, `npx tsx`: what it brings itself is its matter
                if Path(program).suffix in CODE and not self._is_there(program, folders):
                    yield f"`{program}` does not exist"
                continue
            problem = self._unrunnable(program, folders)
            if problem:
                yield f"`{program}` {problem}"

    def _script(self, command: SimpleCommand) -> str | None:
        """The script that a shell or an interpreter is given."""
        language = language_of(command.name)
        if command.name not in SHELLS and not language and command.name not in (".", "source"):
            return None
        valued = SHELL_VALUED if command.name in SHELLS else PYTHON_VALUED if language == "python" else OTHER_VALUED
        valued = valued - {"-A"} if language == "deno" else valued
        at, words = 1, command.words
        while at < len(words) and (words[at][:1] in "-+" or words[at] == "run"):
            if _NO_SCRIPT.fullmatch(words[at]) or words[at] == "-":
                return None
            at += 2 if words[at] in valued else 1
        if at >= len(words) or at in command.unknown or at in command.globs:
            return None
        return self._places.filled(words[at])

    def _is_there(self, name: str, folders: list[Path]) -> bool:
        """Whether it may be there: also where the folder is not known, or where the line looks first."""
        path = Path(name).expanduser()
        return (
            name.removeprefix("./") in self._tested
            or (not folders and not path.is_absolute())
            or any((folder / path).exists() for folder in folders or [Path(self._project)])
        )

    def _unrunnable(self, program: str, folders: list[Path]) -> str:
        if "/" not in program:
            known = program in _BUILTINS or program in self._known or self._own_path
            return "" if known or shutil.which(program) else "was not found on PATH; install it or give its path"
        if not self._is_there(program, folders):
            return "does not exist"
        found = [folder / Path(program).expanduser() for folder in folders]
        path = next((one for one in found if one.exists()), None)
        if path is None:
            return ""
        if path.is_dir():
            return "is a folder; name a program"
        return "" if os.access(path, os.X_OK) else f"is not executable; run `chmod +x {program}`"


def _is_script(word: str) -> bool:
    """Whether a word is a file's name, and not a task such as `bun run build`."""
    return "/" in word or Path(word).suffix in CODE
