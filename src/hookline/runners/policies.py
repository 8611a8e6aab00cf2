"""Policy files answer: Cedar, and Rego. They are found by a pattern and read again when one of them changes.

In Cedar what no policy permits is denied, and so is what one forbids. The principal is the agent, the action the event,
the resource the tool; the event's fields are the context. In Rego each package may have `deny`, `ask` and `context`,
sets of texts; the event is `input`. docs/how-to/policies.md has one of each.
"""

import asyncio
import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from threading import Lock
from typing import Any, Generic, TypeVar

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.hook import Cedar, Hook, Rego
from hookline.core.wire import claude
from hookline.errors import HookFailed, did_you_mean, extra
from hookline.events import Event
from hookline.processes.fork_server import Stamp, stamp
from hookline.replies import NOTHING, Reply, ask, context, deny
from hookline.runners import check_seal
from hookline.runners.function import Threads

T = TypeVar("T")


class PolicyCache(Generic[T]):
    """What a set of files was compiled to, for as long as none of them changes."""

    def __init__(self, compiled: Callable[[dict[str, str]], T]) -> None:
        self._compiled = compiled
        self._kept: dict[str, tuple[tuple[tuple[str, Stamp], ...], T]] = {}

    def get(self, pattern: str, ctx: Context) -> T:
        """The compiled policies; a pattern that matches no file is a failure, so a gate stays closed."""
        where = str(Path(ctx.project_dir or ctx.cwd or ".", Path(pattern).expanduser()))
        paths = sorted(path for path in map(Path, glob.glob(where, recursive=True)) if path.is_file())  # noqa: PTH207 - patterns may be absolute
        if not paths:
            raise HookFailed(f"found no policy file for `{pattern}`")
        state = tuple((str(path), stamp(str(path))) for path in paths)
        kept = self._kept.get(where)
        if kept is None or kept[0] != state:
            # named from the folder that the pattern starts from, so that two of one name are two
            start = re.split(r"[*?\[]", where)[0].rpartition("/")[0] or "/"
            texts = {os.path.relpath(path, start): _text(path) for path in paths}
            kept = self._kept[where] = (state, self._compiled(texts))
        return kept[1]

    def forget(self, compiled: T) -> None:
        """Compile these policies again when they are next asked for."""
        self._kept = {where: kept for where, kept in self._kept.items() if kept[1] is not compiled}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise HookFailed(f"cannot read policy file `{path}`: {problem}") from None


# -- Cedar ----------------------------------------------------------------------------------------------------------

_MOST = 2**63
_ESCAPES = frozenset({"__entity", "__extn", "__expr"})
"""Keys by which Cedar's JSON names entities and values of extensions: an argument of a tool must not be one."""


class _CedarPolicies:
    def __init__(self, files: Mapping[str, str]) -> None:
        with extra("a hook of type `cedar`", "cedar"):
            import cedarpy
        self.named: dict[str, tuple[str, str]] = {}
        for name, text in files.items():
            try:
                found = json.loads(cedarpy.policies_to_json_str(text))
            except ValueError as problem:
                raise HookFailed(f"cannot parse `{name}`: {problem}") from None
            every = {**found["staticPolicies"], **(found.get("templates") or {})}
            before = len(self.named)
            for key, policy in every.items():  # numbered in the order of the text, templates included
                number, notes = int(key.removeprefix("policy")), policy.get("annotations") or {}
                known = (notes.get("id") or f"{name}#{number + 1}", notes.get("reason") or "")
                self.named[f"policy{before + number}"] = known
        policies = cedarpy.PolicySet.from_str("\n".join(files.values()))
        self.ask: Callable[[Any, Any], Any] = lambda request, entities: cedarpy.is_authorized(
            request, policies, entities
        )


class CedarRunner:
    """Asks Cedar, in this process."""

    def __init__(self) -> None:
        self._cache = PolicyCache(_CedarPolicies)

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Authorize the event; a policy that cannot be evaluated is a failure, never a permit."""
        action = hook.action
        assert isinstance(action, Cedar)
        check_again = check_seal(action, ctx.cwd)
        compiled, entities = self._cache.get(action.policies, ctx), _entities(action, ctx)
        check_again()
        tool, name = event.tool_name, event.event_name
        request = {
            "principal": {"type": "Agent", "id": event.agent_type or "main"},
            "action": {"type": "Action", "id": name},
            "resource": {"type": "Tool", "id": tool} if tool else {"type": "Event", "id": name},
            "context": _value(claude.event_object(event)),
        }
        answer = compiled.ask(request, entities)
        errors = [str(error) for error in answer.diagnostics.errors]
        if errors:
            text = "; ".join(errors)
            for policy, (name, _) in compiled.named.items():
                text = text.replace(f"`{policy}`", f"`{name}`")
            raise HookFailed(f"could not evaluate its policies: {text}")
        if answer.allowed:
            return RunnerResult(reply=NOTHING)
        named = (compiled.named[policy] for policy in answer.diagnostics.reasons)
        told = [f"policy `{policy}` forbids it" + (f": {reason}" if reason else "") for policy, reason in named]
        what = f"`{event.subject}` on {event.event_name}" if event.subject else event.event_name
        return RunnerResult(reply=deny("\n".join(told) or f"no policy permits {what}"))


def _value(value: Any, *, exact: bool = False) -> Any:
    """The value as Cedar has it: no null, numbers as `Long` or `decimal`.

    `exact`, for what the model wrote: a number that Cedar cannot hold is a failure, as no policy could compare it.
    Others become the nearest one.
    """
    if isinstance(value, Mapping):
        forged = next((key for key in value if key in _ESCAPES), None)
        if forged is not None:
            why = f"cannot tell Cedar of an object with the key `{forged}`, which would be taken for a value"
            raise HookFailed(why)
        items = {str(key): item for key, item in value.items() if item is not None}
        return {key: _value(item, exact=exact or key == "tool_input") for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [_value(item, exact=exact) for item in value if item is not None]
    if isinstance(value, bool | str):
        return value
    return _number(value, exact=exact) if isinstance(value, int | float) else str(value)


def _number(value: float, *, exact: bool) -> Any:
    """A whole number, also one written as `22.0`, is a `Long`; a fraction a `decimal`, which has four digits."""
    if -_MOST <= value < _MOST and value == int(value):
        return int(value)
    if -_MOST / 10_000 < value < _MOST / 10_000:
        digits = f"{value:.4f}"
        if not exact or Decimal(digits) == Decimal(repr(value)):
            return {"__extn": {"fn": "decimal", "arg": digits}}
    if exact:
        raise HookFailed(f"cannot tell Cedar of the number `{value}`: it has 64 bits, and four digits after the point")
    return str(value)


def _entities(action: Cedar, ctx: Context) -> Any:
    if action.entities is None:
        return []
    path = Path(ctx.project_dir or ctx.cwd or ".", Path(action.entities).expanduser())
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise HookFailed(f"cannot read entities `{action.entities}`: {problem}") from None


# -- Rego -----------------------------------------------------------------------------------------------------------

_TOKENS = re.compile(r'(?P<text>"(?:\\.|[^"\\\n])*"|`[^`]*`)|#[^\n]*')
_PACKAGE = re.compile(r"^\s*package\s+([^\s;]+)", re.MULTILINE)
_HEAD = re.compile(r"^(?P<indent>[ \t]*)(?:default\s+)?(?P<name>[A-Za-z_]\w*)")
_CALL = re.compile(r"\b([A-Za-z_]\w*(?:\.\w+)+)\s*\(")
_NOT_RULES = frozenset({"package", "import", "else", "default", "not", "some", "every", "input", "data"})
_ANSWERS: dict[str, Callable[[str], Reply]] = {"deny": deny, "ask": ask, "context": context}
_READ = " or ".join(f"`{name}`" for name in _ANSWERS)


class _RegoPolicies:
    def __init__(self, files: Mapping[str, str]) -> None:
        with extra("a hook of type `rego`", "rego"):
            import regopy
        self.interpreter = regopy.Interpreter()
        self.interpreter.log_level = regopy.LogLevel.NONE  # it would log to stdout, where a host reads our answer
        self.interpreter.strict_built_in_errors = True  # else a call that failed is a condition that does not hold
        for name, text in files.items():
            try:
                self.interpreter.add_module(name, text)
            except regopy.RegoError as problem:
                raise HookFailed(f"cannot parse `{name}`: {_problem(problem)}") from None
        self._turn = Lock()
        self.packages = packages_that_answer(files, self.interpreter.is_builtin)

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
            output = str(self.interpreter.query(f"data.{package}"))
            if output == "<error>":
                raise ValueError("a built-in function failed, or had arguments of the wrong type")  # noqa: TRY301
            answer = json.loads(output)["expressions"][0]
        except Exception as problem:  # noqa: BLE001 - the interpreter has no narrower error
            raise HookFailed(f"could not evaluate package `{package}`: {_problem(problem)}") from None
        if not isinstance(answer, dict):
            raise HookFailed(f"could not evaluate package `{package}`: got `{answer}`")
        return answer


class RegoRunner:
    """Asks an interpreter of Rego, in a thread of this process: it cannot be interrupted, only abandoned."""

    def __init__(self) -> None:
        self._cache = PolicyCache(_RegoPolicies)
        self._threads = Threads()

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Evaluate every package; one that cannot be evaluated is a failure, never a permit."""
        action = hook.action
        assert isinstance(action, Rego)
        check_again = check_seal(action, ctx.cwd)
        compiled = self._cache.get(action.policies, ctx)
        check_again()
        given = claude.event_object(event)
        try:
            return RunnerResult(reply=await self._threads.call(lambda: compiled.ask(given)))
        except asyncio.CancelledError:
            self._cache.forget(compiled)  # its interpreter is busy with a question that has been given up
            raise


def _reply(package: str, answer: Mapping[str, Any]) -> Reply:
    """What a package's answer means; the package is named in the reason."""
    reply = NOTHING
    for word, say in _ANSWERS.items():
        texts = answer.get(word, [])
        if isinstance(texts, dict) and all(value is True for value in texts.values()):
            texts = list(texts)  # in the old style, `deny[text] { … }`, the interpreter has a set as keys
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise HookFailed(f"policy `{package}`: `{word}` must be a set of texts, got `{json.dumps(texts)}`")
        for text in sorted(texts):
            reply |= say(text if word == "context" else f"policy `{package}`: {text}")
    return reply


def _problem(problem: Exception) -> str:
    found = re.findall(r"errormsg \d+:(.*?)\)", str(problem))
    return "; ".join(dict.fromkeys(found)) or str(problem)


# -- what the modules define, read from their text: of rules that are undefined for an event the interpreter is silent -


def packages_that_answer(files: Mapping[str, str], is_builtin: Callable[[str], bool]) -> tuple[str, ...]:
    """The packages with a rule that is read; one that has none, and that no other module uses, is a `HookFailed`."""
    codes: dict[str, str] = {}
    for name, text in files.items():
        found = _PACKAGE.search(_TOKENS.sub(lambda token: token["text"] or "", text))
        if found is None:
            raise HookFailed(f"`{name}` names no package; begin it with `package …`")
        code = _TOKENS.sub(lambda token: '""' if token["text"] else "", dedent(text))
        _check_calls(name, code, is_builtin)
        codes[found[1]] = codes.get(found[1], "") + code + "\n"
    answering = tuple(package for package, code in codes.items() if {*_heads(code, indented=True)} & {*_ANSWERS})
    for package, code in codes.items():
        others = "\n".join(other for name, other in codes.items() if name != package)
        if package not in answering and not _uses(others, f"data.{package}"):
            raise HookFailed(f"package `{package}` has none of the rules that are read; define {_READ}")
        _check_unused(package, code, others, is_builtin)
    return answering


def _check_unused(package: str, code: str, others: str, is_builtin: Callable[[str], bool]) -> None:
    """A rule that nothing reads is a mistake: a misspelt `deny`, or an `allow` that would be ignored."""
    for name in sorted({*_heads(code)} - {*_ANSWERS}):
        uses = sum(1 for _ in re.finditer(rf"\b{name}\b", code)) - sum(head == name for head in _heads(code))
        read = uses or is_builtin(name) or name.startswith("test_") or _uses(others, name)
        if not read:
            advice = did_you_mean(name, _ANSWERS) or f"; what is read is {_READ}"
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


def _uses(code: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}(?!\w)", code) is not None
