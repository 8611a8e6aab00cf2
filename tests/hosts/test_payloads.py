"""Payloads recorded from the real binaries become events, in our words, with the host's own still readable."""

import json
from typing import Any

import pytest

from hookline.errors import EventError, HooklineError
from hookline.events import Event, PostToolUse, PreToolUse, UserPromptSubmit
from hookline.hosts.decode import decode, joined, native_input, original
from hookline.hosts.host import Host
from hookline.hosts.table import HOSTS, find
from tests.guards import ordinary
from tests.hosts.battery import HERE, recorded
from tests.sandbox import ordinary_table

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


@pytest.mark.parametrize("host", [one.name for one in HOSTS.values() if not one.prompt_in_parts])
def test_a_prompt_in_parts_is_refused_where_none_is_sent(host: str) -> None:
    """What the parts would be was not measured: a picture among them would not be judged."""
    theirs = next((name for name, ours in find(host).events.items() if ours == "UserPromptSubmit"), None)
    if theirs is None:
        pytest.skip("it tells of no prompts")

    with pytest.raises(HooklineError):
        decode(find(host), {"prompt": []}, event=theirs)


def test_what_a_tool_returned_is_there() -> None:
    """The output is in `tool_response`, whatever the host calls it."""
    for host in ("codex", "copilot", "vibe", "openhands", "cline", "grok", "kimi"):
        row = find(host)
        samples = [s for s in recorded(host) if row.ours(s["event"]) == "PostToolUse"]
        assert samples, host
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
        ("Write", "/p/a.txt"), ("Edit", "/p/b.txt"), ("Write", "/etc/c.txt"), ("Edit", "/p/d.txt"),
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
        "/p/a",
        "/etc/shadow",
        "/p/b",
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


MCP_CALLS: dict[str, dict[str, Any]] = {  # as the real binaries sent them
    "claude": {"hook_event_name": "PreToolUse", "tool_name": "mcp__demo__make_mark", "tool_input": {"path": "/x"}},
    "codex": {"hook_event_name": "PreToolUse", "tool_name": "mcp__demo__make_mark", "tool_input": {"path": "/x"}},
    "qwen": {"hook_event_name": "PreToolUse", "tool_name": "mcp__demo__make_mark", "tool_input": {"path": "/x"}},
    "kimi": {"hook_event_name": "PreToolUse", "tool_name": "mcp__demo__make_mark", "tool_input": {"path": "/x"}},
    "gemini": {"hook_event_name": "BeforeTool", "tool_name": "mcp_demo_make_mark", "tool_input": {"path": "/x"},
               "mcp_context": {"server_name": "demo", "tool_name": "make_mark", "command": "x", "args": []}},
    "copilot": {"hook_event_name": "PreToolUse", "tool_name": "demo-make_mark", "tool_input": {"path": "/x"}},
    "grok": {"hook_event_name": "PreToolUse", "tool_name": "demo__make_mark",
             "tool_input": {"tool_name": "demo__make_mark", "tool_input": {"path": "/x"}}},
    "vibe": {"hook_event_name": "pre_tool", "tool_name": "mcp_demo.make_mark", "tool_input": {"path": "/x"}},
    "openhands": {"event_type": "PreToolUse", "tool_name": "make_mark",
                  "tool_input": {"data": {"path": "/x"}, "kind": "MCPToolAction"}},
    "cline": {"hookName": "tool_call", "tool_call": {"id": "1", "name": "demo__make_mark", "input": {"path": "/x"}}},
    "opencode": {"hook": "tool.execute.before", "servers": ["other", "demo"], "output": {"args": {"path": "/x"}},
                 "input": {"tool": "demo_make_mark", "sessionID": "s", "callID": "c"}},
}  # fmt: skip


@pytest.mark.parametrize("host", MCP_CALLS)
def test_tools_of_mcp_servers_go_by_one_name(host: str) -> None:
    """So that `match="mcp__demo__.*"` holds on every host; only OpenHands does not say whose tool it is."""
    (event,) = events(host, MCP_CALLS[host])

    assert isinstance(event, PreToolUse)
    server = "unknown" if host == "openhands" else "demo"
    assert (event.tool_name, event.tool_input) == (f"mcp__{server}__make_mark", {"path": "/x"})


@pytest.mark.parametrize("host", MCP_CALLS)
def test_a_rewritten_call_of_an_mcp_tool_goes_back_where_it_was(host: str) -> None:
    """Grok and OpenHands put the tool's own input into another one."""
    (event,) = events(host, MCP_CALLS[host])
    before = original(event)["tool_input"]

    back = native_input(find(host), event, {"path": "/y"})

    assert json.dumps(back) == json.dumps(before).replace("/x", "/y")


def test_a_name_that_can_be_read_in_several_ways_is_judged_in_all_of_them() -> None:
    """Copilot puts a hyphen between server and tool, and either may have one."""
    found = events("copilot", {**MCP_CALLS["copilot"], "tool_name": "github-mcp-server-search"})

    assert [event.subject for event in found] == [
        "mcp__github__mcp-server-search", "mcp__github-mcp__server-search", "mcp__github-mcp-server__search",
    ]  # fmt: skip


@pytest.mark.parametrize("host", ["grok", "openhands"])
def test_an_mcp_call_whose_input_is_not_there_cannot_be_judged(host: str) -> None:
    """What is missing could be anything."""
    given = {"kind": "MCPToolAction"}

    with pytest.raises(EventError, match="is not an object"):
        events(host, {**MCP_CALLS[host], "tool_input": given})


def test_a_patch_in_a_shell_line_is_judged_as_both() -> None:
    """Codex applies `apply_patch <<EOF` itself, so who watches `Write` and `Edit` must see it."""
    line = f"cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF"
    payload = {"hook_event_name": "PreToolUse", "cwd": "/p", "tool_name": "Bash", "tool_input": {"command": line}}

    found = [event for event in decode(find("codex"), payload) if isinstance(event, PreToolUse)]

    assert [(event.tool_name, event.tool_input.get("file_path")) for event in found] == [
        ("Bash", None), ("Write", "/p/sub/a.txt"), ("Edit", "/p/sub/b.txt"), ("Write", "/etc/c.txt"),
        ("Edit", "/p/sub/d.txt"),
    ]  # fmt: skip
    assert len(events("codex", {**payload, "tool_input": {"command": "grep '*** Begin Patch' apply_patch.md"}})) == 1


@pytest.mark.parametrize("path, whole", [("a.txt", "/p/a.txt"), ("../etc/x", "/etc/x"), ("/p/../x", "/p/../x"),
                                         ("~/x", "~/x"), ("", "")])  # fmt: skip
def test_a_file_is_named_by_its_whole_path(path: str, whole: str) -> None:
    """As in Claude Code: a hook that compares the beginning of a path is not led astray by a relative one."""
    payload = {"hook_event_name": "PreToolUse", "cwd": "/p", "tool_name": "Write", "tool_input": {"path": path}}

    (event,) = events("kimi", payload)

    assert isinstance(event, PreToolUse)
    assert event.tool_input == {"file_path": whole}


def test_vibes_edit_is_an_edit() -> None:
    """It arrives under another name than the one that the model calls."""
    call = {"file_path": "/p/a", "old_string": "x", "new_string": "y", "replace_all": False}

    (event,) = events("vibe", {"hook_event_name": "pre_tool", "tool_name": "file_system.search_replace",
                               "tool_input": call})  # fmt: skip

    assert isinstance(event, PreToolUse)
    assert (event.tool_name, event.tool_input) == ("Edit", call)


def test_a_text_for_a_tool_that_takes_fields_cannot_be_judged() -> None:
    """A guard looks for a command or a path; a tool of another kind may take a text."""
    for host in HOSTS.values():
        event = next(theirs for theirs, ours in host.events.items() if ours == "PreToolUse")
        for tool in ("Bash", "Write", "Read"):
            fields = {"tool_name": tool, "tool_input": "x", "toolName": tool, host.event_field: event}
            if host.unwrap is None:
                with pytest.raises(EventError, match=r"is a text|is neither a header nor"):
                    pytest.fail(f"{host.name}: {decode(host, fields)}")
    assert events("codex", {"hook_event_name": "PreToolUse", "tool_name": "exec", "tool_input": "x"})


def test_no_ordinary_line_is_taken_for_a_patch() -> None:
    """Codex puts `apply_patch` on the PATH of its shell, so every line is searched for it."""
    refused = {}
    for line in [*ordinary.COMMANDS, *ordinary.LINES, *ordinary_table.lines()]:
        try:
            events("codex", {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": line}})
        except EventError as error:
            refused[line] = str(error)

    assert not refused
