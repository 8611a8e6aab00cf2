"""The profile for macOS, compared as text: one golden file for each feature. It has not been run on macOS yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hookline.sandbox.policy import Policy
from hookline.sandbox.seatbelt import profile, protected_expressions
from tests.sandbox import arena

GOLDEN = Path(__file__).with_name("seatbelt")
HOME, PROJECT, TEMPORARY = "/Users/me", "/Users/me/app", "/private/var/folders/x/T"
CASES = {
    "write": profile(Policy((PROJECT,)), [PROJECT, TEMPORARY]),
    "write-anywhere": profile(Policy(None), []),
    "read": profile(Policy((PROJECT,), read=(f"{HOME}/lib",)), [PROJECT]),
    "hide": profile(Policy((PROJECT,)), [PROJECT], [f"{HOME}/.ssh", f"{PROJECT}/.env"]),
    "protect": profile(Policy((PROJECT,)), [PROJECT], (), protected_expressions()),
    "hosts": profile(Policy((PROJECT,), hosts=("pypi.org", "*.example.com:443"), tokens=("T=pypi.org",)), [PROJECT]),
    "no-network": profile(Policy((PROJECT,), network="none"), [PROJECT]),
    "loopback": profile(Policy((PROJECT,), network="loopback"), [PROJECT]),
    "socket": profile(Policy((PROJECT,), network="none", sockets=(f'{HOME}/a "b".sock',)), [PROJECT]),
    "block": profile(Policy((PROJECT,), block=("sudo *", "git push --force *", "mkfs*", "*")), [PROJECT]),
    "limits": profile(Policy((PROJECT,), limits={"seconds": 60, "memory": 1 << 30}), [PROJECT]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_policy_makes_the_profile_that_is_kept(name: str) -> None:
    """`HOOKLINE_GOLDEN=1` writes the files; a change of one is read before it is committed."""
    path = GOLDEN / f"{name}.sb"
    if os.environ.get("HOOKLINE_GOLDEN"):
        path.write_text(CASES[name])

    assert CASES[name] == path.read_text()


@pytest.mark.parametrize("name", CASES)
def test_a_profile_is_well_formed(name: str) -> None:
    """Every list is closed, outside of texts and comments, and everything that is not named is denied."""
    depth = 0
    for line in CASES[name].splitlines():
        text, is_escaped = False, False
        for char in line:
            if not text and char == ";":
                break
            text ^= char == '"' and not is_escaped
            is_escaped = char == "\\" and not is_escaped
            depth += (not text) * ((char == "(") - (char == ")"))
        assert (text, depth >= 0) == (False, True), line
    assert depth == 0
    assert "(deny default)" in CASES[name]
    assert "not yet run on macOS" in CASES[name]


def test_the_flags_of_confine_print_it(tmp_path: Path) -> None:
    """The same flags, and no command; what cannot be understood is said."""
    command = [*arena.HOOKLINE, "--seatbelt", "--write", str(tmp_path), "--hide", "/etc/passwd", "--no-network"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = subprocess.run([*command, "--wrong"], capture_output=True, text=True, check=False)

    assert (done.returncode, f'(subpath "{tmp_path}")' in done.stdout, '(subpath "/etc/passwd")' in done.stdout) == (
        0,
        True,
        True,
    )
    assert (wrong.returncode, wrong.stdout) == (64, "")
