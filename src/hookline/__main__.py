"""The `hookline` command, and `python -m hookline`.

Command hooks are asked at every step of an agent, so what is common there goes to the user's service, which is warm;
everything else, and whatever the service does not answer, runs here.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

RESIDENT = "hookline.cli.main"  # what the service's workers import
FAILED = 2  # the exit code by which a command hook says no


def main() -> None:
    """Run the command line and exit with its code."""
    words = sys.argv[1:]
    # what stands before every shell line of an agent needs nothing else
    if words[:1] == ["confine"] and words[1:2] != ["--lines"]:
        from hookline.sandbox.main import main as confine

        code = confine(words[1:])
        sys.stdout.flush()
        os._exit(code)
    mask = os.umask(0o022)
    if mask & 0o002:  # else what is kept for this user could be changed by all of them
        os.umask(mask)
    from hookline.processes.service import address

    # first, as the service compares its files meanwhile; nothing that `shield` drops chooses who it is
    again = not sys.flags.isolated and os.environ.get("HOOKLINE_SHARED")
    service = address.connect() if words and words[0] in address.ANSWERED and not again else None
    from hookline.core.interpreter import shield
    from hookline.processes.service import client

    shield(words)
    how = client.way(words)
    if how:  # nothing is left to flush then, and taking the interpreter apart costs milliseconds
        os._exit(_answer(words, how, service))
    if service is not None:
        service.close()
    from hookline.cli.main import main as run

    sys.exit(run())


def _answer(words: list[str], how: str, service: "socket | None") -> int:
    """Have the service answer a command hook, or answer it here; if neither can be done, the answer is no."""
    from hookline.processes.service import client

    try:
        if service is None:
            client.start(RESIDENT)  # before stdin is read: it gets ready meanwhile
        if client.take_stdin(how):
            try:
                return client.ask(words, service)
            except client.NotAnswered:
                if how != client.UNREAD:
                    client.rewind_stdin()
        elif service is not None:
            service.close()
        from hookline.cli.main import main as run
        from hookline.processes.service.event_process import finish, perform

        return finish(perform(run, words))
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        return 130
    except Exception as problem:  # noqa: BLE001 - an agent goes on when a hook fails with any other code than 2
        os.write(2, f"hookline {words[0]}: cannot judge this: {type(problem).__name__}: {problem}\n".encode())
        return FAILED


if __name__ == "__main__":
    if not __package__:  # started by its path, as an isolated Python does not find a user's own packages
        sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    main()
