"""Names that steer a terminal or fake a line: no command prints them as they are, be they of files, hooks or flags."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline import Hooks, deny
from hookline.cli.main import COMMANDS
from hookline.events import PreToolUse
from hookline.records.audit.log import AuditLog
from tests import forked
from tests.cli.place import Place, command

NAME = "a\x1b]0;t\x07b\rc\nFAKE line\u202ed\u2028FAKE too\x9be\u200bf\tg"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2028]")
COLOUR = re.compile(r"\x1b\[\d\d?m")
HOOKS = f"""from hookline import Hooks, deny
hooks = Hooks()
@hooks.on("PreToolUse", name={NAME!r})
def no(event):
    return deny({NAME!r})
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Place:
    """A home and a project in a folder of that name, with hooks and a log of that name."""
    place = Place(tmp_path / NAME)
    (place.base / "home").mkdir(parents=True)
    place.hooks(
        "PreToolUse", command(f"echo {NAME}", name=NAME, timeout=NAME), command("true", name=NAME), matcher=NAME
    )
    place.write(f"{NAME}.py", HOOKS)
    place.write("broken.py", f"raise ValueError({NAME!r})")
    place.write("both.py", f"{HOOKS}\nhooks.on('PreToolUse', name={NAME!r})(no)\n")
    place.write(
        "odd.json", f'{{"hooks": {{"{"x" * 9}\u202e": [], "Stop": [{{"hooks": [{{"type": "\\u001b\\n"}}]}}]}}}}'
    )
    return place


def lines(log: str) -> Iterator[list[str]]:
    """Command lines that name such things, or find them."""
    python = f"{NAME}.py"
    for name in sorted(set(COMMANDS) - {"demo", "run", "confine"}):
        yield [name, f"--{NAME}"]
        yield [name, NAME]
        yield [name, "--project", NAME, "--hooks", NAME]
    for sources in ([], ["--trust"], ["--hooks", python], ["--hooks", "broken.py"], ["--hooks", "both.py"],
                    ["--settings", "odd.json"], ["--settings", NAME]):  # fmt: skip
        for flags in (["fire", "--bash", "ls"], ["fire", "PreToolUse", "--tool", NAME], ["list"], ["check"], ["trust"],
                      ["list", "--json"], ["check", "--json"], ["trust", "--json"]):  # fmt: skip
            yield [*flags, *sources]
    yield from (
        ["fire", "PreToolUse", *more] for more in (["--input", f"@{NAME}"], ["--input", NAME], ["--field", NAME])
    )
    yield from (["trust", *more] for more in (["--yes"], [], ["--json"], ["--forget"]))
    yield from (["init", *more] for more in ([], ["--force"]))
    for flags in (["fire", "--bash", "ls"], ["list"], ["check"], ["trust"], ["init"], ["init", "--force"], ["prove"]):
        yield [*flags, "--project", f"../../{NAME}/proj"]
    for scope in ("user", "project"):
        yield ["install", "claude", "codex", "--hooks", python, "--scope", scope, "--yes", "--dry-run"]
        yield ["install", "claude", "codex", "gemini", "--hooks", python, "--scope", scope, "--yes", "--strict"]
        yield ["install", "claude", "codex", "gemini", "--hooks", python, "--scope", scope, "--yes"]
        yield ["install", "claude", "--hooks", "both.py", "--scope", scope]
        yield ["uninstall", "claude", "codex", "gemini", "--scope", scope]
    yield from (["audit", what, log] for what in ("show", "verify", "export"))
    yield from (["audit", what, log, "--json"] for what in ("show", "verify"))
    yield from (["audit", what, NAME] for what in ("show", "verify", "export", "report"))
    yield from (["audit", "export", log, "-o", f"{NAME}/x"], ["audit", "report", log, "-o", f"{NAME}.html"])
    yield from (["audit", "report", log, "-o", f"{NAME}/x"], ["audit", "verify", log, "--key-file", NAME])
    yield from (["replay", log, *more] for more in (["--hooks", python], ["--hooks", python, "--json"], []))
    yield from (["service", what] for what in ("status", "log", "on", "off", "stop"))
    for what in ("status", "leave", "token", "machines", "verify", "rollback"):
        yield ["fleet", what]
    yield from (["fleet", what, "--folder", NAME] for what in ("machines", "verify", "export"))
    yield from (["fleet", what, NAME] for what in ("push", "revoke", "resume", "join", "promote"))
    yield ["run", f"--{NAME}"]
    yield ["run", "-p", "hi", "--model", NAME]


async def record(path: Path) -> None:
    async with Hooks() as hooks:
        hooks.on("PreToolUse", name=NAME)(lambda event: deny(NAME))
        hooks.observe(AuditLog(path, user=NAME), inline=True)
        await hooks.fire(PreToolUse(tool_name=NAME, tool_input={"command": NAME}, session_id=NAME))


def test_no_command_prints_what_a_terminal_obeys(hostile: Place) -> None:
    """Neither on stdout nor on stderr, in colour or without, and no line is faked."""
    log = f"{NAME}.jsonl"
    asyncio.run(record(hostile.project / log))

    wrong = []
    for words in lines(log):
        for colour in ("", "1"):
            done = forked.run(words, cwd=hostile.project, env={**hostile.env, "FORCE_COLOR": colour})
            shown = (done.stdout + done.stderr).decode()
            shown = COLOUR.sub("", shown) if colour else shown
            steers = sorted({match[0] for match in STEERS.finditer(shown)})
            fakes = [line for line in shown.splitlines() if line.lstrip().startswith("FAKE")]
            if steers or fakes or "Traceback" in shown:
                wrong.append((words, colour, steers, fakes, shown[:400]))
    assert not wrong, "\n".join(map(repr, wrong))
