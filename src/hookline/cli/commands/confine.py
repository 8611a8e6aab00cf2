"""`hookline confine`: run a command that the kernel holds to folders and patterns."""

from __future__ import annotations

from hookline.sandbox import main as confine


def main(argv: list[str]) -> int:
    """Run it; everything is done by the package itself, which starts without the rest of Hookline."""
    return confine.main(argv)
