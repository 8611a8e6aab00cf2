"""Puts the conformance vectors of OWASP's Agent Control Standard to Hookline: `python -m tools.acs_vectors`.

Three parts, each with its count. Wire probes, after the table of obligations in `agent-evidence-vectors`: real
requests to `hookline acs` over HTTP, and a restart. The corpus's members that can be put to a Guardian: their symbolic
states (`signature_state: INVALID`, a clock, a mandate, a budget) become real signatures, clocks and hooks. And the
members about OCSF exporters: what ours writes of the same decision must agree with each that the corpus accepts, and
differ from each that it rejects. The rest is about the agent, readers, frameworks or deployments, and is not run.
"""

from __future__ import annotations

import base64
import collections
import copy
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hookline import Hooks, ask, deny
from hookline.events import PreToolUse
from hookline.hosts.acs import Guardian, signature
from hookline.records.audit.export import ocsf

Object = dict[str, Any]
SECRET = b"s" * 32
METHODS = [
    *(f"steps/{step}" for step in ("sessionStart", "sessionEnd", "userMessage", "agentTrigger", "agentResponse",
      "toolCallRequest", "toolCallResult", "subagentStart", "preCompact", "postCompact")),
    "protocols/MCP/tools/call", "system/ping",
]  # fmt: skip
HOOKS = """
from hookline import Hooks
from hookline.guards import commands

hooks = Hooks()
hooks.add(commands.block(["rm -rf *", "sudo *"]))
"""
OTHER_CODE = {"acs-f-1", "acs-f-4", "acs-f-7"}
"""Families where the corpus wants -32003 for what a policy refuses. Section 17.1 has that code for methods that were
not negotiated, and a client may go on after an error: our answer is a signed deny."""


def corpus() -> Path:
    """Where the vectors are; ImportError without the wheel."""
    found = importlib.util.find_spec("agent_evidence_vectors")
    if found is None or found.origin is None:
        raise ImportError("needs `agent-evidence-vectors`, as `make test-all` has")
    return Path(found.origin).parent / "corpora" / "vectors-acs-core"


# -- requests ----------------------------------------------------------------------------------------------------------


def stamp(moment: float) -> str:
    """A time as ACS writes it."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def request(method: str, session: str, payload: Object, at: float | None = None, **more: Any) -> Object:
    """A request, not signed yet."""
    number, meta = str(uuid.uuid4()), more.pop("meta", {})
    params = {
        "acs_version": "0.1.0", "request_id": number, "timestamp": stamp(time.time() if at is None else at),
        "metadata": {"agent_id": "probe", "session_id": session, **meta}, "payload": payload, **more,
    }  # fmt: skip
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def signed(envelope: Object, *, without: str = "", inverted: bool = False, key: str = "k1") -> Object:
    """The request with its signature, or with one that is wrong in some way."""
    view = copy.deepcopy(envelope)
    view["params"].pop(without, None)
    value = signature(SECRET, envelope["params"]["metadata"]["session_id"], view, "params")
    if inverted:
        value = base64.b64encode(bytes(byte ^ 255 for byte in base64.b64decode(value))).decode()
    envelope["params"]["signature"] = {"algorithm": "HMAC-SHA256", "key_id": key, "value": value}
    return envelope


def hello(session: str, **more: Any) -> Object:
    """The handshake."""
    said = {
        "acs_versions_supported": ["0.1.0"], "methods_implemented": METHODS, "transports_supported": ["http"],
        "provenance_producer": "none", "profiles_supported": ["acs-core"], **more,
    }  # fmt: skip
    return signed(request("handshake/hello", session, said))


def bash(command: str) -> Object:
    """What a shell call is about."""
    return {"tool": {"name": "Bash"}, "arguments": {"command": {"value": command}}}


def call(session: str, command: str = "ls", **more: Any) -> Object:
    """A shell call."""
    return request("steps/toolCallRequest", session, bash(command), **more)


# -- wire probes -------------------------------------------------------------------------------------------------------


class Served:
    """`hookline acs` on a port of its own; it can be started again with what it remembers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "hooks.py").write_text(HOOKS)
        keys = folder / "keys.json"
        keys.write_text(json.dumps({"k1": base64.b64encode(SECRET).decode()}))
        keys.chmod(0o600)
        self.start()

    def start(self) -> None:
        words = [sys.executable, "-m", "hookline", "acs", "--port", "0", "--govern", "Bash|records.*|mcp.*"]
        files = [f"--{name}={self._folder / file}" for name, file in _FILES.items()]
        self._process = subprocess.Popen([*words, *files], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def post(self, envelope: Object | bytes) -> Object:
        data = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
        asked = urllib.request.Request(self.url, data, {"content-type": "application/json"})  # noqa: S310 - our server
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            return dict(json.load(answer))


_FILES = {"hooks": "hooks.py", "keys": "keys.json", "state": "guardian.db", "audit": "audit.jsonl"}


def code(answer: Object) -> int | None:
    """The code of an error."""
    return (answer.get("error") or {}).get("code")


def decision(answer: Object) -> str | None:
    """What was decided."""
    return (answer.get("result") or {}).get("decision")


def reasons(answer: Object) -> list[str]:
    """Why, in codes."""
    return (answer.get("result") or {}).get("reason_codes") or []


def is_signed(answer: Object, session: str) -> bool:
    """Whether an answer is signed with the session's key."""
    side = "result" if "result" in answer else "error"
    return bool(answer[side].get("signature", {}).get("value") == signature(SECRET, session, answer, side))


def probes(served: Served) -> Iterator[tuple[str, bool]]:
    """Each obligation that a client can see, and whether it is met."""
    post, session = served.post, str(uuid.uuid4())
    said = post(hello(session))
    yield "C0 a call is allowed", decision(post(signed(call(session)))) == "allow"
    yield "D1a unsigned", code(post(call(session))) == -32004
    yield "D1b inverted", code(post(signed(call(session), inverted=True))) == -32004
    yield "D1c covers a part", code(post(signed(call(session), without="payload"))) == -32004
    again = signed(call(session))
    post(again)
    yield "D2a the same request", code(post(again)) == -32005
    post(signed(call(session, nonce="n1")))
    yield "D2b the same nonce", code(post(signed(call(session, nonce="n1")))) == -32005
    yield "D3a the window is told", "skew_window_ms" in said["result"]
    for name, away in (("D3b an hour ago", -3600), ("D3c in an hour", 3600)):
        yield name, code(post(signed(call(session, at=time.time() + away)))) == -32006
    first, second = post(signed(call(session))), post(signed(call(session, "rm -rf /")))
    yield "D4a the head is signed", len(first["result"]["chain_hash"]) == 64 and is_signed(first, session)
    heads = {first["result"]["chain_hash"], second["result"]["chain_hash"]}
    yield "D4b a deny goes on", decision(second) == "deny" and len(heads) == 2 and is_signed(second, session)
    wrong = {"session_state": {"chain_hash": "f" * 64}}
    yield "D4c another head", "chain_mismatch" in reasons(post(signed(call(session, meta=wrong))))
    yield from handshake_probes(post)
    yield from step_probes(post, session)
    yield "D2c the same after a restart", refuses_after_restart(served)


def handshake_probes(post: Callable[[Object | bytes], Object]) -> Iterator[tuple[str, bool]]:
    """What is negotiated, and what is not."""
    ping = post(request("system/ping", "x", {"echo": "x"}))
    yield "D5 ping", decision(ping) == "allow" and ping["result"]["payload"]["echo"] == "x"
    yield "D6a another version", code(post(hello("v", acs_versions_supported=["9.9.9"]))) == -32001
    profiles = post(hello("p", profiles_supported=["acs-core", "acs-audit"]))["result"]["profiles_accepted"]
    yield "D6b profiles", profiles == ["acs-core"]
    post(hello("m", methods_implemented=["steps/toolCallRequest"]))
    other = signed(request("protocols/MCP/tools/call", "m", bash("ls")))
    yield "D6c a method that was not negotiated", code(post(other)) == -32003
    yield "D6d no handshake", code(post(signed(call("nobody")))) is not None


def step_probes(post: Callable[[Object | bytes], Object], session: str) -> Iterator[tuple[str, bool]]:
    """Other steps than tool calls, and what cannot be read."""
    text = {"content": [{"type": "text", "value": "hello"}]}
    for step, payload in (("sessionStart", {}), ("userMessage", text), ("agentResponse", text), ("sessionEnd", {})):
        yield f"D7 {step}", decision(post(signed(request(f"steps/{step}", session, payload)))) == "allow"
    tool = signed(request("protocols/MCP/tools/call", session, bash("rm -rf /")))
    yield "D8 MCP reaches policy", decision(post(tool)) == "deny"
    unknown = request("steps/toolCallRequest", session, {"tool": {"name": "unknown"}, "arguments": {}})
    yield "D10 an unregistered tool", "tool_unregistered" in reasons(post(signed(unknown)))
    yield "D11a a long session", "error" in post(signed(call("x" * 2000)))
    deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"payload":' + b"[" * 200_000 + b"]" * 200_000 + b"}}"
    yield "D11b nested deep", code(post(deep)) == -32700


def refuses_after_restart(served: Served) -> bool:
    """Whether the same bytes are refused by a Guardian that was started again."""
    hand, step = hello("r"), signed(call("r"))
    served.post(hand)
    served.post(step)
    served.stop()
    served.start()
    served.post(hand)
    return code(served.post(step)) == -32005


def run_probes() -> dict[str, bool]:
    """All probes against a server of their own."""
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            return dict(probes(served))
        finally:
            served.stop()


# -- members -----------------------------------------------------------------------------------------------------------

Answer = tuple[str, int | None]


def said_by(answer: Object) -> Answer:
    """What a member is scored by: the verdict, and an error's code."""
    if "error" in answer:
        return "deny", answer["error"]["code"]
    word = "allow" if "negotiated_version" in answer["result"] else answer["result"]["decision"]
    return ("allow" if word == "modify" else word), None


def at(text: str) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def opened(guardian: Guardian, session: str) -> None:
    """Let a session have shaken hands."""
    guardian.db.execute("insert into session values(?, ?, ?)", (session, json.dumps(METHODS), None))


def drive_signatures(payload: Object) -> Answer:
    """Family 13: real bytes, real secrets, the clock of the request."""
    held = payload.get("verifier") or payload["observed_agent"]
    names = held.get("configured_key_ids") or list(held["secret_hex"])
    keys = {name: bytes.fromhex(held["secret_hex"][name]) for name in names if name in held["secret_hex"]}
    sent = payload["request"]["params"]
    guardian = Guardian(Hooks(), keys, clock=lambda: at(sent["timestamp"]))
    opened(guardian, sent["metadata"]["session_id"])
    answer = guardian.answer(json.dumps(payload["request"]))
    if "verifier" in payload:
        return said_by(answer)
    same = answer["result"]["signature"]["key_id"] == payload["response"]["result"]["signature"]["key_id"]
    return ("allow" if same else "deny"), None


def drive_references(payload: Object) -> Answer:
    """Family 14: whether the record under test is the one that our Guardian would have."""
    guardian = Guardian(Hooks(), {"k1": SECRET})
    for session, records in payload["guardian_session_records"].items():
        opened(guardian, session)
        guardian.db.executemany("insert into seen values(?, ?)", [(session, one["request_id"]) for one in records])
    asked = copy.deepcopy(payload["request"])
    asked["params"]["timestamp"] = stamp(time.time())
    guardian.answer(json.dumps(signed(asked)))
    [[count]] = guardian.db.execute("select count(*) from entry where finding='request_id_ref_unresolved'").fetchall()
    return ("allow" if bool(count) == bool(payload["guardian_audit_record"]) else "deny"), None


def hooks_for(payload: Object) -> Hooks:
    """What a member calls intent, budget, approval or escalation is policy: one hook."""
    spent: collections.Counter[str] = collections.Counter()
    made, rules = Hooks(), []
    if budget := payload.get("policy", {}).get("budget"):

        def spend(event: PreToolUse) -> Any:
            spent[event.tool_name] += 1
            over = event.tool_name == budget["tool"] and spent[event.tool_name] > budget["max_calls_per_turn"]
            return deny("the budget is spent") if over else None

        rules.append(spend)
    if intent := payload.get("intent"):
        rules.append(lambda event: None if event.tool_name in intent["parsed"] else deny("outside the intent"))
    if approval := payload.get("approval"):
        held = (approval["issued_for"]["agent_id"], approval["issued_for"]["tool"])
        made = Hooks(on_ask=lambda verdict: (verdict.event.agent_id, verdict.event.tool_name) == held)
    if approval or "policy_verdict_before_mapping" in payload:
        rules.append(lambda event: ask("approval is required"))
    for number, rule in enumerate(rules):
        made.add(PreToolUse, rule, name=f"rule-{number}")
    return made


def drive_steps(payload: Object, *, fresh_ids: bool) -> Answer:
    """One step, or several, in a session that has shaken hands unless the member does so itself."""
    guardian, session = Guardian(hooks_for(payload), {"k1": SECRET}), str(uuid.uuid4())
    steps = [one["request"] for one in payload.get("steps") or [payload]]
    if not any(one["method"] == "handshake/hello" for one in steps):
        guardian.answer(json.dumps(hello(session)))
    said: Answer = ("", None)
    for one in steps:
        said = said_by(guardian.answer(json.dumps(_as_sent(one, payload, session, fresh_ids=fresh_ids))))
    return said


def _as_sent(one: Object, payload: Object, session: str, *, fresh_ids: bool) -> Object:
    tool, shakes = one["params"].get("tool", {}), one["method"] == "handshake/hello"
    body = one["params"] if shakes else {"tool": {"name": tool["name"]}, "arguments": tool["arguments"]}
    meta = {"agent_id": one["metadata"].get("agent_id", "a")}
    made = request(one["method"].replace("hooks/", "steps/"), session, body, meta=meta)
    made["params"]["acs_version"] = f"{one['acs']}.0"
    if not fresh_ids:
        made["params"]["request_id"] = one["request_id"]
    if "guardian_clock" in payload:
        made["params"]["timestamp"] = stamp(time.time() - at(payload["guardian_clock"]) + at(one["timestamp"]))
    state = payload.get("signature_state", "VALID")
    if state == "ABSENT":
        return made
    return signed(made, inverted=state == "INVALID", without="timestamp" if state == "COVERS_SUBSET" else "")


def drive(family: int, payload: Object) -> Answer | None:
    """What our Guardian says to a member; `None` for one that cannot be put to a Guardian."""
    if family == 13 and ("verifier" in payload or "response" in payload):
        return drive_signatures(payload)
    if family == 14 and "request" in payload:
        return drive_references(payload)
    if family in (1, 2, 3, 4, 7, 9) and "approver_response" not in payload:
        return drive_steps(payload, fresh_ids=family == 7)  # its members repeat one id, which replay protection refuses
    return None


def run_members() -> list[tuple[str, str, str]]:
    """Family, id and score of each member that was put to the Guardian."""
    folder = corpus()
    rows = []
    for member in json.loads((folder / "MANIFEST.json").read_text())["vectors"]:
        wanted, family = member["expected"], member["family"]
        found = drive(int(family.rpartition("-")[2]), json.loads((folder / member["file"]).read_text())["payload"])
        if found is not None:
            rows.append((family, member["id"], _score(wanted, found)))
    return rows


def _score(wanted: Object, found: Answer) -> str:
    if wanted["verdict"] == "unmeasurable":
        return "unmeasurable"
    if found[0] != wanted["verdict"]:
        return f"wrong: {found[0]}"
    return "right" if wanted["codeValue"] in (None, found[1]) else "right, other code"


# -- the exporter ------------------------------------------------------------------------------------------------------

_WORDS: dict[str, Object] = {
    "allow": {"decision": "allow"}, "deny": {"decision": "deny", "blocked": True}, "ask": {"decision": "ask"},
    "defer": {"decision": "defer"}, "modify": {"decision": "allow", "rewritten": {"command": "ls"}},
}  # fmt: skip
_COMPARED = ("class_uid", "class_name", "category_uid", "type_uid", "action_id", "action", "disposition_id",
             "disposition", "is_alert", "severity_id")  # fmt: skip


def shown(event: Object, names: tuple[str, ...]) -> Object:
    """The fields that a member can be about."""
    acs = event.get("unmapped", {}).get("acs", {})
    pair = {name: acs.get(name) for name in ("session_id", "request_id", "decision")}
    uid = event.get("metadata", {}).get("correlation_uid")
    return {**{name: event.get(name) for name in names}, "acs": pair, "correlation_uid": uid}


def run_exporter() -> list[tuple[str, str, bool]]:
    """Family, id, and whether ours agrees with an accepted event, or differs from a rejected one."""
    folder, rows = corpus(), []
    for member in json.loads((folder / "MANIFEST.json").read_text())["vectors"]:
        theirs = json.loads((folder / member["file"]).read_text())["payload"].get("record", {}).get("ocsf")
        if member["family"] not in ("acs-f-17", "acs-f-18") or not _is_ours(theirs):
            continue
        acs = theirs["unmapped"]["acs"]
        session, step = _pair(theirs)
        record = {
            "run": session,
            "tool_use_id": step,
            "event": "UserPromptSubmit",
            **_WORDS[acs.get("decision", "allow")],
        }
        ours = [*ocsf(record)][-1]
        same = shown(ours, _fields(theirs)) == shown(theirs, _fields(theirs))
        rows.append((member["family"], member["id"], same == (member["expected"]["verdict"] == "allow")))
    return rows


def _is_ours(theirs: Object | None) -> bool:
    """Not about what we have no record of: inventories, policies' versions, decisions that came too late, skills."""
    if not theirs or theirs["class_uid"] not in (2004, 6002) or "authorizations" in theirs:
        return False
    allowed = theirs["unmapped"]["acs"].get("decision", "allow") == "allow"
    finding = theirs["class_uid"] == 2004
    return not theirs.get("finding_info", {}).get("types") and not (
        allowed and finding and theirs.get("is_alert") is False
    )


def _fields(theirs: Object) -> tuple[str, ...]:
    return tuple(name for name in _COMPARED if name in theirs or theirs["class_uid"] == 2004)


def _pair(theirs: Object) -> tuple[str, str]:
    """Session and request, whichever of the places has them."""
    acs, joined = theirs["unmapped"]["acs"], str(theirs["metadata"].get("correlation_uid", ":"))
    return acs.get("session_id") or joined.partition(":")[0], acs.get("request_id") or joined.partition(":")[2]


def main() -> int:
    """Print the counts; 1 if anything is not as it should be."""
    wire, members, exported = run_probes(), run_members(), run_exporter()
    scores = collections.Counter(score for _, _, score in members)
    print(f"wire probes: {sum(wire.values())} of {len(wire)}")
    print(f"members put to the Guardian: {len(members)}: {', '.join(f'{n} {score}' for score, n in scores.items())}")
    print(f"OCSF exporter's members: {sum(ok for _, _, ok in exported)} of {len(exported)}")
    bad: list[object] = [name for name, ok in wire.items() if not ok]
    bad += [
        row for row in members if row[2].startswith("wrong") or (row[2].endswith("code") and row[0] not in OTHER_CODE)
    ]
    bad += [row for row in exported if not row[2]]
    for one in bad:
        print("  not as expected:", one)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
