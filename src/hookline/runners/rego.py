"""Rego policies answer: each package may have `deny`, `ask` and `context`, sets of texts; the event is `input`.

package shell
import rego.v1

deny contains "rm is never allowed" if startswith(input.tool_input.command, "rm ")
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.actions import Rego
from hookline.core.hooks.hook import Hook
from hookline.core.wire import claude
from hookline.errors import HookFailed, extra
from hookline.events import Event
from hookline.replies import NOTHING, Reply, ask, context, deny
from hookline.runners.policies import PolicyCache, unchanged

_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)", re.MULTILINE)
_ANSWERS: dict[str, Callable[[str], Reply]] = {"deny": deny, "ask": ask, "context": context}


class _Compiled:
    """Modules in an interpreter, and the packages they belong to."""

    def __init__(self, files: Mapping[str, str]) -> None:
        regopy = _regopy()
        self.interpreter = regopy.Interpreter()
        self.interpreter.log_level = regopy.LogLevel.NONE  # it would log to stdout, where a host reads our answer
        packages: dict[str, None] = {}
        for name, text in files.items():
            found = _PACKAGE.search(text)
            if found is None:
                raise HookFailed(f"`{name}` names no package; begin it with `package …`")
            packages[found.group(1)] = None
            try:
                self.interpreter.add_module(name, text)
            except regopy.RegoError as problem:
                raise HookFailed(f"cannot parse `{name}`: {_problem(problem)}") from None
        self.packages = tuple(packages)

    def ask(self, package: str, event: Any) -> Mapping[str, Any]:
        """What one package says to an event."""
        self.interpreter.set_input_term(json.dumps(event))
        try:
            output = self.interpreter.query(f"data.{package}")
            answer = json.loads(str(output))["expressions"][0]
        except Exception as problem:  # noqa: BLE001 - the interpreter has no narrower error
            raise HookFailed(f"could not evaluate package `{package}`: {_problem(problem)}") from None
        if not isinstance(answer, dict):
            raise HookFailed(f"could not evaluate package `{package}`: got `{answer}`")
        return answer


class RegoRunner:
    """Asks an interpreter of Rego, in this process."""

    def __init__(self) -> None:
        self._cache = PolicyCache(_Compiled)

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Evaluate every package; one that cannot be evaluated is a failure, never a permit."""
        action = hook.action
        assert isinstance(action, Rego)
        with unchanged(action, ctx):
            compiled = self._cache.get(action.policies, ctx)
        given, reply = claude.event_object(event), NOTHING
        for package in compiled.packages:
            reply |= _reply(package, compiled.ask(package, given))
        return RunnerResult(reply=reply)


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


def _problem(problem: Exception) -> str:
    found = re.findall(r"errormsg \d+:(.*?)\)", str(problem))
    return "; ".join(dict.fromkeys(found)) or str(problem)


def _regopy() -> Any:
    with extra("a hook of type `rego`", "rego"):
        import regopy
    return regopy
