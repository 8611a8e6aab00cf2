"""`hookline uninstall`: take our entries out of agent CLIs' configuration."""

from pathlib import Path

from hookline.cli.options import parser_for
from hookline.display import one_line
from hookline.hosts.host import Host
from hookline.hosts.install.commands import uninstall
from hookline.hosts.install.entries import Scope
from hookline.hosts.table import HOSTS, find


def main(argv: list[str]) -> int:
    """Put each host's files back; exit 1 if there was nothing of ours."""
    args = parser_for("uninstall", hosts=", ".join(HOSTS)).parse_args(argv)
    done = [take_out(find(name), args.scope, Path(args.project).resolve()) for name in args.host]
    return 0 if all(done) else 1


def take_out(host: Host, scope: Scope, project: Path) -> bool:
    """Put one host's files back and say which; whether there was something of ours."""
    touched = uninstall(host, scope=scope, project=project)
    for path in touched:
        shown = one_line(str(path))
        print(f"{host.title}: {shown} is as it was before" if path.exists() else f"{host.title}: removed {shown}")
    if not touched:
        print(f"{host.title}: nothing of ours was there")
    return bool(touched)
