"""What judged, as one hash: the same wherever the same files are, another one when anything of it changes."""

import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from hookline import Hooks, allow, ask, deny
from hookline.core.engine import Approval
from hookline.core.engine.policy import policy_digest
from hookline.core.hooks import Command, Hook, make_hook
from hookline.events import Event, PreToolUse
from hookline.guards import commands, paths
from hookline.hook_file import load_hooks
from hookline.settings.trust.seal import Seal

FILE = """
from hookline import Hooks, deny
from hookline.guards import commands
from .rules import WORDS

hooks = Hooks()
hooks.add(commands.block(["rm -rf *"]))

@hooks.on("PreToolUse", match="Bash")
def words(event):
    return deny("no") if event.tool_input["command"] in WORDS else None
"""


def written(folder: Path, words: str = "x", text: str = FILE) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "rules.py").write_text(f"WORDS = ['{words}']\n")
    (folder / "hooks.py").write_text(text)
    return folder / "hooks.py"


def digest(*hooks: Hook) -> str:
    return policy_digest(hooks)


def test_other_processes_and_other_places_come_to_the_same(tmp_path: Path) -> None:
    """It can be compared between machines: neither paths nor addresses nor the order of sets are in it."""
    script = (
        "import sys; from hookline.hook_file import load_hooks; from hookline.core.engine.policy import policy_digest\n"
        "for file in sys.argv[1:]: print(policy_digest(load_hooks(file).hooks))"
    )
    files = [str(written(tmp_path / "a")), str(written(tmp_path / "b"))]
    runs = [subprocess.run([sys.executable, "-c", script, file], capture_output=True, check=True) for file in files]

    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.startswith(b"sha256:")


def test_every_change_shows(tmp_path: Path) -> None:
    """Another pattern, order, limit, neighbour or line of code is another policy."""
    first = load_hooks(written(tmp_path / "a")).hooks
    others = [
        load_hooks(written(tmp_path / "b", words="y")).hooks,
        load_hooks(written(tmp_path / "c", text=FILE.replace("-rf", "-fr"))).hooks,
        load_hooks(written(tmp_path / "d", text=FILE.replace('"no"', '"not"'))).hooks,
        load_hooks(written(tmp_path / "e", text=FILE.replace('match="Bash"', 'match="Bash", timeout=3'))).hooks,
        first[:1],
        first[::-1],
    ]

    assert len({policy_digest(first), *map(policy_digest, others)}) == 1 + len(others)


def test_what_a_guard_was_made_with_counts() -> None:
    """The guards are code of ours: their patterns are what tells two of them apart."""
    blocks = [commands.block([pattern]) for pattern in ("rm -rf *", "sudo *")]
    made = [Hooks().add(guard)[0] for guard in (*blocks, paths.stay_inside("src"), paths.stay_inside("docs"))]

    assert len({digest(hook) for hook in made}) == 4
    assert digest(Hooks().add(commands.block(["rm -rf *"]))[0]) == digest(made[0])


def test_what_a_hook_counts_is_not_its_policy() -> None:
    """A hook that keeps state is the same hook after its first event."""
    hooks, seen = Hooks(), []

    @hooks.on(PreToolUse)
    def count(event: Event) -> None:
        seen.append(event.session_id)

    before = policy_digest(hooks.hooks)
    hooks.fire_sync(PreToolUse(tool_name="Bash", tool_input={}))

    assert seen
    assert policy_digest(hooks.hooks) == before


def test_a_commands_script_is_part_of_it(tmp_path: Path) -> None:
    """An edit of the file that a command runs is another policy, at once."""
    script = tmp_path / "check.sh"
    script.write_text("exit 0")
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": f"bash {script}"}]}]}}
    hooks = Hooks.from_settings(tmp_path, settings=settings, setting_sources=(), trust="all")
    before = policy_digest(hooks.hooks)
    script.write_text("exit 20")

    assert policy_digest(hooks.hooks) != before


async def test_a_verdict_says_who_judged_on_every_path() -> None:
    """On the fast path and off it; what was asked keeps the hooks that asked, and says who answered."""
    approval = Approval(by="ada", how="page", question="A-1", call="c")
    sets = [Hooks(), Hooks(order="parallel"), Hooks(mode="evaluate_only"), Hooks(on_ask=lambda verdict: approval)]
    for hooks, approved in zip(sets, [None, None, None, approval], strict=True):
        hooks.add(PreToolUse, lambda event: ask("sure?"), name="asks")
        hooks.add(PreToolUse, lambda event: allow(), name="allows")
        verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input={}))

        assert verdict.chosen == hooks.hooks
        assert verdict.approval == approved


async def test_a_person_who_refuses_is_known_too() -> None:
    """`granted=False` denies, with the person's reason."""
    hooks = Hooks(on_ask=lambda verdict: Approval(by="ada", how="mail", granted=False, reason="not on a Friday"))
    hooks.add(PreToolUse, lambda event: ask("sure?"), name="asks")

    verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input={}))

    assert verdict.reply == deny("not approved: not on a Friday")
    assert verdict.approval is not None
    assert verdict.approval.by == "ada"


class Limit:
    """A hook as an object, with what it was made with, and what it keeps."""

    def __init__(self, most: int) -> None:
        self.most, self.started = most, time.monotonic()

    def check(self, event: Event) -> None:
        """Nothing is said."""


class Slotted:
    """The same, without a dictionary."""

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, event: Event) -> None:
        """Nothing is said."""


def test_values_of_every_kind_tell_hooks_apart() -> None:
    """Methods, partial functions, defaults, patterns, paths, bytes, sets, classes, objects with and without slots."""

    def made(*values: object) -> Hook:
        def rule(event: Event, given: object = values) -> None:
            return None

        return Hooks().add(PreToolUse, rule, name="rule")[0]

    def loop(event: Event, *_: Any, **__: Any) -> None:
        if not event.session_id:
            later()

    pairs = [(Limit(1).check, Limit(2).check), (Slotted(1), Slotted(2)), (partial(loop), partial(loop, x=1))]
    hooks = [Hooks().add(PreToolUse, one, name="rule")[0] for pair in pairs for one in pair]
    values = [re.compile("a"), re.compile("b"), Path("a"), Path("b"), b"a", {1, 2}, {1, 3}, int, str, [[]], object()]
    before = digest(Hooks().add(PreToolUse, loop, name="rule")[0])
    deep: list[object] = []
    deep.append(deep)

    def later() -> None:
        return None

    digests = [digest(hook) for hook in (*hooks, *(made(value) for value in values), made(deep), made(*range(9_000)))]
    assert len(set(digests)) == len(digests)
    assert before != digest(Hooks().add(PreToolUse, loop, name="rule")[0])
    assert digest(Hooks().add(PreToolUse, Limit(1).check, name="rule")[0]) == digests[0]


def test_what_cannot_be_looked_at_is_no_reason_to_fail(tmp_path: Path) -> None:
    """Words that are not files, folders, a module without a file, and more hooks than are remembered."""
    folder = make_hook((PreToolUse,), Command(command="bash", args=(str(tmp_path), "x" * 5_000)), name="folder")
    nowhere = {"__name__": "nowhere"}
    exec("def rule(event): pass", nowhere)
    hidden = Hooks().add(PreToolUse, nowhere["rule"], name="hidden")[0]
    many = [make_hook((PreToolUse,), Command(command=f"echo {number}"), name="n") for number in range(1_100)]

    assert len({digest(folder), digest(hidden), *map(digest, many)}) == 1_102


def test_a_trusted_commands_files_are_those_of_its_seal() -> None:
    """By their hashes; where they lie does not count."""
    seals = [Seal(files=((path, digest),)) for path, digest in (("/a", "1"), ("/b", "1"), ("/a", "2"))]
    first, moved, changed = (
        digest(make_hook((PreToolUse,), Command(command="bash a", seal=seal), name="n")) for seal in seals
    )

    assert first == moved != changed
