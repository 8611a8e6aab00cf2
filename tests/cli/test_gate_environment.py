"""No variable and no file of the working folder changes what an entry that `install` or `init` wrote answers."""

from __future__ import annotations

import shlex
import sys
from itertools import cycle
from pathlib import Path

from hookline.core.interpreter import hookline_argv, off_switch
from tests.cli.gates import Arena, Gate, concerns, hold_denies, hostile, payload


def test_a_deny_stays_a_deny_in_every_environment(arena: Arena, gates: list[Gate]) -> None:
    """Each variable at one entry, in turn, and all of them at every one; `test_every_gate.py` tries every pair."""
    turns = cycle(gates)
    rows = [
        (gate, env)
        for env in hostile(arena)
        for gate in (gates if len(env) > 1 else [next(gate for gate in turns if concerns(gate, env))])
    ]

    assert {gate.name for gate, env in rows if len(env) == 1} == {gate.name for gate in gates}
    hold_denies(arena, rows)


def test_a_proof_is_noted_only_in_a_file_of_its_own(arena: Arena, gates: list[Gate]) -> None:
    """A variable that names another file writes nothing there, and the deny stays."""
    victim = arena.place.base / "victim"
    victim.write_text("mine\n")

    for path in (victim, arena.place.base / "new"):
        code, said = arena.run(gates[0], HOOKLINE_PROVE=str(path))
        assert code == 2 or "deny" in said
    assert victim.read_text() == "mine\n"
    assert not (arena.place.base / "new").exists()


def test_hookline_gone_is_a_deny(arena: Arena, gates: list[Gate]) -> None:
    """An entry whose program is not there any more exits with 2, or prints the host's deny."""
    for gate in gates:
        code, said = arena.run(gate.command.replace(sys.executable, "/gone/python"), gate.payload)
        assert code == 2 or "deny" in said, gate.name


def test_only_a_file_of_the_users_own_switches_gates_off(arena: Arena, gates: list[Gate]) -> None:
    """It lies in the account's configuration folder, or in that of the home that the entry was written with."""
    switch = arena.place.base / "home/.config/hookline/hooks.off"
    switch.parent.mkdir(parents=True, exist_ok=True)
    switch.touch()
    try:
        assert "deny" not in arena.run(gates[0])[1]
    finally:
        switch.unlink()
    assert arena.run(gates[0]) == gates[0].answer
    assert Path(off_switch()).is_absolute()


def test_what_is_kept_is_not_for_everybody_to_write(arena: Arena) -> None:
    """Where files are made for all to write (`umask 000`), the folders that Hookline makes are not."""
    state = arena.place.base / "state"
    line = f"umask 000; {shlex.join(hookline_argv())} guard budget --tool-calls 5"
    argv = line.replace(" -X utf8 ", f" -X utf8 -X hookline.XDG_STATE_HOME={state} ", 1)
    code, _ = arena.run(argv, payload(arena.place.project, command="ls"))

    made = [path for path in (state, *state.rglob("*")) if path.exists()]
    assert (code, len(made) > 1) == (0, True)
    assert [path for path in made if path.stat().st_mode & 0o002] == []
