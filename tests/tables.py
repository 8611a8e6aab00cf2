"""A table of many cases in one test: collecting thousands of tests costs every worker time, looping costs nothing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_SHOWN = 20


def each(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `pytest.mark.parametrize`, but one test: it tries every row, and names those that fail, each with its reason.

    Fixtures are made once for all rows.
    """
    arguments = [name.strip() for name in names.split(",")]
    given = [dict(zip(arguments, row if len(arguments) > 1 else (row,), strict=True)) for row in rows]
    assert given, "the table is empty"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        async def run_all(**fixtures: Any) -> list[str]:
            failed = []
            for row in given:
                try:
                    found = test(**row, **fixtures)
                    if inspect.isawaitable(found):
                        await found
                except (Exception, pytest.fail.Exception) as problem:
                    failed.append(f"{row}: {type(problem).__name__}: {str(problem)[:400]}")
            return failed

        def judge(failed: list[str]) -> None:
            told = "\n".join(failed[:_SHOWN])
            assert not failed, f"{len(failed)} of {len(given)} rows fail:\n{told}"

        async def in_loop(**fixtures: Any) -> None:
            judge(await run_all(**fixtures))

        def without_loop(**fixtures: Any) -> None:
            coroutine = run_all(**fixtures)
            try:
                coroutine.send(None)
            except StopIteration as ended:
                judge(ended.value)

        made = functools.wraps(test)(in_loop if inspect.iscoroutinefunction(test) else without_loop)
        signature = inspect.signature(test)
        rest = [one for one in signature.parameters.values() if one.name not in arguments]
        made.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        del made.__wrapped__
        return made

    return decorate
