"""`hookline install`, `uninstall` and `prove`: hooks in agent CLIs' own configuration, and what holds there."""

import argparse
import json
import signal
import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hookline.api import Hooks
from hookline.cli.options import TEXTS, default_project, hooks_from, keep_trust, parser_for
from hookline.cli.style import agreed, folded, has_terminal, paint
from hookline.core.files import default_log
from hookline.display import one_line
from hookline.errors import HooklineError
from hookline.guards.sandboxing import unavailable
from hookline.hosts.host import ABILITIES, Host, able
from hookline.hosts.install import survey
from hookline.hosts.install.apply import installation
from hookline.hosts.install.commands import InstallResult, install, uninstall
from hookline.hosts.install.enforcement import Enforcement, Status, enforcing, report, worst
from hookline.hosts.install.entries import DEFAULT_LOG, HookSource, Scope, config_path, source_of
from hookline.hosts.install.servers import put_in
from hookline.hosts.prove.proof import Finding, ProofResult, prove
from hookline.hosts.table import AGENTS, HOSTS, find
from hookline.records.approvals import Inbox

_COLUMNS = ("deny", "ask", "rew", "ctx", "rep", "prm", "con", "ses", "sub")
_WIDTH = 80


def main(argv: list[str]) -> int:
    """Write the configuration of each host named; without a name, show which are here."""
    args = parser_for("install", hosts=", ".join(HOSTS), log=DEFAULT_LOG).parse_args(argv)
    scope: Scope = "local" if args.until_exit else args.scope
    project = Path(args.project or (default_project() if args.until_exit else ".")).resolve()
    if args.list or not args.host:
        return _list(project, as_json=args.json)
    chosen = [find(name) for name in args.host]
    sources = [_source(args, host, scope, project) for host in chosen]
    loaded = {source: load_source(source) for source in sources}
    planned = [(host, source, loaded[source]) for host, source in zip(chosen, sources, strict=True)]
    reports = [report(made.hooks, host, unavailable(), inbox=_ask_hold(made, host) > 0) for host, _, made in planned]
    if args.strict and any(worst(losses) >= Status.OBSERVED for losses in map(enforcing, reports)):
        for losses in reports:
            print_losses(losses)
        raise HooklineError("not installed: some hooks would not be enforced (see above), and --strict was given")
    if args.dry_run:
        for host, losses in zip(chosen, reports, strict=True):
            where = one_line(str(config_path(host, scope, project=project)))
            print(f"{paint(host.title, 'bold')}: would be written: {where}")
            print_losses(losses)
        return 0
    done = []
    for host, source, hooks in planned:
        done.append(_install(host, source, hooks, scope=scope, project=project, args=args))
        if not args.json:
            _show(done[-1])
    if args.json:
        print(json.dumps([_row(one) for one in done], indent=2))
    if args.until_exit:
        _hold(chosen, project)
    return 0


def _row(done: InstallResult) -> dict[str, Any]:
    return {
        "host": done.host.name,
        "path": str(done.path),
        "events": list(done.events),
        "backups": [str(path) for path in done.backups],
        "losses": [loss.to_dict() for loss in done.losses],
        "notes": list(done.notes),
        "verified": done.host.verified or None,
    }


def _install(
    host: Host, source: HookSource, hooks: Hooks, *, scope: Scope, project: Path, args: argparse.Namespace
) -> InstallResult:
    if host.own_rules and not source.flags:
        reads = f"{host.title} reads these settings files itself"
        raise HooklineError(f"{reads}; name other hooks with --hooks or --settings")
    question = f"{host.title} runs hooks only once they are trusted. Trust these now?"
    trust = args.yes or (host.hook_trust is not None and has_terminal() and agreed(question))
    with keep_trust(project) if host.own_rules and scope != "user" else nullcontext():
        one = install(host, hooks.hooks, source, scope=scope, project=project, trust=trust,
                      observed=hooks.engine.observers.wanted, replace=args.replace or args.until_exit,
                      allow_subagents=args.allow_subagents, hold=_ask_hold(hooks, host))  # fmt: skip
        servers = put_in(host, source, scope, project) if args.mcp else []
    return one._replace(notes=(*_notes(one.host, source), *servers, *one.notes))


def _hold(chosen: Sequence[Host], project: Path) -> None:
    """Wait for Ctrl-C or a signal, then take out the entries, but not those of another that has taken our place."""
    written = [(host, installation(host.name, "local", project)) for host in chosen]
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        print("Ctrl-C takes them out again", flush=True)
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        for host, ours in written:
            if ours == installation(host.name, "local", project):
                _take_out(host, "local", project)


def _source(args: argparse.Namespace, host: Host, scope: Scope, project: Path) -> HookSource:
    """What is asked for; a log is added to the hooks that are installed there, and hooks to a log."""
    audit = args.audit if args.audit in ("", DEFAULT_LOG) else str(Path(args.audit).resolve())
    files = (str(Path(file).resolve()) if file else "" for file in (args.hooks, args.settings))
    source = HookSource(*files)._replace(audit=audit)
    there = {source_of(command, project) for _, command in survey.configured(host, scope, project)}
    if len(there) != 1 or args.replace:
        return source
    [old] = there
    if source[:2] == ("", "") and audit:
        return old._replace(audit=audit)
    return source._replace(audit=audit or (old.audit if old[:2] in (("", ""), source[:2]) else ""))


def _notes(host: Host, source: HookSource) -> list[str]:
    """Where everything is logged, and what is to be said of the version that is on this machine."""
    where = default_log() if source.audit == DEFAULT_LOG else source.audit
    logged = [f"everything is logged in {where}; `hookline console` shows it"] if source.audit else []
    binary = survey.find_binary(host)
    told = survey.older_than_measured(host, binary.version) if binary else ""
    return [*logged, *([f"{told}, or run `hookline prove {host.name}`"] if told else [])]


def _ask_hold(hooks: Hooks, host: Host) -> float:
    """How long a call may wait for a person's answer."""
    asked = (hooks.engine.on_ask, Inbox.configured(able=able(host, "ask")))
    return max((one.hold for one in asked if isinstance(one, Inbox)), default=0.0)


def load_source(source: HookSource) -> Hooks:
    """The hooks that a configuration will ask."""
    if source.settings and not Path(source.settings).is_file():
        raise HooklineError(f"--settings: no such file `{source.settings}`")
    hooks = hooks_from(source)
    if not hooks.hooks and not source.flags:
        name = "name a Python file with --hooks or a settings file with --settings"
        raise HooklineError(f"there are no hooks here; {name}, or write `--audit` to log what happens")
    return hooks


def _show(done: InstallResult) -> None:
    print(f"{paint(done.host.title, 'bold')}: hooked on {', '.join(done.events)}")
    print(f"  in {one_line(str(done.path))}")
    for path in done.backups:
        _say(f"as it was before: {path}")
    print_losses(done.losses)
    for note in done.notes:
        _say(f"note: {note}")
    if not done.host.verified:
        _say(f"unverified: {done.host.title} could not be measured; try it before you rely on it")


def _say(text: str) -> None:
    """A paragraph of the report, folded; paths stay whole."""
    print(folded(one_line(text), 2, 4))


def print_losses(losses: Sequence[Enforcement]) -> None:
    """One line for each hook that holds as it is, and one for each answer that does not."""
    lost = [loss for loss in losses if loss.status is not Status.ENFORCED]
    if held := dict.fromkeys(one.hook for one in losses if one.hook not in {loss.hook for loss in lost}):
        print(f"  {paint('enforced', 'green')}: {one_line(', '.join(held))}")
    for loss in lost:
        color = "yellow" if loss.status is Status.DIFFERENTLY else "red"
        what = f"{loss.hook}: `{loss.kind}` on {loss.event}" if loss.kind else f"{loss.hook}: {loss.event}"
        print(f"  {paint(str(loss.status), color)}: {one_line(what)}\n    {one_line(loss.reason)}")


def _list(project: Path, *, as_json: bool) -> int:
    rows = survey.survey(project)
    if as_json:
        print(json.dumps([row.to_dict() for row in rows], indent=2))
        return 0
    head = f"{'host':<9} {'measured':<8} {'here':<8} {'hooked':<6} {'proven':<6} {' '.join(_COLUMNS)}"
    print(paint(head, "bold"))
    for row in rows:
        print(_line(row))
    print(f"\n{TEXTS.joinpath('install-list.txt').read_text(encoding='utf-8').rstrip()}")
    if here := " ".join(row.host.name for row in rows if row.path):
        print(f"\nto hook those that are here: {paint(f'hookline install {here} --hooks FILE.py', 'cyan')}")
    return 0


def _line(row: survey.HostRow) -> str:
    hooked = "both" if len(row.hooked) == 2 else row.hooked[0][:6] if row.hooked else "–"
    proven = "yes" if row.proven else "broken" if row.proof and not row.proof.holds else "–"
    marks = [("✓" if able(row.host, name) else "·").center(len(head))
             for name, head in zip(ABILITIES, _COLUMNS, strict=True)]  # fmt: skip
    cells = f"{row.host.name:<9} {row.host.verified or 'doc':<8} {one_line(row.version[:8]) or '–':<8} {hooked:<6}"
    return f"{cells} {proven:<6} {' '.join(marks)}".rstrip()


def take_out_all(argv: list[str]) -> int:
    """`hookline uninstall`: put each host's files back; exit 1 if there was nothing of ours."""
    args = parser_for("uninstall", hosts=", ".join(HOSTS)).parse_args(argv)
    done = [_take_out(find(name), args.scope, Path(args.project).resolve()) for name in args.host]
    return 0 if all(done) else 1


def _take_out(host: Host, scope: Scope, project: Path) -> bool:
    """Put one host's files back and say which; whether there was something of ours."""
    touched = uninstall(host, scope=scope, project=project)
    for path in touched:
        shown = one_line(str(path))
        print(f"{host.title}: {shown} is as it was before" if path.exists() else f"{host.title}: removed {shown}")
    if not touched:
        print(f"{host.title}: nothing of ours was there")
    return bool(touched)


def prove_all(argv: list[str]) -> int:
    """`hookline prove`: run each agent named, or each that is hooked, on a scripted model and see what holds."""
    args = parser_for("prove", hosts=", ".join(AGENTS)).parse_args(argv)
    project = Path(args.project).resolve()
    chosen = [find(name) for name in args.host] or [host for host in HOSTS.values() if survey.hooked(host, project)]
    if not chosen:
        print("no agent is hooked here; run `hookline install HOST --hooks FILE.py` first", file=sys.stderr)
        return 1
    proven = [_prove(host, project, quiet=args.json) for host in chosen]
    if args.json:
        print(json.dumps([one.to_dict() for one in proven], indent=2))
    return 0 if all(one.holds for one in proven) else 1


def _prove(host: Host, project: Path, *, quiet: bool) -> ProofResult:
    if not quiet:
        print(paint(host.title, "bold"), end=" ", flush=True)
    found = prove(host, project, lambda source: list(hooks_from(source, project).hooks))
    if found.version and found.seconds:
        survey.note_proof(host, survey.Proof(found.version, datetime.now(UTC).date().isoformat(), found.holds))
    if quiet:
        return found
    print(f"{one_line(found.version)} ({found.seconds:.0f} s)" if found.version else "")
    for finding in found.findings:
        print(_told(finding))
    bad = f"{sum(not finding.good for finding in found.findings)} of {len(found.findings)} do not hold"
    print(f"  → {paint('all of it holds', 'green') if found.holds else paint(bad, 'red')}\n")
    return found


def _told(finding: Finding) -> str:
    colour = "red" if not finding.good else "dim" if finding.status == "not tried" else "green"
    head = f"  {one_line(finding.what):<18} {finding.status:<11} "
    first, *rest = textwrap.wrap(one_line(finding.detail), _WIDTH - len(head), break_long_words=True) or [""]
    lines = [head.replace(finding.status, paint(finding.status, colour), 1) + first]
    return "\n".join([*lines, *(" " * len(head) + line for line in rest)]).rstrip()
