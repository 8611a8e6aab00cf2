"""`hookline install`: put hooks into agent CLIs' own configuration, and say what will not hold there."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.cli.options import Once, add_json, from_python, parser
from hookline.cli.style import paint
from hookline.errors import HooklineError
from hookline.guards.sandboxing import unavailable
from hookline.hosts.host import Host
from hookline.hosts.install.commands import InstallResult, install
from hookline.hosts.install.enforcement import Enforcement, Status, enforcing, report, worst
from hookline.hosts.install.entries import HookSource, config_path
from hookline.hosts.table import HOSTS, find

if TYPE_CHECKING:
    from hookline.core.hooks.hook import Hook

_EXAMPLES = """examples:
  hookline install                          which agents are here?
  hookline install codex --hooks hooks.py   a Python file, for all your sessions
  hookline install gemini qwen --settings .claude/settings.json
  hookline install claude --hooks hooks.py --scope project --strict

`--strict` refuses to install where a hook would not be enforced; a hook that
only looks on has nothing to enforce. Codex runs
hooks only once they are trusted: `--yes` says that you trust them."""


def main(argv: list[str]) -> int:
    """Write the configuration of each host named; without a name, show which are here."""
    args = _parser().parse_args(argv)
    if not args.host:
        return _offer()
    chosen = [find(name) for name in args.host]
    source, hooks = load_source(args)
    reports = {host.name: report(hooks, host, unavailable()) for host in chosen}
    if args.strict and any(worst(losses) >= Status.OBSERVED for losses in map(enforcing, reports.values())):
        for host in chosen:
            print_losses(host, reports[host.name])
        raise HooklineError("not installed: some hooks would not be enforced (see above), and --strict was given")
    if args.dry_run:
        for host in chosen:
            where = config_path(host, args.scope, project=Path(args.project).resolve())
            print(f"{paint(host.title, 'bold')}: would be written: {where}")
            print_losses(host, reports[host.name])
        return 0
    done = []
    for host in chosen:
        _check_source(host, source)
        trust = args.yes or (host.name == "codex" and _agreed(host))
        project = Path(args.project).resolve() if args.scope == "project" else None
        one = install(host, hooks, source, scope=args.scope, project=project, trust=trust, replace=args.replace,
                      allow_subagents=args.allow_subagents)  # fmt: skip
        done.append(one._replace(notes=(*_version_notes(one.host), *one.notes)))
        if not args.json:
            _show(done[-1])
    if args.json:
        print(json.dumps([_as_dict(one) for one in done], indent=2))
    return 0


def _version_notes(host: Host) -> list[str]:
    """What is to be said of the version that is on this machine."""
    from hookline.hosts.install.installed import find_binary, older_than_measured

    binary = find_binary(host)
    told = older_than_measured(host, binary.version) if binary else ""
    return [f"{told}, or run `hookline prove {host.name}`"] if told else []


def _parser() -> argparse.ArgumentParser:
    flags = parser("install", "Put hooks into an agent CLI's own configuration.", _EXAMPLES)
    flags.add_argument("host", nargs="*", metavar="HOST", help=f"of {', '.join(HOSTS)}")
    add_source(flags)
    flags.add_argument("--scope", choices=["user", "project"], default="user", help="whose configuration")
    flags.add_argument("--project", default=".", metavar="DIR", help="the project (default: this folder)")
    flags.add_argument("--replace", action="store_true", help="in place of other hooks that are installed there")
    flags.add_argument("--allow-subagents", action="store_true", help="also where hooks are not asked inside them")
    flags.add_argument("--strict", action="store_true", help="refuse if a hook would not be enforced")
    flags.add_argument("--dry-run", action="store_true", help="say what would hold, and write nothing")
    flags.add_argument("--yes", action="store_true", help="trust these hooks where the host would ask")
    add_json(flags)
    return flags


def add_source(flags: argparse.ArgumentParser) -> None:
    """Where the hooks come from."""
    group = flags.add_mutually_exclusive_group()
    group.add_argument("--hooks", action=Once, metavar="FILE.py", help="a Python file that defines `hooks`")
    group.add_argument("--settings", action=Once, metavar="FILE", help="a settings file in Claude Code's format")


def load_source(args: argparse.Namespace) -> tuple[HookSource, list[Hook]]:
    """Where the hooks come from, as the configuration will say it, and the hooks themselves."""
    from hookline.api import Hooks

    if args.hooks:
        hooks = from_python(args.hooks)
        return HookSource(hooks=str(Path(args.hooks).resolve())), list(hooks.hooks)
    if args.settings:
        path = Path(args.settings).resolve()
        if not path.is_file():
            raise HooklineError(f"--settings: no such file `{args.settings}`")
        loaded = Hooks.from_settings(".", settings=str(path), setting_sources="", trust="all", watch=False)
        return HookSource(settings=str(path)), list(loaded.hooks)
    loaded = Hooks.from_settings(".", trust="all", watch=False)
    if not loaded.hooks:
        raise HooklineError(
            "there are no hooks here; name a Python file with --hooks or a settings file with --settings"
        )
    return HookSource(), list(loaded.hooks)


def _check_source(host: Host, source: HookSource) -> None:
    if host.name == "claude" and not source.flags:
        raise HooklineError(
            "Claude Code reads these settings files itself; name other hooks with --hooks or --settings"
        )


def _agreed(host: Host) -> bool:
    """Ask whether our hooks may be trusted, if there is a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(
        f"{host.title} runs hooks only once they are trusted. Trust these now? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# -- showing --------------------------------------------------------------------------------------------------------


def _show(done: InstallResult) -> None:
    print(f"{paint(done.host.title, 'bold')}: hooked on {', '.join(done.events)}")
    print(f"  in {done.path}")
    for path in done.backups:
        _say(f"as it was before: {path}")
    print_losses(done.host, done.losses)
    for note in done.notes:
        _say(f"note: {note}")
    if not done.host.verified:
        _say(f"unverified: {done.host.title} could not be measured; try it before you rely on it")


def _say(text: str) -> None:
    """A paragraph of the report, folded for 80 columns; paths stay whole."""
    options = {"break_long_words": False, "break_on_hyphens": False}
    print(textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="    ", **options))  # type: ignore[arg-type]


def print_losses(host: Host, losses: Sequence[Enforcement]) -> None:
    """One line for each hook that holds as it is, and one for each answer that does not."""
    held = dict.fromkeys(loss.hook for loss in losses)
    for loss in losses:
        if loss.status is not Status.ENFORCED:
            held.pop(loss.hook, None)
    if held:
        print(f"  {paint('enforced', 'green')}: {', '.join(held)}")
    for loss in losses:
        if loss.status is not Status.ENFORCED:
            color = "yellow" if loss.status is Status.DIFFERENTLY else "red"
            what = f"`{loss.kind}` on {loss.event}" if loss.kind else loss.event
            print(f"  {paint(str(loss.status), color)}: {loss.hook}: {what}\n    {loss.reason}")


def _as_dict(done: InstallResult) -> dict[str, Any]:
    return {
        "host": done.host.name,
        "path": str(done.path),
        "events": list(done.events),
        "backups": [str(path) for path in done.backups],
        "losses": [loss.to_dict() for loss in done.losses],
        "notes": list(done.notes),
        "verified": done.host.verified or None,
    }


def _offer() -> int:
    from hookline.hosts.install.installed import find_binary

    here = [(host, found) for host in HOSTS.values() if (found := find_binary(host))]
    if not here:
        print("no agent CLI was found on this machine")
        return 1
    for host, found in here:
        print(f"  {host.name:<10} {found.version or '?':<12} {found.path}")
    names = " ".join(host.name for host, _ in here)
    print(f"\nto hook them: {paint(f'hookline install {names} --hooks FILE.py', 'cyan')}")
    return 0
