"""What every event has in common; its dicts and lists cannot be changed: what hooks are handed is what was judged.

They are dicts and lists for every reader; to change one, take a copy, which is an ordinary dict or list (law 4).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import NoneType
from typing import Any, ClassVar, NoReturn, get_args

import msgspec
from msgspec import field
from msgspec.structs import force_setattr


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("an event cannot be changed; change a copy, and answer `rewrite(copy)` to run a tool with it")


class _Frozen:
    """What cannot be changed; copies of it are ordinary ones."""

    __slots__ = ()
    plain: ClassVar[type[Any]]

    def __deepcopy__(self, memo: object) -> Any:
        return thaw(self)

    def __reduce__(self) -> tuple[type[Any], tuple[Any]]:
        return self.plain, (self.plain(self),)


class FrozenDict(_Frozen, dict[str, Any]):
    """A dict that cannot be changed; `dict(it)`, `copy` and `deepcopy` are ordinary ones."""

    __slots__ = ()
    plain = dict


class FrozenList(_Frozen, list[Any]):
    """A list that cannot be changed; `list(it)`, `copy` and `deepcopy` are ordinary ones."""

    __slots__ = ()
    plain = list


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


def thaw(value: Any) -> Any:
    """An ordinary copy of what `freeze` made."""
    if type(value) is FrozenDict:
        return {key: thaw(item) for key, item in value.items()}
    if type(value) is FrozenList:
        return [thaw(item) for item in value]
    if type(value) is tuple:
        return tuple(thaw(item) for item in value)
    return value


_now = partial(datetime.now, UTC)

_freezers: dict[type, Callable[[Any], None]] = {}
_FREEZE_FIELD = """
    value = self.{name}
    if value is not None and type(value) is not FrozenDict:
        try:
            force_setattr(self, "{name}", freeze(value))
        except RecursionError:
            pass  # it contains itself, as what a Python tool returned may; it cannot be sent anywhere either
"""


def _freezer(cls: type[msgspec.Struct]) -> Callable[[Any], None]:
    """What freezes the fields that may hold a dict or a list; written out, as asking for one by its name is slow."""
    simple = {str, int, float, bool, datetime, NoneType}
    kinds = {field.name: get_args(field.type) or (field.type,) for field in msgspec.structs.fields(cls)}
    lines = [_FREEZE_FIELD.format(name=name) for name, kind in kinds.items() if not set(kind) <= simple]
    place: dict[str, Any] = {"FrozenDict": FrozenDict, "force_setattr": force_setattr, "freeze": freeze}
    exec("def freeze_fields(self):" + "".join(lines), place)  # noqa: S102 - field names of our own classes
    made: Callable[[Any], None] = place["freeze_fields"]
    _freezers[cls] = made
    return made


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    eq=False,
    forbid_unknown_fields=True,  # so that `wire` can decode in one go and look for unknown fields only if there are any
    tag_field="hook_event_name",
    tag=str,
):
    """Something an agent is about to do, or has just done.

    Fields that the wire always carries have an empty default here, so that a test or a host needs to give only what
    matters; fields the wire may leave out are `None`. `extra` keeps what came over the wire and is not known here.
    Two events are equal when all but their `timestamp` is. Dicts and lists in an event cannot be changed.
    """

    event_name: ClassVar[str] = ""
    subject_field: ClassVar[str | None] = None

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    prompt_id: str | None = None
    permission_mode: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    effort: dict[str, Any] | None = None
    # Not on the wire: under names that are never sent, so a sender's own `timestamp` is kept like any unknown field.
    timestamp: datetime = field(default_factory=_now, name="hookline.timestamp")
    extra: dict[str, Any] = field(default=EMPTY, name="hookline.extra")

    def __init_subclass__(cls) -> None:
        """An event is called what its class is, unless the class or the one it is made from says otherwise."""
        if not cls.event_name and "event_name" not in cls.__dict__:
            cls.event_name = cls.__name__

    def __post_init__(self) -> None:
        """Hooks and hosts share an event, so what is in it cannot be changed."""
        try:
            freeze_fields = _freezers[type(self)]
        except KeyError:  # the first of its kind
            freeze_fields = _freezer(type(self))
        freeze_fields(self)

    @property
    def subject(self) -> str | None:
        """What a matcher looks at: the tool's name, SessionStart's source, …; `None` where matchers do not apply."""
        return getattr(self, self.subject_field) if self.subject_field else None

    # What a tool call has, so that a hook on several events can ask any of them; `None` on an event without a tool.
    @property
    def tool_name(self) -> str | None:
        """The name of the tool."""
        return None

    @property
    def tool_input(self) -> dict[str, Any] | None:
        """What the tool is called with."""
        return None

    @property
    def tool_use_id(self) -> str | None:
        """The id of the call."""
        return None

    @property
    def command(self) -> str | None:
        """The command line that the call would run."""
        return None

    @property
    def file_path(self) -> str | None:
        """The file that the event is about."""
        return None

    @property
    def url(self) -> str | None:
        """The address that the event is about."""
        return None

    @property
    def hook_event_name(self) -> str:
        """The event's name as the wire calls it."""
        return self.event_name

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (name for name in self.__struct_fields__ if name != "timestamp")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own would compare identities

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # payloads are dicts: an event is compared, never a key
