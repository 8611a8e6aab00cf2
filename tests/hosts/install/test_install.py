"""Hooks in agent CLIs' own files: merged, backed up, the same after a second time, and put back."""

import json
import os
import re
import shlex
import stat
import subprocess
import tomllib
from collections.abc import Callable
from itertools import dropwhile
from pathlib import Path

import pytest

from hookline import Hooks, allow, ask, context, deny, keep_going, replace_output, rewrite
from hookline.errors import ConfigError, HooklineError
from hookline.events import PostToolUse, PreToolUse, SessionEnd, SessionStart, Stop, UserPromptSubmit
from hookline.hosts.encode import refuse
from hookline.hosts.host import Host
from hookline.hosts.install.commands import InstallResult, install, program, seconds_for, uninstall
from hookline.hosts.install.enforcement import Status, enforcing, kinds, report, worst
from hookline.hosts.install.entries import HookSource, asks, config_path, entries
from hookline.hosts.table import HOSTS, find
from tests.hosts.battery import CODEX_HASHES, our_commands

EVERY = list(HOSTS.values())
by_name = pytest.mark.parametrize("host", EVERY, ids=lambda host: host.name)
SOURCE = HookSource(hooks="/some where/hooks.py")


def gates() -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse, match="Bash")
    def no_rm(event: PreToolUse) -> object:
        return deny("no") if "rm" in event.tool_input["command"] else None

    @hooks.on(UserPromptSubmit)
    def no_secrets(event: UserPromptSubmit) -> object:
        return deny("no")

    return hooks


def done(host: Host, **more: object) -> InstallResult:
    return install(host, gates().hooks, SOURCE, trust=True, **more)  # type: ignore[arg-type]


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if ".local/state" not in str(path)}


@by_name
def test_a_host_gets_one_command_for_each_event(host: Host, home: Path) -> None:
    """The command is whole: an absolute program, the hooks, the event, a deadline before the host's own."""
    made = done(host)

    path = config_path(host, "user")
    if host.config.kind == "scripts":
        commands = [(file.name, file.read_text().splitlines()[2]) for file in sorted(path.iterdir())]
    else:
        commands = our_commands(host, path.read_text())
    assert sorted({event for event, _ in commands}) == sorted(made.events)
    for event, command in commands:
        words = _program_and_flags(command)
        flags = dict(zip(words[-6::2], words[-5::2], strict=True))
        assert Path(words[0]).is_absolute()
        assert os.access(words[0], os.X_OK)
        assert words[words.index("answer") + 1] == host.name
        assert flags["--hooks"] == SOURCE.hooks
        assert flags["--event"] == event
        assert float(flags["--deadline"]) == 20


def _program_and_flags(command: str) -> list[str]:
    """The words of an entry, past the variables that it clears."""
    return list(dropwhile(lambda word: "=" in word, shlex.split(command.partition(" || ")[0])))


@by_name
def test_an_entry_that_outlives_us_denies(host: Host, home: Path) -> None:
    """Hookline was removed, its entry was not: a shell is enough to say the host's deny."""
    made = entries(host, "/no/such/place/hookline", SOURCE, {"PreToolUse": 20, "UserPromptSubmit": 20, "Stop": 20})

    for entry in made:
        run = subprocess.run(["sh", "-c", entry.command], input=b"{}", capture_output=True, check=False)
        ours = host.ours(entry.event)
        if entry.gate and "deny" in host.says.get(ours or "", {}):
            wanted = refuse(host, "hookline could not be started; this fails closed", ours or "")
            assert (run.returncode, run.stdout) == (wanted.exit_code, wanted.stdout)
            assert wanted.stderr in run.stderr
        else:
            assert run.stdout == b""


def test_a_deny_by_exit_code_is_not_said_twice(home: Path, tmp_path: Path) -> None:
    """Kimi's prompts are refused by exit code 2, and that is not a failure to start."""
    program = tmp_path / "hookline"
    program.write_text("#!/bin/sh\ncat >/dev/null; echo because >&2; exit 2\n")
    program.chmod(0o755)
    (entry,) = entries(find("kimi"), str(program), SOURCE, {"UserPromptSubmit": 20})

    run = subprocess.run(["sh", "-c", entry.command], input=b"{}", capture_output=True, check=False)

    assert (run.returncode, run.stderr) == (2, b"because\n")


@by_name
def test_a_second_time_changes_nothing(host: Host, home: Path) -> None:
    """Installing is idempotent."""
    done(host)
    once = files(home)

    done(host)

    assert files(home) == once


@pytest.mark.parametrize("text", ['{"x": 1}\n', "{}", '{"hooks": {"PreToolUse": []}}', '{\n\t"hooks": {\n\t}\n}'])
def test_a_second_time_changes_nothing_in_a_file_of_any_form(text: str, home: Path) -> None:
    """What was there decides how ours is written, the first time and the second."""
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(text)
    done(find("claude"))
    once = path.read_text()

    done(find("claude"))

    assert path.read_text() == once


def test_nothing_is_lost_when_the_backup_is(home: Path) -> None:
    """Somebody has emptied the state folder: our entries are cut out instead."""
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"x": 1}\n')
    for kept in done(find("claude")).backups:
        kept.unlink()

    for kept in done(find("claude")).backups:
        kept.unlink()
    uninstall(find("claude"))

    assert json.loads(path.read_text())["x"] == 1
    assert "hookline" not in path.read_text()


@by_name
def test_uninstall_leaves_nothing(host: Host, home: Path) -> None:
    """What was not there before is not there after."""
    done(host)
    done(host)

    touched = uninstall(host)

    assert touched
    assert files(home) == {}
    assert uninstall(host) == []


THEIRS = {
    "claude": '{\n  // mine\n  "hooks": {\n    "PreToolUse": [\n      {"hooks": [{"command": "theirs"}]} // theirs\n'
              '    ]\n  },\n  "model": "opus",\n}\n',
    "codex": '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "theirs"}]}]}}',
    "gemini": '{\n\t"theme": "x", /* y */\n\t"hooks": {}\n}',
    "qwen": '{\n  "hooks": {\n    "Stop": [\n    ]\n  }\n}\n',
    "kimi": '# mine\ndefault_model = "k"\n\n[[hooks]]\nevent = "PreToolUse"\ncommand = "theirs"\n',
    "vibe": '[[hooks]]\nname = "x"\ntype = "pre_tool"\ncommand = "theirs"\n',
    "openhands": '{"hooks": {"PreToolUse": [{"matcher": "terminal", "hooks": [{"command": "theirs"}]}]}}\n',
    "cursor": '{"version": 1, "hooks": {"preToolUse": [{"command": "theirs"}]}}\n',
    "crush": '{"$schema": "x", "hooks": {}}\n',
}  # fmt: skip


@pytest.mark.parametrize("name", THEIRS)
def test_other_peoples_hooks_and_words_stay(name: str, home: Path) -> None:
    """Merged, backed up, and to the byte as before after uninstalling."""
    host = find(name)
    path = config_path(host, "user")
    path.parent.mkdir(parents=True)
    path.write_text(THEIRS[name])
    path.chmod(0o640)

    made = done(host)

    assert "theirs" in path.read_text() or "theirs" not in THEIRS[name]
    assert our_commands(host, path.read_text())
    assert [backup.read_text() for backup in made.backups] == [THEIRS[name]]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    done(host)
    uninstall(host)
    assert path.read_text() == THEIRS[name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "kimi", "vibe", "openhands"])
def test_what_was_edited_since_is_kept(name: str, home: Path) -> None:
    """Only our entries are cut out of a file that somebody changed after us."""
    host = find(name)
    path = config_path(host, "user")
    done(host)
    if host.config.kind == "toml":
        path.write_text(path.read_text() + '\n[later]\nx = "mine"\n')
    else:
        path.write_text(path.read_text().rstrip().removesuffix("}").rstrip() + ',\n  "later": "mine"\n}\n')

    uninstall(host)

    after = path.read_text()
    assert "mine" in after
    assert "hookline" not in after
    assert our_commands(host, after) == []


def test_a_link_is_followed_and_stays(home: Path) -> None:
    """People keep their dotfiles in a repository."""
    real = home / "dotfiles" / "gemini.json"
    real.parent.mkdir()
    real.write_text('{"theme": "x"}')
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(real)

    done(find("gemini"))

    assert path.is_symlink()
    assert "hookline" in real.read_text()
    uninstall(find("gemini"))
    assert path.is_symlink()
    assert real.read_text() == '{"theme": "x"}'


def test_a_link_to_nowhere_is_an_error(home: Path) -> None:
    """The folder it leads to is named."""
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(home / "gone" / "x.json")

    with pytest.raises(ConfigError, match=r"is a link to .*gone/x\.json"):
        done(find("gemini"))


def test_a_read_only_file_is_an_error_and_untouched(home: Path) -> None:
    """It says what to do."""
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o444)

    with pytest.raises(ConfigError, match="is read-only; run `chmod u\\+w"):
        done(find("gemini"))
    assert path.read_text() == "{}"


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "gemini": ('{\n  "a": 1\n  "b": 2\n}', "settings.json: line 3: expected `,`"),
    "claude": ("[1, 2]", "expected an object"),
    "codex": ('{"hooks": []}', "is not an object"),
    "qwen": ('{"hooks": {"PreToolUse": {}}}', "is not an array"),
    "kimi": ("a = \n", "config.toml: .*line 1"),
    "vibe": ("hooks = []\n", "inline array"),
    "openhands": (b"\xff\xfe", "is not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_not_valid_is_an_error_and_untouched(name: str, home: Path) -> None:
    """Where, what, what to do; and nothing is written."""
    host = find(name)
    path = config_path(host, "user")
    path.parent.mkdir(parents=True)
    text, told = BROKEN[name]
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    before = files(home)

    with pytest.raises(ConfigError, match=told):
        done(host)
    assert files(home) == before


def test_a_folder_in_the_place_of_the_file_is_an_error(home: Path) -> None:
    """Something else lies there."""
    (home / ".gemini" / "settings.json").mkdir(parents=True)

    with pytest.raises(ConfigError, match="cannot be read"):
        done(find("gemini"))


def test_another_ones_executable_is_asked_after_ours(home: Path) -> None:
    """Cline has room for one per event: theirs is kept, chained, and put back."""
    folder = home / ".cline" / "hooks"
    folder.mkdir(parents=True)
    theirs = folder / "PreToolUse"
    theirs.write_text('#!/bin/sh\ncat >/dev/null\necho \'{"cancel": false, "contextModification": "theirs"}\'\n')
    theirs.chmod(0o755)
    before = theirs.read_text()

    done(find("cline"))
    done(find("cline"))

    assert "before-hookline" in theirs.read_text()
    assert os.access(theirs, os.X_OK)
    uninstall(find("cline"))
    assert theirs.read_text() == before
    assert sorted(path.name for path in folder.iterdir()) == ["PreToolUse"]


def test_variables_that_move_a_hosts_home_are_heeded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CODEX_HOME and its like."""
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))

    assert done(find("codex")).path == home / "elsewhere" / "hooks.json"


def test_codex_is_trusted_only_on_a_yes(home: Path) -> None:
    """Trust replaces a question of Codex's own, so it takes an answer."""
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "x" # mine\n')

    unsure = install(find("codex"), gates().hooks, SOURCE)
    assert "until you trust them" in unsure.notes[0]
    assert config.read_text() == 'model = "x" # mine\n'

    sure = install(find("codex"), gates().hooks, SOURCE, trust=True)
    hashes = CODEX_HASHES.of(sure.path, sure.path.read_text())
    assert len(hashes) == 2
    assert CODEX_HASHES.are_in(config.read_text(), hashes)
    assert tomllib.loads(config.read_text())["model"] == "x"
    uninstall(find("codex"))
    assert config.read_text() == 'model = "x" # mine\n'


def test_a_home_behind_a_link_is_trusted_by_both_names(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex resolves CODEX_HOME if it is set, and the home folder never."""
    (home / "real").mkdir()
    (home / "link").symlink_to(home / "real")
    monkeypatch.setenv("HOME", str(home / "link"))

    made = install(find("codex"), gates().hooks, SOURCE, trust=True)

    text = (home / "real" / ".codex" / "config.toml").read_text()
    assert CODEX_HASHES.are_in(text, CODEX_HASHES.of(home / "link" / ".codex" / "hooks.json", made.path.read_text()))
    assert CODEX_HASHES.are_in(text, CODEX_HASHES.of(home / "real" / ".codex" / "hooks.json", made.path.read_text()))


def test_a_hash_that_codex_noted_itself_is_replaced(home: Path) -> None:
    """Two tables of one name would make the file unreadable."""
    made = install(find("codex"), gates().hooks, SOURCE)
    key = next(iter(CODEX_HASHES.of(made.path, made.path.read_text())))
    config = home / ".codex" / "config.toml"
    config.write_text(f'[hooks.state.{json.dumps(key)}]\ntrusted_hash = "sha256:old"\n\n[other]\nx = 1\n')

    again = install(find("codex"), gates().hooks, SOURCE, trust=True)

    assert CODEX_HASHES.are_in(config.read_text(), CODEX_HASHES.of(again.path, again.path.read_text()))
    assert tomllib.loads(config.read_text())["other"] == {"x": 1}


def test_both_scopes_ask_the_same_hooks_once(home: Path, tmp_path: Path) -> None:
    """The project's command says its scope, and finds the user's."""
    project = tmp_path / "project"
    project.mkdir()
    host = find("codex")
    assert not asks(host, "PreToolUse", SOURCE)
    done(host)

    made = install(host, gates().hooks, SOURCE, scope="project", project=project)

    assert asks(host, "PreToolUse", SOURCE)
    assert not asks(host, "Stop", SOURCE)
    assert not asks(host, "PreToolUse", HookSource("/other.py"))
    assert "nothing is judged twice" in made.notes[0]
    assert "--scope project" in made.path.read_text()


def test_codex_trusts_the_users_hooks_and_each_projects_side_by_side(home: Path, tmp_path: Path) -> None:
    """A second install must not take the first one's trust away: Codex would skip those hooks without a word."""
    host, config = find("codex"), home / ".codex" / "config.toml"
    projects = [tmp_path / "one", tmp_path / "two"]
    made = [install(host, gates().hooks, SOURCE, trust=True)]
    for project in projects:
        project.mkdir()
        made.append(install(host, gates().hooks, SOURCE, scope="project", project=project, trust=True))
    hashes = [CODEX_HASHES.of(one.path, one.path.read_text()) for one in made]

    assert [CODEX_HASHES.are_in(config.read_text(), one) for one in hashes] == [True, True, True]

    uninstall(host, scope="project", project=projects[0])
    assert [CODEX_HASHES.are_in(config.read_text(), one) for one in hashes] == [True, False, True]
    uninstall(host)
    uninstall(host, scope="project", project=projects[1])
    assert not config.exists()


def test_a_host_without_project_hooks_says_so(home: Path) -> None:
    """Kimi's are the user's."""
    with pytest.raises(HooklineError, match="write `--scope user`"):
        install(find("kimi"), gates().hooks, SOURCE, scope="project")


def test_hooks_on_nothing_the_host_has_are_refused(home: Path) -> None:
    """There would be nothing to write."""
    hooks = Hooks()
    hooks.add(SessionEnd, lambda event: None)

    with pytest.raises(HooklineError, match="Mistral Vibe has none of the events"):
        install(find("vibe"), hooks.hooks, SOURCE)


def test_timeouts_are_in_the_hosts_unit_and_behind_ours(home: Path) -> None:
    """A hook that asks for more time gets it; the host waits ten seconds longer than we do."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: None, timeout=120)
    hooks.add(Stop, lambda event: None)
    hooks.add(SessionEnd, lambda event: None)
    assert seconds_for(hooks.hooks) == {"PreToolUse": 121, "Stop": 20, "SessionEnd": 20}

    gemini = json.loads(install(find("gemini"), hooks.hooks, SOURCE).path.read_text())
    assert gemini["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"] == 131_000
    assert gemini["hooks"]["AfterAgent"][0]["hooks"][0]["timeout"] == 30_000
    codex = json.loads(install(find("codex"), hooks.hooks, SOURCE).path.read_text())
    assert codex["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3  # Codex cuts it
    assert "--deadline 2" in codex["hooks"]["SessionEnd"][0]["hooks"][0]["command"]


def test_our_answer_comes_before_a_host_gives_up(home: Path) -> None:
    """Whatever a hook's own timeout says; the report names the hook, the host and the seconds."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no"), timeout=900, name="slow")
    hooks.add(PostToolUse, print, timeout=900, name="late")
    known = {"qwen": 60, "cline": 120, "kimi": 600}

    for host in EVERY:
        made = entries(host, "hookline", SOURCE, seconds_for(hooks.hooks))
        told = [loss for loss in report(hooks.hooks, host) if "does not wait 900 s" in loss.reason]
        assert "slow" in {loss.hook for loss in told}
        assert "denied" in told[0].reason
        assert {loss.status for loss in told} == {Status.DIFFERENTLY}
        for entry in made:
            (seconds,) = re.findall(r"--deadline ([\d.]+)", entry.command)
            assert float(seconds) == host.config.longest < known.get(host.name, 621), host.name
            assert float(seconds) < entry.timeout / host.config.second <= known.get(host.name, 621), host.name


def test_the_program_is_found_from_anywhere() -> None:
    """Absolute, and there."""
    words = _program_and_flags(program())
    assert Path(words[0]).is_absolute()
    assert os.access(words[0], os.X_OK)


# -- what is lost ---------------------------------------------------------------------------------------------------


def every_answer() -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse)
    def asker(event: PreToolUse) -> object:
        return ask("sure?")

    @hooks.on(PreToolUse)
    def rewriter(event: PreToolUse) -> object:
        return rewrite({}) | allow()

    @hooks.on(PostToolUse)
    def redacter(event: PostToolUse) -> object:
        return replace_output("x") | context("y")

    @hooks.on(Stop)
    def pusher(event: Stop) -> object:
        return keep_going("go on")

    @hooks.on(SessionStart)
    def greeter(event: SessionStart) -> object:
        return context("hello")

    return hooks


def lost(host: str) -> dict[tuple[str, str], Status]:
    return {(loss.hook, loss.kind): loss.status for loss in report(every_answer().hooks, find(host))}


def test_the_report_says_what_becomes_of_each_answer() -> None:
    """Enforced, differently, observed only, or not possible."""
    assert lost("claude") == dict.fromkeys(lost("claude"), Status.ENFORCED)
    kimi = lost("kimi")
    assert kimi["asker", "ask"] is Status.DIFFERENTLY
    assert kimi["rewriter", "rewrite"] is Status.DIFFERENTLY
    assert kimi["redacter", "replace"] is Status.OBSERVED
    assert kimi["pusher", "keep_going"] is Status.ENFORCED
    vibe = lost("vibe")
    assert vibe["greeter", ""] is Status.IMPOSSIBLE
    assert vibe["redacter", "replace"] is Status.ENFORCED


def test_the_report_says_where_shell_lines_run_confined(tmp_path: Path) -> None:
    """Where the host can be given another line, and where the machine can hold one; elsewhere the text is all."""
    from hookline.guards import commands, paths

    entry = {"type": "command", "command": "hookline guard paths --confine auto"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    loaded = Hooks.from_settings(tmp_path, settings=str(tmp_path / "settings.json"), setting_sources="", trust="all")
    hooks = Hooks()
    hooks.add(commands.block("rm -rf *", confine="auto"))
    hooks.add(paths.stay_inside(tmp_path, confine="off"))
    chosen = [*hooks.hooks, *loaded.hooks]

    def confined(host: str, unconfined: str = "") -> list[tuple[Status, str]]:
        return [loss[3:] for loss in report(chosen, find(host), unconfined) if loss.kind == "confine"]

    assert confined("codex") == [(Status.ENFORCED, "")] * 2
    text = "Qwen Code cannot `rewrite` a call: shell lines are judged by their text alone"
    assert confined("qwen") == [(Status.DIFFERENTLY, text)] * 2
    assert (
        confined("codex", "no Landlock")
        == [(Status.DIFFERENTLY, "no Landlock: shell lines are judged by their text alone")] * 2
    )


def test_a_hook_whose_code_does_not_tell_is_taken_for_what_its_event_is_for() -> None:
    """A gate's hook denies; a Stop hook sends back."""
    from hookline.guards import commands

    guard = commands.block("rm -rf *")
    assert kinds(guard, "PreToolUse") >= {"deny"}
    hooks = Hooks()
    (stopper,) = hooks.add(Stop, print)
    assert kinds(stopper, "Stop") == {"keep_going"}


def test_a_hook_that_returns_nothing_only_looks_on() -> None:
    """On every host it does what it is for, so `--strict` has nothing against it; a gate is still one."""

    def log(event: object) -> None:
        if event:
            print(event)
            return
        print("nothing")

    async def log_later(event: object) -> None:
        log(event)

    def returns(event: object) -> object:
        return event

    class Logger:
        def __call__(self, event: object) -> None:
            log(event)

    for event in (PreToolUse, PostToolUse, Stop, SessionEnd):
        for call in (log, log_later, Logger(), lambda event: None):
            hooks = Hooks()
            (hook,) = hooks.add(event, call)
            assert kinds(hook, event.event_name) == {"observe"}
            for host in EVERY:
                assert worst(enforcing(report([hook], host))) is Status.ENFORCED, (event, host.name)
    hooks = Hooks()
    assert kinds(hooks.add(PreToolUse, returns)[0], "PreToolUse") == {"deny"}
    assert kinds(hooks.add(PreToolUse, with_a_name_for_later())[0], "PreToolUse") == {"deny"}


def with_a_name_for_later() -> Callable[[object], object]:
    later = deny("no")

    def hook(event: object) -> object:
        return deny("no") if event else later  # noqa: F821 - it is gone when the hook is looked at

    del later
    return hook


@by_name
def test_a_plain_deny_before_a_tool_is_enforced_everywhere(host: Host) -> None:
    """The one thing every host can do."""
    losses = [loss for loss in report(gates().hooks, host) if loss.event == "PreToolUse"]

    assert worst(losses) is Status.ENFORCED


@pytest.mark.parametrize("matcher, told", [("mcp__demo__.*", True), ("Bash|mcp__demo__x", True), ("mcp__.*__x", False),
                                           ("mcp__*", False), ("Bash", False)])  # fmt: skip
def test_a_server_that_a_host_does_not_name_is_in_the_report(matcher: str, told: bool) -> None:
    """A hook on one MCP server's tools would never be asked there; on all others it holds."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no"), match=matcher)

    losses = report(hooks.hooks, find("openhands"))

    assert worst(losses) is (Status.IMPOSSIBLE if told else Status.ENFORCED)
    assert worst(report(hooks.hooks, find("copilot"))) is Status.ENFORCED


@by_name
def test_a_path_that_a_host_would_change_is_refused(host: Host, home: Path) -> None:
    """Gemini, Qwen and Grok replace `$NAME` even in quotes: every call would be denied, as the file is not there."""
    source = HookSource(hooks="/srv/$HOME/hooks.py")

    if host.config.expands:
        with pytest.raises(HooklineError, match=r"choose a path without `\$`"):
            install(host, gates().hooks, source)
    else:
        assert install(host, gates().hooks, source).events


def test_a_project_cannot_take_the_name_of_the_users_hook(home: Path, tmp_path: Path) -> None:
    """Of two hooks with one name Vibe runs the project's alone."""
    (tmp_path / "project").mkdir()
    user = install(find("vibe"), gates().hooks, HookSource(hooks="/srv/hooks.py"))
    project = install(find("vibe"), gates().hooks, HookSource(hooks="/srv/hooks.py"), scope="project",
                      project=tmp_path / "project")  # fmt: skip

    names = [row["name"] for done in (user, project) for row in tomllib.loads(done.path.read_text())["hooks"]]
    assert len(names) == len(set(names)) > 0


@pytest.mark.parametrize("matcher, status", [
    ("Bash", Status.ENFORCED), ("Write|Edit", Status.DIFFERENTLY), ("mcp__demo__.*", Status.DIFFERENTLY),
    ("", Status.DIFFERENTLY),
])  # fmt: skip
def test_a_refusal_that_ends_the_run_is_in_the_report(matcher: str, status: Status) -> None:
    """Cline can replace a command by one that says why; any other call it can only refuse with the whole run."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no"), match=matcher)

    assert worst(report(hooks.hooks, find("cline"))) is status
    assert worst(report(hooks.hooks, find("codex"))) is Status.ENFORCED
