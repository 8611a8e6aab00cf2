"""One door: `hookline/__init__.py` lists its public names, all of them, in order."""

import types

import hookline


def in_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions; each by name (the order ruff keeps, too)."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_all_is_sorted_and_names_nothing_twice() -> None:
    """The list reads as an index."""
    assert hookline.__all__ == sorted(set(hookline.__all__), key=in_order)


def test_every_listed_name_can_be_imported() -> None:
    """`from hookline import name` works for each name."""
    assert [name for name in hookline.__all__ if not hasattr(hookline, name)] == []


def test_every_public_name_is_listed() -> None:
    """Nothing is public by accident: what is no submodule and has no underscore is in the list."""
    public = {
        name
        for name, value in vars(hookline).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }

    assert public - set(hookline.__all__) == set()


def test_a_star_import_brings_exactly_the_list() -> None:
    """`from hookline import *` and `__all__` agree."""
    brought: dict[str, object] = {}
    exec("from hookline import *", brought)
    del brought["__builtins__"]

    assert sorted(brought) == sorted(hookline.__all__)
