"""From flags to an agent: what `--agent` makes of the session."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hookline.agent.context.definitions import AgentDefinition
from hookline.agent.factory import NO_AGENT, RunOptions, make, session_agent, system_prompt
from hookline.agent.hook_messages import TEXTS
from hookline.api import Hooks
from hookline.cli.commands.run import parse as parse_flags
from hookline.errors import ConfigError, ModelError


def parse(argv: list[str]) -> RunOptions:
    return parse_flags(argv).options


REVIEWER = AgentDefinition(name="rev", prompt="You review.", tools=("Read", "Grep"), disallowed=("Grep",))


def test_a_session_may_be_an_agent_of_its_own_kind() -> None:
    """Its prompt is the session's unless a flag says another, and its tools are all the session has."""
    itself = session_agent(parse(["--agent", "rev"]), {"rev": REVIEWER})

    assert itself.allowed({"Bash": 1, "Read": 2, "Grep": 3}) == {"Read": 2}
    assert system_prompt(parse([]), itself) == ("You review.",)
    assert system_prompt(parse(["--system-prompt", "Other.", "--append-system-prompt", "More."]), itself) == (
        "Other.", "More.",
    )  # fmt: skip


def test_without_an_agent_a_session_is_nobody_in_particular() -> None:
    """All tools, our own prompt."""
    assert session_agent(parse([]), {"rev": REVIEWER}) is NO_AGENT
    assert (NO_AGENT.allowed({"Bash": 1}), system_prompt(parse([]))) == ({"Bash": 1}, (TEXTS["system"],))


def test_an_agent_that_nobody_described_is_refused_unless_a_host_may_still_do_so() -> None:
    """The error lists the known ones; a host describes agents in its first message."""
    with pytest.raises(ConfigError, match=r"`nosuch` not found; write one of .*rev"):
        session_agent(parse(["--agent", "nosuch"]), {"rev": REVIEWER})

    assert session_agent(parse(["--agent", "nosuch", "--input-format", "stream-json"]), {}) is NO_AGENT


async def test_an_audit_log_has_each_event_once(tmp_path: Path) -> None:
    """SessionStart, UserPromptSubmit, MessageDisplay, Stop, SessionEnd: a line each."""
    (tmp_path / "turns.json").write_text('[{"text": "hi"}]')
    log = tmp_path / "audit.jsonl"
    script = f"scripted:{tmp_path / 'turns.json'}"
    flags = ["--bare", "--model", script, "--audit", str(log), "--no-session-persistence"]
    made = await make(parse(flags), str(tmp_path), lambda env: Hooks())
    await made.agent.run("go")
    await made.aclose()

    assert len(log.read_text().splitlines()) == 5


SETTINGS = '{"env": {"HOOKLINE_TEST_NEW": "1", "HOOKLINE_TEST_OLD": "theirs"}}'


@pytest.mark.parametrize("model", ["scripted:turns.json", "nobody:knows"])
async def test_variables_of_settings_are_the_processs_for_as_long_as_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """SDKs read them there; the program that embeds a run gets its environment back, also if there is no run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOKLINE_TEST_OLD", "ours")
    monkeypatch.delenv("HOOKLINE_TEST_NEW", raising=False)
    (tmp_path / "turns.json").write_text('[{"text": "hi"}]')
    before = dict(os.environ)

    def hooks_for(env: Mapping[str, str]) -> Hooks:
        return Hooks.from_settings(tmp_path, settings=SETTINGS, home=tmp_path, trust="all", watch=False, env=env)

    with contextlib.suppress(ModelError):
        made = await make(parse(["--model", model, "--no-session-persistence"]), str(tmp_path), hooks_for)
        assert (os.environ["HOOKLINE_TEST_NEW"], os.environ["HOOKLINE_TEST_OLD"]) == ("1", "theirs")
        assert made.agent.session.environ["HOOKLINE_TEST_OLD"] == "theirs"
        await made.aclose()

    assert dict(os.environ) == before


def test_whoever_embeds_the_host_needs_no_command_line() -> None:
    """The agent, its options and the stream-json host import nothing of `hookline.cli`."""
    script = (
        "import sys, hookline.agent.factory, hookline.agent.stream_json.host_session\n"
        "print([name for name in sys.modules if name.startswith('hookline.cli')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "[]\n"
