"""`hookline fleet`: one policy and one audit trail over many machines."""

from __future__ import annotations

import asyncio

from hookline.cli.commands.fleet import hub, machine
from hookline.cli.options import parser

_EXAMPLES = """examples:
  hookline fleet hub                                start a hub for a team
  hookline fleet token                              let one more machine in
  hookline fleet join nats://hub:4222 --token …     on that machine
  hookline fleet push policy/ --canary 10%          try it on some machines
  hookline fleet promote                            then on all
  hookline fleet machines                           what is in force where"""
COMMANDS = hub.COMMANDS | machine.COMMANDS


def main(argv: list[str]) -> int:
    """Run one of the fleet's commands."""
    flags = parser("fleet", "One policy and one audit trail over many machines.", _EXAMPLES)
    kinds = flags.add_subparsers(dest="what", required=True, metavar="COMMAND")
    for name, (about, run, options) in COMMANDS.items():
        command = kinds.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        for add in options:
            add(command)
        command.set_defaults(run=run)
    args = flags.parse_args(argv)
    code: int = asyncio.run(args.run(args))
    return code
