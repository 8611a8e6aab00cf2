"""Rollouts: a share first, then all; every machine knows by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookline.fleet.ledger import Rollout, first

MACHINES = [f"m{number:04}" for number in range(1000)]


def having(rollout: Rollout) -> int:
    return sum(rollout.wanted(machine)[0] == rollout.version for machine in MACHINES)


@given(share=st.floats(0.01, 1.0), version=st.integers(2, 10_000))
def test_a_share_is_about_that_share_and_growing_it_only_adds(share: float, version: int) -> None:
    """Nobody who has the new version loses it when the rollout goes on."""
    few = Rollout(version=version, digest="new", share=share, stable=1, stable_digest="old")
    more = few.widened(min(share * 2, 1.0))

    assert abs(having(few) - 1000 * share) < 100
    assert all(more.wanted(one)[0] == version for one in MACHINES if few.wanted(one)[0] == version)
    assert having(few.widened(1.0)) == 1000


def test_the_rest_keeps_what_was_stable() -> None:
    """A canary that follows an unfinished canary leaves the others where they were."""
    everybody = first(None, 1, "one", 1.0)
    canary = first(everybody, 2, "two", 0.1)
    another = first(canary, 3, "three", 0.1)

    assert {canary.wanted(one) for one in MACHINES} == {(1, "one"), (2, "two")}
    assert {another.wanted(one) for one in MACHINES} == {(1, "one"), (3, "three")}


def test_a_first_rollout_gives_the_others_nothing() -> None:
    """There was no policy before."""
    canary = first(None, 1, "one", 0.1)

    assert {canary.wanted(one)[0] for one in MACHINES} == {0, 1}


def test_promoting_never_takes_back() -> None:
    """A smaller share than before changes nothing."""
    assert Rollout(version=1, digest="a", share=0.5).widened(0.1).share == 0.5
