"""Rego policies answer: each package may have `deny`, `ask` and `context`, sets of texts; the event is `input`.

package shell
import rego.v1

deny contains "rm is never allowed" if startswith(input.tool_input.command, "rm ")
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from textwrap import dedent
from threading import Lock
from typing import Any

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.actions import Rego
from hookline.core.hooks.hook import Hook
from hookline.core.wire import claude
from hookline.errors import HookFailed, did_you_mean, extra
from hookline.events import Event
from hookline.replies import NOTHING, Reply, ask, context, deny
from hookline.runners.function import Threads
from hookline.runners.policies import PolicyCache, unchanged

_TOKENS = re.compile(r'(?P<text>"(?:\\.|[^"\\\n])*"|`[^`]*`)|#[^\n]*')
_PACKAGE = re.compile(r"^\s*package\s+([^\s;]+)", re.MULTILINE)
_HEAD = re.compile(r"^(?P<indent>[ \t]*)(?:default\s+)?(?P<name>[A-Za-z_]\w*)")
_CALL = re.compile(r"\b([A-Za-z_]\w*(?:\.\w+)+)\s*\(")
_NOT_RULES = frozenset({"package", "import", "else", "default", "not", "some", "every", "input", "data"})
_ANSWERS: dict[str, Callable[[str], Reply]] = {"deny": deny, "ask": ask, "context": context}


class _Compiled:
    """Modules in an interpreter, and the packages that answer."""

    def __init__(self, files: Mapping[str, str]) -> None:
        regopy = _regopy()
        self.interpreter = regopy.Interpreter()
        self.interpreter.log_level = regopy.LogLevel.NONE  # it would log to stdout, where a host reads our answer
        self.interpreter.strict_built_in_errors = True  # else a call that failed is a condition that does not hold
        for name, text in files.items():
            try:
                self.interpreter.add_module(name, text)
            except regopy.RegoError as problem:
                raise HookFailed(f"cannot parse `{name}`: {_problem(problem)}") from None
        self._turn = Lock()
        self.packages = packages_that_answer(files, tuple(_ANSWERS), self.interpreter.is_builtin)

    def ask(self, event: Any) -> Reply:
        """What all packages say to an event; one question at a time."""
        reply = NOTHING
        with self._turn:
            self.interpreter.set_input_term(json.dumps(event))
            for package in self.packages:
                reply |= _reply(package, self._answer(package))
        return reply

    def _answer(self, package: str) -> Mapping[str, Any]:
        try:
            answer = json.loads(_found(str(self.interpreter.query(f"data.{package}"))))["expressions"][0]
        except Exception as problem:  # noqa: BLE001 - the interpreter has no narrower error
            raise HookFailed(f"could not evaluate package `{package}`: {_problem(problem)}") from None
        if not isinstance(answer, dict):
            raise HookFailed(f"could not evaluate package `{package}`: got `{answer}`")
        return answer


class RegoRunner:
    """Asks an interpreter of Rego, in a thread of this process: it cannot be interrupted, only abandoned."""

    def __init__(self) -> None:
        self._cache = PolicyCache(_Compiled)
        self._threads = Threads()

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Evaluate every package; one that cannot be evaluated is a failure, never a permit."""
        action = hook.action
        assert isinstance(action, Rego)
        with unchanged(action, ctx):
            compiled = self._cache.get(action.policies, ctx)
        given = claude.event_object(event)
        try:
            return RunnerResult(reply=await self._threads.call(lambda: compiled.ask(given)))
        except asyncio.CancelledError:
            self._cache.forget(compiled)  # its interpreter is busy with a question that has been given up
            raise

    async def aclose(self) -> None:
        """Let threads end; an abandoned one ends with its evaluation."""
        self._threads.close()


def _reply(package: str, answer: Mapping[str, Any]) -> Reply:
    """What a package's answer means; the package is named in the reason."""
    reply = NOTHING
    for word, say in _ANSWERS.items():
        texts = _texts(answer.get(word, []))
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise HookFailed(f"policy `{package}`: `{word}` must be a set of texts, got `{json.dumps(texts)}`")
        for text in sorted(texts):
            reply |= say(text if word == "context" else f"policy `{package}`: {text}")
    return reply


def _texts(found: Any) -> Any:
    """The members of a set; in the old style, `deny[text] { … }`, the interpreter has them as keys."""
    is_set = isinstance(found, dict) and all(value is True for value in found.values())
    return list(found) if is_set else found


def _found(output: str) -> str:
    if output == "<error>":
        raise ValueError("a built-in function failed, or had arguments of the wrong type")
    return output


def _problem(problem: Exception) -> str:
    found = re.findall(r"errormsg \d+:(.*?)\)", str(problem))
    return "; ".join(dict.fromkeys(found)) or str(problem)


def _regopy() -> Any:
    with extra("a hook of type `rego`", "rego"):
        import regopy
    return regopy


# -- what the modules define, read from their text: of rules that are undefined for an event the interpreter is silent -


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
