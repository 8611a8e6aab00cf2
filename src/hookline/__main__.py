"""The `hookline` command, and `python -m hookline`."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from hookline.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
