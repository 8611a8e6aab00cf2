"""A Guardian of OWASP's Agent Control Standard 0.1 (ACS): an agent asks about every step, hooks decide, and it obeys.

It fails closed. Clients are told so (`on_decision_failure: deny`), a request whose signature, clock, id or session is
not right is refused, and what goes wrong while a step is judged is a signed deny, never an error: clients may go on
after errors. What was seen is kept in a database, so that a request counts once, also after a restart.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from hookline import events
from hookline.core.engine import Verdict
from hookline.core.engine.composition import answer_seconds
from hookline.core.engine.engine import Fires, ask_people
from hookline.core.engine.policy import policy_digest
from hookline.errors import extra
from hookline.hosts.decode import calls_inside, knows_tool
from hookline.hosts.table import CLAUDE
from hookline.replies import NOTHING, Decision, Reply

Object = dict[str, Any]
VERSION, SKEW_MS, TIMEOUT_MS, ALGORITHM = "0.1.0", 300_000, 20_000, "HMAC-SHA256"
ERRORS = {
    -32700: "Parse error", -32600: "Invalid Request", -32602: "Invalid params", -32001: "UNSUPPORTED_VERSION",
    -32003: "CAPABILITY_NOT_NEGOTIATED", -32004: "SIGNATURE_INVALID", -32005: "REPLAY_DETECTED",
    -32006: "TIMESTAMP_OUT_OF_WINDOW",
}  # fmt: skip
_TOLD_ONLY = {"steps/postCompact", "steps/subagentStop", "steps/turnEnd", "steps/sessionEnd", "steps/skillUnload"}
"""Steps that have happened: an answer other than `allow` would come too late."""
_JUDGED = ("steps/", "protocols/MCP/", "agbom/", "system/")
_LONGEST_ID = 256
_DEFERRED = {
    "reason": "pending_dependency", "resolution_method": "retry", "resolution_timeout_ms": 60_000,
    "timeout_decision": "deny",
}  # fmt: skip
_ASKED = {"approver": {"type": "human", "id": "owner"}, "timeout_ms": 600_000, "timeout_decision": "deny"}
_TABLES = """
create table if not exists seen(session, id, primary key(session, id));
create table if not exists session(id primary key, methods, head);
create table if not exists entry(at, session, request, finding, more);
"""


def canonical(value: Any) -> bytes:
    """RFC 8785; raises for a value that it does not allow."""
    with extra("`hookline acs`", "acs"):
        import rfc8785
    return bytes(rfc8785.dumps(value))


def signature(secret: bytes, session: str, envelope: Object, side: str) -> str:
    """Over the whole envelope but itself, with the session's own key: HKDF, no salt, `info` the session's id."""
    signed = {**envelope, side: {key: value for key, value in envelope[side].items() if key != "signature"}}
    key = hmac.digest(hmac.digest(bytes(32), secret, "sha256"), session.encode() + b"\1", "sha256")
    return base64.b64encode(hmac.digest(key, canonical(signed), "sha256")).decode()


class Guardian:
    """Answers requests; `answer` may be called by any number of threads.

    `keys` are the secrets by `key_id`. What a client can do is not on the wire: `asks` says that clients can ask a
    person, `modifies` that they can change a call; where they cannot, the answer is a deny. With `governed`, a pattern,
    tools that it does not match are denied.
    """

    def __init__(
        self, hooks: Fires, keys: Mapping[str, bytes], database: str | Path = ":memory:", *, governed: str = "",
        asks: bool = False, modifies: bool = True, clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.hooks, self.keys, self.asks, self.modifies, self.clock = hooks, keys, asks, modifies, clock
        self._governed = re.compile(governed) if governed else None
        self._lock = threading.Lock()
        self.db: sqlite3.Connection = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
        self.db.executescript(_TABLES)

    def answer(self, data: bytes | str) -> Object:
        """The response to a request, signed with the key that the request named, if it is one of ours."""
        answer: Object = {"jsonrpc": "2.0", "id": None}
        try:
            envelope = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return {**answer, "error": Refused(-32700, "not JSON, or nested too deep").error}
        if not isinstance(envelope, dict) or not isinstance(params := envelope.get("params"), dict):
            return {**answer, "error": Refused(-32600, "not a request with params").error}
        number = envelope.get("id")
        if envelope.get("method") == "system/ping":
            return {**answer, "id": number, "result": self._pong(params)}
        if isinstance(number, str) or (isinstance(number, int) and abs(number) < 1 << 53):
            answer["id"] = number
        try:
            answer["result"] = self._judge(envelope, params)
        except Refused as refused:
            answer["error"] = refused.error
        except Exception as problem:  # noqa: BLE001 - whatever it was: a client may go on after an error, not after a deny
            why = f"the Guardian failed: {type(problem).__name__}"
            answer["result"] = _decision(params, "deny", why, reason_codes=["guardian_failure"])
        return self._signed(answer, params)

    def _signed(self, response: Object, params: Object) -> Object:
        given, meta = params.get("signature"), params.get("metadata")
        key = given.get("key_id") if isinstance(given, dict) else None
        if isinstance(key, str) and key in self.keys and isinstance(meta, dict):
            side = "result" if "result" in response else "error"
            value = signature(self.keys[key], str(meta.get("session_id")), response, side)
            response[side]["signature"] = {"algorithm": ALGORITHM, "key_id": key, "value": value}
        return response

    def _pong(self, params: Object) -> Object:
        payload = params.get("payload")
        said = {"echo": payload.get("echo") if isinstance(payload, dict) else None, "server_timestamp": self._now()}
        return {"type": "final", "acs_version": VERSION, "decision": "allow", "payload": {"status": "ok", **said}}

    def _judge(self, envelope: Object, params: Object) -> Object:
        session = self._verified(envelope, params)
        method, payload = envelope.get("method"), params["payload"]
        with self._lock:
            nonce = params.get("nonce")
            try:
                for one in (params["request_id"], *([f"nonce:{nonce}"] if nonce else [])):
                    self.db.execute("insert into seen values(?, ?)", (session, one))
            except sqlite3.IntegrityError:
                raise Refused(-32005, "request_id or nonce was used before") from None
            if method == "handshake/hello":
                return self._hello(session, payload)
            if params["acs_version"].partition(".")[0] != VERSION.partition(".")[0]:
                raise Refused(-32001, "another major version", supported_versions=[VERSION])
            row = self.db.execute("select methods, head from session where id=?", (session,)).fetchone()
            if row is None or method not in json.loads(row[0]):
                raise Refused(-32003, "not negotiated in this session", method=str(method))
            reference = str(payload.get("request_id_ref") or "") if method == "steps/toolCallResult" else ""
            found = self.db.execute("select 1 from seen where session=? and id=?", (session, reference)).fetchone()
            if reference and not found:
                self._note(params, "request_id_ref_unresolved", request_id_ref=reference)
        state = params["metadata"].get("session_state")
        claimed = (state.get("chain_hash") if isinstance(state, dict) else None) or params.get("chain_hash") or row[1]
        if claimed != row[1]:
            said = _decision(params, "deny", "the client's chain head is not ours", reason_codes=["chain_mismatch"])
        else:
            said = self._decide(str(method), params)
        return {**said, "chain_hash": self._chain(session, str(method), params, said["decision"])}

    def _verified(self, envelope: Object, params: Object) -> str:
        """The session of a request that is whole, signed, and of now."""
        meta = params.get("metadata")
        texts = all(isinstance(params.get(name), str) for name in ("request_id", "timestamp", "acs_version"))
        if not isinstance(meta, dict) or not isinstance(params.get("payload"), dict) or not texts:
            raise Refused(-32602, "a required member is missing")
        session, given = meta.get("session_id"), params.get("signature")
        if not isinstance(session, str) or not session or max(map(len, (session, params["request_id"]))) > _LONGEST_ID:
            raise Refused(-32602, "metadata.session_id or request_id")
        secret = self.keys.get(str(given.get("key_id"))) if isinstance(given, dict) else None
        if secret is None or not isinstance(given, dict) or given.get("algorithm") != ALGORITHM:
            raise Refused(-32004, "the signature is missing, or its key is not known")
        try:
            wanted, sent = signature(secret, session, envelope, "params"), datetime.fromisoformat(params["timestamp"])
        except (ValueError, RecursionError) as problem:  # half a character, a number too large, a time that is none
            raise Refused(-32602, f"{type(problem).__name__}") from None
        if not hmac.compare_digest(wanted.encode(), str(given.get("value")).encode()):
            raise Refused(-32004, "the signature does not cover the envelope")
        if sent.tzinfo is None or abs(self.clock() - sent.timestamp()) * 1000 > SKEW_MS:
            raise Refused(-32006, "it is not of now", skew_window_ms=SKEW_MS)
        return session

    def _hello(self, session: str, said: Object) -> Object:
        versions, methods = said.get("acs_versions_supported"), said.get("methods_implemented")
        if not any(str(one).partition(".")[0] == VERSION.partition(".")[0] for one in versions or ()):
            raise Refused(-32001, "no version in common", supported_versions=[VERSION])
        known = [one for one in methods or () if isinstance(one, str) and one.startswith(_JUDGED)]
        self.db.execute("insert or ignore into session values(?, ?, ?)", (session, json.dumps(known), None))
        return {
            "type": "final", "acs_version": VERSION, "negotiated_version": VERSION, "methods_evaluated": known,
            "selected_transport": "http" if "http" in (said.get("transports_supported") or ()) else "stdio",
            "signature_algorithms_supported": [ALGORITHM], "timeout_config": {"default_ms": TIMEOUT_MS},
            "on_decision_failure": "deny", "skew_window_ms": SKEW_MS,
            "approver_types_supported": ["human"] if self.asks else [], "policy_requires_provenance": False,
            "agbom_serializations_supported": [], "trace_emission": {"otel": False, "ocsf": True},
            "profiles_accepted": ["acs-core"],
        }  # fmt: skip

    def _decide(self, method: str, params: Object) -> Object:
        event = event_of(method, params)
        if event is None:
            return _decision(params, "allow")
        governed = self._governed if isinstance(event, events.PreToolUse) else None
        if governed is not None and not governed.fullmatch(event.tool_name or ""):
            return _decision(params, "deny", f"no one governs `{event.tool_name}`", reason_codes=["tool_unregistered"])
        verdict = self.hooks.fire_sync(event)
        if method in _TOLD_ONLY:
            return _decision(params, "allow", **_about(verdict))
        for inner in calls_in(event) if not verdict.blocked else ():
            said = self.hooks.fire_sync(inner)
            if said.word not in ("PASS", "ALLOW"):  # a part cannot be asked about or changed by itself
                why = f"{said.reason or said.word.lower()} (`{event.tool_name}` holds a call of `{inner.tool_name}`)"
                return _decision(params, "deny", why, **_about(said))
        return self._said(params, verdict, _about(verdict))

    def _said(self, params: Object, verdict: Verdict, more: Object) -> Object:
        """A verdict in ACS's words; what the client cannot do becomes a deny, and is noted."""
        why = verdict.reason
        if verdict.blocked or verdict.stop:
            return _decision(params, "deny", why or "stopped", **more)
        if verdict.decision is Decision.DEFER:
            return _decision(params, "defer", why or "later", defer_details=_DEFERRED, **more)
        replaced = verdict.reply.output is not msgspec.UNSET
        changed = verdict.reply.input is not None or replaced
        if verdict.decision is Decision.ASK and self.asks and not changed:
            return _decision(params, "ask", why or "?", ask_details={**_ASKED, "prompt": why}, **more)
        if verdict.decision is Decision.ASK and not self._people_say_yes(verdict):
            return self._instead(params, "approver_unavailable", f"a person must say yes first: {why}", more)
        if not changed:
            return _decision(params, "allow", why, **more)
        if not self.modifies:
            return self._instead(params, "modify_unsupported", "a hook would change it, and the client cannot", more)
        content = verdict.output if isinstance(verdict.output, str) else json.dumps(verdict.output)
        changes = {"modified_content": content} if replaced else {"parameter_overrides": verdict.input}
        return _decision(params, "modify", why or "changed by a hook", modifications=changes, **more)

    def _people_say_yes(self, verdict: Verdict) -> bool:
        """Whether the inbox, if there is one, has a yes before the client gives up; ACS cannot ask about a change."""
        answer_seconds.set(TIMEOUT_MS / 1000)
        answer = asyncio.run(ask_people(self.hooks, verdict))
        said = answer if isinstance(answer, Reply) else NOTHING
        return answer is True or (said.decision is Decision.ALLOW and said.input is None)

    def _instead(self, params: Object, code: str, why: str, more: Object) -> Object:
        with self._lock:
            self._note(params, code)
        return _decision(params, "deny", why, reason_codes=[code], **more)

    def _chain(self, session: str, method: str, params: Object, decision: str) -> str:
        """The session's next entry; its hash is the head that the response publishes."""
        request = hashlib.sha256(canonical({key: one for key, one in params.items() if key != "signature"})).hexdigest()
        entry = {
            "entry_id": str(uuid.uuid4()), "step_id": params["request_id"], "step_type": method,
            "timestamp": self._now(), "request_hash": request,
        }  # fmt: skip
        with self._lock:
            [before] = self.db.execute("select head from session where id=?", (session,)).fetchone()
            head = hashlib.sha256(canonical(entry) + bytes.fromhex(before or "")).hexdigest()
            self.db.execute("update session set head=? where id=?", (head, session))
            self._note(params, "entry", **entry, entry_hash=head, previous_hash=before, decision=decision)
        return head

    def _note(self, params: Object, finding: str, **more: object) -> None:
        row = (self._now(), params["metadata"]["session_id"], params["request_id"], finding, json.dumps(more))
        self.db.execute("insert into entry values(?, ?, ?, ?, ?)", row)

    def _now(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _decision(params: Object, decision: str, why: str = "", **more: object) -> Object:
    said = {"type": "final", "acs_version": VERSION, "request_id": params.get("request_id"), "decision": decision}
    return {**said, **({"reasoning": why} if why else {}), **more}


def _about(verdict: Verdict) -> Object:
    """Who decided, with which policy; what hooks tell the model has no place in ACS."""
    names = [name for name in (verdict.decided_by or "").split(", ") if name]
    evaluator = {"evaluator": "deterministic", "evaluator_version": "hookline"}
    if verdict.chosen:
        evaluator["policy_digest"] = policy_digest(verdict.chosen)
    references = [{"policy_id": name, "policy_name": name} for name in names]
    said: Object = {"policy_references": references, "metadata": evaluator}
    if verdict.context or verdict.messages:
        said["policy_data"] = {"hookline": {"context": [*verdict.context], "messages": [*verdict.messages]}}
    return said


class Refused(Exception):
    """A request that is not judged at all."""

    def __init__(self, code: int, why: str, **data: object) -> None:
        super().__init__(why)
        self.error: Object = {"code": code, "message": ERRORS[code], "data": {"reason": why, **data}}


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    words = (str(one.get("value", one.get("text", ""))) if isinstance(one, dict) else str(one or "") for one in parts)
    return "\n".join(words)


def _about_tool(params: Object, payload: Object) -> tuple[str, str]:
    tool = payload.get("tool") or {}
    name = str(tool.get("name") or tool.get("id") or payload.get("name") or "")
    return name, str(payload.get("execution_id") or params["request_id"])


def _call(who: Object, params: Object, payload: Object, *, server: str = "") -> events.PreToolUse:
    (name, use), given = _about_tool(params, payload), payload.get("arguments") or {}
    if not name:
        raise Refused(-32602, "a call of a tool without a name cannot be judged")
    values = {key: one.get("value", one) if isinstance(one, dict) else one for key, one in given.items()}
    tool = f"mcp__{server}__{name}" if server else name
    return events.PreToolUse(**who, tool_name=tool, tool_input=values, tool_use_id=use)


def _result(who: Object, params: Object, payload: Object) -> events.Event:
    name, use = _about_tool(params, payload)
    done = {**who, "tool_name": name or "unknown", "tool_input": {}, "tool_use_id": use}
    if payload.get("exit_status", "success") == "success":
        return events.PostToolUse(**done, tool_response=payload.get("outputs"))
    return events.PostToolUseFailure(**done, error=str(payload.get("outputs")))


def _of_subagent(who: Object, payload: Object) -> Object:
    return {**who, "agent_id": str(payload.get("subagent_session_id", ""))}


def _prompt(who: Object, _: Object, payload: Object) -> events.Event:
    return events.UserPromptSubmit(**who, prompt=_text(payload.get("content")) or json.dumps(payload))


STEPS: dict[str, Callable[[Object, Object, Object], events.Event]] = {
    "steps/sessionStart": lambda who, _, __: events.SessionStart(**who),
    "steps/sessionEnd": lambda who, _, __: events.SessionEnd(**who, reason="other"),
    "steps/userMessage": _prompt,
    "steps/agentTrigger": _prompt,
    "steps/toolCallRequest": _call,
    "steps/toolCallResult": _result,
    "steps/agentResponse": lambda who, _, payload: events.PreOutput(**who, text=_text(payload.get("content"))),
    "steps/preCompact": lambda who, _, __: events.PreCompact(**who),
    "steps/postCompact": lambda who, _, said: events.PostCompact(**who, compact_summary=str(said.get("summary", ""))),
    "steps/subagentStart": lambda who, _, payload: events.SubagentStart(**_of_subagent(who, payload)),
    "steps/subagentStop": lambda who, _, payload: events.SubagentStop(**_of_subagent(who, payload)),
}
"""ACS's steps as our events; any other is a tool called `acs:STEP` or `mcp:METHOD`, but turns, which pass."""


def event_of(method: str, params: Object) -> events.Event | None:
    """The event that a step is; `None` where there is nothing to judge."""
    payload, meta = params["payload"], params["metadata"]
    who = {"session_id": meta["session_id"], "agent_id": str(meta.get("agent_id") or "")}
    if method in STEPS:
        return STEPS[method](who, params, payload)
    if method == "protocols/MCP/tools/call":
        shell = (payload.get("tool") or {}).get("name") == "Bash"  # judged as what it is, whoever carries it
        return _call(who, params, payload, server="" if shell else str(payload.get("server") or "server"))
    room, _, step = method.partition("/")
    if step in ("turnStart", "turnEnd"):
        return None
    name = f"mcp:{method.removeprefix('protocols/MCP/')}" if room == "protocols" else f"acs:{step}"
    return events.PreToolUse(**who, tool_name=name, tool_input=payload, tool_use_id=params["request_id"])


def calls_in(event: events.Event) -> Iterator[events.PreToolUse]:
    """What a tool of an unknown name may do, told by what it is given: a shell line, a patch, a path."""
    if isinstance(event, events.PreToolUse) and not knows_tool(CLAUDE, event.tool_name, event.tool_input):
        for name, given in calls_inside(event.tool_name, event.tool_input):
            yield msgspec.structs.replace(event, tool_name=name, tool_input=given)
