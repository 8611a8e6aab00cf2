"""`hookline acs`: a Guardian that signs, remembers, fails closed, and is held to the standard's own vectors."""

from __future__ import annotations

import base64
import collections
import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, ask, context, deny, rewrite
from hookline.cli.main import main
from hookline.core.engine import Approval
from hookline.events import PostToolUse, PreToolUse
from hookline.guards import commands, paths
from hookline.hosts.acs import Guardian, canonical
from hookline.replies import defer, replace_output, stop
from tools import acs_vectors as acs

pytest.importorskip("rfc8785", reason="needs rfc8785: `pip install 'hookline[acs]'`")


def guardian(hooks: Hooks | None = None, **options: Any) -> Guardian:
    made = Guardian(hooks or Hooks(), {"k1": acs.SECRET}, **options)
    made.answer(json.dumps(acs.hello("s")))
    return made


def asked(made: Guardian, envelope: acs.Object) -> acs.Object:
    answer = made.answer(json.dumps(acs.signed(envelope)))
    assert acs.is_signed(answer, envelope["params"]["metadata"]["session_id"])
    return answer


# -- the standard's vectors --------------------------------------------------------------------------------------------


def test_every_wire_probe_is_met() -> None:
    """26 of 26, over HTTP and across a restart: `python -m tools.acs_vectors`."""
    found = acs.run_probes()

    assert len(found) == 26
    assert [name for name, met in found.items() if not met] == []


def test_every_member_for_a_guardian_has_the_right_decision() -> None:
    """37 of the corpus's 140 can be put to a Guardian; four want another code for a policy's refusal."""
    pytest.importorskip("agent_evidence_vectors", reason="needs `agent-evidence-vectors`, as `make test-all` has")
    rows = acs.run_members()

    assert collections.Counter(score for _, _, score in rows) == {
        "right": 32, "right, other code": 4, "unmeasurable": 1,
    }  # fmt: skip
    assert {family for family, _, score in rows if score == "right, other code"} <= acs.OTHER_CODE


def test_the_ocsf_exporter_agrees_with_the_members_about_it() -> None:
    """What we write of a decision is what the corpus accepts, and never what it rejects."""
    pytest.importorskip("agent_evidence_vectors", reason="needs `agent-evidence-vectors`, as `make test-all` has")
    rows = acs.run_exporter()

    assert len(rows) == 14
    assert [row for row in rows if not row[2]] == []


# -- decisions ---------------------------------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "deny": (deny("no"), "deny", {"reasoning": "no"}),
    "stop": (stop("enough"), "deny", {"reasoning": "enough"}),
    "ask": (ask("sure?"), "deny", {"reason_codes": ["approver_unavailable"]}),
    "defer": (defer("later"), "defer", {"reasoning": "later"}),
    "rewrite": (
        rewrite({"command": "ls -l"}),
        "modify",
        {"modifications": {"parameter_overrides": {"command": "ls -l"}}},
    ),
    "context": (context("mind"), "allow", {"policy_data": {"hookline": {"context": ["mind"], "messages": []}}}),
    "nothing": (None, "allow", {}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_reply_has_its_disposition(name: str) -> None:
    """With the fields that the standard wants, and the policy that decided."""
    reply, word, fields = ANSWERS[name]
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: reply, name="rule")
    result = asked(guardian(hooks), acs.call("s"))["result"]

    assert result["decision"] == word
    assert {key: result[key] for key in fields} == fields
    assert result["metadata"]["policy_digest"].startswith("sha256:")


def test_what_a_client_cannot_do_is_a_deny_and_on_record() -> None:
    """A client that can ask is asked; one that cannot change a call is denied it."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: ask("sure?") if "ls" in str(event.tool_input) else rewrite({}), name="rule")
    able, unable = guardian(hooks, asks=True), guardian(hooks, modifies=False)

    assert asked(able, acs.call("s"))["result"]["ask_details"]["timeout_decision"] == "deny"
    assert asked(unable, acs.call("s", "rm"))["result"]["reason_codes"] == ["modify_unsupported"]
    findings = [row[0] for row in unable.db.execute("select finding from entry order by rowid")]
    assert findings == ["modify_unsupported", "entry"]


@pytest.mark.parametrize("granted", [True, False])
def test_a_question_that_the_client_cannot_put_goes_to_the_inbox(granted: bool) -> None:
    """Where people are named for it; a yes is an allow, and on record with the person's name."""
    told: list[Any] = []
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: ask("sure?"), name="asks")
    hooks.engine.fallback = lambda verdict: Approval(by="ada", how="page", granted=granted)
    hooks.observe(told.append, inline=True)

    result = asked(guardian(hooks), acs.call("s"))["result"]

    assert result["decision"] == ("allow" if granted else "deny")
    assert [one.approval.by for one in told if getattr(one, "approval", None)] == ["ada"]


@pytest.mark.parametrize("able", [True, False])
def test_what_is_asked_about_and_changed_is_never_let_through_unchanged(able: bool) -> None:
    """ACS has no question about a change: the inbox decides, and what then runs is the changed call."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: ask("sure?") | rewrite({"command": "ls -l"}), name="asks")
    refused = asked(guardian(hooks, asks=able), acs.call("s"))["result"]
    hooks.engine.fallback = lambda verdict: True
    approved = asked(guardian(hooks, asks=able), acs.call("s"))["result"]

    assert refused["decision"] == "deny"
    assert (approved["decision"], approved["modifications"]) == (
        "modify",
        {"parameter_overrides": {"command": "ls -l"}},
    )


def test_a_result_is_judged_and_can_be_replaced() -> None:
    """PostToolUse, as `modified_content`."""
    hooks = Hooks()
    hooks.add(PostToolUse, lambda event: replace_output("[secret]"), name="redact")
    payload = {"tool": {"name": "Read"}, "outputs": {"text": "x"}, "exit_status": "success"}
    result = asked(guardian(hooks), acs.request("steps/toolCallResult", "s", payload))["result"]

    assert (result["decision"], result["modifications"]) == ("modify", {"modified_content": "[secret]"})


@pytest.mark.parametrize("answer", [1 / 3, deny("\ud800")])
def test_a_guardian_that_fails_denies(answer: Any) -> None:
    """A hook that raises, and a reason that cannot be signed: a signed deny, never an error, which may be ignored."""

    def fail(event: PreToolUse) -> Any:
        if isinstance(answer, float):
            raise RuntimeError("broken")
        return answer

    hooks = Hooks()
    hooks.add(PreToolUse, fail, name="broken")
    assert asked(guardian(hooks), acs.call("s"))["result"]["decision"] == "deny"


def test_a_database_that_fails_denies() -> None:
    """What cannot be remembered is not let through."""
    made = guardian()
    made.db.execute("drop table entry")

    assert asked(made, acs.call("s"))["result"]["reason_codes"] == ["guardian_failure"]


BAD = {
    "no JSON": (b"{", -32700),
    "no object": (b"[]", -32600),
    "no params": (b'{"method": "x"}', -32600),
    "a number that JSON's canonical form does not have": (1 << 60, -32602),
    "no payload": ({"payload": None}, -32602),
    "no timestamp": ({"timestamp": 5}, -32602),
    "a time that is none": ({"timestamp": "now"}, -32602),
    "a time without a zone": ({"timestamp": "2026-11-18T09:00:00"}, -32006),
    "no session": ({"metadata": {"session_id": ""}}, -32602),
    "no metadata": ({"metadata": 5}, -32602),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_code(name: str) -> None:
    """Signed or not; nothing of it is judged."""
    given, code = BAD[name]
    made = guardian()
    if isinstance(given, bytes):
        assert acs.code(made.answer(given)) == code
        return
    envelope = acs.signed(acs.call("s"))
    envelope["params"] |= given if isinstance(given, dict) else {"payload": {"n": given}}
    if isinstance(envelope["params"]["metadata"], dict) and isinstance(given, dict):
        acs.signed(envelope)

    assert acs.code(made.answer(json.dumps(envelope))) == code


@pytest.mark.parametrize("number", [1 << 60, -1, 0.5, {"a": 1}, [], None, True, "x" * 9])
def test_an_id_of_any_kind_has_an_answer(number: Any) -> None:
    """One that cannot be signed is left out of it."""
    envelope = acs.call("s") | {"id": number}
    answer = guardian().answer(json.dumps(acs.signed(envelope) if number != 1 << 60 else envelope))

    assert acs.is_signed(answer, "s") or number == 1 << 60
    assert acs.decision(answer) == "allow" or acs.code(answer) in (-32004, -32602)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"tool": {}},
        {"tool": "Bash"},
        {"tool": {"name": ""}, "arguments": {}},
        {"tool": []},
        {"outputs": {}, "exit_status": "x"},
    ],
)
def test_a_call_without_a_name_is_not_let_through(payload: Any) -> None:
    """What cannot be judged is refused or denied, in both kinds of step."""
    for method in ("steps/toolCallRequest", "protocols/MCP/tools/call"):
        answer = asked(guardian(), acs.request(method, "s", payload))
        assert acs.decision(answer) == "deny" or acs.code(answer) == -32602


def test_a_tool_of_an_unknown_name_is_judged_by_what_it_holds(tmp_path: Path) -> None:
    """As on every host: a shell line under another name is a shell line, a path is read or written."""
    hooks = Hooks()
    hooks.add(commands.block(["rm -rf *"]), paths.stay_inside(tmp_path))
    made = guardian(hooks)
    for name, given, word in (
        ("do_it", {"command": "rm -rf /"}, "deny"),
        ("run_anything", {"script": "cd / && rm -rf *"}, "deny"),
        ("save", {"path": "/etc/passwd", "text": "x"}, "deny"),
        ("do_it", {"command": "ls"}, "allow"),
        ("lookup", {"id": "c-1"}, "allow"),
    ):
        arguments = {key: {"value": value} for key, value in given.items()}
        call = acs.request("steps/toolCallRequest", "s", {"tool": {"name": name}, "arguments": arguments})
        assert (name, given, acs.decision(asked(made, call))) == (name, given, word)


def test_a_key_that_is_not_known_is_not_replaced_by_another() -> None:
    """And an algorithm that is not ours is not a signature."""
    made = guardian()
    for change in ({"key_id": "k2"}, {"algorithm": "none"}, {"value": ""}, {"value": None}, {"value": "é"}):
        envelope = acs.signed(acs.call("s"))
        envelope["params"]["signature"] |= change
        assert acs.code(made.answer(json.dumps(envelope))) == -32004


def test_many_threads_leave_one_chain() -> None:
    """Each entry names the one before it, and the last is the head."""
    made = guardian()
    threads = [threading.Thread(target=lambda: [asked(made, acs.call("s")) for _ in range(10)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = [json.loads(row[0]) for row in made.db.execute("select more from entry order by rowid")]

    assert len(entries) == 80
    assert [one["previous_hash"] for one in entries] == [None, *(one["entry_hash"] for one in entries[:-1])]
    assert made.db.execute("select head from session").fetchone() == (entries[-1]["entry_hash"],)


# -- the command -------------------------------------------------------------------------------------------------------


def keys(folder: Path, mode: int = 0o600, secret: bytes = acs.SECRET) -> Path:
    path = folder / "keys.json"
    path.write_text(json.dumps({"k1": base64.b64encode(secret).decode()}))
    path.chmod(mode)
    return path


def test_stdio_takes_framed_messages(tmp_path: Path) -> None:
    """One after another; what a hook prints does not get between them; a replay is refused by the next process, too."""
    (tmp_path / "hooks.py").write_text(acs.HOOKS + "print('loaded')\n")
    words = [sys.executable, "-m", "hookline", "acs", f"--hooks={tmp_path / 'hooks.py'}", f"--keys={keys(tmp_path)}",
             f"--state={tmp_path / 'db'}", f"--audit={tmp_path / 'audit.jsonl'}"]  # fmt: skip
    first = acs.signed(acs.call("s", "rm -rf /"))
    messages = [json.dumps(one).encode() for one in (acs.hello("s"), first, first)]
    data = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in (*messages, b" " * (5 << 20)))
    ran = subprocess.run(words, input=data, capture_output=True, check=True)
    answers, left = [], ran.stdout
    while left:
        head, _, left = left.partition(b"\r\n\r\n")
        size = int(head.partition(b":")[2])
        answers.append(json.loads(left[:size]))
        left = left[size:]
    again = subprocess.run(words, input=data[: len(data) - (5 << 20)], capture_output=True, check=True).stdout

    assert [acs.decision(answer) or acs.code(answer) for answer in answers[1:]] == ["deny", -32005, -32700]
    assert again.count(b"REPLAY_DETECTED") == 3
    assert json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[0])["decision"] == "deny"


@pytest.mark.parametrize("bad", ["others can read", "32 bytes", "no such", "not JSON"])
def test_keys_that_cannot_be_used_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str) -> None:
    """Before anything is served."""
    path = keys(tmp_path, 0o644 if bad == "others can read" else 0o600, b"x" if bad == "32 bytes" else acs.SECRET)
    if bad == "no such":
        path.unlink()
    if bad == "not JSON":
        path.write_text("{")

    assert main(["acs", f"--keys={path}", "--settings", "{}"]) == 1
    said = {"no such": "No such file", "not JSON": "expected secrets as"}.get(bad, bad)
    assert said in capsys.readouterr().err


def test_what_is_signed_is_canonical() -> None:
    """RFC 8785: keys by UTF-16, numbers as ECMAScript writes them."""
    assert canonical({"\u20ac": 1, "\r": 1e21, "1": 0.5}) == '{"\\r":1e+21,"1":0.5,"\u20ac":1}'.encode()


def test_the_database_is_where_it_was_told(tmp_path: Path) -> None:
    """A plain SQLite file, for those who audit the Guardian."""
    made = guardian(database=tmp_path / "guardian.db")
    asked(made, acs.call("s", at=time.time()))
    made.db.close()
    with sqlite3.connect(tmp_path / "guardian.db") as db:
        assert db.execute("select count(*) from entry").fetchone() == (1,)
    db.close()
