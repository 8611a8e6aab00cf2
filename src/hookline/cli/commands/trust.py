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
    if args.yes and not status.trusted:
        trust.record(status.items)
        print(_json(trust.status(load(args))) if args.json else _recorded(status))
        return 0
    if args.json:
        print(_json(status))
        return 0 if status.trusted else 1
    if status.trusted:
        labels = ", ".join(one_line(item.label) for item in status.items)
        print(f"trusted: {labels}" if status.items else "nothing needs trust")
        for item in status.items:
            if item.notes:
                print("\n".join([one_line(item.label), *trusted_by_command(item)]))
        return 0
    return _ask(trust, status)


def _ask(trust: Trust, status: Status) -> int:
    if not sys.stdin.isatty():
        print(shown(status))
        print("not trusted; run `hookline trust` on a terminal, or `hookline trust --yes`", file=sys.stderr)
        return 1
    if not review(status):
        print("nothing was trusted", file=sys.stderr)
        return 1
    trust.record(status.items)
    print(_recorded(status))
    return 0


def _recorded(status: Status) -> str:
    """What was promised; where the files cannot be told, that is less, and each reason is named."""
    unknown = [item for item in status.items if item.notes]
    if not unknown:
        return _TRUSTED
    reasons = [line for item in unknown for line in (one_line(item.label), *trusted_by_command(item))]
    return "\n".join([_BY_COMMAND, *reasons])


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
    return json_text(said)
