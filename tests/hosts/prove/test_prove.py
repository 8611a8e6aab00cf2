"""`hookline prove`: what is configured and does not run is found and named."""

import json
import os
import re
import select
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline.hook_file import load_hooks
from hookline.hosts.host import Host
from hookline.hosts.install.survey import find_binary, lab
from hookline.hosts.prove.model import ModelTurn, serving
from hookline.hosts.prove.proof import missing_programs, prove
from hookline.hosts.prove.run import trust_folder
from hookline.hosts.table import AGENTS, HOSTS, find
from tests import forked
from tests.environ import clean_environ
from tests.hosts.lab import NAMES

HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse, UserPromptSubmit

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
def no_rm(event):
    return deny("no") if "rm " in event.tool_input["command"] else None

@hooks.on(PreToolUse, match="Write|Edit")
def inside(event):
    return None if event.tool_input["file_path"].startswith(event.cwd + "/") else deny("no")

@hooks.on(UserPromptSubmit)
def watch(event):
    pass
"""

CALLS_ONLY = HOOKS.partition("@hooks.on(UserPromptSubmit)")[0]
"""Without a hook on prompts: a proof runs the agent once more to try that gate."""


def hookline(*words: str, home: Path, service: str = "0") -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "HOSTLAB": str(lab()), "HOOKLINE_SERVICE": service}
    done = forked.run(words, cwd=home / "project", env=env, module="hookline.__main__", timeout=600)
    return forked.as_text(done)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "hooks.py").write_text(HOOKS)
    return tmp_path


@pytest.fixture
def calls_only(home: Path) -> None:
    (home / "hooks.py").write_text(CALLS_ONLY)


def proven(home: Path, host: str) -> tuple[int, dict[str, Any]]:
    run = hookline("prove", host, "--json", home=home)
    (found,) = json.loads(run.stdout)
    return run.returncode, found


def by_name(found: dict[str, Any]) -> dict[str, str]:
    return {finding["what"]: finding["status"] for finding in found["findings"]}


def needs(host: str) -> None:
    if host not in os.environ.get("HOOKLINE_HOSTS", host).replace("all", host).split():
        pytest.skip("HOOKLINE_HOSTS names others")
    if find_binary(find(host)) is None:
        pytest.skip(f"{host} is not on this machine; run tools/hosts/install {host}")


@pytest.mark.real_hosts
def test_what_holds_is_proven_and_the_users_files_are_not_touched(home: Path) -> None:
    """Every canary, every event, every hook; and `hookline install --list` remembers it."""
    needs("codex")
    hookline("install", "codex", "--hooks", str(home / "hooks.py"), "--yes", home=home)
    before = {path: path.read_bytes() for path in (home / ".codex").iterdir()}

    code, found = proven(home, "codex")

    assert code == 0, found
    assert by_name(found) == {
        "PreToolUse": "fired", "UserPromptSubmit": "fired", "allow": "enforced", "deny": "enforced",
        "rewrite": "enforced", "a hook hangs": "enforced", "a hook crashes": "enforced", "a hook exits": "enforced",
        "prompt gate": "enforced", "hook no_rm": "fired", "hook watch": "fired", "hook inside": "fired",
        "a file is written": "fired",
    }  # fmt: skip
    assert {path: path.read_bytes() for path in (home / ".codex").iterdir()} == before
    row = next(
        row for row in json.loads(hookline("install", "--list", "--json", home=home).stdout) if row["host"] == "codex"
    )
    assert (row["hooked"], row["proven"]) == (["user"], True)


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
def test_hooks_that_codex_would_skip_are_found(home: Path) -> None:
    """Untrusted hooks vanish without a word; here they do not."""
    needs("codex")
    hookline("install", "codex", "--hooks", str(home / "hooks.py"), home=home)

    code, found = proven(home, "codex")

    assert code == 1
    assert by_name(found)["trust"] == "silent"
    assert by_name(found)["PreToolUse"] == "silent"
    assert by_name(found)["deny"] == "silent"


@pytest.mark.real_hosts
def test_a_tool_that_is_in_no_table_fails_the_proof(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that offers its model something new is not proven until its table says what that does."""
    needs("codex")
    hookline("install", "codex", "--hooks", str(home / "hooks.py"), "--yes", home=home)
    for name, value in {"HOME": str(home), "HOSTLAB": str(lab()), "HOOKLINE_SERVICE": "0"}.items():
        monkeypatch.setenv(name, value)
    row = find("codex")
    fewer = msgspec.structs.replace(row, other_tools=row.other_tools - {"create_goal"})

    found = prove(fewer, home / "project", lambda source: load_hooks(source.hooks).hooks)

    assert [(one.what, one.status) for one in found.findings if not one.good] == [("tool create_goal", "unknown")]
    assert not found.holds


FIRST_ENTRY = {
    "claude": (".claude/settings.json", "PreToolUse"),
    "codex": (".codex/hooks.json", "PreToolUse"),
    "gemini": (".gemini/settings.json", "BeforeTool"),
    "grok": (".grok/hooks/hookline.json", "PreToolUse"),
}


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
@pytest.mark.parametrize("host", FIRST_ENTRY)
def test_a_wrong_path_in_the_hosts_file_is_found_and_named(host: str, home: Path) -> None:
    """The loudest complaint in every tracker: hooks that silently do not run."""
    needs(host)
    hookline("install", host, "--hooks", str(home / "hooks.py"), "--yes", home=home)
    name, event = FIRST_ENTRY[host]
    settings = json.loads((home / name).read_text())
    hook = settings["hooks"][event][0]["hooks"][0]
    hook["command"] = "/wrong/place/hookline" + hook["command"][hook["command"].index(" answer") :]
    (home / name).write_text(json.dumps(settings))

    run = hookline("prove", host, home=home)

    said = "".join(run.stdout.split())
    assert run.returncode == 1
    assert f"{event}silent{home / name}:`/wrong/place/hookline`doesnotexist" in said
    assert ("thecallran,andthehookswerenotasked" in said) is (host == "codex")  # an edited entry is not trusted
    assert "do not hold" in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 80


@pytest.mark.real_hosts
@pytest.mark.parametrize("trusted", [True, False])
def test_a_hook_file_that_is_gone_denies_only_where_it_is_asked_for(home: Path, *, trusted: bool) -> None:
    """Codex skips what it does not trust, so nothing is denied there, whatever the entry would do."""
    needs("codex")
    yes = ["--yes"] if trusted else []
    hookline("install", "codex", "--hooks", str(home / "hooks.py"), *yes, home=home)
    (home / "hooks.py").unlink()

    code, found = proven(home, "codex")

    told = [one["detail"] for one in found["findings"] if one["status"] == "broken"]
    assert code == 1
    assert told
    assert all("every call is denied" in detail for detail in told) is trusted
    assert all("is not asked for" in detail for detail in told) is not trusted


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
@pytest.mark.parametrize(
    "host", [name for name, agent in AGENTS.items() if agent.trust and name in NAMES and name != "codex"]
)
def test_a_projects_hooks_that_an_agent_would_skip_are_found(host: str, home: Path) -> None:
    """It runs them only in a folder that was trusted; in others they vanish, and no flag of ours helps."""
    needs(host)
    project = home / "project"
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    if host == "qwen":  # off, unless the user has set it
        (home / ".qwen").mkdir()
        (home / ".qwen" / "settings.json").write_text('{"security": {"folderTrust": {"enabled": true}}}')
    hookline("install", host, "--hooks", str(home / "hooks.py"), "--scope", "project", home=home)

    code, found = proven(home, host)
    assert (code, by_name(found)["trust"]) == (1, "silent")
    event = find(host).native_events("PreToolUse")[0]
    assert by_name(found)[event] == "silent"

    trust_folder(host, home, project)
    code, found = proven(home, host)
    assert code == 0, found


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
def test_a_folder_that_codex_trusts_or_not_is_proven_as_it_is(home: Path) -> None:
    """The user's file has a table for it: the copy gets no second one."""
    needs("codex")
    hookline("install", "codex", "--hooks", str(home / "hooks.py"), "--scope", "project", "--yes", home=home)
    config = home / ".codex" / "config.toml"
    text = config.read_text()
    for level, wanted in (("trusted", (0, "fired")), ("untrusted", (1, "silent"))):
        config.write_text(f"{text}\n[projects.'{home / 'project'}']\ntrust_level = \"{level}\"\n")
        code, found = proven(home, "codex")
        assert (code, by_name(found)["PreToolUse"]) == wanted, found


MORE = """
@hooks.on(PermissionRequest)
def asked(event):
    return deny("no")

@hooks.on(PreToolUse, match="mcp__github__.*")
def servers(event):
    return deny("no")
"""


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
def test_a_gate_that_nothing_has_tried_is_not_proven(home: Path) -> None:
    """Neither an event that nothing in a proof causes nor a hook that matches nothing in it."""
    needs("codex")
    text = (home / "hooks.py").read_text().replace("PreToolUse, User", "PermissionRequest, PreToolUse, User") + MORE
    (home / "hooks.py").write_text(text)
    hookline("install", "codex", "--hooks", str(home / "hooks.py"), "--yes", home=home)

    code, found = proven(home, "codex")

    names = by_name(found)
    assert (code, found["holds"]) == (1, False)
    assert (names["PermissionRequest"], names["hook servers"]) == ("not proven", "not proven")
    assert names["deny"] == "enforced"


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
def test_a_hook_on_an_event_that_is_not_configured_is_found(home: Path) -> None:
    """It was added to the file after the installation, or the entry was deleted or misspelt while another stays."""
    needs("claude")
    (home / "hooks.py").write_text(CALLS_ONLY + "@hooks.on(UserPromptSubmit)\ndef watch(event): pass\n")
    hookline("install", "claude", "--hooks", str(home / "hooks.py"), home=home)
    settings = home / ".claude" / "settings.json"
    text = settings.read_text()
    for wrong in ("PreToolUze", "preToolUse"):
        settings.write_text(text.replace('"PreToolUse": [', f'"{wrong}": ['))
        code, found = proven(home, "claude")
        assert (code, by_name(found)["PreToolUse"], by_name(found)[wrong]) == (1, "silent", "silent")

    values = json.loads(text)
    del values["hooks"]["UserPromptSubmit"]
    settings.write_text(json.dumps(values))
    code, found = proven(home, "claude")
    assert (code, by_name(found)["UserPromptSubmit"]) == (1, "silent")
    assert "is not configured; install again" in str(found)


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
def test_an_entry_that_is_asked_about_commands_alone_is_found(home: Path) -> None:
    """Ours has no matcher; one that was added to it leaves files unjudged."""
    needs("claude")
    hookline("install", "claude", "--hooks", str(home / "hooks.py"), home=home)
    settings = home / ".claude" / "settings.json"
    values = json.loads(settings.read_text())
    values["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    settings.write_text(json.dumps(values))

    code, found = proven(home, "claude")

    assert (code, by_name(found)["deny"], by_name(found)["a file is written"]) == (1, "enforced", "silent")


USERS_MODELS = {
    "codex": 'profile = "mine"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "Fake"\n'
             'base_url = "http://127.0.0.1:9/v1"\n[profiles.mine]\nmodel_provider = "fake"\n',
    "grok": '[model.fake]\nmodel = "x"\nbase_url = "http://127.0.0.1:9/v1"\nname = "Fake"\napi_key = "x"\n',
}  # fmt: skip


@pytest.mark.real_hosts
@pytest.mark.usefixtures("calls_only")
@pytest.mark.parametrize("host", USERS_MODELS)
def test_a_users_model_of_any_name_is_not_asked(host: str, home: Path) -> None:
    """The agent asks the scripted model, whatever is in the user's file."""
    needs(host)
    path = home / f".{host}" / "config.toml"
    path.parent.mkdir()
    path.write_text(USERS_MODELS[host])
    hookline("install", host, "--hooks", str(home / "hooks.py"), "--yes", home=home)

    code, found = proven(home, host)

    assert code == 0, found


AGENT = """#!/bin/sh
[ "$1" = --version ] && { echo codex-cli 0.166.0; exit; }
echo $$ > FOLDER/agent
(setsid sh -c 'echo $$ > FOLDER/daemon; echo up > FOLDER/ready; exec sleep 600') &
exec sleep 600
"""


def test_no_agent_is_left_when_a_proof_is_killed(home: Path) -> None:
    """Not even by a signal that nothing can catch; what the agent has started in the background ends, too."""
    program = home / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(AGENT.replace("FOLDER", str(home)))
    program.chmod(0o755)
    os.mkfifo(home / "ready")
    env = {"HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}", "HOOKLINE_SERVICE": "0"}
    words = [sys.executable, "-m", "hookline"]
    subprocess.run([*words, "install", "codex", "--hooks", str(home / "hooks.py"), "--yes"], env=env, check=True,
                   cwd=home / "project", capture_output=True)  # fmt: skip
    with subprocess.Popen(
        [*words, "prove", "codex"], env=env, cwd=home / "project", stdout=subprocess.DEVNULL
    ) as proof:
        (home / "ready").read_text()
        pids = [int((home / name).read_text()) for name in ("agent", "daemon")]
        watched = [os.pidfd_open(pid) for pid in pids]

        proof.kill()

        for descriptor in watched:
            assert select.select([descriptor], [], [], 60)[0], "it is still running"


@pytest.mark.real_hosts
def test_the_service_answers_in_a_proof_as_it_does_otherwise(home: Path) -> None:
    """What is proven is the way the user's agent is answered; who turned the service off has it off here."""
    needs("grok")
    name = f"prove-{os.getpid()}"
    hookline("install", "grok", "--hooks", str(home / "hooks.py"), home=home)
    hookline("service", "start", home=home, service=name)
    try:
        run = hookline("prove", "grok", "--json", home=home, service=name)
        status = json.loads(hookline("service", "status", "--json", home=home, service=name).stdout)
    finally:
        hookline("service", "stop", home=home, service=name)

    assert run.returncode == 0, run.stdout
    (found,) = json.loads(run.stdout)
    assert set(by_name(found).values()) == {"enforced", "fired"}
    assert status["hook_sets"][str(home / "hooks.py")]["events"] > 0


GATED = [host for host in HOSTS.values() if "PreToolUse" in host.events.values()]


@pytest.fixture(scope="module")
def installed_everywhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The file that was written for each host, by one `hookline install`."""
    home = tmp_path_factory.mktemp("everywhere")
    (home / "project").mkdir()
    (home / "hooks.py").write_text(HOOKS)
    names = [host.name for host in GATED]
    done = hookline("install", *names, "--hooks", str(home / "hooks.py"), "--json", home=home)
    return {one["host"]: Path(one["path"]) for one in json.loads(done.stdout)}


@pytest.mark.parametrize("host", GATED, ids=lambda host: host.name)
def test_a_wrong_path_is_named_in_every_hosts_file(host: Host, installed_everywhere: dict[str, Path]) -> None:
    """Whatever the file looks like: JSON, TOML, a script, a plugin."""
    file = installed_everywhere[host.name]
    text = file.read_text()
    program = next(word for word in re.findall(r"[^\s\"']+", text) if word.endswith(("/hookline", "/python")))
    file.write_text(text.replace(program, "/wrong/place/hookline"))

    found = set(missing_programs(host, file.parent if host.config.kind == "scripts" else file))

    assert {name for _, name in found} == {"/wrong/place/hookline"}
    assert host.native_events("PreToolUse")[0] in {event for event, _ in found}


def test_an_agent_that_is_too_old_is_named(home: Path) -> None:
    """At install, and by a proof in which something does not hold; a newer one is nobody's business."""
    program = home / "bin" / "codex"
    program.parent.mkdir()
    said = {}
    for version in ("0.40.0", "0.1000.0"):
        program.write_text(f"#!/bin/sh\necho codex-cli {version}\n")
        program.chmod(0o755)
        env = {"HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}", "HOOKLINE_SERVICE": "0"}
        for words in (["install", "codex", "--hooks", str(home / "hooks.py"), "--yes"], ["prove", "codex"]):
            run = forked.as_text(forked.run(words, cwd=home / "project", env=env, module="hookline.__main__"))
            said[version, words[0]] = " ".join(run.stdout.split()), run.returncode

    told = "Codex 0.40.0 is older than 0.166.0, the version that was measured; update it"
    assert f"note: {told}, or run `hookline prove codex`" in said["0.40.0", "install"][0]
    assert f"version too old {told}" in said["0.40.0", "prove"][0]
    assert [code for _, code in said.values()] == [0, 1, 0, 1]
    assert "older" not in said["0.1000.0", "install"][0] + said["0.1000.0", "prove"][0]


def test_a_host_that_is_not_hooked_is_not_proven(home: Path) -> None:
    """It says what to do."""
    run = hookline("prove", home=home)
    assert run.returncode == 1
    assert "hookline install HOST" in run.stderr


def test_a_binary_that_is_missing_is_said(home: Path) -> None:
    """Nothing is proven by leaving it out."""
    env = clean_environ(home, PATH="/nowhere", HOSTLAB="/nowhere")
    run = forked.as_text(forked.run(["prove", "codex"], cwd=home, env=env, module="hookline.__main__"))

    assert run.returncode == 1
    assert "no `codex` on PATH" in run.stdout


PROGRAMS = {
    "/wrong/hook.sh --flag": "/wrong/hook.sh",
    "no-such-program-here x": "no-such-program-here",
    "sh -c 'x'": None,
    "X=1 no-such-program-here": "no-such-program-here",
    '"$CLAUDE_PROJECT_DIR"/hook.sh': None,
    "if true; then x; fi": None,
    "cd x && y": None,
    "'unended": None,
}


@pytest.mark.parametrize("command", PROGRAMS)
def test_programs_that_are_not_there_are_named(command: str, tmp_path: Path) -> None:
    """Other people's hooks, too; what only a shell can tell is left to it."""
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}))

    found = list(missing_programs(find("codex"), path))

    assert found == ([("Stop", PROGRAMS[command])] if PROGRAMS[command] else [])


def ask(url: str, path: str, body: dict[str, Any]) -> str:
    data = json.dumps({"tools": [{}], **body}).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses",
                                  "/v1beta/models/x:generateContent"])  # fmt: skip
def test_the_scripted_model_follows_its_script_in_every_protocol(path: str, stream: bool) -> None:
    """A call first, then a word; requests without tools take nothing from the script."""
    with serving([ModelTurn(tools=(("shell", {"command": "ls"}),)), ModelTurn("over")]) as model:
        path = path.replace("generate", "streamGenerate") if stream and "generate" in path else path
        assert "ok" in ask(model.url, path, {"stream": stream, "tools": []})
        first = ask(model.url, path, {"stream": stream})
        assert "shell" in ask(model.url, path, {"stream": stream})  # sent again: an agent that lost the answer
        second = ask(model.url, path, {"stream": stream, "say": "REASON"})

        assert "shell" in first
        assert "over" in second
        assert (model.turns_asked, model.read("REASON"), model.read("NOT SAID")) == (3, True, False)
