"""JSON with comments, edited in place: what the user wrote stays as it is, to the letter. Pure.

`parse` keeps where every value lies in the text; the edits cut and paste there. Comments, blank lines, trailing commas
and the order of keys survive.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from hookline.errors import HooklineError

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BadJson(HooklineError):
    """A text that is not JSON, comments and trailing commas aside; `line` counts from 1."""

    def __init__(self, text: str, at: int, expected: str) -> None:
        self.line: int = text.count("\n", 0, at) + 1
        found = text[at : at + 10].partition("\n")[0]
        super().__init__(f"line {self.line}: expected {expected}, got {f'`{found}`' if found else 'the end'}")


@dataclass
class Node:
    """A value and where it lies, which begins with its key if it has one; objects and arrays have their parts."""

    begins: int
    end: int
    value: Any
    start: int
    members: dict[str, "Node"] = field(default_factory=dict)
    """An object's values; of a key that stands there twice the last one counts."""
    parts: list["Node"] = field(default_factory=list)  # everything in an object or an array, in the order of the text


def parse(text: str) -> Node:
    """The value in a text; an empty text is an empty object."""
    start = _skip(text, 0)
    if start == len(text):
        return Node(start, start, {}, start)
    try:
        node = _value(text, start)
    except RecursionError:
        raise HooklineError("its values are nested too deep") from None
    end = _skip(text, node.end)
    if end != len(text):
        raise BadJson(text, end, "nothing more")
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int) -> Node:
    if text[at : at + 1] in ("{", "["):
        return _container(text, at)
    found = _STRING.match(text, at) or _ATOM.match(text, at)
    if found is None:
        raise BadJson(text, at, "a value")
    try:
        return Node(at, found.end(), json.loads(found[0]), at)
    except ValueError:
        raise BadJson(text, at, "a value") from None


def _container(text: str, at: int) -> Node:
    """An object or an array, with a comma behind the last part or without."""
    is_object = text[at] == "{"
    node, close = Node(at, at, {} if is_object else [], at), "}" if is_object else "]"
    here = _skip(text, at + 1)
    while text[here : here + 1] != close:
        if is_object:
            key = _STRING.match(text, here)
            if key is None:
                raise BadJson(text, here, "a key in double quotes")
            colon = _skip(text, key.end())
            if text[colon : colon + 1] != ":":
                raise BadJson(text, colon, "`:`")
            name, child = json.loads(key[0]), _value(text, _skip(text, colon + 1))
            child.begins = here
            node.members[name], node.value[name] = child, child.value
        else:
            child = _value(text, here)
            node.value.append(child.value)
        node.parts.append(child)
        here = _skip(text, child.end)
        if text[here : here + 1] == ",":
            here = _skip(text, here + 1)
        elif text[here : here + 1] != close:
            raise BadJson(text, here, f"`,` or `{close}`")
    node.end = here + 1
    return node


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` as a member at `path`; objects on the way are made, an old value is replaced."""
    root = parse(text)
    if root.start == root.end:  # white space, and comments perhaps
        kept = text.rstrip()
        return (f"{kept}\n" if kept else "") + _dump(_nested(path, value), "", _unit(text)) + "\n"
    node, rest = root, list(path)
    while rest and rest[0] in node.members:
        node = node.members[rest.pop(0)]
    if not rest:
        indent = _indent(text, node.begins)
        return text[: node.start] + _dump(value, indent, _unit(text)) + text[node.end :]
    if not isinstance(node.value, dict):
        raise HooklineError(f"`{'.'.join(path[: len(path) - len(rest)])}` is not an object")
    return _add(text, node, f"{json.dumps(rest[0])}: ", _nested(tuple(rest[1:]), value))


def append(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` as the last item of the array at `path`, which is made if it is not there."""
    node = lookup(parse(text), path)
    if node is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise HooklineError(f"`{'.'.join(path)}` is not an array")
    return _add(text, node, "", value)


def lookup(root: Node, path: tuple[str, ...]) -> Node | None:
    """The node at a path of keys."""
    node: Node | None = root
    for name in path:
        node = node.members.get(name) if node is not None else None
    return node


def cut(text: str, parent: Node, part: Node) -> str:
    """The text without one part of an object or an array, and without the comma that belongs to it."""
    parts = parent.parts
    index = next(number for number, one in enumerate(parts) if one is part)
    if index + 1 < len(parts):
        return text[: part.begins] + text[parts[index + 1].begins :]
    if index == 0:
        return text[: parent.start + 1] + text[parent.end - 1 :]
    before = parts[index - 1].end
    comma = _behind_comma(text, before)
    trailing = _behind_comma(text, part.end)
    if trailing > part.end:  # the file likes trailing commas
        return text[: _line_end(text, comma)] + text[trailing:]
    return text[:before] + text[comma : _line_end(text, comma)] + text[part.end :]


def _behind_comma(text: str, at: int) -> int:
    """Behind the comma that follows, or here if none does."""
    here = _skip(text, at)
    return here + 1 if text[here : here + 1] == "," else at


def _line_end(text: str, at: int) -> int:
    """Behind a comment on the rest of the line, or here if there is none."""
    found = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)").match(text, at)
    return found.end() if found else at


def _add(text: str, parent: Node, label: str, value: Any) -> str:
    parts = parent.parts
    if parts and "\n" not in text[parent.start : parent.end]:
        end = parts[-1].end
        return f"{text[:end]}, {label}{json.dumps(value, ensure_ascii=False)}{text[_behind_comma(text, end) :]}"
    unit = _unit(text)
    outer = _indent(text, parent.begins)
    if not parts:
        kept = text[parent.start + 1 : parent.end - 1].strip()  # a comment, perhaps
        lead = f"\n{outer}{unit}{kept}" if kept else ""
        written = label + _dump(value, outer + unit, unit)
        return f"{text[: parent.start + 1]}{lead}\n{outer}{unit}{written}\n{outer}{text[parent.end - 1 :]}"
    inner = _indent(text, parts[-1].begins)
    written = label + _dump(value, inner, unit)
    end = parts[-1].end
    comma = _behind_comma(text, end)
    line = _line_end(text, comma)
    if comma > end:
        return f"{text[:line]}\n{inner}{written},{text[line:]}"
    return f"{text[:end]},{text[end:line]}\n{inner}{written}{text[line:]}"


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _dump(value: Any, indent: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return "\n".join([lines[0], *(indent + line for line in lines[1:])])


def _indent(text: str, at: int) -> str:
    """The white space at the beginning of the line of a place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "
