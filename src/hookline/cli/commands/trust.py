"""`hookline trust`: look at a project's hooks and the scripts they name, then let them run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from hookline.cli.options import add_json, add_sources, load, parser
from hookline.cli.style import paint
from hookline.display import lines as lines_of
from hookline.display import one_line
from hookline.settings.scripts import Script
from hookline.settings.trust import Change, Item, Status, Trust

_TRUSTED = "trusted from now on; any change will be asked about again"
_EXAMPLES = """examples:
  hookline trust                show every hook and script, and ask
  hookline trust --yes          trust them as they are now
  hookline trust --forget       trust nothing of this project any longer"""


def main(argv: list[str]) -> int:
    """Show what would run and what changed; record it when the user says yes."""
    args = _parser().parse_args(argv)
    trust = Trust.load()
    if args.forget:
        return _forget(trust, args)
    status = trust.status(load(args))
    if args.yes and not status.trusted:
        trust.record(status.items)
        print(_json(trust.status(load(args))) if args.json else _TRUSTED)
        return 0
    if args.json:
        print(_json(status))
        return 0 if status.trusted else 1
    if status.trusted:
        labels = ", ".join(one_line(item.label) for item in status.items)
        print(f"trusted: {labels}" if status.items else "nothing needs trust")
        for item in status.items:
            if item.notes:
                print("\n".join([one_line(item.label), *_by_command(item)]))
        return 0
    return _ask(trust, status)


def _forget(trust: Trust, args: argparse.Namespace) -> int:
    gone = trust.forget(Path(args.project))
    said = f"forgot {gone} file{'s' if gone != 1 else ''}"
    print(msgspec.json.encode({"forgot": gone}).decode() if args.json else said)
    return 0


def _ask(trust: Trust, status: Status) -> int:
    if not sys.stdin.isatty():
        print(shown(status))
        print("not trusted; run `hookline trust` on a terminal, or `hookline trust --yes`", file=sys.stderr)
        return 1
    if not review(status):
        print("nothing was trusted", file=sys.stderr)
        return 1
    trust.record(status.items)
    print(_TRUSTED)
    return 0


def _parser() -> argparse.ArgumentParser:
    flags = parser("trust", "Review a project's hooks and the scripts they name, and trust them.", _EXAMPLES)
    flags.add_argument("--yes", action="store_true", help="trust without asking")
    flags.add_argument("--forget", action="store_true", help="trust nothing of this project any longer")
    add_json(flags)
    add_sources(flags)
    return flags


def review(status: Status) -> bool:
    """Show a status on the terminal and ask; only a plain yes is a yes."""
    print(shown(status), file=sys.stderr)
    print("Trust these hooks from now on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def shown(status: Status) -> str:
    """What would run, and each difference from what was trusted."""
    lines: list[str] = []
    for item in status.untrusted:
        lines += [paint(one_line(item.label), "bold"), *(f"  runs  {one_line(run)}" for run in item.runs)]
        lines += [f"  sets  {one_line(said)}" for said in item.sets]
        lines += [f"  file  {_named(script)}" for script in item.scripts if script.text or not _is_folder(script)]
        lines += _by_command(item)
        lines += [line for change in status.changes if change.item.path == item.path for line in _change(change)]
    return "\n".join(lines)


def _is_folder(script: Script) -> bool:
    return script.path.endswith("/")


def _named(script: Script) -> str:
    return one_line(script.path) + (" (the names that an import may find there)" if _is_folder(script) else "")


def _by_command(item: Item) -> list[str]:
    """Where content cannot be vouched for: it is said aloud."""
    if not item.notes:
        return []
    head = paint("  trusted as a command, not by content:", "yellow")
    return [head, *(f"    {one_line(note)}" for note in item.notes)]


def _change(change: Change) -> list[str]:
    if change.kind == "new" and change.path == change.item.path:
        return ["  it is new: nobody has trusted it yet"]
    colours = {"+": "green", "-": "red", "@": "cyan"}
    said = [line for line in lines_of(change.diff) if line]
    body = [f"    {paint(line, colours[line[0]]) if line[:1] in colours else line}" for line in said]
    return [f"  {change.kind}: {one_line(change.path)}", *body]


def _json(status: Status) -> str:
    """The status for programs."""
    said = {
        "trusted": status.trusted,
        "files": [
            {
                "file": item.label,
                "runs": item.runs,
                "sets": item.sets,
                "scripts": [script.path for script in item.scripts],
                "not_by_content": item.notes,
            }
            for item in status.items
        ],
        "changes": [{"file": change.path, "kind": change.kind, "diff": change.diff} for change in status.changes],
    }
    return msgspec.json.encode(said).decode()
