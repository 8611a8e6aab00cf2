"""The `hookline` command, and `python -m hookline`.

Command hooks are asked at every step of an agent, so what is common there goes to the user's service, which is
warm; everything else, and whatever the service does not answer, runs here.
"""

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    words = sys.argv[1:]
    if words[:1] == ["confine"]:  # stands before every shell line of an agent, and needs nothing else
        from hookline.confine.main import main as confine

        code = confine(words[1:])
        sys.stdout.flush()
        os._exit(code)
    from hookline.service import client

    how = client.way(words)
    if how and client.take_stdin(how):
        try:
            code = client.ask(words)
        except client.Unanswered:
            pass
        except BrokenPipeError:
            os._exit(141)
        else:
            os._exit(code)  # nothing is buffered, and taking the interpreter apart takes as long as the rest
    from hookline.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
