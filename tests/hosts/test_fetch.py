"""`tools/hosts/install` fetches agent CLIs: it says what it does, and leaves nothing behind that is not whole."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.environ import clean_environ

SCRIPT = Path(__file__).parents[2] / "tools" / "hosts" / "install"
NPM = """#!/bin/sh
# npm install --prefix FOLDER … PACKAGE
for package; do :; done
mkdir -p "$3/node_modules/.bin"
echo "$package" >>"$HOSTLAB/asked"
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    return tmp_path


def fetch(lab: Path, *hosts: str, npm: str) -> subprocess.CompletedProcess[str]:
    program = lab / "bin" / "npm"
    program.write_text(NPM + npm)
    program.chmod(0o755)
    env = clean_environ(lab, PATH=f"{program.parent}:{os.environ['PATH']}", HOSTLAB=str(lab))
    return subprocess.run(
        [SCRIPT, *hosts], env=env, text=True, capture_output=True, check=False, start_new_session=True
    )


def test_what_is_there_is_left_alone(lab: Path) -> None:
    """Each step is a line; the second time nothing is fetched."""
    first = fetch(lab, "grok", npm="")
    second = fetch(lab, "grok", npm="exit 1")

    assert [line.partition(" in ")[0] for line in first.stdout.splitlines()] == [
        "node: fetching node@24 …", "node: installed", "grok: fetching @xai-official/grok@1.0.41 …", "grok: installed",
    ]  # fmt: skip
    assert (second.returncode, second.stdout) == (0, "node: ready\ngrok: ready\n")
    assert len((lab / "asked").read_text().splitlines()) == 2


def test_another_version_is_fetched_again(lab: Path) -> None:
    """The one that is there is not the one that was measured."""
    fetch(lab, "grok", npm="")
    (lab / "cli" / "grok" / ".ready").write_text("@xai-official/grok@0.1\n")

    assert "grok: installed" in fetch(lab, "grok", npm="").stdout


@pytest.mark.parametrize("ending", ["echo 'no network' >&2; exit 1", "kill -INT 0; exit 1"], ids=["fails", "is ended"])
def test_half_of_a_host_is_not_left_behind(lab: Path, ending: str) -> None:
    """Whether npm fails or somebody presses Ctrl-C."""
    fetch(lab, "grok", npm="")
    (lab / "cli" / "grok" / ".ready").unlink()

    done = fetch(lab, "grok", npm=ending)

    assert done.returncode != 0
    assert not (lab / "cli" / "grok").exists()
    assert "grok: installed" not in done.stdout


def test_why_it_failed_is_said(lab: Path) -> None:
    """A name that is not known, and npm's last words."""
    done = fetch(lab, "grok", "gork", npm="echo 'no network' >&2; exit 1")

    assert "grok: could not be installed: no network\ngork: is not a host that can be fetched" in done.stdout
