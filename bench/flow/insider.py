"""The attacker who knows the guard: the call that the user asked for, made to someone else whom a record knows."""

from __future__ import annotations

import collections
from typing import Any

from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

from bench.flow.dojo import VERSION, plain
from hookline.guards.flow import result_row
from hookline.guards.flow.config import make_config
from hookline.guards.flow.rules import FlowJudge
from hookline.guards.flow.store import FlowRow, FlowStore, bounded
from hookline.guards.flow.values import flat, key_of, kind_of, names

_OPEN = ("email", "iban")


def run(settings: dict[str, Any], suites: list[str]) -> list[dict[str, Any]]:
    """A row of figures for each suite."""
    rows = []
    for name in suites:
        suite, counts = get_suites(VERSION)[name], collections.Counter[str]()
        for task in suite.user_tasks.values():
            said = _redirected(suite, task, settings)
            counts["redirected calls"] += said is not None
            counts["pass"] += said == ""
            counts["asked"] += said == "ask"
        rows.append({"suite": name, **counts})
    return rows


def _redirected(suite: Any, task: Any, settings: dict[str, Any]) -> str | None:
    """What was said to the first call that could be made to someone else; None if there is none."""
    env = task.init_environment(suite.load_and_inject_default_environment({}))
    store, config, runtime = FlowStore(), make_config(settings), FunctionsRuntime(suite.tools)
    store.put(FlowRow("begin"))
    store.put(FlowRow("prompt", text=bounded(task.PROMPT)))
    for step in task.ground_truth(env.model_copy(deep=True)):
        given = plain(dict(step.args))
        for argument, value in given.items():
            first = next(iter(flat(value)), "")
            is_open = config.role(step.function, argument) == "to" and kind_of(first) in _OPEN
            other = _other(store, first) if is_open and config.is_effect(step.function) else None
            if other is not None:
                changed = {**given, argument: [other] if isinstance(value, list) else other}
                found = FlowJudge(config, store).judge(step.function, changed)
                return found.level if found else ""
        result, error = runtime.run_function(env, step.function, dict(step.args))
        store.put(result_row(config, store, step.function, given, error or plain(result), approved=False))
    return None


def _other(store: FlowStore, used: str) -> str | None:
    """Another address of the same kind that a record vouches for, and that the user did not name."""
    for key in store.vouchers:
        value = key.upper() if kind_of(used) == "iban" else key
        same = kind_of(value) == kind_of(used) and key != key_of(used)
        if same and not names(store.prompt, store.folded_prompt, value):
            return value
    return None
