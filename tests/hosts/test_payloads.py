"""Payloads recorded from the real binaries become events, in our words, with the host's own still readable."""

import json
from typing import Any

import pytest

from hookline.errors import EventError, HooklineError
from hookline.events import Event, PostToolUse, PreToolUse, UserPromptSubmit
from hookline.hosts.host import Host
from hookline.hosts.read import decode, joined, native_input, original
from hookline.hosts.table import HOSTS, find
from tests.hosts.battery import HERE, recorded

RECORDED = [(path.stem, index) for path in sorted((HERE / "recorded").glob("*.json"))
            for index in range(len(json.loads(path.read_text())))]  # fmt: skip


def events(host: str, payload: dict[str, Any], event: str = "") -> tuple[Event, ...]:
    return decode(find(host), payload, event=event)


@pytest.mark.parametrize("host, index", RECORDED)
def test_every_recorded_payload_decodes(host: str, index: int) -> None:
    """What a binary sent is an event of ours, or one that there is nothing to judge about."""
    row = find(host)
    sample = recorded(host)[index]

    decoded = decode(row, sample["payload"], event=sample["event"])

    if sample["event"] in row.unjudged:
        assert decoded == ()
    else:
        assert decoded
        assert {event.event_name for event in decoded} == {row.ours(sample["event"])}
        assert all(original(event)["name"] == host for event in decoded)


SHELL = {
    "codex": ("Bash", "echo hi"), "gemini": ("run_shell_command", "echo hi"), "qwen": ("run_shell_command", "echo hi"),
    "copilot": ("bash", "echo hi"), "kimi": ("Bash", "echo hi"), "grok": ("run_terminal_command", "echo hi"),
    "vibe": ("file_system.bash", "echo hi"), "openhands": ("terminal", "echo hi"), "cline": ("run_commands", "echo hi"),
    "droid": ("Execute", "echo hi"), "opencode": ("bash", "echo hi"),
}  # fmt: skip


@pytest.mark.parametrize("host", SHELL)
def test_every_hosts_shell_is_bash_with_a_command(host: str) -> None:
    """One hook that matches `Bash` and reads `command` judges the shell of every host."""
    row, (name, command) = find(host), SHELL[host]
    sample = next(s for s in recorded(host) if row.ours(s["event"]) == "PreToolUse")

    (event,) = decode(row, sample["payload"], event=sample["event"])

    assert isinstance(event, PreToolUse)
    assert (event.tool_name, event.tool_input["command"]) == ("Bash", command)
    assert original(event)["tool_name"] == name
    assert event.cwd or host == "opencode"  # there the plugin adds it


FILES = {
    "gemini": {"Write", "Edit", "Read", "Glob", "Grep", "LS", "Bash"},
    "qwen": {"Write", "Edit", "Read", "Glob", "Grep", "Bash"},
    "copilot": {"Write", "Edit", "Read", "Glob", "Grep", "Bash"},
    "kimi": {"Write", "Edit", "Read", "Bash"},
    "grok": {"Write", "Edit", "Read", "Grep", "LS", "Bash"},
    "vibe": {"Write", "Read", "Bash"},
    "openhands": {"Write", "Edit", "Read", "Bash", "finish"},
    "cline": {"Edit", "Read", "Bash"},
}


@pytest.mark.parametrize("host", FILES)
def test_file_tools_have_our_names_and_fields(host: str) -> None:
    """What reads and writes files is `Read`, `Write` and `Edit`, and says where in `file_path`."""
    row = find(host)
    samples = [s for s in recorded(host) if row.ours(s["event"]) == "PreToolUse"]
    decoded = [event for s in samples for event in decode(row, s["payload"], event=s["event"])]
    calls = [event for event in decoded if isinstance(event, PreToolUse)]

    assert {event.tool_name for event in calls} == FILES[host]
    for event in calls:
        if event.tool_name in ("Write", "Edit", "Read"):
            assert event.tool_input["file_path"] == "$D/proj/new.txt", event
        if event.tool_name == "Write":
            assert event.tool_input["content"] == "hello\n"
        if event.tool_name == "Edit" and event.tool_input.get("old_string"):
            assert (event.tool_input["old_string"], event.tool_input["new_string"]) == ("hello", "bye")


@pytest.mark.parametrize("host", SHELL)
def test_a_rewritten_command_goes_back_in_the_hosts_words(host: str) -> None:
    """The command changes; whatever else the host had in the input stays."""
    row = find(host)
    sample = next(s for s in recorded(host) if row.ours(s["event"]) == "PreToolUse")
    (event,) = decode(row, sample["payload"], event=sample["event"])
    assert isinstance(event, PreToolUse)

    back = native_input(row, event, {**event.tool_input, "command": "echo changed"})

    before = dict(original(event)["tool_input"])
    field = "commands" if host == "cline" else "command"
    assert back == {**before, field: ["echo changed"] if host == "cline" else "echo changed"}


def test_prompts_are_texts() -> None:
    """A prompt in parts, or under another name, is one text."""
    for host in ("kimi", "openhands", "gemini", "copilot", "qwen", "grok", "codex"):
        row = find(host)
        sample = next(s for s in recorded(host) if row.ours(s["event"]) == "UserPromptSubmit")
        (event,) = decode(row, sample["payload"], event=sample["event"])
        assert isinstance(event, UserPromptSubmit)
        assert event.prompt == "please run it"


def test_what_a_tool_returned_is_there() -> None:
    """The output is in `tool_response`, whatever the host calls it."""
    for host in ("codex", "copilot", "vibe", "openhands", "cline", "grok", "kimi"):
        row = find(host)
        samples = [s for s in recorded(host) if row.ours(s["event"]) == "PostToolUse"]
        for sample in samples:
            (event,) = decode(row, sample["payload"], event=sample["event"])
            assert isinstance(event, PostToolUse)
            assert event.tool_response is not None


def test_a_command_in_another_folder_is_judged_from_the_project() -> None:
    """Codex reports the command's folder as `cwd`; guards are told the project's, and where the command runs."""
    payload = {"hook_event_name": "PreToolUse", "cwd": "/tmp", "tool_name": "Bash", "tool_input": {"command": "ls"}}

    (event,) = decode(find("codex"), payload, cwd="/proj")

    assert isinstance(event, PreToolUse)
    assert (event.cwd, event.tool_input) == ("/proj", {"cwd": "/tmp", "command": "ls"})
    assert native_input(find("codex"), event, {**event.tool_input, "command": "pwd"}) == {"command": "pwd"}


PATCH = """*** Begin Patch
*** Add File: a.txt
+one
*** Update File: b.txt
@@
-old
+new
*** Move to: /etc/c.txt
*** Delete File: d.txt
*** End Patch"""


def test_a_patch_is_judged_file_by_file() -> None:
    """No file hides behind the first one of a patch."""
    payload = {
        "hook_event_name": "PreToolUse",
        "cwd": "/p",
        "tool_name": "apply_patch",
        "tool_input": {"command": PATCH},
    }

    found = [event for event in decode(find("codex"), payload) if isinstance(event, PreToolUse)]

    assert [(event.tool_name, event.tool_input["file_path"]) for event in found] == [
        ("Write", "a.txt"), ("Edit", "b.txt"), ("Write", "/etc/c.txt"), ("Edit", "d.txt"),
    ]  # fmt: skip


@pytest.mark.parametrize("patch", ["", "nothing", None, 3])
def test_a_patch_that_names_no_file_cannot_be_judged(patch: Any) -> None:
    """An unreadable patch is an error, so a gate denies it."""
    payload = {"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "tool_input": {"command": patch}}

    with pytest.raises(EventError, match="patch"):
        decode(find("codex"), payload)


def test_every_file_of_one_call_is_judged() -> None:
    """Cline reads several files in one call; a guard sees each."""
    call = {"id": "1", "name": "read_files", "input": {"files": [{"path": "a"}, {"path": "/etc/shadow"}, "b"]}}

    found = events("cline", {"hookName": "tool_call", "tool_call": call, "workspaceRoots": ["/p"]})

    assert [event.tool_input["file_path"] for event in found if isinstance(event, PreToolUse)] == [
        "a",
        "/etc/shadow",
        "b",
    ]


def test_commands_of_one_call_cannot_hide_each_other() -> None:
    """Every command runs in a shell of its own, so none may become another one's quoted text."""
    assert joined(["ls"]) == "ls"
    assert joined(["cd src", "make all"]) == "cd src\nmake all"
    assert joined(["cat <<EOF", "rm -rf /", "EOF"]) == "bash -c 'cat <<EOF'\nrm -rf /\nEOF"
    assert joined(["echo '", "rm -rf x"]).splitlines()[1] == "rm -rf x"
    assert joined(["if true", "ls"]) == "bash -c 'if true'\nls"


def test_a_command_with_arguments_is_a_line() -> None:
    """Cline may send a program and its words apart."""
    call = {"id": "1", "name": "run_commands", "input": {"commands": [{"command": "rm", "args": ["-rf", "a b"]}]}}

    (event,) = events("cline", {"hookName": "tool_call", "tool_call": call})

    assert isinstance(event, PreToolUse)
    assert event.tool_input["command"] == "rm -rf 'a b'"


def test_a_call_that_arrived_cut_cannot_be_judged() -> None:
    """Grok cuts long inputs; what is missing could be anything."""
    sample = next(s for s in recorded("grok") if s["event"] == "PreToolUse")

    with pytest.raises(EventError, match="arrived cut"):
        events("grok", {**sample["payload"], "toolInputTruncated": True})


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_an_unknown_event_is_an_error_that_names_it(host: Host) -> None:
    """A host that invents an event is told apart from one that says nothing."""
    with pytest.raises(EventError, match="unknown event `NoSuchThing`"):
        decode(host, {}, event="NoSuchThing")
    with pytest.raises(EventError, match="missing"):
        decode(host, {})


def test_an_unknown_host_is_refused_with_the_near_ones() -> None:
    """A typing error is pointed out."""
    with pytest.raises(HooklineError, match="did you mean `codex`"):
        find("codx")
