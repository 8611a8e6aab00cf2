"""Every variable at every entry that `install` or `init` wrote; `test_gate_environment.py` tries each at one entry."""

from __future__ import annotations

from tests.cli.gates import Arena, Gate, concerns, hold_denies, hostile


def test_a_deny_stays_a_deny_at_every_entry(arena: Arena, gates: list[Gate]) -> None:
    """What only the interpreter reads is tried at one entry: they all start it with the same flags."""
    hold_denies(
        arena,
        [
            (gate, env)
            for env in hostile(arena)
            for gate in gates
            if concerns(gate, env) and (len(env) > 1 or gate.name == "stay-inside" or not any(map(is_pythons, env)))
        ],
    )


def is_pythons(name: str) -> bool:
    """Whether it is a variable of the interpreter."""
    return name.startswith("PYTHON")
