"""`hookline audit checkpoint`, `prove` and `push`: for those who verify without Hookline or have their own tools."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import select
import sys
import threading
from pathlib import Path

import msgspec

from hookline.core.files import default_log
from hookline.display import one_line
from hookline.errors import AuditError
from hookline.records.audit.checkpoint import Checkpoints, LogTree, SigningKey, TreeHead, verified_note
from hookline.records.audit.export import signed_statement
from hookline.records.audit.push import Pusher, sinks_in
from hookline.settings.load import load

_LOOK, _PAUSE = 5.0, 60.0
"""Seconds between two looks at the settings, and before settings that cannot be used are tried again."""


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
        found = signed.proof_since(TreeHead.parse(_text(args.old)))
    else:
        found = signed.proof_of(args.record)
    if args.statement and args.old is None:
        found = signed_statement(base64.b64decode(found["leaf"]), signed.key, signed.vkey.rpartition("+")[0])
    print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    return 0


def push(args: argparse.Namespace) -> int:
    """Send what the receivers do not have yet; with `--follow` until it is ended, or the settings name others."""
    try:
        wanted = _wanted(args)
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
        while _wanted(args) == wanted:
            if not args.until_eof:
                stop.wait(_LOOK)
            elif select.select([0], [], [], _LOOK)[0] and not os.read(0, 1024):
                break
    stop.set()
    for thread in threads:
        thread.join()
    return 0


def _wanted(args: argparse.Namespace) -> list[tuple[str, str, str]]:
    """The receiver on the command line, or those in the user's and the administrator's settings, never a project's."""
    if args.to:
        return [(args.file or "", args.to, args.format)]
    files = load(setting_sources="user", headers=False).files
    raw = [file.raw["sink"] for file in files if file.source.kind in ("user", "managed") and "sink" in file.raw]
    found = [(path or args.file or "", to, form) for one in raw for path, to, form in sinks_in(one)]
    if not found:
        raise AuditError('no receiver; name one with `--to`, or in your settings: {"sink": "syslog+tls://HOST:6514"}')
    return found


def verify_checkpoint(log: str, checkpoint: Path, vkey: str) -> str:
    """Compare a log with a checkpoint that was kept elsewhere; how much of it that covers."""
    head = TreeHead.parse(verified_note(_text(checkpoint), vkey))
    LogTree(log).check(head)
    return f"its first {head.size} records are those of {head.origin} that the checkpoint is over"


def _checkpoints(args: argparse.Namespace) -> Checkpoints:
    if not Path(args.file).is_file():
        raise AuditError(f"{args.file}: no such file; name an audit log")
    key = SigningKey.load(args.signing_key) if args.signing_key else None
    return Checkpoints(args.file, key, origin=args.origin)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        raise AuditError(f"{path}: cannot be read: {problem}") from None
