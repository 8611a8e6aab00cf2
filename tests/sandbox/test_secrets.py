"""Secrets that a confined line does not read, and what goes on being readable around them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox.places import temporary_folder
from tests.sandbox import arena

pytestmark = pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")

CANARY = "CANARY-7"
FILES = (
    ".ssh/id_ed25519", ".gnupg/secring.gpg", ".aws/credentials", ".azure/accessTokens.json", ".kube/config", ".netrc",
    ".config/gcloud/credentials.db", ".config/gh/hosts.yml", ".git-credentials", ".pypirc", ".cargo/credentials.toml",
    ".docker/config.json", ".npmrc", ".m2/settings.xml", ".pgpass", ".vault-token", ".bash_history", ".zsh_history",
    ".python_history", ".local/share/keyrings/login.keyring", ".mozilla/firefox/x/logins.json", ".password-store/a.gpg",
    ".config/google-chrome/Default/Cookies", ".terraform.d/credentials.tfrc.json", ".claude/.credentials.json",
)  # fmt: skip
MARKED = f'{CANARY} "auth" _auth <password'
MAKE = "cd ~; for f in {}; do mkdir -p $(dirname $f); echo '{}' > $f; done".format(" ".join(FILES), MARKED)
READERS = (
    "cat {0}", "head -c 99 {0}", "python3 -c 'print(open(\"{0}\").read())'", "cp {0} copy; cat copy",
    "ln {0} hard; cat hard", "ln -s {0} soft; cat soft", "mv {0} moved; cat moved",
    "cd $(dirname {0}) && cat $(basename {0})",
    "tar c {0} | cat", "cat /proc/self/root{0}", "exec 3<{0}; cat <&3", "(cat < {0})", "dd if={0}",
    "grep -r . $(dirname {0})",
    "perl -pe '' {0}", "awk 1 {0}", "base64 -d < <(base64 {0})", "while read l; do echo $l; done < {0}", "bash {0}",
    "git hash-object -w {0} && git cat-file -p $(git hash-object {0})", "git diff --no-index /dev/null {0}",
    "od -c {0}",
)  # fmt: skip


def outputs(lines: list[str], setup: str, **policy: Any) -> list[str]:
    job = {"setup": setup, "prefix": arena.confined(by=arena.CREW, **policy), "only_files": True}
    return [result["output"] for result in arena.tried({"line": line, **job} for line in lines)]


def test_no_place_of_the_table_is_read_and_each_can_be_shown() -> None:
    lines = [f"cat ~/{file}" for file in FILES]
    hidden = outputs(lines, MAKE)
    shown = outputs(lines[:3], MAKE, extra=["--show", "/tmp/arena/home"])

    assert [file for file, said in zip(FILES, hidden, strict=True) if CANARY in said] == []
    assert [CANARY in said for said in shown] == [True] * 3


def test_no_way_to_read_a_file_reads_a_secret() -> None:
    """Whichever program reads it, by whichever name."""
    lines = [line.format("/tmp/arena/home/.ssh/id_ed25519") for line in READERS]
    said = outputs(lines, f"{MAKE}; cd project; git init -q")

    assert [line for line, each in zip(lines, said, strict=True) if CANARY in each] == []


def test_what_lies_around_is_read_as_before() -> None:
    """Settings without a secret in them, tools in the home folder, public keys, and what the line makes itself."""
    setup = """
        mkdir -p ~/.ssh ~/.pyenv/bin ~/.nvm ~/.cargo/bin ~/.config/tool ~/.docker; echo key > ~/.ssh/id_rsa.pub
        echo host > ~/.ssh/known_hosts; echo 'registry = x' > ~/.npmrc; echo '{}' > ~/.docker/config.json
        printf '#!/bin/sh\\necho ran' > ~/.cargo/bin/tool; chmod +x ~/.cargo/bin/tool; echo s > ~/.config/tool/settings
    """
    line = """
        cat ~/.ssh/id_rsa.pub ~/.ssh/known_hosts ~/.npmrc ~/.docker/config.json ~/.config/tool/settings
        ~/.cargo/bin/tool; ls ~ > listed && cat listed | grep -c . ; mkdir a && echo made > a/new && cat a/new
        echo t > $TMPDIR/x; cat $TMPDIR/x; git config user.name; python3 -c 'import json, ssl; print("python")'
    """
    [said] = outputs([line], setup)

    words = ["key", "host", "registry = x", "{}", "s", "ran", "1", "made", "t", "a", "python"]
    assert said.splitlines() == words


def test_a_place_can_be_hidden_and_reading_kept_to_folders() -> None:
    """`--read` grants neither all of `/etc`, `/var` and `/run`, nor what is hidden in the folders that it names."""
    setup = f"mkdir -p ~/data/deep /run/app; echo {CANARY} | tee ~/data/deep/key ~/data/open /run/app/token"
    lines = [
        "cat ~/data/deep/key",
        "cat ~/data/open",
        "cat /run/app/token",
        "cat /etc/fstab /var/lib/apt/extended_states",
    ]
    hide = ["--hide", "/tmp/arena/home/data/deep"]
    hidden = outputs(lines[:2], setup, extra=hide)
    kept = outputs(lines, setup, extra=["--read", "/tmp/arena/home/data", *hide])

    assert [CANARY in said for said in (*hidden, *kept[:3])] == [False, True, False, True, False]
    assert {each.rpartition(": ")[2] for each in kept[3].splitlines()} <= {
        "Permission denied",
        "No such file or directory",
    }


MACHINE = (
    "/etc/fstab", "/etc/hostname", "/etc/machine-id", "/etc/mtab", "/etc/subuid", "/etc/crontab",
    "/usr/share/base-passwd/passwd.master", "/proc/version", "/proc/cmdline", "/proc/devices", "/proc/modules",
    "/proc/mounts", "/proc/self/mountinfo", "/proc/net/tcp", "/proc/self/net/arp", "/proc/partitions", "/proc/keys",
    "/proc/key-users", "/proc/interrupts", "/proc/1/cmdline", "/proc/1/status", "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id", "/sys/class/dmi/id/product_name", "/sys/class/net/lo/address",
    "/sys/kernel/vmcoreinfo", "/var/log/dpkg.log", "/boot/config", "/etc/ssh/sshd_config",
)  # fmt: skip
"""What tells of the machine: its accounts, disks, network, kernel, programs and history."""


def test_a_line_that_reads_only_some_folders_learns_nothing_of_the_machine() -> None:
    """Neither by its usual name nor by any other one is more read than the lines that tell nothing."""
    ways = [
        "cat {}",
        "cat /usr/..{}",
        "cd /; cat .{}",
        "ln -s {} link; cat link",
        "exec 3<{}; cat <&3",
        "cat /proc/self/root{}",
    ]
    lines = [
        way.format(path) for path in MACHINE for way in (ways if path.startswith(("/etc", "/proc/v")) else ways[:2])
    ]
    said = outputs(lines, "", extra=["--read", arena.PROJECT])
    secret = outputs(lines, "echo TOKEN=x > .env", extra=["--read", arena.PROJECT])  # every file is opened outside
    reduced = [way.format(path) for path in ("/etc/passwd", "/etc/group", "/proc/cpuinfo") for way in ways]
    seen = "\n".join(outputs(reduced, "", extra=["--read", arena.PROJECT]))
    mounts = "import ctypes; print([ctypes.CDLL(None).syscall(n, None, None, 0, 0) for n in (457, 458)])"
    hidden = outputs([f"python3 -c '{mounts}'; dmesg", "df"], "", extra=["--read", arena.PROJECT])

    for each in (said, secret):
        told = [line for line, words in zip(lines, each, strict=True) if words and "denied" not in words]
        assert [line for line in told if "No such file" not in each[lines.index(line)]] == []
    assert [hidden[0].splitlines()[0], hidden[1].partition(": ")[2][:26]] == ["[-1, -1]", "cannot read table of mount"]
    assert "root:x:0:" in seen
    assert not [word for word in ("daemon", "www-data", "model name", "bugs") if word in seen]


def test_programs_work_where_only_some_folders_are_read() -> None:
    """What libraries ask at their start is answered: who they run as, how many processors and how much memory."""
    setup = (
        "git config --global user.name Ann; git config --global user.email a@b.example; git config --global alias.x y"
    )
    line = """
        whoami; id -un; cat <(echo piped); cat /proc/self/comm; ls /proc/self/fd | grep -c . > n; git init -q r
        git -C r commit -q --allow-empty -m x && git -C r log --format=%an; git config --global alias.x
        ssh -TG example.com | head -1; nproc > n; grep -c MemTotal /proc/meminfo; ps -e | grep -c python
        openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=x 2> /dev/null; ls c
        /usr/bin/python3 -c 'import os, socket; print(os.path.expanduser("~root"), socket.gethostbyname("localhost"))'
    """
    script = 'const os = require("os"); console.log(os.cpus().length > 0, os.userInfo().username)'
    node = f"command -v node > /dev/null && node -e '{script}' || echo true root"
    read = ["--read", arena.PROJECT, str(Path(shutil.which("node") or "/usr/bin").resolve().parent)]
    said, told = outputs([line, node], setup, extra=read)

    words = ["root", "root", "piped", "cat", "Ann", "host example.com", "1", "0", "c", "/root 127.0.0.1"]
    assert said.splitlines() == words
    assert told.splitlines()[0] == "true root"


def test_other_programs_temporary_files_are_not_read() -> None:
    """A line has a temporary folder of its own, which the next line of the same project finds again."""
    setup = f"echo {CANARY} > /tmp/other"
    lines = ["cat /tmp/other; echo kept > $TMPDIR/note", "cat $TMPDIR/note; rm $TMPDIR/note"]
    first, second = outputs(lines, setup)

    assert CANARY not in first
    assert second == "kept\n"


def test_a_project_has_caches_that_no_other_project_s_line_writes_to() -> None:
    """Nor can a worktree's pointer lead a line to another repository."""
    setup = """
        mkdir -p ~/.cache ~/other; git init -q ~/main && git -C ~/main commit -q --allow-empty -m x
        git -C ~/main worktree add -q ~/tree; git init -q ~/victim
    """
    line = "echo $PIP_CACHE_DIR; echo x > $PIP_CACHE_DIR/../mark && ls $PIP_CACHE_DIR/.."
    tree = "git -C ~/tree commit -q --allow-empty -m y && echo committed; echo x > ~/main/.git/hooks/post-commit"
    forged = "echo 'gitdir: /tmp/arena/home/victim/.git' > ~/other/.git"
    own, other = outputs([line], setup), outputs([line], setup, write=["/tmp/arena/home/other"])
    worked = outputs([tree], setup, write=["/tmp/arena/home/tree"])
    lost = outputs(["touch ~/victim/.git/new"], f"{setup}\n{forged}", write=["/tmp/arena/home/other"])

    assert own[0].splitlines()[0] != other[0].splitlines()[0]
    assert "mark" in own[0]
    assert "committed" in worked[0]
    assert "refused to write `/tmp/arena/home/main/.git/hooks/post-commit`" in worked[0]
    assert "refused to write `/tmp/arena/home/victim/.git/new`" in lost[0]


def test_empty_temporary_folders_go_after_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is made where a line may write to other folders; what is not empty stays, and so does what is new."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    old, new, full = (temporary_folder(key) for key in ("old", "new", "full"))
    Path(full, "file").touch()
    for folder in (old, full):
        os.utime(folder, (0, 0))
    made = temporary_folder("made")

    assert {str(path) for path in tmp_path.iterdir()} == {new, full, made}
