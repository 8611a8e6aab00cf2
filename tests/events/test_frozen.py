"""Dicts and lists that cannot be changed."""

import copy
import pickle
from typing import Any

import pytest

from hookline.events.base import FrozenDict, FrozenList, freeze, thaw

VALUE: dict[str, Any] = {"a": [1, {"b": "c"}], "t": ({"d": 1}, [2]), "n": None}


def test_a_value_is_frozen_however_deep_and_thawed_again() -> None:
    """The copy is ordinary, and whoever changes it changes nothing else."""
    frozen = freeze(VALUE)
    thawed = thaw(frozen)
    thawed["a"][1]["b"] = "changed"

    assert (type(frozen), type(frozen["a"]), type(frozen["t"][0])) == (FrozenDict, FrozenList, FrozenDict)
    assert frozen == VALUE
    assert type(thawed["t"][1]) is list


@pytest.mark.parametrize("part", ["a", "t"])
def test_copies_are_ordinary(part: str) -> None:
    """Whatever makes them."""
    frozen = freeze(VALUE)

    assert type(copy.copy(frozen)) is type(copy.deepcopy(frozen)) is type(pickle.loads(pickle.dumps(frozen))) is dict
    assert copy.deepcopy(frozen[part]) == VALUE[part]
    assert type(copy.deepcopy(frozen["a"])) is type(copy.copy(frozen["a"])) is list


def test_a_dict_of_ones_own_class_is_frozen_too() -> None:
    """What counts is that it is a dict."""

    class Own(dict[str, Any]):
        pass

    assert type(freeze(Own(a=[1]))) is FrozenDict
    assert freeze("text") == "text"
