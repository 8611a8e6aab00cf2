"""`hookline audit`: an audit log as a timeline, and whether it is whole."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline.cli.options import add_json, parser
from hookline.cli.screen import paint
from hookline.errors import AuditError
from hookline.observe.audit import AuditFile

_EXAMPLES = """examples:
  hookline audit show audit.jsonl
  hookline audit show audit.jsonl --decision deny --tool Bash --since 2026-01-31
  hookline audit show audit.jsonl --follow
  hookline audit verify audit.jsonl"""
_COLOURS = {"deny": "red", "ask": "yellow", "defer": "yellow", "allow": "green", "pass": "dim"}
_FOLLOW_SECONDS = 0.2


def main(argv: list[str]) -> int:
    """Show a log, or verify it."""
    flags = parser("audit", "Read an audit log, or make sure that nothing in it was changed.", _EXAMPLES)
    kinds = flags.add_subparsers(dest="what", required=True, metavar="show|verify")
    _show_flags(kinds.add_parser("show", help="print a readable timeline"))
    _verify_flags(kinds.add_parser("verify", help="find edited, removed and re-ordered lines"))
    args = flags.parse_args(argv)
    if not Path(args.file).is_file():
        raise AuditError(f"{args.file}: no such file")
    return _show(args) if args.what == "show" else _verify(args)


def _show_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("file")
    flags.add_argument("--event", help="only this event")
    flags.add_argument("--tool", help="only this tool")
    flags.add_argument("--hook", help="only where this hook took part")
    flags.add_argument("--decision", help="only this decision: deny, ask, allow, pass")
    flags.add_argument("--run", help="only this session")
    flags.add_argument("--since", metavar="TIME", help="from this time on (ISO 8601)")
    flags.add_argument("--until", metavar="TIME", help="up to this time")
    flags.add_argument("-f", "--follow", action="store_true", help="go on as the file grows; Ctrl-C ends it")
    add_json(flags)


def _verify_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("file")
    flags.add_argument("--key-file", metavar="FILE", help="the key, if the log was written with one")
    add_json(flags)


def _show(args: argparse.Namespace) -> int:
    shown = 0
    for raw, entry in _entries(Path(args.file), follow=args.follow):
        if _wanted(entry, args):
            shown += 1
            print(raw.decode().rstrip() if args.json else line(entry), flush=args.follow)
    if not shown and not args.json:
        print("nothing to show")
    return 0


def _entries(path: Path, *, follow: bool) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """The records of a file; with `follow`, also those that are written from now on, through rotations."""
    file = path.open("rb")
    try:
        while True:
            raw = file.readline()
            if raw.endswith(b"\n"):
                entry = _parsed(raw)
                if entry is not None:
                    yield raw, entry
                continue
            if not follow:
                return
            file.seek(-len(raw), 1)
            if not raw and _rotated(path, file):
                file.close()
                file = path.open("rb")
                continue
            time.sleep(_FOLLOW_SECONDS)
    finally:
        file.close()


def _rotated(path: Path, file: Any) -> bool:
    import os

    try:
        return path.stat().st_ino != os.fstat(file.fileno()).st_ino
    except OSError:
        return False


def _parsed(raw: bytes) -> Mapping[str, Any] | None:
    try:
        found = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _wanted(entry: Mapping[str, Any], args: argparse.Namespace) -> bool:
    asked = {"event": args.event, "tool": args.tool, "decision": args.decision, "run": args.run}
    if any(value is not None and entry.get(key) != value for key, value in asked.items()):
        return False
    if args.hook is not None and args.hook not in (row.get("hook") for row in entry.get("hooks", ())):
        return False
    moment = entry.get("time", "")
    return (args.since is None or moment >= args.since) and (args.until is None or moment <= args.until)


def line(entry: Mapping[str, Any]) -> str:
    """A record on one line: when, what, about what, decided how, by whom and why."""
    decision = str(entry.get("decision", ""))
    word = "DENY" if entry.get("blocked") else decision.upper()
    about = _about(entry)
    by = f" by {entry['by']}" if entry.get("by") else ""
    why = f": {'; '.join(entry['reasons'])}" if entry.get("reasons") else ""
    colour = "red" if entry.get("blocked") else _COLOURS.get(decision, "dim")
    stamp = str(entry.get("time", ""))[11:19]
    return f"{paint(stamp, 'dim')} {entry.get('event', '')} {about} {paint(word, colour)}{by}{why}"


def _about(entry: Mapping[str, Any]) -> str:
    given = entry.get("input")
    first = (
        next((str(value) for value in given.values() if isinstance(value, str)), "") if isinstance(given, dict) else ""
    )
    text = first or str(entry.get("prompt") or entry.get("subject") or "")
    short = text if len(text) <= 60 else text[:59] + "…"
    return " ".join(part for part in (str(entry.get("tool") or ""), short.replace("\n", "⏎")) if part)


def _verify(args: argparse.Namespace) -> int:
    key = Path(args.key_file).read_bytes().strip() if args.key_file else None
    breaks = AuditFile(args.file, key=key).verify()
    if args.json:
        print(msgspec.json.encode({"whole": not breaks, "breaks": breaks}).decode())
    elif breaks:
        print("\n".join(paint(str(one), "red") for one in breaks))
    else:
        print(f"{args.file} is whole: nothing was changed, removed or re-ordered")
    return 1 if breaks else 0
