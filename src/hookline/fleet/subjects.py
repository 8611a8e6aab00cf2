"""Names on the wire between machines and hub: one table, so that what a machine may do can be written down exactly."""

from __future__ import annotations

AUDIT_STREAM = "HOOKLINE_AUDIT"
POLICY_BUCKET = "hookline_policy"
STATUS_BUCKET = "hookline_status"
BUNDLE_BUCKET = "hookline_bundles"

AUDIT = "hookline.audit"
ENROL = "hookline.enrol"
ANNOUNCE = "hookline.policy.changed"
SIGNATURE_HEADER = "Hookline-Signature"
"""On every audit block: its machine's signature, so that not even the server can speak for it."""
INSTANCE_HEADER = "Hookline-Instance"
"""Beside it: which process of the machine sent it. Two that take turns are two computers with one key."""
TARGET = "target"
"""The key in the policy bucket that says which version is wanted, and for whom."""


def audit_of(machine: str) -> str:
    """Where a machine's audit blocks go."""
    return f"{AUDIT}.{machine}"


def inbox_of(machine: str) -> str:
    """The prefix of a machine's inboxes, so that none can read another's answers."""
    return f"_INBOX_{machine}"


def machine_may(machine: str) -> dict[str, dict[str, list[str]]]:
    """What a machine's credentials allow, in the words of a NATS server's configuration."""
    publish = [
        audit_of(machine),
        f"$KV.{STATUS_BUCKET}.{machine}",
        f"$JS.API.DIRECT.GET.{AUDIT_STREAM}.{audit_of(machine)}",
        f"$JS.API.DIRECT.GET.KV_{POLICY_BUCKET}.$KV.{POLICY_BUCKET}.>",
        "$JS.API.STREAM.NAMES",
        f"$JS.API.STREAM.INFO.KV_{POLICY_BUCKET}",
        f"$JS.API.STREAM.INFO.KV_{STATUS_BUCKET}",
        f"$JS.API.DIRECT.GET.OBJ_{BUNDLE_BUCKET}",
        f"$JS.API.DIRECT.GET.OBJ_{BUNDLE_BUCKET}.>",
    ]
    return {"publish": {"allow": publish}, "subscribe": {"allow": [f"{inbox_of(machine)}.>", ANNOUNCE]}}


JOIN_MAY = {"publish": {"allow": [ENROL]}, "subscribe": {"allow": ["_INBOX_join.>"]}}
"""What a machine may do that has only a token: ask to be enrolled."""
