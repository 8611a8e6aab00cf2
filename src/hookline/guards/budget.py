"""A limit on what one session may spend: tool calls, seconds, calls of single tools."""

from __future__ import annotations

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
from hookline.core.hooks import Hook, hook, make_hook
from hookline.core.hooks.declare import declared
from hookline.errors import HookError
from hookline.events import Event, PreToolUse, SessionEnd, SessionStart
from hookline.replies import Reply, deny

_MOST_SESSIONS = 1_000
_ALL = ""
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
    limits = [tool_calls, seconds, *(per_tool or {}).values()]
    if all(number is None for number in limits):
        raise HookError("a budget needs a limit: pass tool_calls=, seconds= or per_tool=")
    if any(number is not None and not number > 0 for number in limits):
        raise HookError("a budget's limits must be more than 0")
    ledger = BudgetStore(clock) if state is None else FileBudgetStore(Path(state), clock)
    return declared(Budget(tool_calls, seconds, dict(per_tool or {}), clock, ledger))


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
    ledger = BudgetStore(clock) if state is None else FileBudgetStore(Path(state), clock)

    async def judge(event: PreToolUse) -> Reply | None:
        with ledger.account(event.session_id) as account:
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
    used: dict[str, int] = msgspec.field(default_factory=dict)
    recent: list[float] = msgspec.field(default_factory=list)


class BudgetStore:
    """Accounts in memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._lock = threading.Lock()

    @contextmanager
    def account(self, session: str) -> Iterator[Account]:
        """The session's account, held for as long as this lasts."""
        with self._lock:
            if session not in self._accounts and len(self._accounts) >= _MOST_SESSIONS:
                del self._accounts[next(iter(self._accounts))]
            yield self._accounts.setdefault(session, Account(self._clock()))

    def forget(self, session: str) -> None:
        """The session is over."""
        with self._lock:
            self._accounts.pop(session, None)


class FileBudgetStore(BudgetStore):
    """Accounts in files, for processes that take turns."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._folder = folder

    @contextmanager
    def account(self, session: str) -> Iterator[Account]:
        """The session's account, its file locked for as long as this lasts."""
        private_folder(self._folder)
        with locked(self._path(session)) as fd:
            content = read_at(fd, _LARGEST, 0)
            account = msgspec.json.decode(content, type=Account) if content else Account(self._clock())
            yield account
            os.ftruncate(fd, 0)
            write_at(fd, msgspec.json.encode(account), 0)

    def _path(self, session: str) -> Path:
        return self._folder / f"{sha256(session.encode()).hexdigest()[:32]}.json"

    def forget(self, session: str) -> None:
        """The session is over: its file goes."""
        self._path(session).unlink(missing_ok=True)


class Budget:
    """Judges calls by what their session has spent; a session that ends is forgotten."""

    def __init__(
        self,
        tool_calls: int | None,
        seconds: float | None,
        per_tool: dict[str, int],
        clock: Callable[[], float],
        ledger: BudgetStore,
    ) -> None:
        self._tool_calls, self._seconds, self._per_tool = tool_calls, seconds, per_tool
        self._clock, self._ledger = clock, ledger

    @hook(SessionStart, name="budget.start", rejudge=False, on_failure="continue")
    async def start(self, event: Event) -> None:
        """The clock of a session starts with it."""
        with self._ledger.account(event.session_id):
            pass

    @hook(SessionEnd, name="budget.end", rejudge=False, on_failure="continue")
    async def end(self, event: Event) -> None:
        """A session that is over needs no budget."""
        self._ledger.forget(event.session_id)

    @hook(PreToolUse, name="budget.limit", priority=90, rejudge=False)
    async def spend(self, event: PreToolUse) -> Reply | None:
        """Count the call, or deny it because there is nothing left to spend."""
        with self._ledger.account(event.session_id) as account:
            spent = self._spent(event, account)
            if spent is None:
                for key in (event.tool_name, _ALL):
                    account.used[key] = account.used.get(key, 0) + 1
            return spent

    def _spent(self, event: PreToolUse, account: Account) -> Reply | None:
        used = account.used
        if self._tool_calls is not None and used.get(_ALL, 0) >= self._tool_calls:
            return deny(f"the budget of {self._tool_calls} tool calls is spent")
        allowed = self._per_tool.get(event.tool_name)
        if allowed is not None and used.get(event.tool_name, 0) >= allowed:
            return deny(f"the budget of {allowed} calls of `{event.tool_name}` is spent")
        if self._seconds is not None and self._clock() - account.began > self._seconds:
            return deny(f"the budget of {self._seconds:g} seconds is spent")
        return None
