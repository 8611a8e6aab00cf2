"""Without the `fleet` extra a machine still explains the commands, says how it stands and can leave its fleet."""

import os
from pathlib import Path

import pytest

from tests.cli.place import HOOKLINE, Place

NEEDED = "hookline fleet: a fleet needs an extra; run `pip install 'hookline[fleet]'`\n"
ALONE = "hookline fleet: this machine is in no fleet; run `hookline fleet join URL --token TOKEN`\n"


@pytest.mark.parametrize(
    "command, said",
    [
        (["--help"], ""),
        (["verify"], ""),
        (["status"], ALONE),
        (["leave"], ALONE),
        (["machines"], NEEDED),
        (["run"], NEEDED),
        (["join", "nats://127.0.0.1:1", "--token", "t"], NEEDED),
    ],
)
def test_only_what_connects_needs_the_extra(command: list[str], said: str, tmp_path: Path) -> None:
    """What connects says which extra it needs; everything else works."""
    (tmp_path / "bare" / "nats").mkdir(parents=True)
    (tmp_path / "bare" / "nats" / "__init__.py").write_text("raise ImportError('not installed')\n")
    (tmp_path / "proj").mkdir()
    paths = [str(tmp_path / "bare"), *filter(None, [os.environ.get("PYTHONPATH")])]

    done = Place(tmp_path).start(
        *HOOKLINE, "fleet", *command, PYTHONPATH=os.pathsep.join(paths), XDG_STATE_HOME=str(tmp_path / "state")
    )

    assert done.stderr == said
    assert done.returncode == (1 if said else 0)
