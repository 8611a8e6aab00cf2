"""A limit on what one session may spend: tool calls, seconds, calls of single tools."""

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from time import time

import msgspec

from hookline.core.files import locked, private_folder, read_at, write_at
from hookline.core.hooks import Hook, make_hook
from hookline.errors import HookError
from hookline.events import Event, PreToolUse, SessionEnd, SessionStart
from hookline.replies import Reply, deny

_MOST_SESSIONS = 1_000
_LARGEST = 1 << 24


def limit(
    tool_calls: int | None = None,
    seconds: float | None = None,
    per_tool: Mapping[str, int] | None = None,
    *,
    state: str | Path | None = None,
    clock: Callable[[], float] = time,
) -> list[Hook]:
    """Deny tool calls beyond a session's budget: `budget.limit(tool_calls=200, seconds=900, per_tool={"Bash": 50})`.

    With `state` the counts are kept in that folder, one small file per session, for guards that run as a process each.
    """
    tools = dict(per_tool or {})
    limits = [number for number in (tool_calls, seconds, *tools.values()) if number is not None]
    if not limits:
        raise HookError("a budget needs a limit: pass tool_calls=, seconds= or per_tool=")
    if any(not number > 0 for number in limits):
        raise HookError("a budget's limits must be more than 0")
    store = BudgetStore(state, clock)

    async def start(event: Event) -> None:
        with store.account(event.session_id):
            pass  # the clock of a session starts with it

    async def end(event: Event) -> None:
        store.forget(event.session_id)

    async def spend(event: PreToolUse) -> Reply | None:
        tool = event.tool_name
        with store.account(event.session_id) as account:
            if tool_calls is not None and sum(account.used.values()) >= tool_calls:
                return deny(f"the budget of {tool_calls} tool calls is spent")
            if tool in tools and account.used.get(tool, 0) >= tools[tool]:
                return deny(f"the budget of {tools[tool]} calls of `{tool}` is spent")
            if seconds is not None and clock() - account.began > seconds:
                return deny(f"the budget of {seconds:g} seconds is spent")
            account.used[tool] = account.used.get(tool, 0) + 1
        return None

    return [
        make_hook((SessionStart,), start, name="budget.start", rejudge=False, on_failure="continue"),
        make_hook((SessionEnd,), end, name="budget.end", rejudge=False, on_failure="continue"),
        make_hook((PreToolUse,), spend, name="budget.limit", priority=90, rejudge=False),
    ]


def rate(
    calls: int,
    per: float = 60.0,
    *,
    match: str | None = None,
    state: str | Path | None = None,
    clock: Callable[[], float] = time,
    name: str = "budget.rate",
) -> Hook:
    """Deny calls that come too fast: `budget.rate(30, per=60, match="WebFetch|mcp__.*")` lets thirty a minute through.

    A session's last `per` seconds count, whenever they began. A call that is denied does not count. With `state` the
    times are kept in that folder, one small file per session, for guards that run as a process each.
    """
    if not calls > 0 or not per > 0:
        raise HookError("a rate needs calls and seconds that are more than 0, such as rate(30, per=60)")
    store = BudgetStore(state, clock)

    async def judge(event: PreToolUse) -> Reply | None:
        with store.account(event.session_id) as account:
            now = clock()
            account.recent = [moment for moment in account.recent if now - per < moment <= now]
            if len(account.recent) < calls:
                account.recent.append(now)
                return None
            wait = max(account.recent[-calls] + per - now, 0.0)
        return deny(f"more than {calls} calls in {per:g} seconds; try again in {math.ceil(wait)} s")

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=90, rejudge=False)


class Account(msgspec.Struct):
    """What one session has spent."""

    began: float
    used: dict[str, int] = {}
    recent: list[float] = []


class BudgetStore:
    """Accounts in memory, or in a folder's files for processes that take turns."""

    def __init__(self, folder: str | Path | None, clock: Callable[[], float]) -> None:
        self._folder, self._clock = None if folder is None else Path(folder), clock
        self._accounts: dict[str, Account] = {}
        self._lock = threading.Lock()

    @contextmanager
    def account(self, session: str) -> Iterator[Account]:
        """The session's account, held for as long as this lasts."""
        if self._folder is None:
            with self._lock:
                if session not in self._accounts and len(self._accounts) >= _MOST_SESSIONS:
                    del self._accounts[next(iter(self._accounts))]
                yield self._accounts.setdefault(session, Account(self._clock()))
            return
        private_folder(self._folder)
        with locked(self._folder / _file(session)) as fd:
            content = read_at(fd, _LARGEST, 0)
            account = msgspec.json.decode(content, type=Account) if content else Account(self._clock())
            yield account
            os.ftruncate(fd, 0)
            write_at(fd, msgspec.json.encode(account), 0)

    def forget(self, session: str) -> None:
        with self._lock:
            self._accounts.pop(session, None)
        if self._folder is not None:
            (self._folder / _file(session)).unlink(missing_ok=True)


def _file(session: str) -> str:
    return f"{sha256(session.encode()).hexdigest()[:32]}.json"
