"""`hookline packs`: the rules that `hookline init --pack` switches on."""

import json
from collections.abc import Iterable

import msgspec

from hookline.cli.options import parser_for
from hookline.cli.style import paint
from hookline.errors import HooklineError
from hookline.guards.packs import packs


def main(argv: list[str]) -> int:
    """List packs and their rules."""
    args = parser_for("packs", packs=", ".join(packs())).parse_args(argv)
    chosen = known(args.pack or packs())
    if args.json:
        print(json.dumps({name: msgspec.to_builtins(packs()[name]) for name in chosen}, indent=2))
        return 0
    for name in chosen:
        print(f"{paint(name, 'bold')}: {packs()[name].about}")
        for rule, told in packs()[name].rules.items():
            print(f"  {rule:<24} {told.about}")
    return 0


def known(names: Iterable[str]) -> list[str]:
    """The packs of these names."""
    chosen = list(dict.fromkeys(names))
    if missing := [name for name in chosen if name not in packs()]:
        raise HooklineError(f"no pack is called `{missing[0]}`; there are {', '.join(packs())}")
    return chosen
