"""`hookline demo`: a real agent on a scripted model, in a folder of its own; no key, no network."""

import sys


def main(argv: list[str]) -> int:
    """Play the story; exit code 0 only if every verdict came as told."""
    from hookline.cli.options import parser_for

    args = parser_for("demo").parse_args(argv)

    from hookline.cli.commands.demo.play import play

    pause = 0.25 if sys.stdout.isatty() and not (args.fast or args.json) else 0.0
    return play(as_json=args.json, pause=pause, keep=args.keep)
