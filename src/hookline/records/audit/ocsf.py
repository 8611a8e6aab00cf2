"""Audit records as events of OCSF 1.8.0, for a SIEM: each validates against the schema of its class and profiles. Pure.

A shell line is a Process Activity, another tool an API Activity, a session or a subagent an Authentication, everything
else an Application Lifecycle; what was not simply let through is a Detection Finding besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from hookline.records.audit.entry import decision_word_of

Record = dict[str, Any]
VERSION = "1.8.0"


class OcsfClass(NamedTuple):
    """A class of OCSF: numbers with the captions that belong to them, and the profiles whose fields we use."""

    uid: int
    name: str
    category: tuple[int, str]
    profiles: tuple[str, ...]


class Disposition(NamedTuple):
    """What a verdict is called: action and disposition, severity, and ACS' word for the decision."""

    action: tuple[int, str]
    disposition: tuple[int, str]
    severity: tuple[int, str]
    acs: str

    @property
    def alert(self) -> bool:
        """Whether it wants a person's attention."""
        return self.severity[0] > 2


_SYSTEM, _FINDINGS, _ACCESS, _APPLICATION = (
    (1, "System Activity"), (2, "Findings"), (3, "Identity & Access Management"), (6, "Application Activity"),
)  # fmt: skip
PROCESS = OcsfClass(1007, "Process Activity", _SYSTEM, ("ai_operation", "host", "security_control"))
API = OcsfClass(6003, "API Activity", _APPLICATION, ("ai_operation", "security_control"))
AUTHENTICATION = OcsfClass(3002, "Authentication", _ACCESS, ("host", "security_control"))
LIFECYCLE = OcsfClass(6002, "Application Lifecycle", _APPLICATION, ("host", "security_control"))
FINDING = OcsfClass(2004, "Detection Finding", _FINDINGS, ("security_control",))

_ALLOWED = Disposition((1, "Allowed"), (1, "Allowed"), (1, "Informational"), "allow")
_DENIED = Disposition((2, "Denied"), (2, "Blocked"), (4, "High"), "deny")
_MODIFIED = Disposition((4, "Modified"), (99, "modify"), (2, "Low"), "modify")
DISPOSITIONS: dict[str, Disposition] = {
    "DENY": _DENIED,
    "STOP": _DENIED,
    "ASK": Disposition((99, "ask"), (99, "ask"), (3, "Medium"), "ask"),
    "DEFER": Disposition((99, "defer"), (99, "defer"), (3, "Medium"), "defer"),
    "REWRITE": _MODIFIED,
    "REPLACE": _MODIFIED,
}
"""By the word that the log shows; every other word is let through."""


def ocsf(record: Record, machine: str = "") -> Iterator[Record]:
    """The step itself, and a finding unless it was let through as it was."""
    verdict = _disposition(record)
    event, tool, command = str(record.get("event") or "unknown"), str(record.get("tool") or ""), _command(record)
    base = _base(record, event, verdict)
    about = _message_context(record, tool or event)
    host = machine or "localhost"
    device = {"uid": host, "hostname": host, "type_id": 0, "type": "Unknown"}
    if command is not None:
        process = {"name": next(iter(command.split()), tool), "cmd_line": command, "uid": _step(record)}
        yield {**base, **about, **_of(PROCESS, 1, "Launch", record), "device": device, "process": process}
    elif tool:
        server = tool.split("__")[1] if tool.startswith("mcp__") and tool.count("__") > 1 else "agent"
        api = {"operation": tool, "service": {"name": server or "agent"}, "request": {"uid": _step(record)}}
        endpoint = {"uid": host, "name": host}
        yield {**base, **about, **_of(API, 99, event, record), "api": api, "src_endpoint": endpoint}
    elif event.startswith(("Session", "Subagent")):
        activity = (1, "Logon") if event.endswith("Start") else (2, "Logoff")
        name = str(record.get("agent_type") or record.get("agent") or "agent")
        user = {"name": name, "type_id": 99, "type": "AI Agent"}
        session = {"uid": _session(record)}
        made = _of(AUTHENTICATION, *activity, record)
        yield {**base, **made, "user": user, "session": session, "service": {"name": "agent"}, "device": device}
    else:
        app = {"name": "agent", "vendor_name": "Hookline"}
        yield {**base, **_of(LIFECYCLE, 99, event, record), "app": app, "device": device}
    if verdict is not _ALLOWED:
        actor = base.pop("actor")
        found = _finding(record, base["message"], tool or event, command, actor)
        yield {**base, **_of(FINDING, 1, "Create", record), **found}


def _disposition(record: Record) -> Disposition:
    changed = _MODIFIED if "rewritten" in record or "replaced" in record else _ALLOWED
    return DISPOSITIONS.get(decision_word_of(record), changed)


def _of(kind: OcsfClass, activity: int, name: str, record: Record) -> Record:
    """What says which class an event is of."""
    return {
        "class_uid": kind.uid, "class_name": kind.name, "category_uid": kind.category[0],
        "category_name": kind.category[1], "activity_id": activity, "activity_name": name,
        "type_uid": kind.uid * 100 + activity, "metadata": _metadata(record, kind.profiles),
    }  # fmt: skip


def _base(record: Record, event: str, verdict: Disposition) -> Record:
    session = _session(record)
    acs = {"session_id": session, "request_id": _step(record), "decision": verdict.acs}
    rest = {key: value for key, value in record.items() if key not in ("hash", "seq")}
    return {
        "time": int(seconds(record) * 1_000), "severity_id": verdict.severity[0], "severity": verdict.severity[1],
        "action_id": verdict.action[0], "action": verdict.action[1],
        "disposition_id": verdict.disposition[0], "disposition": verdict.disposition[1],
        "is_alert": verdict.alert, "message": "; ".join(map(str, record.get("reasons") or ())) or event,
        "actor": {
            "user": {"name": str(record.get("user") or "unknown"), "type_id": 1, "type": "User"},
            "session": {"uid": session}, "app_name": "hookline",
        },
        "unmapped": {"acs": acs, "hookline": rest},
    }  # fmt: skip


def _metadata(record: Record, profiles: tuple[str, ...]) -> Record:
    return {
        "version": VERSION, "profiles": list(profiles), "product": {"name": "Hookline", "vendor_name": "Hookline"},
        "uid": str(record.get("hash") or _step(record)), "sequence": whole(record.get("seq")), "log_name": "audit",
        "correlation_uid": f"{_session(record)}:{_step(record)}", "original_time": str(record.get("time") or "unknown"),
    }  # fmt: skip


def _message_context(record: Record, name: str) -> Record:
    context = {
        "application": {"name": "hookline"}, "uid": _step(record), "name": name, "ai_role_id": 3, "ai_role": "Tool",
    }  # fmt: skip
    return {"message_context": context}


def _finding(record: Record, message: str, about: str, command: str | None, actor: Record) -> Record:
    rule = {"name": str(record.get("by") or "hookline"), "type_id": 1, "type": "Rule"}
    title = f"{about}: {_disposition(record).acs}"
    what = {"process": {"cmd_line": command, "uid": _step(record)}} if command else {"api": {"operation": about}}
    uid = str(record.get("hash") or _step(record))
    return {
        "status_id": 1, "status": "New", "evidences": [{"actor": actor, **what}],
        "finding_info": {"uid": uid, "title": title, "desc": message, "analytic": rule},
    }  # fmt: skip


def _command(record: Record) -> str | None:
    """The shell line that a record is about; the rewritten one if there is one."""
    for given in (record.get("rewritten"), record.get("input")):
        if record.get("tool") and isinstance(given, Mapping) and isinstance(given.get("command"), str):
            return str(given["command"])
    return None


def _session(record: Record) -> str:
    return str(record.get("run") or "unknown")


def _step(record: Record) -> str:
    return str(record.get("tool_use_id") or str(record.get("hash") or "")[:32] or record.get("seq") or "unknown")


def seconds(record: Record) -> float:
    """When it was written, since 1970; 0 if it does not say."""
    try:
        return datetime.fromisoformat(str(record["time"])).timestamp()
    except (KeyError, ValueError):
        return 0.0


def whole(value: object) -> int:
    """A number as it is, anything else as 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
