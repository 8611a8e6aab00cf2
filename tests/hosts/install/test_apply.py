"""Files of every form are put back to the byte; what others write meanwhile stays; nothing is written by halves."""

import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline import Hooks, deny
from hookline.core.files import write_atomically
from hookline.errors import ConfigError, HooklineError
from hookline.events import PreToolUse, Stop
from hookline.hosts.host import Host
from hookline.hosts.install.apply import all_commands
from hookline.hosts.install.commands import InstallResult, install, uninstall
from hookline.hosts.install.entries import HookSource, config_path
from hookline.hosts.install.survey import find_binary
from hookline.hosts.table import HOSTS, find
from tests.environ import clean_environ
from tests.hosts.battery import CODEX_HASHES, our_commands

SOURCE = HookSource(hooks="/some where/hooks.py")
JSON = [
    "", " \n\n", "{}", "{ }\n", '{"x": 1}', '{\n  "x": 1\n}', '{"hooks": {}}',
    '{"hooks": {"Stop": [], "note": "mine"}}',
    '{"hooks": {"Other": [{"hooks": [{"type": "command", "command": "theirs"}]}, "odd", {"hooks": null}]}}',
    '{"a": 1, "a": {"b": [1, ], }, }\n', "// only a comment\n", "/* one */ {/* two */} // three", '\ufeff{"x": 1}',
    '{"é": "\\u00e9", "n": 1e400, "s": "// no comment \\" }"}', '{"hooks": {}, "x": 1, "hooks": {"y": []}}',
]  # fmt: skip
TOML = [
    "", "\n\n", "a = 1", "a = 1\n", "# only a comment", "[t]\nx = 'y'\n\n\n", "[[hooks]]\nx = 'theirs' # mine",
    'long = """\n[[hooks]]\n# <<< hookline-ish\n"""\n', "\ufeffa = 1\n", "x = nan\nwhen = 2020-01-01\n",
    "a.b.c = 1\n[a.d]\n",
]  # fmt: skip


def gates() -> Hooks:
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no"), name="gate")
    hooks.add(Stop, lambda event: None, name="watch")
    return hooks


def done(host: Host, **more: object) -> InstallResult:
    return install(host, gates().hooks, SOURCE, trust=True, **more)  # type: ignore[arg-type]


EDITED = [find(name) for name in ("claude", "codex", "gemini", "kimi", "vibe", "openhands", "cursor", "crush")]
"""The hosts whose own files are edited, one for each form."""


def files_of(host: Host) -> Iterator[tuple[Path, str]]:
    """Every file that an installation edits, with every text it may have had."""
    path = config_path(host, "user")
    for text in TOML if host.config.kind == "toml" else JSON:
        yield path, text
    if host.name == "codex":
        yield from ((path.with_name("config.toml"), text) for text in TOML if "\n[[hooks" not in f"\n{text}")


def variants(text: str) -> Iterator[bytes]:
    yield text.encode()
    if "\n" in text:
        yield text.replace("\n", "\r\n").encode()


def test_a_file_of_any_form_is_put_back_to_the_byte(home: Path) -> None:
    """Empty, without a last line's end, with Windows' line ends, a mark, comments: installed twice and taken out."""
    wrong: list[object] = []
    for host in EDITED:
        for path, text in files_of(host):
            for data in variants(text):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                done(host)
                once = path.read_bytes()
                done(host)
                hooked = path.name == "config.toml" or our_commands(host, path.read_text())
                if path.read_bytes() != once or not hooked:
                    wrong.append((host.name, path.name, data, "installed", path.read_bytes()))
                uninstall(host)
                if not path.exists() or path.read_bytes() != data:
                    wrong.append((host.name, path.name, data, "undone", path.exists() and path.read_bytes()))
                path.unlink(missing_ok=True)
    assert wrong == []


def test_our_part_is_cut_out_of_a_file_that_was_changed_meanwhile(home: Path) -> None:
    """What others wrote before and after us has the same values, and TOML files have the same bytes."""
    wrong: list[object] = []
    for host in EDITED:
        for path, text in files_of(host):
            if path.suffix != ".toml" or path.name == "config.toml":
                continue
            for data in variants(text):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                done(host)
                later = b"" if path.read_bytes().endswith(b"\n") else b"\n"
                path.write_bytes(path.read_bytes() + later + b"[later]\nx = 1\n")
                uninstall(host)
                lines = path.read_bytes().decode()
                if our_commands(host, lines) or tomllib.loads(lines.removeprefix("\ufeff"))["later"] != {"x": 1}:
                    wrong.append((host.name, data, path.read_bytes()))
                if later == b"" and path.read_bytes() != data + b"[later]\nx = 1\n":
                    wrong.append((host.name, data, path.read_bytes()))
                path.unlink()
    assert wrong == []


def test_a_file_of_ours_that_others_have_added_to_stays(home: Path) -> None:
    """Copilot and Grok read every file of a folder; ours may have got an entry that is not ours."""
    path = config_path(find("grok"), "user")
    done(find("grok"))
    text = path.read_text().replace('"hooks": {', '"hooks": {"Notification": [{"hooks": [{"command": "theirs"}]}],', 1)
    path.write_text(text)

    uninstall(find("grok"))

    assert all_commands(find("grok"), path.read_text()) == [("Notification", "theirs")]


@pytest.mark.real_hosts
def test_codex_keeps_its_servers_and_projects_through_a_second_install(home: Path) -> None:
    """Codex writes its own tables into the same file, wherever it likes."""
    binary = find_binary(find("codex"))
    if binary is None:
        pytest.skip("codex is not on this machine; run tools/hosts/install codex")
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "x" # mine\n\n[projects."/p"]\ntrust_level = "trusted"')
    env = clean_environ(home, PATH=os.environ["PATH"], CODEX_HOME=str(home / ".codex"))

    made = done(find("codex"))
    subprocess.run([binary.path, "mcp", "add", "x", "--", "echo"], env=env, cwd=home, check=True, capture_output=True)
    added = tomllib.loads(config.read_text())["mcp_servers"]
    other = Hooks()
    other.add(PreToolUse, lambda event: deny("no"), timeout=77)
    install(find("codex"), other.hooks, SOURCE, trust=True)

    after = tomllib.loads(config.read_text())
    assert (after["model"], after["projects"], after["mcp_servers"]) == ("x", {"/p": {"trust_level": "trusted"}}, added)
    assert CODEX_HASHES.are_in(config.read_text(), CODEX_HASHES.of(made.path, made.path.read_text()))
    subprocess.run([binary.path, "mcp", "add", "y", "--", "echo"], env=env, cwd=home, check=True, capture_output=True)
    uninstall(find("codex"))
    assert set(tomllib.loads(config.read_text())) == {"model", "projects", "mcp_servers"}
    assert set(tomllib.loads(config.read_text())["mcp_servers"]) == {"x", "y"}


OLD_BLOCK = """model = "x"

# >>> hookline: `hookline uninstall codex` takes this out
[hooks.state."HOME/.codex/hooks.json:pre_tool_use:0:0"]
trusted_hash = "sha256:old"

[mcp_servers.x]
command = "echo"
# <<< hookline
"""


def test_what_codex_wrote_into_a_block_of_an_earlier_version_stays(home: Path) -> None:
    """Codex has written into it."""
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(OLD_BLOCK.replace("HOME", str(home)))

    done(find("codex"))
    uninstall(find("codex"))

    assert tomllib.loads(config.read_text())["mcp_servers"] == {"x": {"command": "echo"}}


ODD_CONFIG = [
    "hooks = 1\n",
    "[[hooks]]\nx = 1\n",
    "hooks.state = 'x'\n",
    "a = \n",
    "x = [" + "[" * 3000 + "]" * 3000 + "]",
]


def test_nothing_is_written_if_any_of_the_files_cannot_be(home: Path) -> None:
    """Codex's two files are both written, or none is; the message names the one that is wrong."""
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    for text in ODD_CONFIG:
        config.write_text(text)
        with pytest.raises(ConfigError, match=r"config\.toml: .*nothing was changed"):
            done(find("codex"))
        assert sorted(path.name for path in home.rglob("*") if path.is_file()) == ["config.toml"]
        assert config.read_text() == text


def test_a_full_disk_leaves_everything_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file is put back when the second cannot be written."""
    hooks = home / ".codex" / "hooks.json"
    hooks.parent.mkdir()
    hooks.write_text('{"x": 1}')

    def full(path: Path, data: bytes, *, mode: int = 0o600) -> None:
        if path.name == "config.toml":
            raise OSError(28, "No space left on device")
        write_atomically(path, data, mode=mode)

    monkeypatch.setattr("hookline.hosts.install.apply.write_atomically", full)

    with pytest.raises(ConfigError, match="No space left"):
        done(find("codex"))
    assert hooks.read_text() == '{"x": 1}'
    assert not (home / ".codex" / "config.toml").exists()


def test_other_hooks_are_not_dropped_in_silence(home: Path) -> None:
    """A second installation of another file is refused, on every host, and says what to do."""
    for host in HOSTS.values():
        made = done(host)
        path = made.path
        before = path.read_bytes()
        with pytest.raises(HooklineError, match=r"asks `/some where/hooks\.py` already.*--replace"):
            install(host, gates().hooks, HookSource(hooks="/other.py"))
        assert path.read_bytes() == before, host.name

        install(host, gates().hooks, HookSource(hooks="/other.py"), replace=True)
        assert b"/other.py" in path.read_bytes()
        assert b"/some where/hooks.py" not in path.read_bytes()


def test_a_name_that_is_not_text_is_refused(home: Path) -> None:
    """Nothing can be written into a JSON file that is not UTF-8."""
    with pytest.raises(ConfigError, match="is not UTF-8"):
        install(find("gemini"), gates().hooks, HookSource(hooks=os.fsdecode(b"/srv/\xff.py")))
