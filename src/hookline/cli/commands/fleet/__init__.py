"""`hookline fleet`: one policy and one audit trail over many machines."""

from __future__ import annotations

import asyncio

from hookline.cli.commands.fleet import hub, machine
from hookline.cli.options import parser

COMMANDS = hub.COMMANDS | machine.COMMANDS


def main(argv: list[str]) -> int:
    """Run one of the fleet's commands."""
    flags = parser("fleet", "One policy and one audit trail over many machines.")
    kinds = flags.add_subparsers(dest="what", required=True, metavar="COMMAND")
    for name, (about, run, options) in COMMANDS.items():
        command = kinds.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        for add in options:
            add(command)
        command.set_defaults(run=run)
    args = flags.parse_args(argv)
    code: int = asyncio.run(args.run(args))
    return code
