"""`apply_patch` in a shell line: decided on the parsed command, and what cannot be read is refused."""

import pytest

from hookline.core.shell import writes
from hookline.core.shell.patched_files import patched_files
from hookline.errors import EventError

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"
DOCUMENT = f"<<'E'\n{PATCH}\nE"

READ = {
    f"apply_patch {DOCUMENT}": ["a.txt"],
    f"applypatch {DOCUMENT}": ["a.txt"],
    f"apply_patch <<E\n{PATCH}\nE": ["a.txt"],
    f"apply_patch 0{DOCUMENT}": ["a.txt"],
    f"apply_patch >/dev/null {DOCUMENT}": ["a.txt"],
    f"apply_patch 2>&1 {DOCUMENT}": ["a.txt"],
    f"<<'E' apply_patch\n{PATCH}\nE": ["a.txt"],
    f"'apply_patch' {DOCUMENT}": ["a.txt"],
    f'"apply"_patch {DOCUMENT}': ["a.txt"],
    f"\\apply_patch {DOCUMENT}": ["a.txt"],
    f"$'apply\\x5fpatch' {DOCUMENT}": ["a.txt"],
    f"/usr/bin/apply_patch {DOCUMENT}": ["a.txt"],
    f"apply_patch '{PATCH}'": ["a.txt"],
    f"apply_patch <<< '{PATCH}'": ["a.txt"],
    f"bash -lc \"apply_patch {DOCUMENT}\"": ["a.txt"],
    f"timeout 5 apply_patch {DOCUMENT}": ["a.txt"],
    f"true; apply_patch {DOCUMENT}\necho done": ["a.txt"],
    f"cd /etc && apply_patch {DOCUMENT}": ["/etc/a.txt"],
    f"cd ../x && apply_patch {DOCUMENT}": ["../x/a.txt"],
    f"cd ~/x && apply_patch {DOCUMENT}": ["~/x/a.txt", "./~/x/a.txt"],
    f"cat > notes.md {DOCUMENT}": [],
    "grep -rn apply_patch src": [],
    "cargo test apply_patch": [],
    "ls -la": [],
    "until [ -e /tmp/x ]; do sleep 1; done": [],
    "env [ -e x ]": [],
    "[ -e x ] || ls [ab]*": [],
}  # fmt: skip

REFUSED = (
    f"cat {DOCUMENT[:5]} | apply_patch\n{PATCH}\nE",
    f"printf '%s' '{PATCH}' | apply_patch",
    "cat p.txt | apply_patch",
    "apply_patch < p.txt",
    "apply_patch",
    'apply_patch "$(cat p.txt)"',
    'apply_patch "$P"',
    f"apply_patch <<E\n{PATCH}\n$X\nE",
    f"apply_patch <<E\n{PATCH.replace('a.txt', '$HOME/a.txt')}\nE",
    f"apply_patch 3{DOCUMENT}",
    f"apply_patch <p.txt 3{DOCUMENT}",
    f"apply_patch '{PATCH}' {DOCUMENT}",
    f"apply_patch --x {DOCUMENT}",
    f"cd $X && apply_patch {DOCUMENT}",
    f"cd - && apply_patch {DOCUMENT}",
    "f() { apply_patch; }; f < p.txt",
    "xargs -0 apply_patch < p.txt",
    "exec -a apply_patch codex x",
    "env -a apply_patch codex x",
    "env --argv0=apply_patch codex x",
    "ARGV0=apply_patch codex x",
    "codex --codex-run-as-apply-patch x",
    "alias p=apply_patch; p < p.txt",
    "run_it apply_patch x",
    "/opt/apply_p?tch < p.txt",
    "/opt/apply_[p]atch < p.txt",
    f"$X {DOCUMENT}",
    f"x=apply_patch; $x {DOCUMENT}",
    "python3 -c 'import os; os.system(\"apply_patch\")'",
    f"coproc apply_patch {DOCUMENT}",
    f"apply_patch {DOCUMENT[:-2]}",
    "apply_\\\npatch < p.txt",
)


def test_the_files_of_a_patch_are_found_however_the_line_is_written() -> None:
    """Quoted, with a descriptor, another redirection or the here-document first, through a wrapper, after a `cd`."""
    assert {line: [one.path for one in patched_files(line)] for line in READ} == READ


def test_a_line_that_may_apply_a_patch_that_cannot_be_read_is_refused() -> None:
    """A pipe, a file, an expansion, another name for the program: nobody can say what it touches."""
    for line in REFUSED:
        with pytest.raises(EventError):
            pytest.fail(f"{line}: {list(patched_files(line))}")


def test_guards_know_what_a_patch_writes_or_that_they_cannot() -> None:
    """`writes` names the files, so that a guard decides on them on every host; what it cannot read is undecidable."""
    assert writes(f"cd /etc && apply_patch {DOCUMENT}").targets == ("/etc/a.txt",)
    for line in ("cat p.txt | apply_patch", "apply_patch < p.txt", 'apply_patch "$P"', "exec -a apply_patch codex x",
                 "codex --codex-run-as-apply-patch x"):  # fmt: skip
        assert writes(line).undecidable, line
