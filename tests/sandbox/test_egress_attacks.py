"""Egress by name, attacked: 56 ways out, as root and as another user, with and without namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox import egress_attacks, internet

pytestmark = pytest.mark.skipif(bool(internet.possible()), reason=internet.possible() or "there is a world")
SCRIPT = Path(egress_attacks.__file__)
HOSTS = ("--host", "pypi.example", "*.code.example:22,80,443", "echo.example:7001")


@pytest.fixture(scope="module")
def world() -> Iterator[internet.World]:
    with internet.world() as made:
        (made.folder / "attacks.py").write_text(SCRIPT.read_text())
        (made.folder / "attacks.py").chmod(0o644)
        yield made


def verdicts(out: str) -> dict[str, str]:
    return dict(line.split(" | ", 1) for line in out.splitlines() if " | " in line)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "none"])
@pytest.mark.parametrize("user", [False, True], ids=["root", "user"])
def test_nothing_gets_out_but_to_a_named_host(world: internet.World, user: bool, namespaces: bool) -> None:
    """Neither by what the attack sees nor by what the world has seen."""
    script = [internet.PYTHON, "-I", str(world.folder / "attacks.py")]
    done = world.confined(*script, flags=HOSTS, user=user, namespaces=namespaces, seconds=200)
    found = verdicts(done["out"])

    assert list(found) == list(egress_attacks.ATTACKS), done["err"]
    assert [name for name, verdict in found.items() if verdict == "open"] == []
    assert [line for line in done["log"] if "leak" in line or line.startswith(("sink", "packet"))] == []


@pytest.mark.timeout(200)
def test_the_attacks_are_real(world: internet.World) -> None:
    """Without confinement every second one gets out; the others attack what only a confined line has."""
    done = world.run(internet.PYTHON, "-I", str(world.folder / "attacks.py"), seconds=150)
    found = verdicts(done["out"])
    out = [name for name, verdict in found.items() if verdict == "open"]

    assert len(out) > 24, found
    assert sum("leak" in line for line in done["log"]) > 20
