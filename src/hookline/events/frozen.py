"""Dicts and lists that cannot be changed: what hooks are handed is what was judged (law 4).

They are dicts and lists for every reader; whoever wants to change one takes a copy, which is an ordinary dict or list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("an event cannot be changed; change a copy, and answer `rewrite(copy)` to run a tool with it")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed; `dict(it)`, `copy` and `deepcopy` are ordinary ones."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed; `list(it)`, `copy` and `deepcopy` are ordinary ones."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any]]:
        return list, (list(self),)


EMPTY = FrozenDict()
_PLAIN = frozenset({str, int, float, bool, type(None), FrozenDict, FrozenList})


def freeze(value: Any) -> Any:
    """The value with every dict and list in it frozen, however deep; anything else stays as it is."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, dict):
        frozen = FrozenDict(value)
        for key, item in value.items():
            if item.__class__ not in _PLAIN:
                dict.__setitem__(frozen, key, freeze(item))
        return frozen
    if isinstance(value, list):
        return FrozenList([item if item.__class__ in _PLAIN else freeze(item) for item in value])
    if value.__class__ is tuple:
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """An ordinary copy of what `freeze` made."""
    if value.__class__ is FrozenDict:
        return {key: thaw(item) for key, item in value.items()}
    if value.__class__ is FrozenList:
        return [thaw(item) for item in value]
    if value.__class__ is tuple:
        return tuple(thaw(item) for item in value)
    return value
