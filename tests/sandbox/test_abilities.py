"""What can be held on which kernel, by a table of abilities; and what `--check` says of this one."""

from __future__ import annotations

import subprocess

from hookline.sandbox.main import held
from tests.sandbox import arena

KERNELS = {
    "5.4": (held(0, notifications=False, killable=False, namespaces=True), 2),
    "5.9": (held(0, notifications=True, killable=False, namespaces=True), 7),
    "5.13": (held(1, notifications=True, killable=False, namespaces=True), 9),
    "5.19": (held(2, notifications=True, killable=True, namespaces=True), 11),
    "6.2": (held(3, notifications=True, killable=True, namespaces=True), 12),
    "6.10": (held(5, notifications=True, killable=True, namespaces=True), 13),
    "6.12": (held(6, notifications=True, killable=True, namespaces=True), 13),
    "6.12 in a container": (held(6, notifications=True, killable=True, namespaces=False), 12),
}


def test_what_is_held_follows_from_what_a_kernel_offers() -> None:
    """Every line says by what, or what happens without; newer kernels hold no less."""
    counts = {name: sum(row[0] for row in rows) for name, (rows, _) in KERNELS.items()}

    assert counts == {name: count for name, (_, count) in KERNELS.items()}
    assert all(how for rows, _ in KERNELS.values() for _, _, how in rows)
    assert [row[2] for row in KERNELS["6.10"][0] if row[1] == "signals stay inside"] == [
        "the supervisor, which sends them itself"
    ]


def test_the_check_lists_what_this_kernel_holds_line_by_line() -> None:
    """Found out by asking and trying, in processes of its own."""
    done = subprocess.run([*arena.HOOKLINE, "--check"], capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith(("  yes", "  no"))]

    if done.returncode == 0:
        assert len(rows) == len(KERNELS["6.12"][0])
        assert "  yes  writes stay in the folders of `--write`: Landlock" in done.stdout
