"""`hookline hosts`: which agent CLIs there are, what holds on each, and which are hooked and proven here."""

from __future__ import annotations

import json
from pathlib import Path

from hookline.cli.options import add_json, parser
from hookline.cli.style import paint
from hookline.hosts.host import ABILITIES, able
from hookline.hosts.install.survey import HostRow, survey

_COLUMNS = ("deny", "ask", "rew", "ctx", "rep", "prm", "con", "ses", "sub")
_LEGEND = """deny, ask, rew(rite a call: only there do shell lines run confined),
ctx (context for the model), rep(lace an output), prm (refuse a prompt),
con(tinue: back to work), ses(sion events), sub (hooks hold inside subagents;
where not, the tool that starts one is denied: `install --allow-subagents`)
✓ it can · · it cannot; on a gate, what it cannot do becomes a deny
measured: the version all this was seen on; `doc`: read in documentation only"""


def main(argv: list[str]) -> int:
    """Print the table."""
    flags = parser("hosts", "Which agent CLIs there are, what holds on each, and what is installed here.")
    flags.add_argument("--project", default=".", metavar="DIR", help="the project (default: this folder)")
    add_json(flags)
    args = flags.parse_args(argv)
    rows = survey(Path(args.project).resolve())
    if args.json:
        print(json.dumps([row.to_dict() for row in rows], indent=2))
        return 0
    head = f"{'host':<9} {'measured':<8} {'here':<8} {'hooked':<6} {'proven':<6} {' '.join(_COLUMNS)}"
    print(paint(head, "bold"))
    for row in rows:
        print(_line(row))
    print(f"\n{_LEGEND}")
    return 0


def _line(row: HostRow) -> str:
    hooked = "both" if len(row.hooked) == 2 else row.hooked[0][:6] if row.hooked else "–"
    proven = "yes" if row.proven else "broken" if row.proof and not row.proof.holds else "–"
    marks = [("✓" if able(row.host, name) else "·").center(len(head))
             for name, head in zip(ABILITIES, _COLUMNS, strict=True)]  # fmt: skip
    cells = f"{row.host.name:<9} {row.host.verified or 'doc':<8} {row.version[:8] or '–':<8} {hooked:<6}"
    return f"{cells} {proven:<6} {' '.join(marks)}".rstrip()
