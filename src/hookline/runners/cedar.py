"""Cedar policies answer: what no policy permits is denied, and so is what one forbids.

The principal is the agent, the action the event, the resource the tool; the event's fields are the context:

    @id("no-rm") @reason("rm is never allowed")
    forbid(principal, action == Action::"PreToolUse", resource == Tool::"Bash")
    when { context.tool_input has command && context.tool_input.command like "rm *" };
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.actions import Cedar
from hookline.core.hooks.hook import Hook
from hookline.core.wire import claude
from hookline.errors import HookFailed, extra
from hookline.events import Event
from hookline.replies import NOTHING, deny
from hookline.runners.policies import PolicyCache, unchanged

_MOST = 2**63
_ESCAPES = frozenset({"__entity", "__extn", "__expr"})
"""Keys by which Cedar's JSON names entities and values of extensions: an argument of a tool must not be one."""


class _Compiled:
    """Parsed policies, and what each is called."""

    def __init__(self, files: Mapping[str, str]) -> None:
        cedarpy = _cedarpy()
        texts: list[str] = []
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
            texts.append(text)
        self.policies = cedarpy.PolicySet.from_str("\n".join(texts))


class CedarRunner:
    """Asks Cedar, in this process."""

    def __init__(self) -> None:
        self._cache = PolicyCache(_Compiled)

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Authorize the event; a policy that cannot be evaluated is a failure, never a permit."""
        action = hook.action
        assert isinstance(action, Cedar)
        with unchanged(action, ctx):
            compiled, entities = self._cache.get(action.policies, ctx), _entities(action, ctx)
        answer = _cedarpy().is_authorized(_request(event), compiled.policies, entities)
        errors = [str(error) for error in answer.diagnostics.errors]
        if errors:
            raise HookFailed(f"could not evaluate its policies: {_with_names('; '.join(errors), compiled.named)}")
        if answer.allowed:
            return RunnerResult(reply=NOTHING)
        named = (compiled.named[policy] for policy in answer.diagnostics.reasons)
        told = [f"policy `{policy}` forbids it" + (f": {reason}" if reason else "") for policy, reason in named]
        return RunnerResult(reply=deny("\n".join(told) or f"no policy permits {_what(event)}"))


def _with_names(text: str, named: Mapping[str, tuple[str, str]]) -> str:
    for policy, (name, _) in named.items():
        text = text.replace(f"`{policy}`", f"`{name}`")
    return text


def _what(event: Event) -> str:
    return f"`{event.subject}` on {event.event_name}" if event.subject else event.event_name


def _request(event: Event) -> dict[str, Any]:
    tool = event.tool_name
    return {
        "principal": {"type": "Agent", "id": event.agent_type or "main"},
        "action": {"type": "Action", "id": event.event_name},
        "resource": {"type": "Tool", "id": tool} if tool else {"type": "Event", "id": event.event_name},
        "context": _value(claude.event_object(event)),
    }


def _value(value: Any, *, exact: bool = False) -> Any:
    """The value as Cedar has it: no null, numbers as `Long` or `decimal`.

    `exact`, for what the model wrote: a number that Cedar cannot hold is a failure, as no policy could compare it.
    Others become the nearest one.
    """
    if isinstance(value, Mapping):
        forged = next((key for key in value if key in _ESCAPES), None)
        if forged is not None:
            raise HookFailed(
                f"cannot tell Cedar of an object with the key `{forged}`, which would be taken for a value"
            )
        return {
            str(key): _value(item, exact=exact or key == "tool_input")
            for key, item in value.items() if item is not None
        }  # fmt: skip
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


def _cedarpy() -> Any:
    with extra("a hook of type `cedar`", "cedar"):
        import cedarpy
    return cedarpy
