"""`hookline attach`: a Python file's hooks for any Claude Code session, interactive ones too, and a view of them."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import NoReturn

from hookline.cli.commands.install import print_losses
from hookline.cli.options import default_project, from_python, parser
from hookline.cli.style import counted, paint, say
from hookline.display import one_line
from hookline.errors import HooklineError
from hookline.hosts.claude import CLAUDE
from hookline.hosts.install.commands import install, uninstall
from hookline.hosts.install.enforcement import Status
from hookline.hosts.install.entries import HookSource, config_path
from hookline.processes.service.viewers import View, remove_dead

_EXAMPLES = """examples:
  hookline attach hooks.py     in .claude/settings.local.json until Ctrl-C
  hookline attach --remove     take out what a killed attach has left

Claude Code notices the new settings by itself, and runs a command for each event; the resident service answers it. If
this process dies, the hooks still hold until the entries are removed."""


def main(argv: list[str]) -> int:
    """Put the hooks in, show what is decided, and take them out again when stopped."""
    args = _parser().parse_args(argv)
    project = Path(args.project).resolve()
    shown = os.path.relpath(config_path(CLAUDE, "local", project=project))
    if args.remove:
        remove_dead()
        print(f"removed from {shown}" if _removed(project) else f"nothing to remove in {shown}")
        return 0
    if args.file is None:
        raise SystemExit(_parser().format_usage() + "hookline attach: name a Python file that defines `hooks`")
    if not hasattr(signal, "SIGHUP"):
        raise HooklineError("this system has no Unix sockets to look on by; `hookline install claude` needs none")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    with View() as view:
        try:
            print(f"attached: {_put_in(args.file, project, view)} in {shown}; Ctrl-C takes them out again", flush=True)
            _show_live(view, quiet=args.quiet)
        except KeyboardInterrupt:
            pass
        finally:
            if _removed(project, view.path):
                print(f"detached: {shown} is as it was", flush=True)
    return 0


def _put_in(file: str, project: Path, view: View) -> str:
    """Write the entries, and say what Claude Code will not do as these hooks want it; how many hooks there are."""
    hooks = list(from_python(file).hooks)
    source = HookSource(hooks=str(Path(file).resolve()), view=view.path)
    done = install(CLAUDE, hooks, source, scope="local", project=project, replace=True)
    print_losses(CLAUDE, [loss for loss in done.losses if loss.status is not Status.ENFORCED])
    return counted(len(hooks), "hook")


def _show_live(view: View, *, quiet: bool) -> None:
    for text, blocked in view:
        if not quiet:
            say(paint(one_line(text), "red") if blocked else one_line(text))


def _parser() -> argparse.ArgumentParser:
    flags = parser("attach", "Have any Claude Code session ask a Python file's hooks, and look on.", _EXAMPLES)
    flags.add_argument("file", nargs="?", metavar="FILE.py", help="a Python file that defines `hooks`")
    flags.add_argument(
        "--project", default=default_project(), metavar="DIR", help="the project whose settings are used"
    )
    flags.add_argument("--remove", action="store_true", help="take out what an attach that was killed has left")
    flags.add_argument("-q", "--quiet", action="store_true", help="do not show verdicts")
    return flags


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _removed(project: Path, view: str = "") -> bool:
    """Take the entries out, but not those of an attach that has taken our place."""
    path = config_path(CLAUDE, "local", project=project)
    if not path.exists() or view not in path.read_text(errors="replace"):
        return False
    return bool(uninstall(CLAUDE, scope="local", project=project))
