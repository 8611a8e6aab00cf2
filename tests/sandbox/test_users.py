"""Who runs the line: an ordinary user of this machine, and root that becomes one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from hookline.guards.sandboxing import unavailable
from tests.environ import clean_environ
from tests.sandbox.arena import LAUNCH

NOBODY = 65534
PYTHON = "/usr/bin/python3"
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]


def cannot_be_tried() -> str:
    """Why another user cannot be tried here; empty if one can."""
    if unavailable() or os.geteuid() != 0 or not shutil.which("setpriv") or not Path(PYTHON).exists():
        return unavailable() or "needs root, setpriv and the system's Python"
    trial = [*AS_NOBODY, PYTHON, "-c", f"import sys; assert sys.version_info >= (3, 11); open({str(LAUNCH)!r})"]
    done = subprocess.run(trial, capture_output=True, check=False)
    return "" if done.returncode == 0 else "another user cannot read this checkout, or its Python is too old"


pytestmark = pytest.mark.skipif(bool(cannot_be_tried()), reason=cannot_be_tried() or "another user can be tried")


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of the user's own, with a project, beside a folder that anybody may write to."""
    folder = Path(mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    for name in ("project", "home", "outside"):
        (folder / name).mkdir()
        shutil.chown(folder / name, NOBODY, NOBODY)
    (folder / "outside").chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def run(home: Path, *words: str, before: list[str]) -> subprocess.CompletedProcess[str]:
    command = [*before, PYTHON, "-I", "-S", str(LAUNCH), *words]
    env = clean_environ(home / "home", PATH=os.environ["PATH"], COLUMNS="80")
    return subprocess.run(command, cwd=home / "project", env=env, capture_output=True, text=True, check=False)


def test_an_ordinary_user_works_inside_and_is_held_outside(home: Path) -> None:
    """Files, their modes and times, git, and a network of its own; no writes outside and no blocked programs."""
    line = """
        id -u; touch made && chmod 600 made && touch -d 2001-01-01T00:00:00Z made && stat -c '%a %Y' made
        touch ../outside/new; chmod 700 ../outside; mkdir d; $(printf %s rm) -rf d; ls -d d
        git init -q r && git -C r -c user.name=a -c user.email=b@c commit -qm x --allow-empty && echo committed
        chown 0 made || echo 'not given away'
    """
    done = run(home, "--write", ".", "--block", "rm -rf *", "--", "bash", "-c", line, before=AS_NOBODY)
    own = run(home, "--write", ".", "--loopback", "--", "chmod", "640", "made", before=AS_NOBODY)

    assert done.stdout.splitlines()[:2] == [str(NOBODY), "600 978307200"]
    assert [word in done.stdout for word in ("d\n", "committed", "not given away")] == [True] * 3
    assert list((home / "outside").iterdir()) == []
    assert (home / "outside").stat().st_mode & 0o777 == 0o777
    assert (own.returncode, (home / "project" / "made").stat().st_mode & 0o777) == (0, 0o640)


def test_metadata_is_changed_with_the_rights_of_whoever_asked(home: Path) -> None:
    """For a user that root became, root's supervisor does what that user may do, and then has its own rights back."""
    mine, theirs = home / "project" / "root", home / "project" / "user"
    mine.touch(mode=0o644)
    theirs.touch(mode=0o644)
    shutil.chown(theirs, NOBODY, NOBODY)
    as_user = " ".join(AS_NOBODY)
    line = f"{as_user} chmod 777 root; {as_user} touch root; {as_user} chmod 600 user; chmod 640 root; chown 7 user"
    done = run(home, "--write", ".", "--", "bash", "-c", line, before=[])

    assert "chmod: changing permissions of 'root': Operation not permitted" in done.stderr
    assert (mine.stat().st_mode & 0o777, theirs.stat().st_mode & 0o777, theirs.stat().st_uid) == (0o640, 0o600, 7)


def test_files_are_made_by_the_user_who_asked(home: Path) -> None:
    """With that user's umask and rights: the supervisor, which makes them, is root."""
    (home / "project").chmod(0o777)
    (home / "project" / "closed").mkdir(mode=0o700)
    (home / "project" / "closed" / "file").touch()
    as_user = " ".join(AS_NOBODY)
    line = f"""
        {as_user} bash -c 'umask 027; echo x > theirs; mkdir folder; ln -s theirs link; mkfifo pipe; mv theirs moved'
        echo y > mine; {as_user} bash -c 'echo z > mine; echo z > closed/new; rm -rf closed; echo z > folder/in'
        {as_user} python3 -c 'import os; os.setuid(65534); open("late", "w")'; (umask 077; echo > private); echo > after
    """
    done = run(home, "--write", ".", "--", "bash", "-c", line, before=[])

    found = {path.name: (path.lstat().st_uid, path.lstat().st_mode & 0o777) for path in (home / "project").iterdir()}
    link = found.pop("link")
    assert link[0] == NOBODY
    assert found == {
        "moved": (NOBODY, 0o640), "folder": (NOBODY, 0o750), "pipe": (NOBODY, 0o640), "mine": (0, 0o644),
        "closed": (0, 0o700), "late": (NOBODY, 0o644), "private": (0, 0o600), "after": (0, 0o644),
    }  # fmt: skip
    assert (home / "project" / "mine").read_text() == "y\n"
    assert done.stderr.count("Permission denied") >= 3


def test_the_check_fits_a_terminal(home: Path) -> None:
    """Eighty columns, and it works for an ordinary user."""
    done = run(home, "--check", before=AS_NOBODY)

    assert (done.returncode, max(map(len, done.stdout.splitlines())) <= 80) == (0, True)
