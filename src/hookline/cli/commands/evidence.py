"""`hookline audit checkpoint` and `prove`: what a third party verifies without Hookline."""

from __future__ import annotations

import argparse
import base64
import sys
from pathlib import Path

import msgspec

from hookline.errors import AuditError
from hookline.records.audit.checkpoint import Checkpoints, LogTree, TreeHead
from hookline.records.audit.signing import SigningKey, verified_note
from hookline.records.audit.statement import signed_statement


def checkpoint_flags(flags: argparse.ArgumentParser) -> None:
    """Whose signature, and the log's name."""
    flags.add_argument("file", metavar="AUDIT.jsonl")
    flags.add_argument("--signing-key", metavar="FILE", type=Path, help="default: the user's own, made if needed")
    flags.add_argument("--origin", default="", metavar="NAME", help="the log's name (default: MACHINE/FILE)")


def prove_flags(flags: argparse.ArgumentParser) -> None:
    """Of what."""
    checkpoint_flags(flags)
    what = flags.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", type=int, metavar="N", help="that record N is in the log")
    what.add_argument("--from", dest="old", type=Path, metavar="CHECKPOINT", help="that nothing before it was changed")
    flags.add_argument("--statement", action="store_true", help="with --record: the decision as a signed statement")


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
