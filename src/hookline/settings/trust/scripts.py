"""Which files a hook's command runs, and what they hold.

The command is read as a shell would read it: programs, scripts of interpreters and shells, sourced files, modules of
`python -m`, and what those import. Files that it only writes, reads as data or mentions are not among them. Where it
cannot be told which files a command runs (a variable, `$(…)`, a glob, a program that reads files of its own), `notes`
says so: such a hook is trusted as a command, not by content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hookline.core.hooks.actions import Cedar, Command, Rego
from hookline.core.hooks.hook import Hook
from hookline.core.placeholders import EITHER, fill
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELL_VALUED, SHELLS
from hookline.settings.files import LARGEST, is_dir, is_file, read_bytes
from hookline.settings.sources import absolute_path
from hookline.settings.trust import script_programs as programs
from hookline.settings.trust.code_imports import (
    Listing,
    code_beside,
    imported,
    is_code,
    is_inside,
    is_shell,
    policy_files,
    python_imports,
)
from hookline.settings.trust.dynamic_code import code_reach, python_reach

_LONGEST_NAME = 4096
_MOST_SCRIPTS = 50
_MOST_NOTES = 6


class ExecutedFiles(msgspec.Struct, frozen=True):
    """What one hook's command runs: files that are there, folders that imports look in, and paths to look at again.

    `notes` says what cannot be told: the hook is then trusted as a command, not by content.
    """

    files: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()


def files_run_by_hook(
    hook: Hook, roots: Iterable[str], project_dir: str, env: Mapping[str, str] | None = None
) -> ExecutedFiles:
    """The files inside `roots` that the hook runs, what they import included; `env` is its file's own."""
    action = hook.action
    return (
        files_run_by_action(action, roots, project_dir, env)
        if isinstance(action, Command | Cedar | Rego)
        else ExecutedFiles()
    )


def files_run_by_action(
    action: Command | Cedar | Rego, roots: Iterable[str], project_dir: str, env: Mapping[str, str] | None = None
) -> ExecutedFiles:
    """The same, for an action that is not a hook's."""
    if not isinstance(action, Command):
        return ExecutedFiles(files=tuple(sorted(map(str, policy_files(action, project_dir)))))
    inside = tuple(dict.fromkeys(Path(root) for root in roots if root))
    reader = _CommandReader(action, inside, Path(project_dir), {**(env or {}), **action.env})
    reader.read_action()
    return reader.named()


class _CommandReader:
    """Reads one command, and the shell scripts it runs, for the files they run."""

    def __init__(self, action: Command, inside: Sequence[Path], project: Path, env: Mapping[str, str]) -> None:
        self._action, self._inside, self._project, self._env = action, inside, project, env
        self._marks = {"/:hookline-project:": str(project), "/:hookline-plugin:": action.plugin_root or str(project)}
        self.files: dict[Path, None] = {}
        self.listings: dict[Listing, None] = {}
        self.missing: dict[Path, None] = {}
        self.notes: dict[str, None] = {}
        self._scripts: set[Path] = set()

    def named(self) -> ExecutedFiles:
        """What was found."""
        watch = {*map(str, self.files), *map(str, self.missing), *(one.folder for one in self.listings)}
        notes = list(self.notes)
        more = [f"and {len(notes) - _MOST_NOTES} more"] if len(notes) > _MOST_NOTES else []
        return ExecutedFiles(
            tuple(map(str, sorted(self.files))), tuple(sorted(watch)), tuple(self.listings),
            (*notes[:_MOST_NOTES], *more),
        )  # fmt: skip

    def read_action(self) -> None:
        """The command itself: a shell's, or with arguments a program's own."""
        action = self._action
        if action.args is None:
            self.read_text(action.command, (self._project,), "the command")
            return
        words = tuple(self._without_placeholder_marks(self._marked(word)) for word in (action.command, *action.args))
        unknown = tuple(index for index, word in enumerate(words) if "${" in word)
        name = words[0].rsplit("/", 1)[-1]
        self._read(SimpleCommand(name=name, words=words, unknown=unknown), (self._project,), "the command")

    def read_text(self, text: str, bases: tuple[Path, ...], where: str) -> None:
        """Shell text: every command in it; `bases` are the folders that it may be in when it runs."""
        if "\0" in text:
            return
        line = parse_line(self._marked(text))
        bases = (*bases, *self._folders(line.commands, bases[0]))
        for command in line.commands:
            words = tuple(self._without_placeholder_marks(word) for word in command.words)
            redirects = tuple(
                msgspec.structs.replace(r, target=self._without_placeholder_marks(r.target)) for r in command.redirects
            )
            self._read(msgspec.structs.replace(command, words=words, redirects=redirects), bases, where)
        for reason in line.undecidable:
            if not programs.ANSWERED.search(reason):
                self._note(where, self._without_placeholder_marks(reason))

    # -- one command ---------------------------------------------------------------------------------------------

    def _read(self, command: SimpleCommand, bases: tuple[Path, ...], where: str) -> None:
        for name, value in command.assignments:
            if name == "PATH":
                self._env = {**self._env, "PATH": self._without_placeholder_marks(value)}
        if not command.words or 0 in command.unknown:
            if command.words:
                self._note(where, f"which program `{command.words[0][:60]}` names is known only when it runs")
            return
        name = command.name
        self._note_variables(dict(command.assignments), where)
        self._program(command, bases, where)
        if name in SHELLS:
            self._script_of(command, SHELL_VALUED, bases, where)
        elif name in (".", "source"):
            self._script_of(command, frozenset(), bases, where)
        elif name == "hookline":
            self._hookline(command, 1, bases, where)
        elif language_of(name):
            self._interpreted(command, bases, where)
        elif not command.wraps:
            self._other(command, bases, where)

    def _program(self, command: SimpleCommand, bases: tuple[Path, ...], where: str) -> None:
        program = command.words[0]
        if "/" not in program:
            return self._look_on_path(program, where)
        self._add(program, bases, where)
        if language_of(command.name) and any(is_inside(absolute_path(base / program), self._inside) for base in bases):
            self._note(where, f"`{program}` is an interpreter of the project's own, with code of its own")
        return None

    def _other(self, command: SimpleCommand, bases: tuple[Path, ...], where: str) -> None:
        name = command.name
        for flag, value in _flag_values(command, programs.WITH_PROGRAM_FILE.get(name, ())):
            self._add_word(command, value, bases, where, f"what `{name} {flag}` runs")
        for file in programs.RECIPES.get(name, ()):
            self._add(file, bases, where)
        if name in programs.RECIPES:
            self._note(where, f"`{name}` runs what its recipes say")
        elif name in programs.PLAIN or name in programs.WITH_PROGRAM_FILE:
            if any(
                code_reach(name, word) or programs.CODE_OPTIONS.match(f"{name} {word}") for word in command.words[1:]
            ):
                self._note(where, f"the code that `{name}` is given may run files")
            return
        elif command.via:
            self._add(command.words[0], bases, where)  # `uv run check.py`
        for at, word in enumerate(command.words[1:], 1):  # it may run the code it is given
            if at not in command.unknown and any(is_code(base / word) for base in bases):
                self._add(word, bases, where)
        if "/" not in command.words[0] and name not in ("eval", "exec", *programs.RECIPES):
            self._note(where, f"`{name}` may run files of the project, and which cannot be told")

    def _script_of(self, command: SimpleCommand, valued: frozenset[str], bases: tuple[Path, ...], where: str) -> None:
        """The script that a shell is given, if it is: what `-c` carries was read with the line."""
        at, words = 1, command.words
        while at < len(words) and words[at][:1] in "-+" and words[at] not in ("-", "--"):
            if words[at] in ("--rcfile", "--init-file"):
                self._note(where, f"`{command.name} {words[at]}` runs another file first")
            if re.fullmatch(r"-[a-zA-Z]*c", words[at]):
                return
            at += 2 if words[at] in valued else 1
        at += at < len(words) and words[at] == "--"
        if at < len(words) and words[at] != "-":
            self._add_word(command, at, bases, where, f"what `{command.name}` runs")
        else:
            self._from_input(command, bases, where)

    def _from_input(self, command: SimpleCommand, bases: tuple[Path, ...], where: str) -> None:
        files = [one for one in command.redirects if one.op == "<"]
        for one in files:
            if one.known:
                self._add(one.target, bases, where)
            else:
                self._note(where, f"what `{command.name}` reads from `{one.target}` is known only when it runs")
        written = any(one.op.startswith("<<") for one in command.redirects) and not language_of(command.name)
        if not files and not written:  # of what stands on the line, only a shell's was read with it
            self._note(where, f"`{command.name}` runs what it reads from its input")

    def _interpreted(self, command: SimpleCommand, bases: tuple[Path, ...], where: str) -> None:
        language, words, at = language_of(command.name), command.words, 1
        python = language in ("python", "pypy")
        valued = programs.PYTHON_VALUED if python else programs.OTHER_VALUED
        while at < len(words) and words[at].startswith("-") and words[at] != "-":
            if python and words[at].startswith("-m"):
                return self._module(command, at, bases, where)
            if python and "c" in words[at][1:] and not words[at].startswith("--"):
                return self._python_code(command, at, bases, where)
            if python and "E" in words[at] and "I" not in words[at]:
                self._note(where, f"`{command.name} {words[at]}` may run byte code that lies beside the script")
            if (not python and words[at] not in programs.PLAIN_FLAGS) or (
                words[at].startswith("-W") and "." in " ".join(words)
            ):
                self._note(where, f"`{command.name} {words[at]}` may load other code")
            if not python and words[at] in ("-e", "-E", "--eval", "-p", "--print", "-r", "-c") and at + 1 < len(words):
                return self._inline(command, at + 1, where)
            if not python and words[at] in valued and at + 1 < len(words) and words[at + 1].startswith("."):
                self._add_word(command, at + 1, bases, where, f"what `{command.name} {words[at]}` loads")
            at += 2 if words[at] in valued else 1
        at += at < len(words) and words[at] in ("run", "x") and language in ("deno", "bun")
        if at < len(words) and words[at] != "-":
            return self._add_word(command, at, bases, where, f"what `{command.name}` runs")
        return self._from_input(command, bases, where)

    def _note_variables(self, given: Mapping[str, str], where: str) -> None:
        """What the environment makes programs run besides."""
        for name, value in {**self._env, **given}.items():
            if value and name not in programs.PLAIN_VARIABLES and programs.CODE_VARIABLES.fullmatch(name):
                self._note(where, f"`{name}` names places that code is taken from")

    def _module(self, command: SimpleCommand, at: int, bases: tuple[Path, ...], where: str) -> None:
        name = command.words[at][2:] or (command.words[at + 1] if at + 1 < len(command.words) else "")
        if at in command.unknown or at + 1 in command.unknown:
            return self._note(where, f"which module `{command.name} -m` runs is known only when it runs")
        found = False
        for base in bases:
            steps = name.split(".")
            package = base.joinpath(*steps)
            around = [base.joinpath(*steps[:count], "__init__.py") for count in range(1, len(steps) + 1)]
            for file in (package.with_suffix(".py"), package / "__main__.py", *around):
                if is_inside(file, self._inside):
                    found = found or is_file(file)
                    self._add_file(file, start=base)
        if name == "hookline" and not found:
            return self._hookline(command, at + (1 if command.words[at][2:] else 2), bases, where)
        if not found:
            self._note(where, f"`python -m {name}` may run files of the project, and which cannot be told")
        return None

    def _python_code(self, command: SimpleCommand, at: int, bases: tuple[Path, ...], where: str) -> None:
        """Code on the line imports from the folder that it runs in."""
        if at + 1 >= len(command.words) or at + 1 in command.unknown:
            return self._note(where, f"the code that `{command.name} -c` runs is known only when it runs")
        if "I" not in command.words[at]:
            for base in bases:
                brought = python_imports(None, base, self._inside, command.words[at + 1])
                self.files.update(dict.fromkeys(brought.files))
                self.listings.update(dict.fromkeys(brought.listings))
        for note in python_reach(command.words[at + 1].encode("utf-8", "replace"), ()):
            self._note(where, note)
        return None

    def _hookline(self, command: SimpleCommand, at: int, bases: tuple[Path, ...], where: str) -> None:
        """Hookline runs the hook files that it is given, and is an interpreter for them."""
        words = command.words
        verb = words[at] if at < len(words) else ""
        for index, word in enumerate(words[at:], at):
            flag, equals, value = word.partition("=")
            if flag in programs.HOOKLINE_FILES and equals:
                self._add(value, bases, where)
            elif flag in programs.HOOKLINE_FILES:
                self._add_word(command, index + 1, bases, where, f"what `hookline {verb}` runs")
        plain = verb == "guard" or all(
            programs.HOOKLINE_FLAGS.match(word) for word in words[at + 1 :] if word.startswith("-")
        )
        if at in command.unknown or verb not in programs.HOOKLINE_VERBS or not plain:
            self._note(where, f"`hookline {verb}` may run files of the project, and which cannot be told")

    def _inline(self, command: SimpleCommand, at: int, where: str) -> None:
        if at in command.unknown or programs.INLINE_FILES.search(command.words[at]):
            self._note(where, f"the code that `{command.name}` is given may run other files")

    # -- files ---------------------------------------------------------------------------------------------------

    def _add_word(self, command: SimpleCommand, at: int, bases: tuple[Path, ...], where: str, what: str) -> None:
        if at >= len(command.words):
            return
        word = command.words[at]
        if at in command.unknown or any(sign in word for sign in "*?["):
            self._note(where, f"{what} (`{word[:60]}`) is known only when it runs")
            return
        if not any(is_inside(absolute_path(base / word), self._inside) for base in bases):
            self._note(where, f"`{word[:60]}` lies outside the project")
        self._add(word, bases, where)

    def _add(self, name: str, bases: tuple[Path, ...], where: str) -> None:
        if len(name) >= _LONGEST_NAME or "\0" in name:
            return
        for base in dict.fromkeys(bases):
            path = absolute_path(base / name)
            if is_inside(path, self._inside) and path not in self._inside:
                self._add_file(path / "__main__.py" if is_dir(path) else path)

    def _add_file(self, path: Path, start: Path | None = None) -> None:
        if not is_file(path):
            self.missing[path] = None
            return
        if path in self._scripts or len(self._scripts) >= _MOST_SCRIPTS:
            return
        self._scripts.add(path)
        brought = imported(path, self._inside) if start is None else python_imports(path, start, self._inside)
        self.files.update(dict.fromkeys(brought.files))
        self.listings.update(dict.fromkeys(brought.listings))
        before = len(self.notes)
        for note in brought.notes:
            self._note(_shown(path, self._inside), note)
        if is_shell(path):
            self._read_shell(path)
        if len(self.notes) > before:
            beside = code_beside(path, self._inside)
            self.files.update(dict.fromkeys(beside.files))
            self.listings.update(dict.fromkeys(beside.listings))

    def _read_shell(self, path: Path) -> None:
        data = read_bytes(str(path), LARGEST)
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
        text = programs.HERE.sub(lambda _: self._mark_for(path.parent), text)
        self.read_text(text, (self._project, path.parent), _shown(path, self._inside))

    def _mark_for(self, folder: Path) -> str:
        mark = next((mark for mark, value in self._marks.items() if value == str(folder)), None)
        if mark is None:
            mark = f"/:hookline-folder-{len(self._marks)}:"
            self._marks[mark] = str(folder)
        return mark

    def _look_on_path(self, program: str, where: str) -> None:
        """A program that the file's own `PATH` may find in the project."""
        path = self._env.get("PATH")
        for entry in path.split(os.pathsep) if path else ():
            if entry in ("$PATH", "${PATH}"):
                continue
            if "$" in (known := self._without_placeholder_marks(self._marked(entry))):
                self._note(where, f"`PATH` has `{entry[:60]}`, which is known only when it runs")
            elif is_inside(absolute_path(self._project / known), self._inside):
                self._add(str(Path(known, program)), (self._project,), where)

    def _folders(self, commands: Iterable[SimpleCommand], base: Path) -> Iterator[Path]:
        """The folders inside the project that a line goes to."""
        for command in commands:
            if command.name in ("cd", "pushd") and len(command.words) > 1 and 1 not in command.unknown:
                yield absolute_path(base / self._without_placeholder_marks(command.words[-1]))

    def _note(self, where: str, what: str) -> None:
        self.notes[f"{what}" if where == "the command" else f"{where}: {what}"] = None

    def _marked(self, text: str) -> str:
        """The text with the folders as single words, so that blanks in their names split nothing."""
        marks = dict(zip(("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT"), self._marks, strict=False))
        text = fill(text, marks.get, EITHER)
        plugin, project = self._action.plugin_root, str(self._project)
        for mark, value in (("/:hookline-plugin:", plugin), ("/:hookline-project:", project)):
            text = text.replace(value, mark) if value and len(value) > 1 else text
        return text

    def _without_placeholder_marks(self, word: str) -> str:
        for mark, value in self._marks.items():
            word = word.replace(mark, value)
        return word


def _flag_values(command: SimpleCommand, flags: Sequence[str]) -> Iterator[tuple[str, int]]:
    for index, word in enumerate(command.words[1:-1], 1):
        if word in flags:
            yield word, index + 1


def _shown(path: Path, inside: Sequence[Path]) -> str:
    root = next((root for root in inside if path.is_relative_to(root)), None)
    return f"`{path.relative_to(root) if root else path}`"
