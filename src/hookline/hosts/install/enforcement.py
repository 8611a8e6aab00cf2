"""What becomes of each hook on each host: enforced, enforced differently, observed only, or not possible. Pure.

Which answers a hook may give is read off the names its code uses (`deny`, `rewrite`, …); one that returns nothing only
looks on. Of a hook whose code does not tell, the event's own purpose is assumed: a gate's hook denies, a Stop hook
sends the agent back to work.
"""

import dis
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import IntEnum
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR, isfunction
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

from hookline.core.hooks.hook import Hook
from hookline.events import spec_of
from hookline.hosts.host import NO_WORDS, Host, able
from hookline.settings.check import asks_to_confine


class Status(IntEnum):
    """From what holds to what does not."""

    ENFORCED = 0
    DIFFERENTLY = 1
    OBSERVED = 2
    IMPOSSIBLE = 3

    def __str__(self) -> str:
        return ("enforced", "enforced differently", "observed only", "not possible")[self]


class Enforcement(NamedTuple):
    """What becomes of one kind of answer of one hook on one event."""

    hook: str
    event: str
    kind: str
    status: Status
    reason: str = ""

    def to_dict(self) -> dict[str, str]:
        return {**self._asdict(), "status": str(self.status)}


_KINDS = {"deny": "deny", "ask": "ask", "defer": "defer", "rewrite": "rewrite", "context": "context", "stop": "stop",
          "replace_output": "replace", "keep_going": "keep_going"}  # fmt: skip
OBSERVE = "observe"  # the kind of a hook that answers nothing

_UNSAID = 600.0
"""What entries of settings files get that say nothing of a timeout: no agent waits that long for a tool call."""

_SERVER = re.compile(r"mcp__\w")
_FIELDS = {"input": "rewrite", "output": "replace"}


def report(hooks: Iterable[Hook], host: Host, unconfined: str = "", *, inbox: bool = False) -> list[Enforcement]:
    """One line for each hook, event and kind of answer; `unconfined` is why this machine cannot confine lines.

    With an `inbox`, what the host cannot ask is asked there.
    """
    hooks = list(hooks)
    events = [(hook, name) for hook in hooks for name in sorted(event.event_name for event in hook.events)]
    found = [loss for hook, name in events for loss in _losses(hook, name, host, inbox=inbox)]
    return [*found, *(_confinement(hook, host, unconfined) for hook in hooks if asks_to_confine(hook))]


def _losses(hook: Hook, name: str, host: Host, *, inbox: bool) -> Iterator[Enforcement]:
    if not host.native_events(name):
        kind = OBSERVE if kinds(hook, name) == {OBSERVE} else ""
        yield Enforcement(hook.name, name, kind, Status.IMPOSSIBLE, f"{host.title} has no such event")
        return
    if not host.tells_servers and _SERVER.search(hook.matcher.pattern):
        reason = f"{host.title} does not say which MCP server a tool belongs to: match `mcp__.*__TOOL`"
        yield Enforcement(hook.name, name, "", Status.IMPOSSIBLE, reason)
    longest = min(host.config.seconds(theirs) for theirs in host.native_events(name))
    if own_timeout(hook) > longest:  # it is answered for before that
        so = "the call is denied then" if spec_of(name).gate else "what it says later is lost"
        told = f"{host.title} does not wait {own_timeout(hook):g} s, as this hook may take: after {longest:g} s {so}"
        yield Enforcement(hook.name, name, "", Status.DIFFERENTLY, told)
    for kind in sorted(kinds(hook, name)):
        status, reason = _status(host, name, kind, inbox=inbox)
        others = {tool.name for tool in host.tools.values()} - {"Bash"} if host.refuses_commands_only else set()
        ends_run = others and ("mcp__" in hook.matcher.pattern or any(map(hook.matcher.matches, others)))
        if status is Status.ENFORCED and name == "PreToolUse" and ends_run:
            status, reason = Status.DIFFERENTLY, f"{host.title} ends the run on a refused call that is not a command"
        yield Enforcement(hook.name, name, kind, status, reason)


def own_timeout(hook: Hook) -> float:
    """The seconds that a hook asks for itself; none if it says nothing, as most entries of settings files."""
    return 0.0 if hook.timeout in (None, _UNSAID) else hook.timeout or 0.0


def _confinement(hook: Hook, host: Host, unconfined: str) -> Enforcement:
    """What becomes of a guard that has shell lines confined: that takes a host that runs another line instead."""
    why = unconfined or ("" if able(host, "rewrite") else f"{host.title} cannot `rewrite` a call")
    reason = f"{why}: shell lines are judged by their text alone" if why else ""
    return Enforcement(hook.name, "PreToolUse", "confine", Status.DIFFERENTLY if why else Status.ENFORCED, reason)


def kinds(hook: Hook, event: str) -> set[str]:
    """The kinds of answer a hook may give to an event."""
    call = getattr(hook.action, "call", None)
    spec, code = spec_of(event), _code(call)
    known = {"stop", *spec.decisions, *(_FIELDS.get(name, name) for name in spec.fields)}
    fitting = {_KINDS[name] for name in (_names(code) | _held(call) if code else ()) if name in _KINDS} & known
    if not fitting and _returns_nothing(code):
        return {OBSERVE}
    purposes = ("deny",) if spec.gate else ("keep_going", "context")
    return fitting or {next((kind for kind in purposes if kind in known), OBSERVE)}


def _code(call: Any) -> CodeType | None:
    """The code of a function, of one in a partial or a wrapper, or of an object that can be called."""
    call = getattr(call, "func", call)  # a partial
    call = getattr(call, "__wrapped__", call)
    function = getattr(call, "__func__", call)
    if not hasattr(function, "__code__"):
        function = vars(type(call)).get("__call__")
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _returns_nothing(code: CodeType | None) -> bool:
    """Whether every way out of a function is a plain `return`."""
    if code is None or code.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR):
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname != "RETURN_GENERATOR"]
    ends = [(step if step.opname == "RETURN_CONST" else before) for before, step in pairwise(steps)
            if step.opname in ("RETURN_VALUE", "RETURN_CONST")]  # fmt: skip
    return all(end.opname in ("LOAD_CONST", "RETURN_CONST") and end.argval is None for end in ends)


def _names(code: CodeType) -> set[str]:
    """Every name that a function's code uses, inner functions included."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _held(call: Any) -> set[str]:
    """The names of the functions that a function or an object was made with: `ask` of a guard that asks in doubt."""
    held = list(getattr(call, "__dict__", {}).values())
    for cell in getattr(call, "__closure__", None) or ():
        with suppress(ValueError):  # nothing is in it yet
            held.append(cell.cell_contents)
    return {one.__name__ for one in held if isfunction(one)}


_UNHEARD = {
    "context": "the model will not read it",
    "replace": "the model reads the tool's own output",
    "keep_going": "the agent stops all the same",
    "stop": "the agent's turn goes on",
    "deny": "nothing can be prevented there",
}


def _status(host: Host, event: str, kind: str, *, inbox: bool) -> tuple[Status, str]:
    words, gate = host.says.get(event, NO_WORDS), spec_of(event).gate
    closes = gate and "deny" in words
    heard = kind in words and (closes or not gate or kind != "stop")
    if kind == OBSERVE or heard or (closes and kind == "ask" and inbox):
        return Status.ENFORCED, ""
    if closes and kind in ("ask", "defer", "rewrite", "stop"):
        return Status.DIFFERENTLY, f"{host.title} cannot `{kind}`: it becomes a deny"
    if kind == "stop" and "deny" in words:
        return Status.DIFFERENTLY, f"{host.title} cannot stop there: the model is told instead"
    return Status.OBSERVED, f"{host.title} does not listen: {_UNHEARD.get(kind, 'nothing comes of it')}"


def enforcing(losses: Iterable[Enforcement]) -> list[Enforcement]:
    """What becomes of the hooks that want something enforced; the others only look on."""
    return [loss for loss in losses if loss.kind != OBSERVE]


def worst(losses: Iterable[Enforcement]) -> Status:
    """The worst that becomes of any hook."""
    return max((loss.status for loss in losses), default=Status.ENFORCED)
