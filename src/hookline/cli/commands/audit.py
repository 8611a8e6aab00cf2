"""`hookline audit`: an audit log as a timeline, and whether it is whole."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hookline.cli.export import add_export, export
from hookline.cli.options import add_json, key_in, parser
from hookline.cli.style import colour_of, paint
from hookline.core.engine.decision_words import MEANINGS
from hookline.core.wire.json_text import read_object
from hookline.display import one_line
from hookline.errors import AuditError
from hookline.records.audit.anchor import ExpectedAnchor
from hookline.records.audit.chain import Link
from hookline.records.audit.entry import decision_word_of
from hookline.records.audit.log import AuditFile

_EXAMPLES = """examples:
  hookline audit show audit.jsonl
  hookline audit show audit.jsonl --decision deny --tool Bash --since 2026-01-31
  hookline audit show audit.jsonl --follow
  hookline audit export audit.jsonl --format ocsf
  hookline audit verify audit.jsonl          exit 0: whole, 1: changed, 2: cannot be read"""
_WORD = max(map(len, MEANINGS))
_FOLLOW_SECONDS = 0.2
_CANNOT = 2
_SHORT = 60


def main(argv: list[str]) -> int:
    """Show a log, or verify it."""
    flags = parser("audit", "Read an audit log, or make sure that nothing in it was changed.", _EXAMPLES)
    kinds = flags.add_subparsers(dest="what", required=True, metavar="show|verify|export")
    _show_flags(kinds.add_parser("show", help="print a readable timeline"))
    _verify_flags(kinds.add_parser("verify", help="find edited, removed and re-ordered lines"))
    _export_flags(kinds.add_parser("export", help="write the records for other systems"))
    args = flags.parse_args(argv)
    try:
        return {"show": _show, "verify": _verify, "export": _export}[args.what](args)
    except AuditError as problem:
        print(f"hookline audit: {problem}", file=sys.stderr)
        return _CANNOT


def _show_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("file")
    flags.add_argument("--event", help="only this event")
    flags.add_argument("--tool", help="only this tool")
    flags.add_argument("--hook", help="only where this hook took part")
    words = ", ".join(_flag_of(word) for word in MEANINGS)
    flags.add_argument(
        "--decision", type=_word, metavar="WORD", help=f"only this decision: {words} (`deny` is whatever was blocked)"
    )
    flags.add_argument("--run", help="only this session")
    flags.add_argument("--since", type=_start_of, metavar="TIME", help="from this time on (ISO 8601; local time)")
    flags.add_argument("--until", type=_end_of, metavar="TIME", help="up to this time, or to the end of this day")
    flags.add_argument("-f", "--follow", action="store_true", help="go on as the file grows; Ctrl-C ends it")
    add_json(flags)


def _verify_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("file")
    flags.add_argument("--key-file", metavar="FILE", help="the key, if the log was written with one")
    anchors = flags.add_mutually_exclusive_group()
    anchors.add_argument("--anchor", metavar="FILE", help="the anchor (default, with a key: the user's state folder)")
    anchors.add_argument("--expect", type=_link, metavar="SEQ:HASH", help="a record that an external sink was told of")
    anchors.add_argument("--no-anchor", action="store_true", help="compare with no anchor, as for a copy")
    add_json(flags)


def _export_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("file", nargs="+", type=Path)
    add_export(flags)


def _export(args: argparse.Namespace) -> int:
    return export([("", path) for path in args.file], args)


def _link(text: str) -> ExpectedAnchor:
    seq, _, hashed = text.partition(":")
    if not seq.isdecimal() or not re.fullmatch("[0-9a-f]{64}", hashed):
        raise argparse.ArgumentTypeError(f"expected a record's number and hash, as in `12:ab34…`, got `{text}`")
    return ExpectedAnchor(Link(int(seq), hashed))


def _flag_of(word: str) -> str:
    return word.lower().replace(" ", "-")


def _word(text: str) -> str:
    """`keep-going`, `keep_going` or `KEEP GOING` as the log shows it."""
    word = text.upper().replace("-", " ").replace("_", " ")
    if word not in MEANINGS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(map(_flag_of, MEANINGS))}, got `{text}`")
    return word


def _start_of(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


def _end_of(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    day_only = "T" not in text and ":" not in text
    return (moment + timedelta(days=1, microseconds=-1) if day_only else moment).astimezone()


# -- show ----------------------------------------------------------------------------------------------------------


def _show(args: argparse.Namespace) -> int:
    path = Path(args.file)
    if not path.is_file():
        raise AuditError(f"{args.file}: no such file")
    day, shown = "", 0
    for raw, entry in entries(path, follow=args.follow):
        if not _wanted(entry, args):
            continue
        shown += 1
        moment = _time(entry)
        if not args.json and moment is not None and moment.date().isoformat() != day:
            day = moment.date().isoformat()
            print(paint(day, "dim"))
        print(raw.decode("utf-8", "replace").rstrip() if args.json else line(entry, _width()), flush=args.follow)
    if not shown and not args.json:
        print("nothing to show")
    return 0


def _width() -> int | None:
    """How wide a line may be: as the terminal is; in a pipe nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def entries(path: Path, *, follow: bool) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """The records of a log, the rotated files first; with `follow`, also those that are written from now on."""
    log = AuditFile(path)
    file: BinaryIO = path.open("rb")
    try:
        for older in log.rotated():
            with older.open("rb") as part:
                if not os.path.sameopenfile(part.fileno(), file.fileno()):
                    yield from _whole_lines(part)
        while True:
            yield from _whole_lines(file)
            if not follow:
                return
            following = _next_file(log, file)
            if following is None:
                time.sleep(_FOLLOW_SECONDS)
                continue
            yield from _whole_lines(file)  # what was written between the last look and the rotation
            file.close()
            file = following
    finally:
        file.close()


def _whole_lines(file: BinaryIO) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    while raw := file.readline():
        if not raw.endswith(b"\n"):
            file.seek(-len(raw), os.SEEK_CUR)  # it is still being written
            return
        entry = read_object(raw)
        if entry is not None:
            yield raw, entry


def _next_file(log: AuditFile, file: BinaryIO) -> BinaryIO | None:
    """The file that came after this one, if this one was put aside."""
    here = os.fstat(file.fileno())
    try:
        if os.path.samestat(log.path.stat(), here):
            return None
        older = log.rotated()
        places = [place for place, path in enumerate(older) if os.path.samestat(path.stat(), here)]
        following = [*older, log.path][places[0] + 1] if places else (older or [log.path])[0]
        found = following.open("rb")
    except FileNotFoundError:  # in the middle of a rotation
        return None
    if following == log.path and log.rotated()[-1:] != older[-1:]:  # it was put aside meanwhile: this is a later one
        found.close()
        return None
    return found


def _time(entry: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(entry.get("time"))).astimezone()
    except ValueError:
        return None


def _wanted(entry: Mapping[str, Any], args: argparse.Namespace) -> bool:
    if args.decision is not None and args.decision not in _words(entry):
        return False
    asked = {"event": args.event, "tool": args.tool, "run": args.run}
    if any(value is not None and entry.get(key) != value for key, value in asked.items()):
        return False
    if args.hook is not None and args.hook not in (row.get("hook") for row in entry.get("hooks", ())):
        return False
    if args.since is None and args.until is None:
        return True
    moment = _time(entry)
    if moment is None:
        return False
    return (args.since is None or moment >= args.since) and (args.until is None or moment <= args.until)


def _words(entry: Mapping[str, Any]) -> set[str]:
    """What `--decision` may call it: whatever was blocked counts as denied, also a stop."""
    return {decision_word_of(entry), *(["DENY"] if entry.get("blocked") else [])}


def line(entry: Mapping[str, Any], width: int | None = None) -> str:
    """A record on one line: when, decided how, what, about what, by whom and why; cut to `width`."""
    word = decision_word_of(entry)
    moment = _time(entry)
    stamp = moment.strftime("%H:%M:%S") if moment else "--:--:--"
    said = one_line(" ".join(part for part in (str(entry.get("event", "")), _about(entry)) if part) + _why(entry))
    room = None if width is None else max(width - len(f"{stamp} {word:<{_WORD}} "), 10)
    if room is not None and len(said) > room:
        said = said[: room - 1] + "…"
    return f"{paint(stamp, 'dim')} {paint(f'{word:<{_WORD}}', colour_of(word))} {said}"


def _why(entry: Mapping[str, Any]) -> str:
    if entry.get("event") == "AuditGap":
        return f" {entry.get('missing')} records are missing here: they could not be written"
    by = f" by {entry['by']}" if entry.get("by") else ""
    reasons = entry.get("reasons") or [entry[word] for word in ("error", "problem") if entry.get(word)]
    why = f": {'; '.join(map(str, reasons))}" if reasons else ""
    return f"{by}{why}"


def _about(entry: Mapping[str, Any]) -> str:
    given = entry.get("input")
    values = given.values() if isinstance(given, dict) else ()
    first = next((str(value) for value in values if isinstance(value, str)), "")
    text = first or str(entry.get("prompt") or "") or ("" if entry.get("tool") else str(entry.get("subject") or ""))
    short = text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
    return " ".join(part for part in (str(entry.get("tool") or ""), short) if part)


# -- verify --------------------------------------------------------------------------------------------------------


def _verify(args: argparse.Namespace) -> int:
    key = key_in(args.key_file)
    file = AuditFile(args.file, key=key, anchor=False if args.no_anchor else args.expect or args.anchor)
    breaks = file.verify()
    if not breaks and not file.path.is_file() and not file.head_path.is_file():
        raise AuditError(f"{args.file}: no such file")
    if args.json:
        proof = {} if breaks else {"proves": _proof(file, key)}
        print(msgspec.json.encode({"whole": not breaks, "breaks": breaks, **proof}).decode())
    elif breaks:
        print("\n".join(paint(one_line(str(one)), "red") for one in breaks))
    else:
        print(f"{args.file} is whole: nothing was changed, removed or re-ordered")
        print(paint(_proof(file, key), "dim"))
    return 1 if breaks else 0


def _proof(file: AuditFile, key: bytes | None) -> str:
    """What it means that a log is whole."""
    known = file.anchor.read(key) if file.anchor is not None else None
    if known is not None:
        return f"nor was it rolled back to before record {known.seq}, which {file.anchor} knows"
    if key is None:
        return "it has no key: whoever can write its folder could have written it all again"
    return "nobody without the key wrote it; not whether log and head were rolled back together: there is no anchor"
