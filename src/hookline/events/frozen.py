"""Dicts and lists that cannot be changed: what hooks are handed is what was judged (law 4).

They are dicts and lists for every reader; to change one, take a copy, which is an ordinary dict or list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from msgspec.structs import force_setattr


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("an event cannot be changed; change a copy, and answer `rewrite(copy)` to run a tool with it")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed; `dict(it)`, `copy` and `deepcopy` are ordinary ones."""

    __slots__ = ()

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed; `list(it)`, `copy` and `deepcopy` are ordinary ones."""

    __slots__ = ()

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return list, (list(self),)


for _kind, _changes in (
    (FrozenDict, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"),
    (FrozenList, "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove clear sort reverse"),
):
    for _change in _changes.split():
        setattr(_kind, _change, _refuse)

EMPTY = FrozenDict()
_PLAIN = frozenset({str, int, float, bool, type(None), FrozenDict, FrozenList})


def freeze(value: Any) -> Any:
    """The value with every dict and list in it frozen, however deep; anything else stays as it is."""
    if type(value) is dict:  # done for every event, so what is common comes first
        for item in value.values():
            if type(item) is not str:
                return _freeze_items(value)
        return FrozenDict(value)
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return _freeze_items(value)
    if isinstance(value, list):
        return FrozenList([item if type(item) in _PLAIN else freeze(item) for item in value])
    if type(value) is tuple:
        return tuple(freeze(item) for item in value)
    return value


def _freeze_items(value: dict[str, Any]) -> FrozenDict:
    frozen = FrozenDict(value)
    for key, item in value.items():
        if type(item) not in _PLAIN:
            dict.__setitem__(frozen, key, freeze(item))
    return frozen


_FREEZER = """
def freeze_fields(self):
{lines}
"""
_FREEZE_FIELD = """
    value = self.{name}
    if value is not None and type(value) is not FrozenDict:
        try:
            force_setattr(self, "{name}", freeze(value))
        except RecursionError:
            pass  # it contains itself, as what a Python tool returned may; it cannot be sent anywhere either
"""


def freezer(names: Iterable[str]) -> Callable[[Any], None]:
    """A function that freezes these fields of a struct: written out, since asking for a field by its name is slow."""
    place: dict[str, Any] = {"FrozenDict": FrozenDict, "force_setattr": force_setattr, "freeze": freeze}
    lines = "".join(_FREEZE_FIELD.format(name=name) for name in names) or "    pass"
    exec(_FREEZER.format(lines=lines), place)  # noqa: S102 - field names of our own classes
    made: Callable[[Any], None] = place["freeze_fields"]
    return made


def thaw(value: Any) -> Any:
    """An ordinary copy of what `freeze` made."""
    if type(value) is FrozenDict:
        return {key: thaw(item) for key, item in value.items()}
    if type(value) is FrozenList:
        return [thaw(item) for item in value]
    if type(value) is tuple:
        return tuple(thaw(item) for item in value)
    return value
