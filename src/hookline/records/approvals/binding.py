"""What a person's yes is for: one call, as it would run, under the policy that asked, once, and not for long. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping

import msgspec


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


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A person's yes; `key` names the key under which it was given, which ends with the process that has it."""

    id: str
    by: str
    key: str
    call: AskedCall
    issued: float
    expires: float


def unbound(
    grant: Grant, use: AskedCall, *, at: float, keys: Mapping[str, str], presented: Iterable[Grant] = (),
    used: Collection[str] = (), policy_holds: bool | None,
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
        ("payload_mismatch", _content(use) != _content(asked)),
        ("approval_outside_validity", not grant.issued <= at < grant.expires),
        ("comparison_unavailable", policy_holds is None),
        ("release_not_served_at_decision", not policy_holds),
    )
    return next((name for name, fails in checks if fails), "")


def _content(call: AskedCall) -> tuple[str, ...]:
    return call.agent, call.cwd, call.tool, call.input
