"""`hookline confine`: run a command that the kernel holds to folders and patterns."""

import select
import sys

from hookline.sandbox import main as confine


def main(argv: list[str]) -> int:
    """Run it; everything is done by the package itself, which starts without the rest of Hookline."""
    return _serve_lines(argv[1]) if argv[:1] == ["--lines"] else confine.main(argv)


def _serve_lines(path: str) -> int:
    """Start lines for `launcher.c`, as the resident service has it done, until standard input ends."""
    from hookline.core.files import state_folder
    from hookline.processes.service import address
    from hookline.sandbox.warm import LineServer, build_launcher

    if not build_launcher(str(state_folder())):
        print("there is no C compiler `cc`: confined lines start an interpreter each", file=sys.stderr)
        sys.stdin.buffer.read()
        return 0
    own = address.confinement("self")
    lines = LineServer(path, lambda channel: address.is_trusted(channel, own))
    events = select.poll()
    events.register(lines.listener, select.POLLIN)
    events.register(sys.stdin, select.POLLIN)
    try:
        while sys.stdin.fileno() not in dict(events.poll()):
            lines.accept()
    finally:
        lines.close()
    return 0
