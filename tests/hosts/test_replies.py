"""Replies in each host's words, held against what the real binaries did with them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.events import CATALOG, Event, PostToolUse, PreToolUse, SessionStart, Stop, UserPromptSubmit
from hookline.hosts.decode import decode
from hookline.hosts.encode import MOST_BYTES, encode, refuse
from hookline.hosts.host import ABILITIES, EXIT, Host, Response, able
from hookline.hosts.table import HOSTS, find
from hookline.replies import (
    NOTHING,
    Reply,
    allow,
    ask,
    context,
    defer,
    deny,
    keep_going,
    replace_output,
    rewrite,
    stop,
)
from tests.hosts.battery import REASON, cell, recorded, replies

MEASURED = ["claude", "codex", "gemini", "qwen", "copilot", "kimi", "grok", "vibe", "openhands", "cline"]
CHANGED = {"command": "echo changed"}


def shell_call(host: str) -> PreToolUse:
    """The recorded shell call of a host."""
    row = find(host)
    if host == "claude":
        return PreToolUse(cwd="/p", tool_name="Bash", tool_input={"command": "echo hi"})
    sample = next(s for s in recorded(host) if row.ours(s["event"]) == "PreToolUse")
    (event,) = decode(row, sample["payload"], event=sample["event"])
    assert isinstance(event, PreToolUse)
    return event


def sent(response: Response) -> dict[str, Any]:
    """A response in the battery's form."""
    made: dict[str, Any] = {}
    if response.stdout:
        made["stdout"] = json.loads(response.stdout) if response.stdout[:1] == b"{" else response.stdout.decode()
    if response.exit_code:
        made |= {"exit": response.exit_code, "stderr": response.stderr.decode()}
    return made


def case_of(host: str, slot: str, response: Response, rewritten: Any = None) -> str:
    """Which reply of the battery a response is."""
    known = replies(host, rewritten)
    found = [case for case, reply in known.items() if case.startswith(slot + ":") and reply == sent(response)]
    assert found, f"{host} was never asked what it does with {sent(response)}"
    return found[0]


def refused(host: str, response: Response) -> None:
    """Assert that the binary did not run a call it got this answer to."""
    answer = sent(response).get("stdout")
    if host == "cline" and isinstance(answer, dict) and not answer.get("cancel"):
        said = answer["overrideInput"]
        assert set(said) == {"commands"}
        assert said["commands"][0].startswith("printf '%s\\n' ")
        assert said["commands"][0].endswith("; exit 1")
        assert not cell("pre:cline_override", host).ran
        return
    assert not cell(case_of(host, "pre", response), host).ran


@pytest.mark.parametrize("host", MEASURED)
@pytest.mark.parametrize("reply", [deny(REASON), stop(REASON), deny(REASON) | context("x"), rewrite({}) | deny(REASON)])
def test_a_deny_is_one_that_the_binary_obeyed(host: str, reply: Reply) -> None:
    """No host is told to deny in words that it lets pass; a stop before a tool is a deny everywhere."""
    response = encode(find(host), reply, shell_call(host))

    if host == "claude" and reply.stop:
        assert sent(response)["stdout"]["hookSpecificOutput"]["permissionDecision"] == "deny"
    else:
        refused(host, response)


@pytest.mark.parametrize("host", MEASURED)
def test_the_model_reads_why(host: str) -> None:
    """The reason reaches the model; on Cline, through the command that stands in for the refused one."""
    response = encode(find(host), deny(REASON), shell_call(host))

    if host == "cline":
        assert REASON in sent(response)["stdout"]["overrideInput"]["commands"][0]
    else:
        assert cell(case_of(host, "pre", response), host).model_saw


@pytest.mark.parametrize("host", MEASURED)
def test_what_went_wrong_here_is_a_deny_that_the_binary_obeyed(host: str) -> None:
    """A crash, a hang, an unknown event or no event at all: the answer is the host's own deny."""
    row = find(host)

    for response in (refuse(row, REASON, "PreToolUse"), refuse(row, REASON), refuse(row, REASON, "NoSuchEvent")):
        assert not cell(case_of(host, "pre", response), host).ran
    refused(host, refuse(row, REASON, "PreToolUse", shell_call(host)))


@pytest.mark.parametrize("host", MEASURED)
def test_a_question_is_asked_or_denied(host: str) -> None:
    """Where nobody can be asked, the call does not run."""
    row = find(host)
    response = encode(row, ask(REASON), shell_call(host))

    if "ask" in row.says["PreToolUse"]:
        assert case_of(host, "pre", response) == "pre:ask"
        assert not cell("pre:ask", host).ran  # what headless runs do, with nobody there
    else:
        assert REASON in (response.stdout + response.stderr).decode()
        assert encode(row, deny(f"{REASON} ({row.title} has no way to ask)"), shell_call(host)) == response


@pytest.mark.parametrize("host", MEASURED)
def test_a_rewritten_call_runs_as_rewritten_or_not_at_all(host: str) -> None:
    """What runs is what was judged: a host that cannot rewrite is told to deny, and what to call instead."""
    row, event = find(host), shell_call(host)
    new = {**event.tool_input, **CHANGED}

    response = encode(row, rewrite(new), event)

    if "rewrite" in row.says["PreToolUse"]:
        native = {"commands": ["echo changed"]} if host == "cline" else new
        case = case_of(host, "pre", response, native)
        assert cell(case, host).ran2
        assert not cell(case, host).ran
    else:
        assert "echo changed" in (response.stdout + response.stderr).decode()
        assert "deny" in response.stdout.decode()


@pytest.mark.parametrize("host", MEASURED)
def test_a_prompt_is_refused_as_the_binary_obeyed(host: str) -> None:
    """Where prompts can be gated at all."""
    row = find(host)
    response = encode(row, deny(REASON), UserPromptSubmit(prompt="x"))

    if able(row, "gate prompt"):
        assert not cell(case_of(host, "prompt", response), host).ran
    else:
        assert b"has no way to do `deny`" in encode(row, deny(REASON), UserPromptSubmit(prompt="x")).stderr
        assert response.stdout == b""


@pytest.mark.parametrize("host", MEASURED)
def test_the_agent_is_sent_back_to_work_as_the_binary_obeyed(host: str) -> None:
    """Where a hook may send the agent back, one more model call follows, with the reason."""
    row = find(host)
    response = encode(row, keep_going(REASON), Stop())

    if able(row, "keep going"):
        after = cell(case_of(host, "stop", response), host)
        assert after.model_saw
        assert after.model_calls > cell("pre:none", host).model_calls
    else:
        assert response.stdout == b""
        assert b"keep_going" in response.stderr


@pytest.mark.parametrize("host", [name for name in MEASURED if name not in ("copilot", "vibe", "cline")])
@pytest.mark.parametrize("event, slot", [(PreToolUse(tool_name="Bash"), "pre"), (PostToolUse(tool_name="Bash"), "post"),
                                         (UserPromptSubmit(), "prompt"), (SessionStart(), "start")])  # fmt: skip
def test_context_reached_the_model(host: str, event: Event, slot: str) -> None:
    """Context is sent only in a form that the model was seen to read."""
    row = find(host)
    response = encode(row, context(REASON), event)

    if "context" in row.says.get(event.event_name, {}):
        assert cell(case_of(host, slot, response), host).model_saw
    else:
        assert response.stdout == b""


REPLIES = st.builds(
    Reply,
    decision=st.sampled_from([reply.decision for reply in (NOTHING, allow(), ask(), defer(), deny())]),
    reasons=st.lists(st.text(max_size=20), max_size=2).map(tuple),
    stop=st.booleans(),
    stop_reason=st.none() | st.text(max_size=20),
    context=st.lists(st.text(min_size=1, max_size=10), max_size=2).map(tuple),
    messages=st.lists(st.text(min_size=1, max_size=10), max_size=2).map(tuple),
    input=st.none() | st.just({"command": "echo changed"}),
)


@given(reply=REPLIES, host=st.sampled_from(list(HOSTS.values())))
def test_whoever_says_no_is_heard_on_every_host(reply: Reply, host: Host) -> None:
    """Whatever else a reply holds: what blocks is a native deny, with a reason that is not empty."""
    event = PreToolUse(cwd="/p", tool_name="Bash", tool_input={"command": "echo hi"})
    response = encode(host, reply, event)

    if reply.decision is deny().decision or reply.stop:
        assert response.stdout or (response.exit_code == 2 and response.stderr)
        assert says_deny(host, response)
    elif reply.decision is not ask().decision and reply.decision is not defer().decision and reply.input is None:
        assert not says_deny(host, response)


def says_deny(host: Host, response: Response) -> bool:
    """Whether a response is, but for its text, the deny of the host's row."""
    template = host.says["PreToolUse"]["deny"]
    if template == EXIT:
        return response.exit_code == 2
    if host.refuses_commands_only:
        return b"denied: " in response.stdout or b'"cancel":true' in response.stdout
    words = json.loads(response.stdout or b"{}")
    assert isinstance(template, Mapping)
    return all(_covers(words.get(key), value) for key, value in template.items())


def _covers(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_covers(found.get(key), value) for key, value in wanted.items())
    return bool(found) if wanted == "{text}" else bool(found == wanted)


@given(reply=REPLIES, host=st.sampled_from(list(HOSTS.values())), name=st.sampled_from(sorted(CATALOG)))
def test_every_reply_can_be_said_on_every_event_of_every_host(reply: Reply, host: Host, name: str) -> None:
    """Nothing a hook answers makes the writer fail: what cannot be said is left out or denied."""
    from hookline.errors import ReplyMismatch

    event = CATALOG[name].cls()
    try:
        response = encode(host, reply, event)
    except ReplyMismatch:
        assert host.body is not None  # the engine never lets such a reply through
        return
    assert isinstance(response, Response)


def test_a_replaced_output_keeps_the_shape_of_the_tool() -> None:
    """Claude Code ignores a bare text; the text goes where the output was, and nothing of the old one stays."""
    before = {"stdout": "secret", "stderr": "secret too", "interrupted": False, "isImage": False}
    event = PostToolUse(tool_name="Bash", tool_response=before)

    response = encode(find("claude"), replace_output("[redacted]"), event)

    after = json.loads(response.stdout)["hookSpecificOutput"]["updatedToolOutput"]
    assert after == {"stdout": "[redacted]", "stderr": "", "interrupted": False, "isImage": False}


def test_a_replaced_output_is_a_text_where_the_host_wants_one() -> None:
    """Copilot and Vibe take texts."""
    event = PostToolUse(tool_name="Bash", tool_response={"stdout": "secret"})

    copilot = json.loads(encode(find("copilot"), replace_output({"a": 1}), event).stdout)
    vibe = json.loads(encode(find("vibe"), replace_output("[redacted]"), event).stdout)

    assert copilot == {"modifiedResult": {"textResultForLlm": '{"a":1}', "resultType": "success"}}
    assert vibe == {"decision": "deny", "reason": "[redacted]"}


LONG = "\x01é" * 1_000_000
LENGTHY: Mapping[str, Callable[[str], Reply]] = {
    "deny": deny,
    "context": lambda text: deny("no") | context(text),
    "messages": lambda text: deny("no") | Reply(messages=(text, text)),
    "rewrite": lambda text: rewrite({"command": text}),
    "stop": stop,
    "ask": ask,
}


def shape(response: Response) -> Any:
    """The fields of an answer, without what stands in them."""
    return response.exit_code, list(sent(response).get("stdout", ()))


@pytest.mark.parametrize("kind", LENGTHY)
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_an_answer_that_is_too_long_is_cut_and_means_the_same(host: Host, kind: str) -> None:
    """Grok and Qwen Code drop an answer of more than a MiB without a word, and run the tool."""
    event = shell_call("claude")
    short = deny("no") if kind == "rewrite" else LENGTHY[kind]("short")

    response = encode(host, LENGTHY[kind](LONG), event)

    assert len(response.stdout) + len(response.stderr) <= MOST_BYTES
    assert shape(response) == shape(encode(host, short, event))


@pytest.mark.parametrize(
    "output", [LONG, {"stdout": LONG, "exit": 0}, ["x"] * MOST_BYTES], ids=["text", "fields", "parts"]
)
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_an_output_that_is_too_long_is_cut(host: Host, output: Any) -> None:
    """What it was put in place of is not read instead."""
    event = PostToolUse(cwd="/p", tool_name="Bash", tool_input={}, tool_response={"stdout": "secret"})
    short = encode(host, replace_output("short"), event)

    response = encode(host, replace_output(output), event)

    assert len(response.stdout) + len(response.stderr) <= MOST_BYTES
    assert shape(response) == shape(short)
    assert b"secret" not in response.stdout


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_a_text_that_is_not_unicode_is_told_all_the_same(host: Host) -> None:
    """A hook may quote a file name that is not UTF-8."""
    response = encode(host, deny("not \udcff.txt"), shell_call("claude"))

    assert b"not ?.txt" in response.stdout + response.stderr


def test_saying_nothing_prints_nothing() -> None:
    """Kimi takes any output for context, so silence is silence."""
    for host in HOSTS.values():
        assert encode(host, NOTHING, PreToolUse(tool_name="Bash")) == Response()


def test_every_row_can_deny_a_tool_call() -> None:
    """A host that could not would not be worth a row."""
    for host in HOSTS.values():
        assert able(host, "deny")
        assert set(ABILITIES) >= {"deny", "ask", "rewrite"}
        assert set(host.says) <= set(host.events.values()) | set(host.aliases.values())
