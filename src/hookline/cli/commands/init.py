"""`hookline init`: a first settings file, with guards and packs of rules, trusted because you just wrote it."""

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hookline.cli.options import check_folder, keep_trust, parser_for
from hookline.cli.style import paint
from hookline.core.interpreter import PROJECT, entry_argv, shared_command, shared_program, shell_command
from hookline.core.wire.json_text import write
from hookline.display import one_line
from hookline.errors import ConfigError, HooklineError
from hookline.guards.network import hosts_in_use
from hookline.guards.packs import packs
from hookline.hosts.install.entries import NOT_HERE, NOT_STARTED, deny_by_exit

_CONFINED = "guard paths --confine auto --temporary --protect --block 'rm -rf /' --block 'rm -rf ~' --block 'sudo *'"
_INSIDE = "guard paths --temporary --protect"
NAMES = ("confined-shell", "stay-inside", "own-files")
FLOW = "flow"
POLICY = "hookline.toml"  # the file beside the settings that switches the rules of packs on and off
_HEAD = "# `false` switches a rule off, a list takes the place of its own; `hookline packs` shows all there are\n"


def _entry(name: str, words: str, *, shared: bool) -> dict[str, Any]:
    start, reason = (shared_command(), NOT_HERE) if shared else (shell_command(entry_argv()), NOT_STARTED)
    command = f"{start} {words} || {deny_by_exit(reason)}"
    return {"type": "command", "command": command, "timeout": 10, "onFailure": "block", "name": name}


def starter(policy: str = "", *, shared: bool = False, flow: bool = False, hosts: Sequence[str] = ()) -> dict[str, Any]:
    """What a new settings file says: shell lines run confined where the kernel can hold them, edits stay inside.

    Before the files that set up the guards themselves are written, the user is asked. `policy` is a file of packs; with
    `hosts`, confined lines reach these alone, and the user is asked about another one once.

    One process for each call: what the kernel refuses is on the line's own standard error, which the model reads.
    """
    more = f' --packs "${PROJECT}"/.claude/{policy}' if policy else ""
    files, looks = "Write|Edit|MultiEdit|NotebookEdit|Read|Grep", "mcp__.*|Glob|LS" if policy else "mcp__.*"
    reach = "".join(f" --host {shlex.quote(host)}" for host in hosts)
    if any(host.endswith(":22") for host in hosts):  # those who push by ssh have an agent that knows their key
        reach += " --socket '$SSH_AUTH_SOCK'"
    confined = f"{_CONFINED}{reach} --ask-for-others" if hosts else _CONFINED
    rows = zip(NAMES, (("Bash", confined), (files, _INSIDE), (looks, "guard protect")), strict=True)
    guards = [{"matcher": match, "hooks": [_entry(name, words + more, shared=shared)]} for name, (match, words) in rows]
    told: dict[str, Any] = {}
    if flow:
        from hookline.guards.flow import flow as flow_guard

        events = [event.event_name for hook in flow_guard(state=False) for event in hook.events]
        told = {event: [{"hooks": [_entry(FLOW, "guard flow", shared=shared)]}] for event in events}
    return {**told, "PreToolUse": [*guards, *told.get("PreToolUse", ())]}


def _policy(text: str, names: Iterable[str]) -> str:
    """A file of packs with every rule of some more switched on; what is there stays as it is."""
    for name in names:
        if name not in tomllib.loads(text):
            rows = packs()[name].rules.items()
            width = max(len(rule) for rule, _ in rows)
            lines = [f"{rule:<{width}} = true   # {told.about}\n" for rule, told in rows]
            text = "".join([text or _HEAD, f"\n[{name}]  # {packs()[name].about}\n", *lines])
    return text


def main(argv: list[str]) -> int:
    """Write `.claude/settings.json`; hooks that are already there stay as they are."""
    args = parser_for("init").parse_args(argv)
    chosen, shared = _known(args.pack), not args.local and bool(shared_program())
    path = Path(args.project) / ".claude" / ("settings.local.json" if args.local else "settings.json")
    policy = path.with_name(POLICY)
    check_folder(args.project)
    settings = _existing(path)
    if settings.get("hooks") and not args.force:
        has = f"{one_line(str(path))} has hooks already"
        print(f"{has}; nothing was changed (`--force` adds the guards to them)", file=sys.stderr)
        return 1
    try:
        rules = _policy(policy.read_text() if policy.exists() else "", chosen)
    except (OSError, ValueError) as error:
        raise ConfigError(str(policy), f"cannot be read: {error}; fix or remove it first") from None
    hooks = settings.get("hooks", {})
    hosts = hosts_in_use(args.project, os.environ) or ["localhost"]
    made = starter(POLICY if rules else "", shared=shared, flow=args.flow, hosts=hosts)
    ours = {event: [*hooks.get(event, []), *groups] for event, groups in made.items()}
    told = {**settings, "hooks": {**hooks, **ours}}
    write(told, one_line(str(path)), HooklineError)  # half a character, say in the home's name, would break the file
    with keep_trust(Path(args.project)) as unseen:
        path.parent.mkdir(parents=True, exist_ok=True)
        if rules:
            policy.write_text(rules)
        path.write_text(json.dumps(told, indent=2) + "\n")
    wrote = [str(path), *([str(policy)] if rules else [])]
    said = json.dumps({"wrote": wrote, "hooks": [*NAMES, *([FLOW] if args.flow else [])]})
    print(said if args.json else _next_steps(wrote, alone=not shared and not args.local))
    if unseen:
        labels = ", ".join(map(one_line, unseen))
        print(f"not trusted, because it was there before: {labels}; run `hookline trust` to look", file=sys.stderr)
    return 0


def _existing(path: Path) -> dict[str, Any]:
    """The settings that are there, without what an earlier `init` has written."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text() or "{}")
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}; fix or remove it first") from None
    if not isinstance(found, dict):
        raise ConfigError(str(path), "is not a JSON object; fix or remove it first")
    if not isinstance(found.get("hooks") or {}, dict):
        raise ConfigError("hooks", "is not an object; fix it first")
    hooks = {event: [group for group in groups if not _is_ours(group)] if isinstance(groups, list) else groups
             for event, groups in (found.pop("hooks", None) or {}).items()}  # fmt: skip
    kept = {event: groups for event, groups in hooks.items() if groups}
    return found | {"hooks": kept} if kept else found


def _is_ours(group: Any) -> bool:
    rows = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(rows, list) and any(isinstance(row, dict) and row.get("name") in (*NAMES, FLOW) for row in rows)


def _next_steps(wrote: list[str], *, alone: bool) -> str:
    fire = """hookline fire PreToolUse --tool Bash --input '{"command": "rm -rf /"}'"""
    lines = "\n".join(f"  {paint(step, 'cyan')}" for step in ("hookline check", "hookline list", fire))
    files = "\n".join(one_line(f"wrote {path}") for path in wrote)
    rules = "\none line for each rule there, true or false" if len(wrote) > 1 else ""
    team = "\n\nfor your team: `pipx install hookline`, then `hookline init` once more" if alone else ""
    holds = "no writes outside this folder and the temporary one, no secrets read, no `sudo`"
    return f"{files}{rules}\n{holds}\n\ntry next:\n{lines}{team}"


def list_packs(argv: list[str]) -> int:
    """`hookline packs`: the rules that `--pack` switches on."""
    args = parser_for("packs", packs=", ".join(packs())).parse_args(argv)
    chosen = {name: packs()[name] for name in _known(args.pack or packs())}
    if args.json:
        print(json.dumps(msgspec.to_builtins(chosen), indent=2))
        return 0
    for name, pack in chosen.items():
        print(f"{paint(name, 'bold')}: {pack.about}")
        for rule, told in pack.rules.items():
            print(f"  {rule:<24} {told.about}")
    return 0


def _known(names: Iterable[str]) -> list[str]:
    chosen = list(dict.fromkeys(names))
    if missing := [name for name in chosen if name not in packs()]:
        raise HooklineError(f"no pack is called `{missing[0]}`; there are {', '.join(packs())}")
    return chosen
