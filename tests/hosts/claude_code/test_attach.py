"""Hooks served on loopback to a CLI that nobody can call back."""

import asyncio
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hookline import Hooks, deny
from hookline.errors import ConfigError
from hookline.events import PostToolUse, PreToolUse, SessionStart
from hookline.hosts.claude_code.attach import put_in, serving, settings_for, take_out, take_out_all, unasked
from hookline.hosts.claude_code.door import MOST, bounded_log
from hookline.hosts.claude_code.find import bundled_cli
from hookline.wire import claude
from tests.hosts.claude_code.hosts import Stage, stage_for

HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
async def no_rm(event):
    if "rm" in event.tool_input["command"]:
        return deny("NO-RM here")
"""


def some_hooks() -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse, match="Bash")
    async def no_rm(event: PreToolUse) -> object:
        return deny("no rm") if "rm" in event.tool_input["command"] else None

    @hooks.on(PostToolUse)
    async def watch(event: PostToolUse) -> None:
        return None

    return hooks


async def post(url: str, token: str, body: bytes) -> tuple[int, dict[str, object]]:
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {token}"}
        async with session.post(url, data=body, headers=headers) as response:
            return response.status, await response.json()


async def test_the_endpoint_answers_events_with_the_verdict() -> None:
    """What the set of hooks decides goes back as a hook's output."""
    event = PreToolUse(tool_name="Bash", tool_input={"command": "rm x"})
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        status, body = await post(endpoint.url, endpoint.token, claude.encode_event(event))

    assert (status, body) == (
        200,
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "no rm",
            }
        },
    )


async def test_without_the_token_nothing_is_answered() -> None:
    """Another user of the machine cannot ask, nor learn what the hooks would say."""
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        status, _ = await post(endpoint.url, "guessed", b"{}")

    assert status == 401


async def test_what_is_no_event_is_a_failure_the_cli_can_see() -> None:
    """A 4xx is a failed hook, on which onFailure decides."""
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        status, body = await post(endpoint.url, endpoint.token, b'{"hook_event_name": "PreToolUs"}')

    assert status == 400
    assert "did you mean `PreToolUse`" in str(body["error"])


async def test_a_gate_is_blocked_when_the_endpoint_is_gone() -> None:
    """The entry of a gate says onFailure block, that of an observer does not."""
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        table = settings_for(hooks, endpoint)

    assert table["PreToolUse"][0]["matcher"] == "Bash"
    assert table["PreToolUse"][0]["hooks"][0]["onFailure"] == "block"
    assert "onFailure" not in table["PostToolUse"][0]["hooks"][0]


def test_events_that_no_http_hook_is_asked_about_are_named() -> None:
    """Claude Code asks no http hook on SessionStart: the user is told instead of left to wonder."""
    hooks = Hooks()

    @hooks.on(SessionStart)
    async def begin(event: SessionStart) -> None:
        return None

    assert unasked(hooks) == ["SessionStart"]


def test_taking_out_leaves_what_others_wrote(tmp_path: Path) -> None:
    """Only this endpoint's entries go; the user's own hooks and settings stay."""
    path = tmp_path / "settings.local.json"
    own = {"model": "opus", "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    path.write_text(json.dumps(own))
    url = "http://127.0.0.1:1/hookline/hook"

    put_in(path, {"PreToolUse": [{"hooks": [{"type": "http", "url": url}]}], "Stop": [{"hooks": [{"url": url}]}]})
    there = json.loads(path.read_text())
    assert take_out(path, url)

    assert len(there["hooks"]["PreToolUse"]) == 2
    assert json.loads(path.read_text()) == own


def test_a_file_that_held_nothing_else_goes_too(tmp_path: Path) -> None:
    """A project that had no local settings has none afterwards."""
    path = tmp_path / ".claude" / "settings.local.json"
    put_in(path, {"Stop": [{"hooks": [{"type": "http", "url": "http://127.0.0.1:1/hookline/hook"}]}]})
    mode = stat.S_IMODE(path.stat().st_mode)

    assert mode == 0o600
    assert take_out_all(path)
    assert not path.exists()
    assert not take_out_all(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 3}'])
def test_a_broken_settings_file_is_left_alone(tmp_path: Path, text: str) -> None:
    """Nothing is written over a file that cannot be read."""
    path = tmp_path / "settings.local.json"
    path.write_text(text)

    with pytest.raises(ConfigError, match="nothing was changed"):
        put_in(path, {})

    assert path.read_text() == text


def test_attach_puts_the_settings_in_and_takes_them_out(tmp_path: Path) -> None:
    """Stopping the process restores the project's settings."""
    (tmp_path / "hooks.py").write_text(HOOKS)
    path = tmp_path / ".claude" / "settings.local.json"
    command = [sys.executable, "-m", "hookline.cli.main", "attach", "hooks.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        handler = json.loads(path.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        code = process.wait(20)

    assert first.startswith("attached: 1 hook in")
    assert handler["type"] == "http"
    assert "detached" in rest
    assert (code, path.exists()) == (0, False)


def test_an_attach_that_was_killed_can_be_cleaned_up(tmp_path: Path) -> None:
    """A SIGKILL leaves the entries, which block; `--remove` takes them out."""
    (tmp_path / "hooks.py").write_text(HOOKS)
    path = tmp_path / ".claude" / "settings.local.json"
    base = [sys.executable, "-m", "hookline.cli.main", "attach"]
    with subprocess.Popen([*base, "hooks.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    left = path.exists()
    removed = subprocess.run([*base, "--remove"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert left
    assert "removed" in removed.stdout
    assert not path.exists()


async def test_the_real_cli_asks_the_endpoint_and_is_blocked_when_it_is_gone(tmp_path: Path, api: Any) -> None:
    """A plain `claude -p`, which knows nothing of us, is denied by our hook; with the endpoint gone it stays denied."""
    cli = bundled_cli()
    if cli is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    stage = stage_for(str(cli), tmp_path, api)
    settings = Path(stage.cwd, ".claude", "settings.local.json")
    api.main["turns"] = [{"tools": [["Bash", {"command": "rm x; touch ran"}]]}, {"text": "done"}]
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        put_in(settings, settings_for(hooks, endpoint))
        await claude_p(stage)
        answered = tool_results(api)
    api.main["at"] = 0
    api.requests.clear()
    await claude_p(stage)

    assert "no rm" in answered
    assert "blocking" in tool_results(api)
    assert not Path(stage.cwd, "ran").exists()


async def claude_p(stage: Stage) -> None:
    process = await asyncio.create_subprocess_exec(
        stage.cli, "-p", "go", "--allowedTools=Bash", cwd=stage.cwd, env=stage.env,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await asyncio.wait_for(process.wait(), 60) == 0


def tool_results(api: Any) -> str:
    blocks = [b for r in api.requests for m in r["request"]["messages"] if m["role"] == "user" for b in m["content"]]
    return json.dumps([block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"])


@pytest.mark.parametrize("token", [b"\xff\xfe", "\u00e4\u4f60".encode(), b"\xc3(", b""])
async def test_a_token_of_any_letters_is_just_wrong(token: bytes) -> None:
    """401, whatever it is made of."""
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        host, port = "127.0.0.1", int(endpoint.url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection(host, port)
        head = b"POST /hookline/hook HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n"
        writer.write(head + b"Authorization: Bearer " + token + b"\r\n\r\n{}")
        status = await reader.readline()
        writer.close()

    assert b" 401 " in status


async def test_connections_that_ask_nothing_keep_nobody_out() -> None:
    """However many there are, an event is answered, and only so many of them are kept."""
    event = claude.encode_event(PreToolUse(tool_name="Bash", tool_input={"command": "rm x"}))
    async with some_hooks() as hooks, serving(hooks) as endpoint:
        port = int(endpoint.url.split(":")[2].split("/")[0])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(600)]  # both ends are ours here
        status, body = await post(endpoint.url, endpoint.token, event)
        left = [reader for reader, _ in idle if not reader.at_eof()]
        for _, writer in idle:
            writer.close()

    assert (status, "deny" in str(body)) == (200, True)
    assert len(left) <= MOST


async def test_a_question_that_is_being_answered_is_not_hung_up_on() -> None:
    """However many others come meanwhile."""
    hooks = Hooks()
    asked, answered = asyncio.Event(), asyncio.Event()

    @hooks.on(PreToolUse)
    async def slow(event: PreToolUse) -> object:
        asked.set()
        await answered.wait()
        return deny("no")

    event = claude.encode_event(PreToolUse(tool_name="Bash", tool_input={"command": "rm x"}))
    async with hooks, serving(hooks) as endpoint:
        port = int(endpoint.url.split(":")[2].split("/")[0])
        waiting = asyncio.create_task(post(endpoint.url, endpoint.token, event))
        await asked.wait()
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST + 20)]
        answered.set()
        status, _ = await waiting
        for _, writer in idle:
            writer.close()

    assert status == 200


def test_the_log_of_bad_requests_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Anybody on the machine can send those."""
    log = bounded_log("hookline.test.bounded", most=3)
    for number in range(50):
        log.error("bad request %d", number)

    assert [record.getMessage() for record in caplog.records] == [
        "bad request 0", "bad request 1", "further lines about bad requests are left out",
    ]  # fmt: skip
