"""`hookline` itself: help, the version, and commands that there are not."""

from __future__ import annotations

import contextlib
import sys
from importlib import metadata
from pathlib import Path

import pytest

import hookline
from hookline.cli.main import COMMANDS, command_of, main, usage
from tests.cli.place import Place

SCRIPT = Path(__file__).parents[2] / "bin" / "hookline"


def test_alone_it_says_what_it_can_do(place: Place) -> None:
    """And that this was not enough: exit code 64."""
    done = place.run()

    assert (done.returncode, done.stderr) == (64, "")
    assert done.stdout.strip() == usage()
    assert max(map(len, usage().splitlines())) <= 80


@pytest.mark.parametrize("word", ["-h", "--help", "help"])
def test_help_is_no_error(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks for it gets exit code 0."""
    assert main([word]) == 0
    assert "hookline fire" not in capsys.readouterr().err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """As installed."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hookline {metadata.version('hookline')}\n"


@pytest.mark.parametrize("start", [["-m", "hookline"], [str(SCRIPT)]])
def test_every_way_to_start_it(start: list[str], place: Place) -> None:
    """`python -m hookline` and the script that is installed as `hookline` are one command."""
    done = place.start(sys.executable, *start, "--version")

    assert (done.stdout, done.stderr, done.returncode) == (f"hookline {hookline.__version__}\n", "", 0)


def test_a_command_that_there_is_not(place: Place) -> None:
    """The near one is named, on stderr."""
    done = place.run("frie")

    assert done.returncode == 64
    assert done.stderr.startswith("hookline: no command `frie`; did you mean `fire`?\n")
    assert done.stdout == ""


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"run", "demo", "confine"}))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` names its flags, in 80 columns but for examples."""
    try:
        code: object = main([name, "--help"])
    except SystemExit as ended:  # as argparse does it
        code = ended.code

    assert code == 0
    assert capsys.readouterr().out.startswith(f"usage: hookline {name}")


WITHOUT_EXTRAS = """
import contextlib, io, sys
for name in ("httpx2", "jsonschema", "mcp", "nats", "pyarrow", "rich", "starlette", "uvicorn"):
    sys.modules[name] = None
from hookline.cli.main import COMMANDS, main
for words in (*([name, "--help"] for name in COMMANDS), ["fleet", "push"], ["fleet", "status"], ["fleet", "machines"]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code or 0
    if code:
        print(*words, code, said.getvalue(), end="")
"""


def test_no_command_needs_an_extra_to_explain_itself(place: Place) -> None:
    """Where the core alone is installed, `--help` and a wrong command line are as helpful as elsewhere."""
    done = place.start(sys.executable, "-c", WITHOUT_EXTRAS)

    assert done.stdout.splitlines() == [
        "fleet push 64 hookline fleet push: the following arguments are required: FOLDER; see `hookline fleet push --help`",  # noqa: E501
        "fleet status 1 hookline fleet: this machine is in no fleet; run `hookline fleet join URL --token TOKEN`",
        "fleet machines 1 hookline fleet: a fleet needs an extra; run `pip install 'hookline[fleet]'`",
    ], done.stderr


def test_every_command_has_a_module() -> None:
    """The table names nothing that cannot be imported."""
    for name, (_, about) in COMMANDS.items():
        assert callable(command_of(name))
        assert about


def test_a_reader_that_leaves_is_no_error(place: Place) -> None:
    """`hookline … | head -1` ends quietly."""
    import subprocess

    from tests.cli.place import HOOKLINE

    line = " ".join(f"'{word}'" for word in HOOKLINE)
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} help | head -c 1"], env=place.env, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("h", "")


HELP = [*([name] for name in COMMANDS), *(["audit", what] for what in ("show", "verify", "report", "export"))]


def test_help_fits_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples, too: a terminal folds longer lines in the middle of a word."""
    monkeypatch.setenv("COLUMNS", "80")
    wide = []
    for words in HELP:
        with contextlib.suppress(SystemExit):  # as argparse ends
            main([*words, "--help"])
        text = capsys.readouterr().out
        wide += [f"{' '.join(words)}: {line}" for line in text.splitlines() if len(line) > 80]

    assert wide == []


def test_the_short_form_of_a_shell_line(place: Place) -> None:
    """`fire --bash LINE` is PreToolUse for Bash, and takes no second event."""
    place.hooks("PreToolUse", {"type": "command", "command": "exit 2"}, matcher="Bash")

    assert place.run("fire", "--bash", "git push", "--trust").returncode == 2
    assert "leave those out" in place.run("fire", "Stop", "--bash", "ls").stderr
