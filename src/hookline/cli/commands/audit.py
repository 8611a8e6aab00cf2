"""`hookline audit`: an audit log as a timeline, as a page, for other systems, and whether it is whole."""

import argparse
import base64
import contextlib
import logging
import os
import re
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from hookline.cli.commands.console import configured, logs, replay_job
from hookline.cli.options import add_commands, key_in, parser_for
from hookline.cli.style import colour_of, counted, paint
from hookline.core.engine.verdict import WORDS
from hookline.core.files import default_log
from hookline.core.wire.json_text import read_object
from hookline.display import one_line, unsteered_json
from hookline.errors import AuditError, HooklineError
from hookline.records.audit.chain import Break, ExpectedAnchor, Link
from hookline.records.audit.checkpoint import Checkpoints, LogTree, SigningKey, TreeHead, verified_note
from hookline.records.audit.entry import decision_word_of
from hookline.records.audit.export import FORMATS, lines, signed_statement, write_parquet
from hookline.records.audit.log_file import AuditFile
from hookline.records.audit.push import Pusher, sinks_in
from hookline.records.audit.reader import Cursor, LogReader, logs_in
from hookline.records.console.report import report
from hookline.records.replay.reader import is_within
from hookline.settings.load import load

_WORD = max(map(len, WORDS))
_DECISIONS = ", ".join(WORDS).lower().replace(" ", "-").replace(",-", ", ")
_POLL_SECONDS = 0.2
_CANNOT = 2
_SHORT = 60
_LOOK, _PAUSE = 5.0, 60.0  # seconds between two looks at the settings, and until unusable ones are tried again
ALL_FORMATS = (*FORMATS, "parquet")
Log = tuple[str, Path]  # a machine, empty if there is only one, and its log
log: logging.Logger = logging.getLogger("hookline.audit")


def main(argv: list[str]) -> int:
    """Show a log, verify it, or write it in another form."""
    flags = parser_for("audit")
    words = {"decisions": _DECISIONS, "word": _word, "link": _link, "formats": ALL_FORMATS}
    add_commands(flags, "audit", dest="what", metavar="WHAT", **words)
    args = flags.parse_args(argv)
    commands = {
        "show": _show, "verify": _verify, "report": _report, "export": _export_wanted,
        "checkpoint": checkpoint, "prove": prove, "push": push,
    }  # fmt: skip
    try:
        return commands[args.what](args)
    except AuditError as problem:
        print(f"hookline audit: {one_line(str(problem))}", file=sys.stderr)
        return _CANNOT


def _link(text: str) -> ExpectedAnchor:
    seq, _, hashed = text.partition(":")
    if not seq.isdecimal() or not re.fullmatch("[0-9a-f]{64}", hashed):
        raise argparse.ArgumentTypeError(f"expected a record's number and hash, as in `12:ab34…`, got `{text}`")
    return ExpectedAnchor(Link(int(seq), hashed))


def _word(text: str) -> str:
    """`keep-going`, `keep_going` or `KEEP GOING` as the log shows it."""
    if (word := text.upper().replace("-", " ").replace("_", " ")) not in WORDS:
        raise argparse.ArgumentTypeError(f"expected one of {_DECISIONS}, got `{text}`")
    return word


def _show(args: argparse.Namespace) -> int:
    """Print what was asked for; exit code 2 if a log holds lines but not one record."""
    day, shown, records, unreadable = "", 0, 0, 0
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None  # in a pipe nothing is cut
    for raw, entry in entries(args.files, follow=args.follow):
        records += entry is not None
        unreadable += entry is None
        if entry is None or not _wanted(entry, args):
            continue
        shown += 1
        today = str(moment.date()) if (moment := _time(entry)) else day
        if not args.json and today != day:
            day = today
            print(paint(day, "dim"))
        print(unsteered_json(raw.rstrip()) if args.json else line(entry, width), flush=args.follow)
    if unreadable:
        told = f"{counted(unreadable, 'line')} cannot be read as records; `hookline audit verify` says more"
        print(f"hookline audit: {told}", file=sys.stderr)
    if not shown and not args.json:
        print("nothing to show")
    return _CANNOT if unreadable and not records else 0


def entries(files: list[str], *, follow: bool) -> Iterator[tuple[bytes, Mapping[str, Any] | None]]:
    """The records of logs, rotated files first; with `follow`, also those that are written from now on."""
    named = logs(files)
    cursors: dict[Path, Cursor | None] = {}
    while True:
        for log in logs_in(named):
            for batch in LogReader(log).batches(cursors.get(log)):
                cursors[log] = batch.cursor
                yield from ((raw, read_object(raw)) for raw in batch.lines)
        if not follow:
            return
        time.sleep(_POLL_SECONDS)


def _time(entry: Mapping[str, Any]) -> datetime | None:
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(str(entry.get("time"))).astimezone()
    return None


def _wanted(entry: Mapping[str, Any], args: argparse.Namespace) -> bool:
    words = {decision_word_of(entry), "DENY" if entry.get("blocked") else ""}  # what was blocked is denied, also a stop
    asked = {"event": args.event, "tool": args.tool, "run": args.session}
    fits = all(value is None or entry.get(key) == value for key, value in asked.items())
    fits = fits and (args.decision is None or args.decision in words)
    fits = fits and (args.hook is None or args.hook in [row.get("hook") for row in entry.get("hooks", ())])
    return fits and is_within(str(entry.get("time")), args.since, args.until)


def line(entry: Mapping[str, Any], width: int | None = None) -> str:
    """A record on one line: when, decided how, what, about what, by whom and why; cut to `width`."""
    word = decision_word_of(entry)
    moment = _time(entry)
    stamp = moment.strftime("%H:%M:%S") if moment else "--:--:--"
    said = " ".join(part for part in (str(entry.get("event", "")), _about(entry)) if part) + _why(entry)
    room = None if width is None else max(width - len(f"{stamp} {word:<{_WORD}} "), 10)
    return f"{paint(stamp, 'dim')} {paint(f'{word:<{_WORD}}', colour_of(word))} {one_line(said, room)}"


def _why(entry: Mapping[str, Any]) -> str:
    if entry.get("event") == "AuditGap":
        return f" {entry.get('missing')} records are missing here: they could not be written"
    reasons = entry.get("reasons") or [entry[word] for word in ("error", "problem") if entry.get(word)]
    why = f": {'; '.join(map(str, reasons))}" if reasons else ""
    return f" by {entry['by']}{why}" if entry.get("by") else why


def _about(entry: Mapping[str, Any]) -> str:
    given = entry.get("input")
    values = given.values() if isinstance(given, dict) else ()
    first = next((str(value) for value in values if isinstance(value, str)), "")
    text = first or str(entry.get("prompt") or "") or ("" if entry.get("tool") else str(entry.get("subject") or ""))
    return " ".join(part for part in (str(entry.get("tool") or ""), one_line(text, _SHORT)) if part)


def _report(args: argparse.Namespace) -> int:
    if args.most < 1:
        raise HooklineError(f"--most: expected a number from 1 on, got `{args.most}`")
    if job := replay_job(args):
        job.run()
    text = report(
        logs(args.files), key=key_in(args.key_file), configured=configured(args), most=args.most,
        replay=job.state() if job else None, within=(args.since, args.until),
    )  # fmt: skip
    if args.output == "-":
        sys.stdout.buffer.write(text.encode())
        return 0
    try:
        Path(args.output).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise HooklineError(f"{args.output}: cannot be written: {problem.strerror}") from None
    print(f"wrote {one_line(args.output)}, {len(text.encode()) / 1e6:.1f} MB; open it in a browser")
    return 0


def _verify(args: argparse.Namespace) -> int:
    """Each log by itself; 1 if any was changed."""
    found = [str(one) for path in logs(args.files) for one in (logs_in([path]) if Path(path).is_dir() else [path])]
    if len(found) > 1 and (args.anchor or args.expect or args.checkpoint):
        raise AuditError("--anchor, --expect and --checkpoint are for one log; name it")
    return max([_verify_one(path, args) for path in found], default=0)


def _verify_one(path: str, args: argparse.Namespace) -> int:
    key = key_in(args.key_file)
    file = AuditFile(path, key=key, anchor=False if args.no_anchor else args.expect or args.anchor)
    breaks = file.verify()
    if not breaks and not file.path.is_file() and not file.head_path.is_file():
        raise AuditError(f"{path}: no such file")
    covered = ""
    if args.checkpoint is not None:  # it was kept elsewhere
        try:
            head = TreeHead.parse(verified_note(args.checkpoint.read_text(encoding="utf-8"), args.vkey))
            LogTree(path).check(head)
            covered = f"its first {head.size} records are those of {head.origin} that the checkpoint is over"
        except AuditError as problem:
            breaks = [*breaks, Break(str(args.checkpoint), 1, str(problem))]
        except (OSError, ValueError) as problem:
            breaks = [*breaks, Break(str(args.checkpoint), 1, f"it cannot be read: {problem}")]
    if args.json:
        proof = {} if breaks else {"proves": _proof(file, key)}
        print(unsteered_json(msgspec.json.encode({"whole": not breaks, "breaks": breaks, **proof})))
    elif breaks:
        print("\n".join(paint(one_line(str(one)), "red") for one in breaks))
    else:
        print(f"{one_line(path)} is whole: nothing was changed, removed or re-ordered")
        print(paint(one_line(covered or _proof(file, key)), "dim"))
    return 1 if breaks else 0


def _proof(file: AuditFile, key: bytes | None) -> str:
    known = file.anchor.read(key) if file.anchor is not None else None
    if known is not None:
        return f"nor was it rolled back to before record {known.seq}, which {file.anchor} knows"
    if key is None:
        return "it has no key: anyone who can write to its folder could have rewritten it"
    return "only a holder of the key can have written it; without an anchor, a rollback of log and head is not seen"


def checkpoint(args: argparse.Namespace) -> int:
    """Sign the log as it is."""
    signed = _checkpoints(args)
    print(signed.update(), end="")
    print(f"verify it with {signed.vkey}", file=sys.stderr)
    return 0


def prove(args: argparse.Namespace) -> int:
    """Print a proof, as JSON."""
    signed = _checkpoints(args)
    if args.old is not None:
        try:
            head = args.old.read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise AuditError(f"{args.old}: cannot be read: {problem}") from None
        found = signed.proof_since(TreeHead.parse(head))
    else:
        found = signed.proof_of(args.record)
        if args.statement:
            found = signed_statement(base64.b64decode(found["leaf"]), signed.key, signed.vkey.rpartition("+")[0])
    print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    return 0


def push(args: argparse.Namespace) -> int:
    """Send what the receivers do not have yet; with `--follow` until it is ended, or the settings name others."""
    try:
        wanted = _receivers(args)
        pushers = [Pusher(path or default_log(), to, form) for path, to, form in wanted]
        for one in pushers:
            one.acquire()
    except AuditError:
        if args.until_eof:  # the service starts this again: not at once, with the same settings
            select.select([0], [], [], _PAUSE)
        raise
    if not args.follow:
        print("\n".join(f"{one_line(one.state.to)}: {one.until_sent()} records sent" for one in pushers))
        return 0
    stop = threading.Event()
    threads = [threading.Thread(target=one.follow, args=(stop.wait,), daemon=True) for one in pushers]
    for thread in threads:
        thread.start()
    with contextlib.suppress(KeyboardInterrupt):
        while _receivers(args) == wanted:
            if not args.until_eof:
                stop.wait(_LOOK)
            elif select.select([0], [], [], _LOOK)[0] and not os.read(0, 1024):
                break
    stop.set()
    for thread in threads:
        thread.join()
    return 0


def _receivers(args: argparse.Namespace) -> list[tuple[str, str, str]]:
    """The receiver on the command line, or those in the user's and the administrator's settings, never a project's."""
    if args.to:
        return [(args.file or "", args.to, args.format)]
    files = load(setting_sources="user", headers=False).files
    raw = [file.raw["sink"] for file in files if file.source.kind in ("user", "managed") and "sink" in file.raw]
    found = [(path or args.file or "", to, form) for one in raw for path, to, form in sinks_in(one)]
    if not found:
        raise AuditError('no receiver; name one with `--to`, or in your settings: {"sink": "syslog+tls://HOST:6514"}')
    return found


def _checkpoints(args: argparse.Namespace) -> Checkpoints:
    if not Path(args.file).is_file():
        raise AuditError(f"{args.file}: no such file; name an audit log")
    key = SigningKey.load(args.signing_key) if args.signing_key else None
    return Checkpoints(args.file, key, origin=args.origin)


def _export_wanted(args: argparse.Namespace) -> int:
    found = [("", path) for path in logs_in(logs(args.file))]
    return export(found, args, lambda entry: is_within(str(entry.get("time")), args.since, args.until))


def export(logs: Iterable[Log], args: argparse.Namespace, wanted: Callable[[Any], bool] = bool) -> int:
    """Write every record of the logs that is wanted; the exit code."""
    records = (row for row in _records(logs) if wanted(row[1]))
    if args.output is None:
        if args.format == "parquet":
            raise HooklineError("--format parquet: a file is needed; name one with `--output FILE`")
        sys.stdout.buffer.writelines(lines(records, args.format))
        sys.stdout.flush()
        return 0
    try:
        if args.format == "parquet":
            count = write_parquet(args.output, records)
            print(f"{counted(count, 'record')} in {one_line(str(args.output))}", file=sys.stderr)
        else:
            with args.output.open("wb") as file:
                file.writelines(lines(records, args.format))
    except OSError as problem:
        raise HooklineError(f"{args.output}: {problem.strerror}; name another file, or make room there") from None
    return 0


def _records(logs: Iterable[Log]) -> Iterator[tuple[str, dict[str, Any]]]:
    for machine, path in logs:
        reader = LogReader(path)
        if not reader.segments():
            raise HooklineError(f"{path}: no such file; name an audit log")
        for batch in reader.batches():
            for line in batch.lines:
                if (record := read_object(line)) is None:
                    log.warning("%s: a line is not a record; run `hookline audit verify`", path)
                else:
                    yield machine, record
