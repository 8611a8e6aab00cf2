"""The questions that are open, and the answers that are not used up.

What counts is in memory, with the key that tokens are made with. The file only brings open questions over a restart:
an answer in it would be anybody's word, so one that was not used is asked for again.
"""

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.core.files import private_folder, write_atomically


class AskedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a question is about; `input` is the tool's input after rewrites, as canonical JSON."""

    event: str
    session: str = ""
    agent: str = ""
    cwd: str = ""
    tool: str = ""
    input: str = ""
    policy: str = ""

    @property
    def identity(self) -> str:
        """SHA-256 over all of it: what has the same one is the same call."""
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.astuple(self))).hexdigest()


log: logging.Logger = logging.getLogger("hookline.approvals")
KEPT_SECONDS = 24 * 3600.0  # how long an answer is still shown
MOST_OPEN = 200  # more open questions than any person reads: what is asked beyond is denied

_MOST_TEXT, _MOST_BEFORE = 4_000, 20
_CONTENT = ("agent", "cwd", "tool", "input")


class TooManyQuestions(Exception):
    """There is no room for another question."""


def uptime() -> float:
    """Seconds that no clock setting changes and that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class AskedQuestion(msgspec.Struct, kw_only=True):
    """One question to the people of this machine."""

    id: str
    call: AskedCall
    why: str = ""
    hooks: str = ""
    host: str = ""
    before: tuple[str, ...] = ()
    made: float = 0.0
    until: float = 0.0
    state: Literal["open", "yes", "no", "used", "expired"] = "open"
    by: str = ""
    how: str = ""
    at: float = 0.0
    key: str = ""  # the key of the process that took the answer, which ends with it
    sent: dict[str, str] = {}
    waiting: int = 0  # how many equal calls wait for the answer now


def unbound(
    grant: AskedQuestion, use: AskedCall, *, at: float, keys: Mapping[str, str],
    presented: Iterable[AskedQuestion] = (), used: Collection[str] = (), policy_holds: bool | None,
) -> str:  # fmt: skip
    """Why a yes does not let this call run, in the words of the `approval-binding/v1` contract; nothing if it does.

    `policy_holds` says whether the policy that asked holds now; `None` if that cannot be told, which is not a yes.
    """
    asked = grant.call
    checks = (
        ("approval_id_ambiguous", any(one.id == grant.id and one != grant for one in presented)),
        ("approval_replayed", grant.id in used),
        ("key_not_bound", keys.get(grant.by) != grant.key),
        ("principal_mismatch", use.session != asked.session),
        ("event_phase_mismatch", use.event != asked.event),
        ("payload_mismatch", any(getattr(use, name) != getattr(asked, name) for name in _CONTENT)),
        ("approval_outside_validity", not grant.at <= at < grant.until),
        ("comparison_unavailable", policy_holds is None),
        ("release_not_served_at_decision", not policy_holds),
    )
    return next((name for name, fails in checks if fails), "")


class Questions:
    """All questions of one user; `changed` is called after each change."""

    def __init__(
        self, file: Path, changed: Callable[[], None] = lambda: None, *, clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = uptime,
    ) -> None:  # fmt: skip
        self._file, self._changed, self._clock, self._steady = file, changed, clock, steady
        self._key = secrets.token_bytes(32)
        self._key_id = hmac.digest(self._key, b"id", "sha256").hex()[:16]
        self._all: dict[str, AskedQuestion] = {}
        self._ends: dict[str, float] = {}
        for one in self._restored():
            self._add(one)

    def ask(self, new: AskedQuestion, seconds: float) -> tuple[AskedQuestion, bool]:
        """The open question about this very call, and whether it is a new one."""
        for one in self.recent():
            if one.state == "open" and one.call.identity == new.call.identity:
                return one, False
        if sum(one.state == "open" for one in self._all.values()) >= MOST_OPEN:
            raise TooManyQuestions(f"{MOST_OPEN} questions are open already; answer some with `hookline inbox`")
        now, name = self._clock(), f"A-{secrets.token_hex(5)}"
        made = AskedQuestion(  # of what a caller says, only what it may say
            id=name, call=new.call, why=new.why[:_MOST_TEXT], hooks=new.hooks[:_MOST_TEXT], host=new.host[:_MOST_TEXT],
            before=new.before[-_MOST_BEFORE:], made=now, until=now + seconds,
        )  # fmt: skip
        self._add(made)
        self._save()
        return made, True

    def take(self, call: AskedCall) -> AskedQuestion | None:
        """An answered question whose yes is for this call; that uses it up."""
        answered = [one for one in self.recent() if one.state == "yes"]
        for one in answered:
            if one.call.identity == call.identity:
                at = max(self._clock(), one.at)  # a clock that went back makes no answer invalid; `get` knows its end
                holds = one.call.policy == call.policy if call.policy else None
                keys = {one.by: self._key_id}
                if not unbound(one, call, at=at, keys=keys, presented=answered, policy_holds=holds):
                    one.state = "used"
                    self._save()
                    return one
        return None

    def answer(self, id: str, *, yes: bool, by: str, how: str) -> str:
        """Count an answer; why not, if it does not count."""
        if (one := self.get(id)) is None:
            return "there is no such question"
        if one.state != "open":
            return f"it was answered before: {one.state}" + (f", by {one.by} ({one.how})" if one.by else "")
        one.state, one.by, one.how, one.at, one.key = "yes" if yes else "no", by, how, self._clock(), self._key_id
        self._save()
        return ""

    def token(self, one: AskedQuestion, person: str) -> str:
        content = msgspec.json.encode([one.id, one.call.identity, person, one.until])
        return hmac.digest(self._key, content, "sha256").hex()[:40]

    def check(self, id: str, person: str, token: str) -> AskedQuestion | None:
        one = self.get(id)
        expected = self.token(one or AskedQuestion(id=id, call=AskedCall(event="")), person)
        return one if hmac.compare_digest(token.encode(), expected.encode()) and one is not None else None

    def get(self, id: str) -> AskedQuestion | None:
        if (one := self._all.get(id)) is None or one.state not in ("open", "yes"):
            return one
        if self._clock() >= one.until or self._steady() >= self._ends[one.id]:
            one.state = "expired"
        return one

    def recent(self) -> list[AskedQuestion]:
        """Every question that is open or was answered lately, the oldest first."""
        now = self._clock()
        for name, one in tuple(self._all.items()):
            if self.get(name) and one.state not in ("open", "yes") and now - one.until > KEPT_SECONDS:
                del self._all[name], self._ends[name]
        return sorted(self._all.values(), key=lambda one: one.made)

    def _add(self, one: AskedQuestion) -> None:
        self._all[one.id] = one
        self._ends[one.id] = self._steady() + max(one.until - self._clock(), 0.0)

    def _restored(self) -> list[AskedQuestion]:
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=list[AskedQuestion])
        except (OSError, msgspec.MsgspecError, ValueError) as problem:
            if not isinstance(problem, FileNotFoundError):
                log.warning("open questions could not be read: %s", problem)
            return []
        now = self._clock()
        afresh: dict[str, Any] = {"state": "open", "by": "", "how": "", "at": 0.0, "key": "", "waiting": 0}
        still = [one for one in found if one.made <= now < one.until]  # else the clock went back meanwhile
        return [msgspec.structs.replace(one, **afresh) for one in still]

    def _save(self) -> None:
        kept = [one for one in self.recent() if one.state in ("open", "yes")]
        try:
            private_folder(self._file.parent)
            write_atomically(self._file, msgspec.json.encode(kept))
        except OSError as problem:  # a full disk: they are asked again after a restart
            log.warning("open questions are kept in memory only: %s", problem)
        self._changed()
