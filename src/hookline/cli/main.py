"""`hookline`: picks the command and imports no more than it needs (its start-up is every command hook's cost)."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper


def _read_groups() -> dict[str, dict[str, tuple[str, str]]]:
    groups: dict[str, dict[str, tuple[str, str]]] = {}
    title = ""
    with open(os.path.dirname(__file__) + "/texts/commands.txt", encoding="utf-8") as rows:  # noqa: PTH120, PTH123
        for row in rows:  # without `pathlib`, which is slow to import
            if row.startswith(" "):
                name, where, about = row.rstrip().split(maxsplit=2)
                groups[title][name] = (where, about)
            elif not row.startswith("#"):
                title = row.rstrip()
                groups[title] = {}
    return groups


GROUPS = _read_groups()
COMMANDS: dict[str, tuple[str, str]] = {name: row for group in GROUPS.values() for name, row in group.items()}
"""What runs each command (a module, or `module:function`), and one line about it."""

USAGE = 64  # the exit code of a command line that cannot be understood; 2 would say that something was blocked

EXIT_CODES = """exit codes: 0 done, or allowed; 1 something is wrong; 2 blocked;
64 the command line was not understood; 130 Ctrl-C; 141 the reader left"""


PRELOAD = (
    "argparse", "asyncio", "json", "msgspec", "hookline.api", "hookline.core.engine", "hookline.core.wire.claude",
    "hookline.core.wire.dialects", "hookline.guards", "hookline.settings", "hookline.settings.trust.store",
    "hookline.runners.command", "hookline.runners.function", "hookline.cli.commands.guard",
    "hookline.cli.commands.answer", "hookline.cli.commands.pipe", "hookline.cli.commands.fire", "hookline.cli.options",
    "hookline.hosts.user_rules", "hookline.fleet.enforce",
)  # fmt: skip
"""What command hooks import when they run: the workers of the resident service, which import this, do so ahead."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what goes wrong on purpose is one line on stderr, and Ctrl-C is exit code 130.

    A reader that leaves (`hookline … | head -1`) is no error: what it did not want to read is not written.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # no verdict fails for want of an arrow, as in `LC_ALL=C`
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _main(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the very end
        return 141
    return code


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"] and len(words) > 1:
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else USAGE
    if words[0] in ("-V", "--version"):
        from hookline import __version__

        print(f"hookline {__version__}")
        return 0
    if words[0] not in COMMANDS:
        from hookline.display import one_line
        from hookline.errors import did_you_mean

        hint = did_you_mean(words[0], COMMANDS)
        print(f"hookline: no command `{one_line(words[0])}`{hint}\n\n{usage()}", file=sys.stderr)
        return USAGE
    if argv is None:
        gc.disable()  # nothing becomes garbage while modules are imported; looking for it takes a tenth of the time
    return _run(words[0], words[1:])


def _run(name: str, arguments: list[str]) -> int:
    from hookline.display import behind_bar
    from hookline.errors import HooklineError

    if name not in ("answer", "guard", "pipe"):  # these write for programs
        from hookline.cli.style import escape_controls

        escape_controls(sys.stdout)
        escape_controls(sys.stderr)
    try:
        command = command_of(name)
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        code = command(arguments)
    except HooklineError as error:
        print(f"hookline {name}: {behind_bar(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return code


def command_of(name: str) -> Callable[[list[str]], int]:
    """What runs a command; its module is imported now."""
    module, _, function = COMMANDS[name][0].partition(":")
    found: Callable[[list[str]], int] = getattr(import_module(f"hookline.cli.commands.{module}"), function or "main")
    return found


def usage() -> str:
    """The help text of `hookline` itself."""
    width = max(map(len, COMMANDS))
    *shown, (plumbing, quiet) = GROUPS.items()
    groups = [
        f"{title}:\n" + "\n".join(f"  {name:<{width}}  {about}" for name, (_, about) in rows.items())
        for title, rows in shown
    ]
    body = "\n\n".join([*groups, f"{plumbing}: {', '.join(quiet)}"])
    return (
        "hookline: the hook system for AI agents\n\nusage: hookline COMMAND …\n\n"
        f"{body}\n\n`hookline help COMMAND` says more.\n\n{EXIT_CODES}"
    )


if __name__ == "__main__":
    sys.exit(main())
