"""What commands share: their flags, where hooks come from and whether they are trusted, and how work is run."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from hookline.api import Hooks, RunnerFor
from hookline.cli.main import USAGE
from hookline.cli.style import agreed, has_terminal, paint
from hookline.core.engine import Runner
from hookline.core.engine.observers import HookResponse, HookStarted, Notice
from hookline.core.files import default_log, in_fleet, private_folder
from hookline.core.hooks import AgentCheck, McpTool, Prompt
from hookline.core.hooks.hook import Command
from hookline.display import lines as lines_of
from hookline.display import one_line
from hookline.errors import AuditError, ConfigError, EventError, did_you_mean
from hookline.events import Event
from hookline.hook_file import load_hooks
from hookline.runners import Services, runner_for

if TYPE_CHECKING:
    from hookline.hosts.install.entries import HookSource
    from hookline.processes.watch import SharedDeadline
    from hookline.settings import LoadedSettings, Problem
    from hookline.settings.trust.store import Item, Policy, Status, TrustChange

T = TypeVar("T")
TERMINATED = 143
TEXTS: Path = Path(__file__).with_name("texts")
_LOG_BYTES = 64 * 1024 * 1024  # how large a log of `install --audit` grows before a new file begins
_LOADING, _PATIENCE = 60.0, 3.0
_SPANS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def examples(prog: str) -> str:
    """What `hookline COMMAND --help` ends with."""
    file = TEXTS / f"{prog.rsplit(maxsplit=1)[-1]}.txt"
    return file.read_text(encoding="utf-8").rstrip() if prog.count(" ") == 1 and file.exists() else ""


class FlagParser(argparse.ArgumentParser):
    """Errors are one line, with a suggestion for a flag that was misspelled, and exit code 64."""

    @property
    def flags(self) -> dict[str, argparse.Action]:
        return self._option_string_actions

    def format_help(self) -> str:
        """The examples of a command lie in a file: only a person who asks for help needs them."""
        self.epilog = examples(self.prog)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        suggestion = did_you_mean(unknown[1], self.flags) if unknown else ""
        code = 2 if self.prog.startswith("hookline guard") else USAGE  # a guard that cannot start must block
        self.exit(code, f"{self.prog}: {one_line(message + suggestion)}; see `{self.prog} --help`\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help for 80 columns; a width that is given saves argparse the import of `shutil` at every start."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=78)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Sentences are folded; examples, which are indented, stay as they are written."""
        return "\n".join(line if line.startswith(" ") else fill(line, width) for line in text.splitlines())


class Once(argparse.Action):
    """A flag that is refused when it is given again: the last one would silently take the place of the first."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        if getattr(namespace, self.dest, None) is not None:
            parser.error(f"{option} was given twice; import both in one Python file and name that")
        setattr(namespace, self.dest, values)


@cache
def flag_tables() -> dict[str, list[Any]]:
    """The flags of each command: what it is for, then a row each, or the name of another table."""
    return msgspec.json.decode((TEXTS / "flags.json").read_bytes(), type=dict[str, list[Any]])


def parser_for(name: str, **words: Any) -> FlagParser:
    """The parser of a command, as its table in `texts/flags.json` has it; `words` are what the table writes as `@…`."""
    made = FlagParser(prog=f"hookline {name}", description=flag_tables()[name][0], formatter_class=_Help)
    _add_flags(made, name, words)
    return made


def add_commands(into: argparse.ArgumentParser, name: str, *, dest: str, metavar: str, **words: Any) -> None:
    """The commands of a command: one for each table whose name begins with its own."""
    kinds = into.add_subparsers(dest=dest, required=True, metavar=metavar)
    for table, (about, *_) in flag_tables().items():
        if table.startswith(f"{name} "):
            more = {"description": about[0].upper() + about[1:] + "."} if name == "fleet" else {}
            _add_flags(kinds.add_parser(table.removeprefix(f"{name} "), help=about, **more), table, words)


def _add_flags(into: argparse._ActionsContainer, table: str, words: dict[str, Any]) -> None:
    """Add the rows of a table, and of the tables that it names: those with a title are a group."""
    exclusive: dict[str, argparse._ActionsContainer] = {"": into}
    for row in flag_tables()[table][1:]:
        if isinstance(row, str):
            known = {**words, "project": default_project()} if row == "sources" else words
            title = flag_tables()[row][0]
            _add_flags(into.add_argument_group(title) if title else into, row, known)
            continue
        names, group, how = _option({**_KINDS, **words}, *row)
        if group not in exclusive:
            exclusive[group] = into.add_mutually_exclusive_group(required=group.endswith("!"))
        exclusive[group].add_argument(*names, **how)


def _option(words: dict[str, Any], said: str, about: str | None, *given: Any) -> tuple[list[str], str, dict[str, Any]]:
    """A row as argparse has it. A flag that names no value is a switch; `…` says that it may be given again."""
    names, how = said.split(), {"help": about, **dict(*given)}
    for key, value in how.items():
        if isinstance(value, str) and value.startswith("@"):
            how[key] = words[value[1:]]
        elif about and key == "help" and "@" in about:
            how[key] = re.sub("|".join(f"@{word}" for word in words), lambda found: str(words[found[0][1:]]), about)
    if len(names) > 1 and not names[-1].startswith("-"):
        how["metavar"] = names.pop()
        if how["metavar"].endswith("…"):
            how |= {"metavar": how["metavar"][:-1], "action": "append", "default": []}
    elif names[-1].startswith("-") and "choices" not in how:
        how["action"] = "store_true"
    return names, how.pop("group", ""), how


def default_project() -> str:
    """The project that the command was started in, be it in one of its folders; `.` if that is its own."""
    from hookline.settings.sources import find_project

    found = find_project()
    return "." if found == Path.cwd() else str(found)


def numeric(
    what: str, form: str = "[0-9]{1,9}", make: Callable[[str], float] = int, *, above: float = -1,
    most: float = float("inf"), example: str = "",
) -> Callable[[str], Any]:  # fmt: skip
    """What reads a number that has a form (a pattern), is larger than one and not larger than another."""

    def read(text: str) -> Any:
        found = make(text) if re.fullmatch(form, text) else above
        if not above < found <= most:
            hint = f"; write {example}" if example else ""
            raise argparse.ArgumentTypeError(f"expected {what}, got `{text}`{hint}")
        return found

    return read


def _moment(text: str, *, end: bool = False) -> datetime:
    """A point in local time: `7d` is seven days ago, a day alone is its beginning or its end."""
    if span := re.fullmatch(r"([0-9]{1,6})([mhdw])", text):
        return datetime.now().astimezone() - timedelta(**{_SPANS[span[2]]: int(span[1])})
    try:
        moment = datetime.fromisoformat(text).astimezone()
    except ValueError:
        wanted = "a date such as `2026-01-31` or `2026-01-31T12:00`, or a span such as `30m`, `12h` or `7d`"
        raise argparse.ArgumentTypeError(f"expected {wanted}, got `{text}`") from None
    return moment + timedelta(days=1, microseconds=-1) if end and "T" not in text and ":" not in text else moment


_KINDS = {"int": int, "float": float, "path": Path, "port": numeric("a port, 0 to 65535", most=65_535), "once": Once,
          "start_of": _moment, "end_of": partial(_moment, end=True), "hidden": argparse.SUPPRESS}  # fmt: skip


def key_in(file: str | None) -> bytes | None:
    """The key in a file, without the newline at its end."""
    try:
        return None if file is None else Path(file).read_bytes().strip()
    except OSError as problem:
        raise AuditError(f"{file}: {problem.strerror}; name the file that holds the key") from None


def load(args: argparse.Namespace) -> LoadedSettings:
    """What the settings files say, trust aside."""
    from hookline.settings import load as read

    return read(args.project, **_chosen(args))


def _chosen(args: argparse.Namespace) -> dict[str, Any]:
    check_folder(args.project)
    return {"settings": args.settings, "setting_sources": args.setting_sources, "plugin_dirs": args.plugin_dir}


def check_folder(project: str) -> None:
    """Whether there is such a project."""
    if not Path(project).is_dir():
        raise ConfigError(project, "no such folder; name the project's folder with --project")


def hooks_of(args: argparse.Namespace, *, runners: RunnerFor = runner_for, strict: bool = True) -> Hooks:
    """The hooks a command works with: a Python file's, or the settings files', once they are trusted.

    A file that cannot be read is an error, unless not `strict`: hooks that are not there let everything pass.
    """
    if args.hooks:
        return with_fleet_policy(load_hooks(args.hooks))
    problems: list[Problem] = []
    given = {**_chosen(args), "trust": policy_for(trusted=args.trust), "watch": False}
    hooks = Hooks.from_settings(args.project, **given, runners=runners, on_problem=problems.append)
    if strict and hooks.settings is not None:
        loaded = hooks.settings.loaded
        unread = (problem for file in loaded.broken for problem in file.problems)
        for problem in (one for one in (*loaded.source_problems, *unread) if one.severity == "error"):
            raise ConfigError(problem.where, f"{problem.message} (`hookline check` shows everything that is wrong)")
    for problem in problems:
        warn(problem)
    return with_fleet_policy(hooks)


def with_fleet_policy(hooks: Hooks) -> Hooks:
    """The hooks under the fleet's policy and audit, if this machine is in a fleet; else one look at one file."""
    if in_fleet():
        from hookline.fleet.enforce import govern

        return govern(hooks)
    return hooks


def record_refusal(read: Callable[[], Iterable[Event]], why: str) -> None:
    """Events that were refused without a judgement are in the log of the fleet, if this machine is in one.

    `read` gives them; what cannot be read is refused without a record. A failure to write one is said on stderr: the
    agent gets its refusal all the same.
    """
    if in_fleet():
        try:
            from hookline.fleet.enforce import record_refusal as record

            record(read(), why)
        except EventError:
            return
        except Exception as problem:  # noqa: BLE001 - the refusal counts, recorded or not
            print(f"hookline: a refusal is not in the fleet's audit log: {one_line(str(problem))}", file=sys.stderr)


def cold(kind: type[Any], services: Callable[[], Services]) -> Runner:
    """Runners for one event: no interpreter is kept warm for a second one."""
    if kind is Command:
        from hookline.runners.command import CommandRunner

        return CommandRunner(warm=False)
    return runner_for(kind, services)


def policy_for(*, trusted: bool) -> Policy:
    """What becomes of hooks that are not trusted: `--trust` lets them run, a person is asked, a script is refused."""
    return "all" if trusted else review if has_terminal() else "error"


@contextlib.contextmanager
def keep_trust(project: Path) -> Iterator[list[str]]:
    """What a command of ours writes to a project's settings inside is trusted; yields what was not before, and is not.

    A file that already held something that is not trusted stays so.
    """
    from hookline import settings

    trust = settings.Trust.load()
    unseen = {item.path: item.label for item in trust.status(settings.load(project)).untrusted}
    yield list(unseen.values())
    trust.record([item for item in trust.status(settings.load(project)).untrusted if item.path not in unseen])


def review(status: Status) -> bool:
    """Show a status on the terminal and ask; only a plain yes is a yes."""
    print(shown(status), file=sys.stderr)
    return agreed("Trust these hooks from now on?")


def shown(status: Status) -> str:
    """What would run, and each difference from what was trusted."""
    lines: list[str] = []
    for item in status.untrusted:
        lines += [paint(one_line(item.label), "bold"), *(f"  runs  {one_line(run)}" for run in item.runs)]
        lines += [f"  sets  {one_line(said)}" for said in item.sets]
        for script in item.scripts:
            is_folder = script.path.endswith("/")
            if script.text or not is_folder:
                names = " (the names that an import may find there)" if is_folder else ""
                lines.append(f"  file  {one_line(script.path)}{names}")
        lines += trusted_by_command(item)
        lines += [line for change in status.changes if change.item.path == item.path for line in _change(change)]
    return "\n".join(lines)


def trusted_by_command(item: Item) -> list[str]:
    """Where content cannot be vouched for: it is said aloud."""
    if not item.notes:
        return []
    head = paint("  trusted as a command, not by content:", "yellow")
    return [head, *(f"    {one_line(note)}" for note in item.notes)]


def _change(change: TrustChange) -> list[str]:
    if change.kind == "new" and change.path == change.item.path:
        return ["  it is new: not trusted yet"]
    colours = {"+": "green", "-": "red", "@": "cyan"}
    said = [line for line in lines_of(change.diff) if line]
    body = [f"    {paint(line, colours[line[0]]) if line[:1] in colours else line}" for line in said]
    return [f"  {change.kind}: {one_line(change.path)}", *body]


def warn(problem: Problem) -> None:
    """Say what is wrong with the files; the rest of them counts all the same."""
    if problem.severity == "error":
        print(f"hookline: {problem}", file=sys.stderr)


def hooks_from(source: HookSource, project: str | Path = ".", *, trust: Policy = "all") -> Hooks:
    """The hooks that an entry in a host's configuration asks; `trust` counts where it names no file."""
    if source.hooks:
        hooks = load_hooks(source.hooks)
    elif source.settings:
        hooks = Hooks.from_settings(project, settings=source.settings, setting_sources="", trust="all", watch=False)
    elif source.audit:
        hooks = Hooks()
    else:
        return Hooks.from_settings(project, trust=trust, watch=False)
    if source.audit:
        from hookline.hosts.install.entries import DEFAULT_LOG
        from hookline.records import AuditLog

        path = default_log() if source.audit == DEFAULT_LOG else Path(source.audit)
        private_folder(path.parent)
        hooks.observe(AuditLog(path, sync="line", max_bytes=_LOG_BYTES))
    return hooks


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; TERM ends it as Ctrl-C does, and with it everything that hooks have started."""

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
            loop = asyncio.get_running_loop()  # a second signal does not cut the cleaning up short
            loop.add_signal_handler(signal.SIGTERM, lambda: task.cancelling() or task.cancel())
        return await work

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


class TimeKeeper:
    """Tells the process that watches when the hooks that run are due, so that it can end one that holds this process.

    What a hook's own time limit can end, that ends: `_PATIENCE` seconds are given on top.
    """

    def __init__(self, due: SharedDeadline) -> None:
        self._due = due
        self._running: dict[str, float] = {}

    def loading(self) -> None:
        """Hooks are about to be read, and their files may run anything; a person at a terminal may be asked first."""
        self._due.within(None if sys.stdin.isatty() else _LOADING)

    def watch(self, hooks: Hooks) -> Hooks:
        self._due.within(None)
        hooks.observe(self, inline=True)
        return hooks

    def __call__(self, notice: Notice) -> None:
        if isinstance(notice, HookStarted):
            self._running[notice.hook_id] = notice.limit + _PATIENCE
        elif isinstance(notice, HookResponse):
            self._running.pop(notice.hook_id, None)
        else:
            return
        self._due.within(max(self._running.values(), default=None))


@asynccontextmanager
async def hosted(hooks: Hooks, *, model: str | None, mcp_config: str | None, cwd: str) -> AsyncIterator[None]:
    """Give the hooks what their kinds need, for as long as this lasts."""
    if not {type(hook.action) for hook in hooks.hooks} & {Prompt, AgentCheck, McpTool}:
        yield
        return
    from hookline.agent.hook_services import services

    async with services(model=model, mcp_config=mcp_config, cwd=cwd) as found:
        hooks.services = found
        yield
