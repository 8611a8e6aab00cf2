"""`hookline prove`: run your own agent on a scripted model and see whether the hooks hold. No key, no network."""

import json
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from hookline.cli.options import hooks_from, parser_for
from hookline.cli.style import paint
from hookline.display import one_line
from hookline.hosts.host import Host
from hookline.hosts.install.survey import Proof, hooked, note_proof
from hookline.hosts.prove.proof import Finding, ProofResult, prove
from hookline.hosts.table import AGENTS, HOSTS, find

_WIDTH = 80


def main(argv: list[str]) -> int:
    """Prove each host named, or each that is hooked."""
    args = parser_for("prove", hosts=", ".join(AGENTS)).parse_args(argv)
    project = Path(args.project).resolve()
    chosen = [find(name) for name in args.host] or [host for host in HOSTS.values() if hooked(host, project)]
    if not chosen:
        print("no agent is hooked here; run `hookline install HOST --hooks FILE.py` first", file=sys.stderr)
        return 1
    proven = [_prove(host, project, quiet=args.json) for host in chosen]
    if args.json:
        print(json.dumps([one.to_dict() for one in proven], indent=2))
    return 0 if all(one.holds for one in proven) else 1


def _prove(host: Host, project: Path, *, quiet: bool) -> ProofResult:
    if not quiet:
        print(paint(host.title, "bold"), end=" ", flush=True)
    found = prove(host, project, lambda source: list(hooks_from(source, project).hooks))
    if found.version and found.seconds:
        note_proof(host, Proof(found.version, datetime.now(UTC).date().isoformat(), found.holds))
    if quiet:
        return found
    print(f"{one_line(found.version)} ({found.seconds:.0f} s)" if found.version else "")
    for finding in found.findings:
        print(_line(finding))
    bad = f"{sum(not finding.good for finding in found.findings)} of {len(found.findings)} do not hold"
    print(f"  → {paint('all of it holds', 'green') if found.holds else paint(bad, 'red')}\n")
    return found


def _line(finding: Finding) -> str:
    colour = "red" if not finding.good else "dim" if finding.status == "not tried" else "green"
    head = f"  {one_line(finding.what):<18} {finding.status:<11} "
    first, *rest = textwrap.wrap(one_line(finding.detail), _WIDTH - len(head), break_long_words=True) or [""]
    lines = [head.replace(finding.status, paint(finding.status, colour), 1) + first]
    return "\n".join([*lines, *(" " * len(head) + line for line in rest)]).rstrip()
