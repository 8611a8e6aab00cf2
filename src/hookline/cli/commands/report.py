"""`hookline report`: audit logs as one HTML file, for a pull request, a CI artefact or an incident review."""

from __future__ import annotations

import sys
from pathlib import Path

from hookline.cli.commands.console import add_logs, configured, logs, replay_job
from hookline.cli.options import key_in, parser
from hookline.errors import HooklineError

_EXAMPLES = """examples:
  hookline report audit.jsonl -o report.html
  hookline report logs/ -o report.html --hooks hooks.py --replay"""


def main(argv: list[str]) -> int:
    """Write the report; exit code 1 if it cannot be written."""
    flags = parser("report", "Write audit logs as one HTML file that needs no server and no network.", _EXAMPLES)
    add_logs(flags)
    flags.add_argument(
        "-o", "--output", default="report.html", metavar="FILE", help="default: report.html; - prints it"
    )
    flags.add_argument("--most", type=int, default=2_000, metavar="N", help="how many events it holds (default: 2000)")
    args = flags.parse_args(argv)
    if args.most < 1:
        raise HooklineError(f"--most: expected a number from 1 on, got `{args.most}`")

    from hookline.records.console.report import report

    job = replay_job(args)
    if job is not None:
        job.run()
    text = report(
        logs(args.files), key=key_in(args.key_file), configured=configured(args), most=args.most,
        replay=None if job is None else job.state(),
    )  # fmt: skip
    if args.output == "-":
        sys.stdout.write(text)
        return 0
    try:
        Path(args.output).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise HooklineError(f"{args.output}: cannot be written: {problem.strerror}") from None
    print(f"wrote {args.output}, {len(text.encode()) / 1e6:.1f} MB; open it in a browser")
    return 0
