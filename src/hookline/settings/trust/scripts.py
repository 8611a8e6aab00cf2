"""Which files a hook's command runs, and what they hold.

The command is read as a shell would read it: programs, scripts of interpreters and shells, sourced files, modules of
`python -m`, and what those import. Files that it only writes, reads as data or mentions are not among them. Where it
cannot be told which files a command runs (a variable, `$(…)`, a glob, a program that reads files of its own), `notes`
says so: such a hook is trusted as a command, not by content.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hookline.core.hooks.hook import Action, Cedar, Command, Rego
from hookline.core.placeholders import EITHER, fill
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELL_VALUED, SHELLS, lists, names
from hookline.settings.files import LARGEST, is_dir, is_file, read_bytes
from hookline.settings.sources import absolute_path
from hookline.settings.trust import code_imports as code

_LONGEST_NAME = 4096
_MOST_SCRIPTS = 50
_MOST_NOTES = 6
_PROJECT, _PLUGIN = "/:hookline-project:", "/:hookline-plugin:"
MARKS = {"CLAUDE_PROJECT_DIR": _PROJECT, "CLAUDE_PLUGIN_ROOT": _PLUGIN}
"""What stands for a folder while a line is read: one word, so that blanks in the folder's name split nothing."""


class ExecutedFiles(msgspec.Struct, frozen=True):
    """What one hook's command runs: files that are there, folders that imports look in, and paths to look at again.

    `notes` says what cannot be told: the hook is then trusted as a command, not by content.
    """

    files: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    listings: tuple[code.Listing, ...] = ()
    notes: tuple[str, ...] = ()

    def __or__(self, other: "ExecutedFiles") -> "ExecutedFiles":
        """What two hooks run that stand at the same place of two tables of one file."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return ExecutedFiles(*(tuple(dict.fromkeys(a + b)) for a, b in pairs))


def files_run_by(
    action: Action, roots: Iterable[str], project_dir: str, env: Mapping[str, str] | None = None
) -> ExecutedFiles:
    """The files inside `roots` that an action runs, what they import included; `env` is its file's own."""
    if isinstance(action, Cedar | Rego):
        return ExecutedFiles(files=tuple(sorted(map(str, code.policy_files(action, project_dir)))))
    if not isinstance(action, Command):
        return ExecutedFiles()
    inside = tuple(dict.fromkeys(Path(root) for root in roots if root))
    return _CommandReader(action, inside, Path(project_dir), {**(env or {}), **action.env}).found()


class _CommandReader:
    """Collects what one command runs, and the shell scripts that it runs."""

    def __init__(self, action: Command, inside: Sequence[Path], project: Path, env: Mapping[str, str]) -> None:
        self.inside, self.project, self.env = inside, project, env
        self._marks = {_PROJECT: str(project), _PLUGIN: action.plugin_root or str(project)}
        self._plugin = action.plugin_root
        self._files: dict[Path, None] = {}
        self._listings: dict[code.Listing, None] = {}
        self._missing: dict[Path, None] = {}
        self._scripts: set[Path] = set()
        self.notes: dict[str, None] = {}
        if action.args is None:
            self._read_text(action.command, (project,), "")
        else:  # a program with its arguments, no shell
            words = tuple(self.filled(self.marked(word)) for word in (action.command, *action.args))
            unknown = tuple(index for index, word in enumerate(words) if "${" in word)
            one = SimpleCommand(name=words[0].rsplit("/", 1)[-1], words=words, unknown=unknown)
            _ShellText(self, (project,), "").read(one)

    def found(self) -> ExecutedFiles:
        watch = {*map(str, self._files), *map(str, self._missing), *(one.folder for one in self._listings)}
        notes = list(self.notes)
        more = [f"and {len(notes) - _MOST_NOTES} more"] if len(notes) > _MOST_NOTES else []
        files = tuple(map(str, sorted(self._files)))
        return ExecutedFiles(files, tuple(sorted(watch)), tuple(self._listings), (*notes[:_MOST_NOTES], *more))

    def keep(self, brought: code.ImportedFiles) -> None:
        self._files.update(dict.fromkeys(brought.files))
        self._listings.update(dict.fromkeys(brought.listings))

    def add_file(self, path: Path, start: Path | None = None) -> None:
        """A file with what it imports; beside one of which that cannot be told, all code counts."""
        if not is_file(path):
            self._missing[path] = None
            return
        if path in self._scripts or len(self._scripts) >= _MOST_SCRIPTS:
            return
        self._scripts.add(path)
        brought = code.imported(path, self.inside) if start is None else code.python_imports(path, start, self.inside)
        self.keep(brought)
        before = len(self.notes)
        root = next((root for root in self.inside if path.is_relative_to(root)), None)
        shown = f"`{path.relative_to(root) if root else path}`: "
        self.notes |= dict.fromkeys(shown + note for note in brought.notes)
        if code.is_shell(path):
            data = read_bytes(str(path), LARGEST)
            text = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
            known = [mark for mark, value in self._marks.items() if value == str(path.parent)]
            here = known[0] if known else f"/:hookline-folder-{len(self._marks)}:"
            self._marks[here] = str(path.parent)
            self._read_text(HERE.sub(lambda _: here, text), (self.project, path.parent), shown)
        if len(self.notes) > before:
            self.keep(code.code_beside(path, self.inside))

    def _read_text(self, text: str, bases: tuple[Path, ...], where: str) -> None:
        """Every command of a text; `bases` are the folders that it may be in when it runs."""
        if "\0" in text:
            return
        line = parse_line(self.marked(text))
        moves = [one for one in line.commands if one.name in ("cd", "pushd")]
        known = [one.words[-1] for one in moves if len(one.words) > 1 and 1 not in one.unknown]
        entered = [absolute_path(bases[0] / self.filled(word)) for word in known]
        shell = _ShellText(self, (*bases, *entered), where)
        for command in line.commands:
            words = tuple(map(self.filled, command.words))
            redirects = tuple(msgspec.structs.replace(one, target=self.filled(one.target)) for one in command.redirects)
            shell.read(msgspec.structs.replace(command, words=words, redirects=redirects))
        for reason in line.undecidable:
            if not ANSWERED.search(reason):
                shell.note(self.filled(reason))

    def marked(self, text: str) -> str:
        text = fill(text, MARKS.get, EITHER)
        for mark, value in ((_PLUGIN, self._plugin), (_PROJECT, str(self.project))):
            text = text.replace(value, mark) if value and len(value) > 1 else text
        return text

    def filled(self, word: str) -> str:
        for mark, value in self._marks.items():
            word = word.replace(mark, value)
        return word


class _ShellText:
    """One text, the command itself or a script: what its commands run in the folders that they may run in."""

    def __init__(self, reader: _CommandReader, bases: tuple[Path, ...], where: str) -> None:
        self._reader, self._bases, self._where = reader, bases, where

    def note(self, what: str) -> None:
        self._reader.notes[self._where + what] = None

    def read(self, command: SimpleCommand) -> None:
        reader, name = self._reader, command.name
        given = dict(command.assignments)
        if "PATH" in given:
            reader.env = {**reader.env, "PATH": reader.filled(given["PATH"])}
        if not command.words or 0 in command.unknown:
            if command.words:
                self.note(f"which program `{command.words[0][:60]}` names is known only when it runs")
            return
        for variable, value in {**reader.env, **given}.items():
            if value and variable not in code.WORDS["plain-variables"] and CODE_VARIABLES.fullmatch(variable):
                self.note(f"`{variable}` names places that code is taken from")
        self._program(command)
        if name in SHELLS or name in (".", "source"):
            self._script_of(command, SHELL_VALUED if name in SHELLS else frozenset())
        elif name == "hookline":
            self._hookline(command, 1)
        elif language_of(name):
            self._interpreted(command)
        elif not command.wraps:
            self._other(command)

    def _program(self, command: SimpleCommand) -> None:
        program = command.words[0]
        if "/" in program:
            self.add(program)
            if language_of(command.name) and self._is_inside(program):
                self.note(f"`{program}` is an interpreter of the project's own, with code of its own")
            return
        reader, path = self._reader, self._reader.env.get("PATH")
        for entry in path.split(os.pathsep) if path else ():  # the file's own may find it in the project
            known = reader.filled(reader.marked(entry))
            if "$" in known and entry not in ("$PATH", "${PATH}"):
                self.note(f"`PATH` has `{entry[:60]}`, which is known only when it runs")
            elif "$" not in known and code.is_inside(absolute_path(reader.project / known), reader.inside):
                _ShellText(reader, (reader.project,), self._where).add(str(Path(known, program)))

    def _other(self, command: SimpleCommand) -> None:
        name, words = command.name, command.words
        flags = WITH_PROGRAM_FILE.get(name, ())
        for at in (at for at, word in enumerate(words[:-1]) if at and word in flags):
            self._add_word(command, at + 1, f"what `{name} {words[at]}` runs")
        if name in RECIPES:
            for file in RECIPES[name]:
                self.add(file)
            self.note(f"`{name}` runs what its recipes say")
        elif name in PLAIN or flags:
            if any(code.code_reach(name, word) or CODE_OPTIONS.match(f"{name} {word}") for word in words[1:]):
                self.note(f"the code that `{name}` is given may run files")
            return
        elif command.via:
            self.add(words[0])  # `uv run check.py`
        for word in (word for at, word in enumerate(words) if at and at not in command.unknown):
            if any(code.is_code(base / word) for base in self._bases):  # it may run the code it is given
                self.add(word)
        if "/" not in words[0] and name not in ("eval", "exec", *RECIPES):
            self.note(f"`{name}` may run files of the project, and which cannot be told")

    def _script_of(self, command: SimpleCommand, valued: frozenset[str]) -> None:
        """The script that a shell is given, if it is: what `-c` carries was read with the line."""
        at, words = 1, command.words
        while at < len(words) and words[at][:1] in "-+" and words[at] not in ("-", "--"):
            if words[at] in ("--rcfile", "--init-file"):
                self.note(f"`{command.name} {words[at]}` runs another file first")
            if re.fullmatch(r"-[a-zA-Z]*c", words[at]):
                return
            at += 2 if words[at] in valued else 1
        at += at < len(words) and words[at] == "--"
        self._script_at(command, at)

    def _script_at(self, command: SimpleCommand, at: int) -> None:
        """The script at a place of the line; without one, what is read from the input."""
        if at < len(command.words) and command.words[at] != "-":
            self._add_word(command, at, f"what `{command.name}` runs")
            return
        files = [one for one in command.redirects if one.op == "<"]
        for one in files:
            if one.known:
                self.add(one.target)
            else:
                self.note(f"what `{command.name}` reads from `{one.target}` is known only when it runs")
        written = any(one.op.startswith("<<") for one in command.redirects) and not language_of(command.name)
        if not files and not written:  # of what stands on the line, only a shell's was read with it
            self.note(f"`{command.name}` runs what it reads from its input")

    def _interpreted(self, command: SimpleCommand) -> None:
        language, words, at = language_of(command.name), command.words, 1
        if language in ("python", "pypy"):
            return self._python(command)
        while at < len(words) and words[at].startswith("-") and words[at] != "-":
            if words[at] not in code.WORDS["plain-flags"]:
                self.note(f"`{command.name} {words[at]}` may load other code")
            if words[at] in ("-e", "-E", "--eval", "-p", "--print", "-r", "-c") and at + 1 < len(words):
                return None
            valued = words[at] in OTHER_VALUED
            if valued and at + 1 < len(words) and words[at + 1].startswith("."):
                self._add_word(command, at + 1, f"what `{command.name} {words[at]}` loads")
            at += 2 if valued else 1
        at += at < len(words) and words[at] in ("run", "x") and language in ("deno", "bun")
        return self._script_at(command, at)

    def _python(self, command: SimpleCommand) -> None:
        words, at = command.words, 1
        while at < len(words) and words[at].startswith("-") and words[at] != "-":
            if words[at].startswith("-m"):
                return self._module(command, at)
            if "c" in words[at][1:] and not words[at].startswith("--"):
                return self._python_code(command, at)
            if "E" in words[at] and "I" not in words[at]:
                self.note(f"`{command.name} {words[at]}` may run byte code that lies beside the script")
            if words[at].startswith("-W") and "." in " ".join(words):
                self.note(f"`{command.name} {words[at]}` may load other code")
            at += 2 if words[at] in PYTHON_VALUED else 1
        return self._script_at(command, at)

    def _module(self, command: SimpleCommand, at: int) -> None:
        name = command.words[at][2:] or (command.words[at + 1] if at + 1 < len(command.words) else "")
        if at in command.unknown or at + 1 in command.unknown:
            return self.note(f"which module `{command.name} -m` runs is known only when it runs")
        found, steps = False, name.split(".")
        for base in self._bases:
            package = base.joinpath(*steps)
            around = [base.joinpath(*steps[:count], "__init__.py") for count in range(1, len(steps) + 1)]
            for file in (package.with_suffix(".py"), package / "__main__.py", *around):
                if code.is_inside(file, self._reader.inside):
                    found = found or is_file(file)
                    self._reader.add_file(file, start=base)
        if name == "hookline" and not found:
            return self._hookline(command, at + (1 if command.words[at][2:] else 2))
        if not found:
            self.note(f"`python -m {name}` may run files of the project, and which cannot be told")
        return None

    def _python_code(self, command: SimpleCommand, at: int) -> None:
        """Code on the line imports from the folder that it runs in."""
        if at + 1 >= len(command.words) or at + 1 in command.unknown:
            return self.note(f"the code that `{command.name} -c` runs is known only when it runs")
        text = command.words[at + 1]
        if "I" not in command.words[at]:
            for base in self._bases:
                self._reader.keep(code.python_imports(None, base, self._reader.inside, text))
        for note in code.python_reach(text.encode("utf-8", "replace"), ()):
            self.note(note)
        return None

    def _hookline(self, command: SimpleCommand, at: int) -> None:
        """Hookline runs the hook files that it is given, and is an interpreter for them."""
        words = command.words
        verb = words[at] if at < len(words) else ""
        for index, word in enumerate(words[at:], at):
            flag, equals, value = word.partition("=")
            if flag in code.WORDS["hookline-files"]:
                if equals:
                    self.add(value)
                else:
                    self._add_word(command, index + 1, f"what `hookline {verb}` runs")
        flags = [word for word in words[at + 1 :] if word.startswith("-")]
        plain = verb == "guard" or all(map(HOOKLINE_FLAGS.match, flags))
        if at in command.unknown or verb not in code.WORDS["hookline-verbs"] or not plain:
            self.note(f"`hookline {verb}` may run files of the project, and which cannot be told")

    def _add_word(self, command: SimpleCommand, at: int, what: str) -> None:
        if at >= len(command.words):
            return
        word = command.words[at]
        if at in command.unknown or any(sign in word for sign in "*?["):
            self.note(f"{what} (`{word[:60]}`) is known only when it runs")
            return
        if not self._is_inside(word):
            self.note(f"`{word[:60]}` lies outside the project")
        self.add(word)

    def _is_inside(self, word: str) -> bool:
        return any(code.is_inside(absolute_path(base / word), self._reader.inside) for base in self._bases)

    def add(self, name: str) -> None:
        """A file, in each folder that it may be in; of a folder, what Python would run."""
        if len(name) >= _LONGEST_NAME or "\0" in name:
            return
        for base in dict.fromkeys(self._bases):
            path = absolute_path(base / name)
            if code.is_inside(path, self._reader.inside) and path not in self._reader.inside:
                self._reader.add_file(path / "__main__.py" if is_dir(path) else path)


RECIPES = lists("recipe")  # commands that run what another file says, and that file
PLAIN = names("plain")  # programs that run none of the files they are given
WITH_PROGRAM_FILE = lists("program-file")  # programs that are given a file of code by an option
HOOKLINE_FLAGS = re.compile(r"--(?:hooks|settings|dialect|event|json|scope|only)(?:=|$)|-j$")
CODE_OPTIONS = re.compile(  # of plain programs, those that run something
    r"curl (?:-\w*K|--config)|wget (?:--use-askpass|--config|-e|--execute)|terminal-notifier -execute|"
    r"(?:sort|split) --(?:compress|filter)"
)
CODE_VARIABLES = re.compile("|".join(code.WORDS["code-variables"]))  # programs take code from where they say
PYTHON_VALUED = frozenset(code.WORDS["python-valued"])
OTHER_VALUED = frozenset(code.WORDS["other-valued"])
HERE = re.compile(  # how a shell script names the folder it lies in
    r"""\$\(\s*cd\s+["']?\$\(\s*dirname\s+(?:--\s+)?["']?(?:\$0|\$\{?BASH_SOURCE(?:\[0\])?\}?)["']?\s*\)["']?"""
    r"""\s*(?:>\s*/dev/null\s*(?:2>&1\s*)?)?&&\s*pwd(?:\s+-P)?\s*\)|\$\(\s*dirname\s+(?:--\s+)?["']?(?:\$0|\$\{0\}|"""
    r"""\$\{?BASH_SOURCE(?:\[0\])?\}?)["']?\s*\)|\$\{0%/\*\}|\$\{BASH_SOURCE(?:\[0\])?%/\*\}"""
)
ANSWERED = re.compile(  # what the shell reader cannot tell, and this one looks at itself or notes in its own words
    r"^`(?:\.|source)` runs the commands in |reads from its input$|^which (?:program|file) |is a program in a home|"
    r"`PATH=…` changes"
)
