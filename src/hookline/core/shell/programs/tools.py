"""Tools that run a command among many other things: package managers, containers, git, archivers, sed."""

from __future__ import annotations

import re

from hookline.core.shell.programs.table import program, sed_flags
from hookline.core.shell.shell_line import Analysis, Look, NestedCommand, Words, script

_CALLS = frozenset({"npm", "npx", "pnpm", "yarn"})
_SCRIPTED = frozenset({"npm", "pnpm", "yarn"})
_PACKAGE_RUN = frozenset({"exec", "x", "dlx", "explore"})
_ENVIRONMENT_RUN = frozenset({"run", "exec", "x", "tool", "shell", "--"})
_DIRECT = frozenset({"npx", "pnpx", "bunx", "uvx", "pipx"})


def _after_dashes(name: str, words: Words, stdin: str | None) -> Analysis:
    """Runners such as `uv run`, `npx`, `poetry run`, `docker exec`: what follows is a program of some environment."""
    for at, (word, known) in enumerate(words[1:], 1):
        if name in _CALLS and word in ("-c", "--call"):
            return script(f"{name} -c", words[at + 1 : at + 2])
        if name in _CALLS and word.startswith("--call="):
            return script(f"{name} -c", [(word[7:], known)])
    if name in _DIRECT:
        index = next((i for i, (word, _) in enumerate(words[1:], 1) if not word.startswith("-") and word != "run"), 0)
        return Analysis((NestedCommand(name, words[index:]),)) if index else Analysis()
    starters = _PACKAGE_RUN if name in _SCRIPTED else _ENVIRONMENT_RUN
    index = next((i for i, (word, _) in enumerate(words[1:], 1) if word in starters), 0)
    if not index:
        return Analysis()
    rest = words[index + 1 :]
    if any(word.startswith("-") for word, _ in rest[:1]) or name in _CONTAINERS:
        runs = tuple(NestedCommand(f"{name} {words[index][0]}", rest[at:]) for at in _starts(rest))
        return Analysis(runs, notes=(f"`{name}` runs a command in another environment",))
    return Analysis((NestedCommand(f"{name} {words[index][0]}", rest),)) if rest else Analysis()


_CONTAINERS = frozenset({"docker", "podman", "kubectl", "nerdctl"})
_CONTAINER_VALUED = frozenset(
    {"-v", "--volume", "-e", "--env", "-w", "--workdir", "-p", "--publish", "-u", "--user", "-l", "--label", "-h",
     "-m", "-n", "-c", "-f", "--name", "--mount", "--network", "--net", "--env-file", "--entrypoint", "--platform",
     "--hostname", "--memory", "--cpus", "--gpus", "--device", "--add-host", "--namespace", "--context", "--with",
     "--python", "--extra", "--group", "--project", "--directory"}
)  # fmt: skip
_MOST_STARTS = 12


def _starts(words: Words) -> list[int]:
    """Where the command may start: at any word that is neither an option nor the value of one."""
    after = [index for index, (word, _) in enumerate(words[:-1], 1) if word in _CONTAINER_VALUED]
    return [index for index, (word, _) in enumerate(words) if word[:1] != "-" and index not in after][:_MOST_STARTS]


_WHOLE = frozenset({"--checkpoint"})


def _runs_by_option(name: str, words: Words) -> tuple[str, ...]:
    """Why an abbreviated option may run a program: `--compress-prog=x` is `--compress-program=x`."""
    options = program(name).runs
    for word, _ in words[1:]:
        given = word.partition("=")[0]
        if len(given) > 2 and given not in _WHOLE and any(option.startswith(given) for option in options):
            return (f"`{name} {given}` runs a program",)
    return ()


_TAKES_PROGRAM = frozenset({"clone", "ls-remote", "fetch-pack"})


def _first(texts: list[str]) -> str:
    """The subcommand, as far as plain words tell."""
    return next((word for word in texts if not word.startswith("-")), "")


def _git(name: str, words: Words, stdin: str | None) -> Analysis:
    reasons = []
    texts = [word for word, _ in words[1:]]
    for index, word in enumerate(texts):
        value = texts[index + 1] if word in ("-c", "--config") and index + 1 < len(texts) else word
        if (
            re.search(
                r"(?i)(?:^|=)\s*!|sshcommand|pager=|editor=|hookspath|fsmonitor|askpass|credential\.helper|ext::"
                r"|external=|textconv|filter\.|\.cmd=|\.tool|--upload-pack|--receive-pack|--exec=|--exec-path=|--open-files-in"
                r"|\.program=|alternaterefscommand|uploadpack|packobjectshook|smtpserver|proxycommand|gitproxy|diff\..*command",
                value,
            )
            or (word.startswith("-O") and "grep" in texts)
            or (word.startswith("-u") and _first(texts) in _TAKES_PROGRAM)
        ):
            reasons.append("`git` is told to run a program by its configuration")
        if word in ("-x", "--exec") and "rebase" in texts:
            return script("git rebase --exec", words[index + 2 : index + 3])
        if word == "foreach" and "submodule" in texts:
            return script("git submodule foreach", [w for w in words[index + 2 :] if w[0] != "--recursive"])
        if word == "run" and "bisect" in texts:
            rest = words[index + 2 :]
            return Analysis((NestedCommand("git bisect run", rest),) if rest else ())
        if word in ("filter-branch", "difftool", "mergetool", "send-email"):
            reasons.append(f"`git {word}` runs other commands")
    return Analysis(undecidable=tuple(dict.fromkeys([*reasons, *_runs_by_option(name, words)])))


def _tar(name: str, words: Words, stdin: str | None) -> Analysis:
    """Archivers and copiers that are told to run a program by an option."""
    risky = re.compile(
        r"--checkpoint-action|--to-command|--use-compress-program|--rsh|--info-script|--new-volume-script|-I.*|-F.*|-e|--rsync-path"
        r"|--unzip-command|-TT|--preprocess.*|--compress-program.*|--pre"
    )
    copies = name in ("scp", "sftp")
    if any(
        re.search(r"(?i)proxycommand|localcommand", word) or (copies and word.startswith("-S")) for word, _ in words
    ):
        return Analysis(undecidable=(f"`{name}` runs the program in its options",))
    for index, (word, _) in enumerate(words[1:], 1):
        option, _, value = word.partition("=")
        if not risky.fullmatch(option) or (name in ("tar", "bsdtar", "gtar") and option == "-e"):
            continue
        text = value or (option[2:] if option[:2] in ("-I", "-F") else "")
        rest = [(text, words[index][1])] if text else words[index + 1 : index + 2]
        return script(f"{name} {option}", [(word.removeprefix("exec="), known) for word, known in rest])
    return Analysis(undecidable=_runs_by_option(name, words))


_SED_RUNS = re.compile(r"^\s*e\b|[\d$;{!/}]\s*e(?:\s|$)")
_SED_RUNS_FLAG = re.compile(r"[gpiImM0-9]*e[gpiImMw0-9]*(?:[\s;}]|$)")


def _sed(name: str, words: Words, stdin: str | None) -> Analysis:
    """GNU sed runs commands with `e`, and writes files with `w`."""
    if any(word.startswith("<(") for word, _ in words[1:]):
        return Analysis(undecidable=(f"`{name}` runs a script that another command writes",))
    if not all(known for _, known in words[1:]):
        return Analysis(notes=(f"`{name}` runs a script that is known only when it runs",))
    if any(_SED_RUNS.search(word) or any(map(_SED_RUNS_FLAG.match, sed_flags(word))) for word, _ in words[1:]):
        return Analysis(undecidable=(f"`{name}` may run a command from its script",))
    return Analysis()


TOOLS: dict[str, Look] = {"git": _git, "sed": _sed, "environment": _after_dashes, "tar": _tar}
"""How to look inside a program, by its tag `look`."""
