"""`hookline check`: one test for everything it finds, with what it says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.guards import commands
from hookline.settings import load
from hookline.settings.check import check, check_hooks
from tests.cli.place import Place, command

AT = ".claude/settings.json: hooks"


def said(place: Place, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> list[str]:
    """What is said of a project's settings, as `severity place: message`."""
    place.write(".claude/settings.json", settings)
    monkeypatch.chdir(place.project)
    loaded = load(".", home=place.base / "home", managed=place.base / "none")
    return [f"{problem.severity} {problem.where}: {problem.message}" for problem in check(loaded)]


def one(event: str, entry: dict[str, Any], **group: Any) -> dict[str, Any]:
    return {"hooks": {event: [{**group, "hooks": [entry]}]}}


TRUE = command("true")
FOUND: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown event": (
        {"hooks": {"Zebra": [{"hooks": [TRUE]}]}},
        f"error {AT}.Zebra: unknown event `Zebra`, so its hooks never run; write one of PreToolUse, ",
    ),
    "a near miss of an event": (
        {"hooks": {"PreTooluse": [{"hooks": [TRUE]}]}},
        f"error {AT}.PreTooluse: unknown event `PreTooluse`, so its hooks never run; did you mean `PreToolUse`",
    ),
    "a bad matcher": (
        one("PreToolUse", TRUE, matcher="(Bash"),
        f"error {AT}.PreToolUse[0].matcher: matcher `(Bash`: not a regular expression: ",
    ),
    "a rule in the place of a tool": (
        one("PreToolUse", TRUE, matcher="Bash(git *)"),
        f"warning {AT}.PreToolUse[0].hooks[0]: matcher `Bash(git *)` never matches, as it is a rule; write `Bash`,",
    ),
    "a server in the place of its tools": (
        one("PreToolUse", TRUE, matcher="Bash|mcp__github"),
        "is a server's name, not a tool's, and never matches; write `mcp__github__.*`",
    ),
    "a missing script": (
        one("PreToolUse", command("./gone.sh --all")),
        f"error {AT}.PreToolUse[0].hooks[0]: command: `./gone.sh` does not exist",
    ),
    "a script that is not executable": (
        one("PreToolUse", command('"$CLAUDE_PROJECT_DIR"/plain.sh')),
        "plain.sh` is not executable; run `chmod +x ",
    ),
    "a program that is a folder": (
        one("PreToolUse", command("./folder")),
        f"error {AT}.PreToolUse[0].hooks[0]: command: `./folder` is a folder; name a program",
    ),
    "a program that is not there": (
        one("PreToolUse", command("frobnicate | cat")),
        f"error {AT}.PreToolUse[0].hooks[0]: command: `frobnicate` was not found on PATH; install it or give its path",
    ),
    "a program that is not there, started directly": (
        one("PreToolUse", command("frobnicate", args=["x"])),
        f"error {AT}.PreToolUse[0].hooks[0]: command: `frobnicate` was not found on PATH; install it or give its path",
    ),
    "a condition its matcher rules out": (
        one("PreToolUse", command("true", **{"if": "Bash(git *)"}), matcher="Write|Edit"),
        (
            f"warning {AT}.PreToolUse[0].hooks[0]: if: `Bash(git *)` can never hold, since matcher `Write|Edit` leaves "
            "`Bash` out"
        ),
    ),
    "a condition on a tool that there is not": (
        one("PreToolUse", command("true", **{"if": "Bsh(git *)"})),
        f"warning {AT}.PreToolUse[0].hooks[0]: if: no tool is called `Bsh`; did you mean `Bash`?",
    ),
    "a condition that cannot be read": (
        one("PreToolUse", command("true", **{"if": "Bash(git"})),
        (
            f"error {AT}.PreToolUse[0].hooks[0].if: condition `Bash(git`: `(` is never closed at position 4; write "
            "`Tool` or `Tool(pattern)`; as it stands it never holds"
        ),
    ),
    "a condition where there is no tool": (
        one("Stop", command("true", **{"if": "Bash"})),
        f"warning {AT}.Stop[0].hooks[0].if: Stop has no tool, so a hook with `if` never runs there",
    ),
    "a matcher that nothing can meet": (
        one("SessionStart", TRUE, matcher="start"),
        (
            f"warning {AT}.SessionStart[0].hooks[0]: matcher `start` can never match: SessionStart knows `startup`, "
            "`resume`, `clear`, `compact`, `fork`"
        ),
    ),
    "a matcher where nothing is matched": (
        one("Stop", TRUE, matcher="x"),
        f"warning {AT}.Stop[0].hooks[0]: matcher `x` is ignored: Stop has nothing to match; leave it out",
    ),
    "a near miss of a tool": (
        one("PreToolUse", TRUE, matcher="Wrte|Edit"),
        f"warning {AT}.PreToolUse[0].hooks[0]: matcher `Wrte|Edit`: no tool is called `Wrte`; did you mean `Write`",
    ),
    "a duplicate": (
        {"hooks": {"PreToolUse": [{"hooks": [TRUE]}, {"matcher": "Bash", "hooks": [TRUE]}]}},
        f"note {AT}.PreToolUse[1].hooks[0]: the same hook as {AT}.PreToolUse[0].hooks[0]; it runs once",
    ),
    "a long timeout on a gate": (
        one("PreToolUse", command("true", timeout=61)),
        (
            f"warning {AT}.PreToolUse[0].hooks[0]: timeout: 61 s on a gate lets the agent wait for over a minute; "
            "write `60` or less"
        ),
    ),
    "an unknown key of a hook": (
        one("PreToolUse", command("true", tmeout=5)),
        f"error {AT}.PreToolUse[0].hooks[0].tmeout: unknown key `tmeout` is ignored; did you mean `timeout`?",
    ),
    "an unknown key of a group": (
        one("PreToolUse", TRUE, macher="Bash"),
        f"error {AT}.PreToolUse[0].macher: unknown key `macher` is ignored; did you mean `matcher`?",
    ),
    "an unknown kind": (
        one("PreToolUse", {"type": "comand", "command": "x"}),
        f'error {AT}.PreToolUse[0].hooks[0].type: unknown kind of hook `"comand"`; did you mean `command`?',
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_it_finds(what: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is found, once, and is the only thing that is."""
    place.write("plain.sh", "#!/bin/sh\n")
    (place.project / "folder").mkdir()
    settings, expected = FOUND[what]
    found = said(place, monkeypatch, settings)

    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    "settings",
    [
        one("PreToolUse", command("true", timeout=60)),
        one("PreToolUse", TRUE),
        one("PostToolUse", command("cat | sort > /dev/null && cd / && exit 0")),
        one("SessionStart", TRUE, matcher="startup|resume"),
        one("PreToolUse", command("true", **{"if": "Bash(git *)"}), matcher="Bash|Write"),
        one("PreToolUse", TRUE, matcher="mcp__srv__tool"),
        one("PreToolUse", TRUE, matcher="SomebodysTool"),
        one("SessionEnd", command("true", timeout=300)),
        one("PreToolUse", command("FOO=1 ./ok.sh | $PAGER")),
        one("PreToolUse", command("~/ok.sh")),
        one("Stop", command("for f in a b; do [ -f $f ] || continue; break; done")),
        one("Stop", command("command -v prettierx >/dev/null 2>&1 && prettierx --check .")),
        one("Stop", command("if which zzz; then zzz -w; fi; hash yyy 2>/dev/null && yyy; type xxx && xxx")),
        one("Stop", command("tidy() { local a=1; source ./ok.sh; return 0; }; tidy")),
        one("Stop", command("[ -x ./gone ] && ./gone; test -f gone.py && python3 gone.py")),
        one("Stop", command("if [[ -f gone.sh ]]; then bash gone.sh; fi")),
        one("Stop", command("PATH=$HOME/bin:$PATH mytool")),
        one("Stop", command('cd "$WHO_KNOWS" && python3 here.py')),
        one("Stop", command("python3 -c 'import sys' && python3 -m http.server && bash -c true")),
        one("Stop", command('"$CLAUDE_PROJECT_DIR"/ok.sh && bash "${CLAUDE_PROJECT_DIR}/ok.sh" && sh $HOME/ok.sh')),
        one("Stop", command("cd sub && sh here.sh")),
    ],
)
def test_what_it_does_not_find(settings: dict[str, Any], place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is fine."""
    place.write("ok.sh", "#!/bin/sh\n", 0o755)
    place.write("sub/here.sh", "#!/bin/sh\n")
    monkeypatch.setenv("HOME", str(place.project))
    assert said(place, monkeypatch, settings) == []


@pytest.mark.parametrize(
    "line, gone",
    [
        ("python3 .claude/hooks/gone.py", ".claude/hooks/gone.py"),
        ("python3 -u -W ignore gone.py --flag", "gone.py"),
        ("bash -eu gone.sh", "gone.sh"),
        ("sh ./gone.sh || true", "./gone.sh"),
        ("bash -c './gone.sh'", "./gone.sh"),
        ("env A=1 timeout 5 python3 gone.py", "gone.py"),
        ("cd sub && python3 here.py", "here.py"),
        ("source ./gone.env", "./gone.env"),
        ("python3 ~/gone.py", "~/gone.py"),
        ("cat | python3 gone.py | cat", "gone.py"),
        ("node ./gone.js", "./gone.js"),
        ("bun gone.ts", "gone.ts"),
        ("bun run gone.ts", "gone.ts"),
        ("deno run -A gone.ts", "gone.ts"),
        ("uv run gone.py", "gone.py"),
        ("uv run --script gone.py", "gone.py"),
        ("uv run --with x python gone.py", "gone.py"),
        ("npx tsx gone.ts", "gone.ts"),
        ("npx -y tsx ./gone.ts", "./gone.ts"),
        ("poetry run python gone.py", "gone.py"),
    ],
)
def test_a_script_that_is_not_there_is_found_behind_its_interpreter(
    line: str, gone: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever starts it."""
    found = said(place, monkeypatch, one("Stop", command(line)))

    assert f"error {AT}.Stop[0].hooks[0]: command: `{gone}` does not exist" in found


def test_a_time_in_milliseconds_is_recognised(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """5000 is hardly meant as seconds."""
    [found] = said(place, monkeypatch, one("PostToolUse", command("true", timeout=5000)))

    assert "did you mean 5 seconds? write `5`" in found


def test_problems_come_in_the_order_of_the_file_with_line_and_column(place: Place) -> None:
    """As compilers and ruff have it, with a summary."""
    place.write(
        ".claude/settings.json",
        """{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "./gone"},
                 {"type": "command", "command": "true", "timeout": "5"}]}
    ],
    "Zebra": []
  }
}""",
    )
    lines = place.run("check").stdout.splitlines()

    assert [line.split(": ")[:3] for line in lines[:-1]] == [
        [".claude/settings.json:4:18", "error", "hooks.Stop[0].hooks[0]"],
        [".claude/settings.json:5:57", "error", "hooks.Stop[0].hooks[1].timeout"],
        [".claude/settings.json:7:5", "error", "hooks.Zebra"],
    ]
    assert lines[-1] == "3 errors"


@pytest.mark.parametrize("text", [
    '{"hooks": {"Stop": [{"hooks": []}]}, "hooks": {}}',
    '{"hooks": {"Stop": [{"hooks": []}], "Stop": []}}',
])  # fmt: skip
def test_a_key_that_stands_there_twice_is_an_error(text: str, place: Place) -> None:
    """Only the last one counts, so hooks in the first never run; `fire` does not answer 0 either."""
    place.write(".claude/settings.json", text)

    assert place.run("check").returncode == 1
    assert place.run("fire", "Stop", "--trust").returncode == 1


@pytest.mark.parametrize(
    "text, where",
    [("{", "settings.json:"), ('{"hooks": {"Stop": []},}', "line 1"), ("[]", "expected an object"), ("", "")],
)
def test_a_file_that_is_no_settings(text: str, where: str, place: Place) -> None:
    """Exit code 1, and the place in the file."""
    place.write(".claude/settings.json", text)
    done = place.run("check")

    assert done.returncode == 1
    assert re.match(r"\.claude/settings\.json(:\d+:\d+)?: error: ", done.stdout)
    assert where in done.stdout
    assert done.stdout.endswith("\n1 error\n")


def test_exit_codes(place: Place) -> None:
    """1 on an error; on a warning only with --strict."""
    assert (place.run("check").returncode, place.run("check").stdout) == (
        0,
        "no hooks; `hookline init` writes a first one\n",
    )
    place.hooks("Stop", TRUE)
    fine = place.run("check", "--strict")
    assert (fine.returncode, fine.stdout) == (0, "1 hook, nothing wrong\n")
    place.hooks("Stop", command("true", odd=1))
    assert [place.run("check").returncode, place.run("check", "--strict").returncode] == [0, 1]
    assert place.run("check", "--project", "nowhere").returncode == 1


def test_json_is_a_list_of_problems(place: Place) -> None:
    """For editors and CI."""
    place.hooks("Stop", command("./gone"))
    done = place.run("check", "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == [
        {
            "where": f"{AT}.Stop[0].hooks[0]",
            "message": "command: `./gone` does not exist",
            "severity": "error",
            "line": 1,
            "column": 47,
        }
    ]


def test_the_hooks_of_the_user_are_looked_at_too(place: Place) -> None:
    """And of plugins, and of `--settings`."""
    home = Path(place.base / "home" / ".claude")
    home.mkdir()
    (home / "settings.json").write_text(json.dumps(one("Stop", command("./gone"))))
    done = place.run("check", "--settings", json.dumps(one("Stop", command("./away"))))

    assert done.stdout.count("does not exist") == 2


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"hooks": {"Zebra": [{"hooks": [TRUE]}]}}, 1),
        ({"hooks": {"PreToolUse": [{"hooks": [command("true", timout=5)]}]}}, 1),
        ({"hooks": {"PreToolUse": [{"hooks": [command("true", on_failure="block")]}]}}, 1),
        ({"hooks": {"PreToolUse": [{"hooks": [TRUE], "matchers": "Bash"}]}}, 1),
        ({"hooks": {"PreToolUse": [{"hooks": [command("true", description="why", id="x")]}]}}, 0),
        ({"hooks": {"PreToolUse": [{"hooks": [command("true", zebra=1)]}]}}, 0),
    ],
)
def test_what_does_not_count_as_written_is_an_error(settings: dict[str, Any], code: int, place: Place) -> None:
    """A misspelled key or event: the hook does not do what was written."""
    place.write(".claude/settings.json", settings)

    assert place.run("check").returncode == code


@pytest.mark.parametrize(
    "code, exit_code, said",
    [
        ("hooks = Hooks()", 0, "no hooks"),
        ("hooks = Hooks()\n@hooks.on(PreToolUse)\nasync def f(event): ...", 0, "1 hook, nothing wrong"),
        ("hooks = Hooks()\nprint('noise')\n@hooks.on(PreToolUse, match='Bsh')\nasync def f(event): ...", 0,
         "no tool is called `Bsh`"),
        ("hooks = Hooks()\nhooks.add(PreToolUse, Command(command='./gone.sh'))", 1, "`./gone.sh` does not exist"),
        ("", 1, "defines no `hooks`"),
        ("1/0", 1, "cannot be imported: ZeroDivisionError"),
        ("raise SystemExit(0)", 1, "cannot be imported: SystemExit"),
        ("import os; os._exit(0)", 1, "cannot be imported: a hook ended the process"),
        ("def", 1, "cannot be imported: SyntaxError"),
    ],
)  # fmt: skip
def test_a_python_file_is_checked_too(code: str, exit_code: int, said: str, place: Place) -> None:
    """`--hooks FILE.py`: it can be imported, and its hooks can do what they say."""
    start = (
        "from hookline import Hooks\nfrom hookline.core.hooks import Command\nfrom hookline.events import PreToolUse\n"
    )
    place.write("hooks.py", start + code)
    done = place.run("check", "--hooks", "hooks.py")

    assert (done.returncode, said in done.stdout) == (exit_code, True), done.stdout + done.stderr
    assert isinstance(json.loads(place.run("check", "--hooks", "hooks.py", "--json").stdout), list)


CONFINED = "hookline guard paths --confine auto --temporary"


def test_a_guard_that_asks_for_more_than_the_machine_has_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel can hold lines nothing is said; where it cannot, which guard judges the text alone."""
    settings = one("PreToolUse", command(CONFINED), matcher="Bash")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "platform", "darwin")
    without = said(place, monkeypatch, settings)
    off = said(place, monkeypatch, one("PreToolUse", command(CONFINED.replace("auto", "off")), matcher="Bash"))
    python = [str(each) for each in check_hooks([commands.block(["sudo *"], confine="auto")], str(place.project))]
    monkeypatch.undo()

    why = "confinement needs Linux; this is darwin; they are judged by their text alone, and asked about in doubt"
    assert without == [f"warning {AT}.PreToolUse[0].hooks[0]: lines cannot be confined here: {why}"]
    assert off == []
    assert python[0].startswith("code (commands.block): lines cannot be confined here")
