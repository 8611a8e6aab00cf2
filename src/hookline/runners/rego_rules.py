"""What Rego modules define, read from their text: a policy whose answer would never be read is refused. Pure.

The interpreter leaves undefined rules out of its answers, so it cannot say whether a package could deny at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from textwrap import dedent

from hookline.errors import HookFailed, did_you_mean

_TOKENS = re.compile(r'(?P<text>"(?:\\.|[^"\\\n])*"|`[^`]*`)|#[^\n]*')
_PACKAGE = re.compile(r"^\s*package\s+([^\s;]+)", re.MULTILINE)
_HEAD = re.compile(r"^(?P<indent>[ \t]*)(?:default\s+)?(?P<name>[A-Za-z_]\w*)")
_CALL = re.compile(r"\b([A-Za-z_]\w*(?:\.\w+)+)\s*\(")
_NOT_RULES = frozenset({"package", "import", "else", "default", "not", "some", "every", "input", "data"})


def packages_that_answer(
    files: Mapping[str, str], answers: tuple[str, ...], is_builtin: Callable[[str], bool]
) -> tuple[str, ...]:
    """The packages with a rule that is read; one that has none, and that no other module uses, is a `HookFailed`."""
    codes: dict[str, str] = {}
    for name, text in files.items():
        found = _PACKAGE.search(_TOKENS.sub(lambda token: token["text"] or "", text))
        if found is None:
            raise HookFailed(f"`{name}` names no package; begin it with `package …`")
        code = _TOKENS.sub(lambda token: '""' if token["text"] else "", dedent(text))
        _check_calls(name, code, is_builtin)
        codes[found[1]] = codes.get(found[1], "") + code + "\n"
    answering = tuple(package for package, code in codes.items() if _names(code, indented=True) & set(answers))
    for package, code in codes.items():
        others = "\n".join(other for name, other in codes.items() if name != package)
        if package not in answering and not _uses(others, f"data.{package}"):
            raise HookFailed(f"package `{package}` has none of the rules that are read; define {_listed(answers)}")
        _check_unused(package, code, others, answers, is_builtin)
    return answering


def _check_unused(
    package: str, code: str, others: str, answers: tuple[str, ...], is_builtin: Callable[[str], bool]
) -> None:
    """A rule that nothing reads is a mistake: a misspelt `deny`, or an `allow` that would be ignored."""
    for name in sorted(_names(code) - set(answers)):
        uses = sum(1 for _ in re.finditer(rf"\b{name}\b", code)) - sum(head == name for head in _heads(code))
        read = uses or is_builtin(name) or name.startswith("test_") or _uses(others, name)
        if not read:
            advice = did_you_mean(name, answers) or f"; what is read is {_listed(answers)}"
            raise HookFailed(f"package `{package}`: nothing reads the rule `{name}`{advice}")


def _check_calls(file: str, code: str, is_builtin: Callable[[str], bool]) -> None:
    """Functions that the interpreter does not have, such as `http.send`, would only ever be undefined."""
    aliases = set(re.findall(r"^\s*import\s+\S*?(\w+)\s*$|\bas\s+(\w+)", code, re.MULTILINE))
    local = {"data", "input", *(name for pair in aliases for name in pair)}
    for call in _CALL.findall(code):
        if call.split(".")[0] not in local and not is_builtin(call):
            raise HookFailed(f"`{file}` calls `{call}`, which is not available here")


def _heads(code: str, *, indented: bool = False) -> Iterator[str]:
    """The names at the beginnings of rules: lines outside of brackets; `indented`: also those with space before."""
    depth = 0
    for line in code.splitlines():
        head = _HEAD.match(line)
        if depth == 0 and head is not None and head["name"] not in _NOT_RULES and (indented or not head["indent"]):
            yield head["name"]
        depth += sum((char in "{[(") - (char in "}])") for char in line)


def _names(code: str, *, indented: bool = False) -> set[str]:
    return set(_heads(code, indented=indented))


def _uses(code: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}(?!\w)", code) is not None


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)
