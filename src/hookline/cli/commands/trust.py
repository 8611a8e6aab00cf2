"""`hookline trust`: look at a project's hooks and the scripts they name, then let them run."""

import sys
from pathlib import Path

from hookline.cli.options import load, parser_for, review, shown, trusted_by_command
from hookline.cli.style import counted, json_text
from hookline.display import one_line
from hookline.settings.trust.store import Status, Trust

_TRUSTED = "trusted from now on; any change to these files will be asked about again"
_BY_COMMAND = "trusted from now on as commands, not by content: what they run besides may change without a question"


def main(argv: list[str]) -> int:
    """Show what would run and what changed; record it when the user says yes."""
    args = parser_for("trust").parse_args(argv)
    trust = Trust.load()
    if args.forget:
        gone = trust.forget(Path(args.project))
        print(json_text({"forgot": gone}) if args.json else f"forgot {counted(gone, 'file')}")
        return 0
    status = trust.status(load(args))
    if status.trusted and not args.json:
        labels = ", ".join(one_line(item.label) for item in status.items)
        print("\n".join([f"trusted: {labels}" if status.items else "nothing needs trust", *_not_by_content(status)]))
        return 0
    if not args.yes or status.trusted:
        if args.json:
            print(_json(status))
            return 0 if status.trusted else 1
        if not sys.stdin.isatty():
            print(shown(status))
            print("not trusted; run `hookline trust` on a terminal, or `hookline trust --yes`", file=sys.stderr)
            return 1
        if not review(status):
            print("nothing was trusted", file=sys.stderr)
            return 1
    trust.record(status.items)
    reasons = _not_by_content(status)
    said = "\n".join([_BY_COMMAND, *reasons]) if reasons else _TRUSTED
    print(_json(trust.status(load(args))) if args.json else said)
    return 0


def _not_by_content(status: Status) -> list[str]:
    """Where the files cannot be told, less is promised, and each reason is named."""
    unknown = [item for item in status.items if item.notes]
    return [line for item in unknown for line in (one_line(item.label), *trusted_by_command(item))]


def _json(status: Status) -> str:
    files = [
        {"file": item.label, "runs": item.runs, "sets": item.sets, "scripts": [script.path for script in item.scripts],
         "not_by_content": item.notes}
        for item in status.items
    ]  # fmt: skip
    changes = [{"file": change.path, "kind": change.kind, "diff": change.diff} for change in status.changes]
    return json_text({"trusted": status.trusted, "files": files, "changes": changes})
