"""`hookline uninstall`: take our entries out of agent CLIs' configuration."""

from __future__ import annotations

from pathlib import Path

from hookline.cli.options import parser
from hookline.hosts.install.commands import uninstall
from hookline.hosts.table import HOSTS, find


def main(argv: list[str]) -> int:
    """Put each host's files back; exit 1 if there was nothing of ours."""
    flags = parser("uninstall", "Take Hookline's entries out of an agent CLI's configuration.")
    flags.add_argument("host", nargs="+", metavar="HOST", help=f"of {', '.join(HOSTS)}")
    flags.add_argument("--scope", choices=["user", "project"], default="user", help="whose configuration")
    flags.add_argument("--project", default=".", metavar="DIR", help="the project (default: this folder)")
    args = flags.parse_args(argv)
    code = 0
    for name in args.host:
        host = find(name)
        project = Path(args.project).resolve() if args.scope == "project" else None
        touched = uninstall(host, scope=args.scope, project=project)
        for path in touched:
            print(f"{host.title}: {path} is as it was before" if path.exists() else f"{host.title}: removed {path}")
        if not touched:
            print(f"{host.title}: nothing of ours was there")
            code = 1
    return code
