"""The user's permission rules on a line that a guard has rewritten to run confined.

A host applies its rules after hooks, to the command it is given: `Bash(git push *)` does not match a confined
`git push`. So an answer with a confined line applies the rules of the settings files to the line inside first. A
rule that denies or asks is kept, and one that allows is passed on, so that users are not asked about what they allowed.
"""

import os
from collections.abc import Iterable

import msgspec

from hookline.core.hooks.condition import read_rule
from hookline.events import Event, PreToolUse
from hookline.guards.permissions import Permission, Rules, decide, read_rules
from hookline.guards.sandboxing import TOOL, unwrapped
from hookline.replies import NOTHING, Decision, Reply, allow, ask, deny
from hookline.settings.files import Problem
from hookline.settings.load import read_settings
from hookline.settings.policy import File, Permissions, read_permissions
from hookline.settings.sources import SettingsFolders, find_project, places, settings_sources

_MANAGED_ONLY = "allowManagedPermissionRulesOnly"


def under_rules(reply: Reply, event: Event) -> Reply:
    """The reply, and what the user's rules say of the line that it confines; any other reply as it is."""
    if reply.input is None or not isinstance(event, PreToolUse) or event.tool_name != TOOL:
        return reply
    command = reply.input.get("command")
    found = unwrapped(command) if isinstance(command, str) else None
    if found is None:
        return reply
    project = os.environ.get("CLAUDE_PROJECT_DIR") or str(find_project(event.cwd or "."))  # whose settings count
    said = judged(found[1], event.cwd, project)
    if said.decision is Decision.DENY:
        return msgspec.structs.replace(reply, input=None) | said
    return reply if said.decision is Decision.ALLOW and reply.decision is not Decision.PASS else reply | said


def judged(line: str, cwd: str, project: str) -> Reply:
    """What the rules of all settings files say of a line; rules that cannot be read may say anything, so it is asked.

    An allow rule of the project's own files counts once the file is trusted, which is looked up only if it matters.
    """
    where = places(project)
    files = [read_settings(source) for source in settings_sources(where)[0]]
    problems: list[Problem] = []
    rows = read_permissions(files, problems)
    alone = any(file.source.kind == "managed" and file.raw.get(_MANAGED_ONLY) is True for file in files)
    heard = [row for row in rows if row.source.kind == "managed" or not alone]  # whose allow rules count
    own = [row for row in heard if not row.source.foreign]
    decided = _decided(line, cwd, where, rows, own)
    if decided is not None and decided.behaviour == "deny":
        return deny(_told(decided, rows))
    if unread := _unread(files, problems, rows):
        return ask(f"permission rules cannot be read, and may deny this: {unread[0]} (`hookline check` shows more)")
    if decided is None and len(own) < len(heard) and _decided(line, cwd, where, rows, heard) is not None:
        decided = _decided(line, cwd, where, rows, _trusted(heard, project))
    if decided is None:
        return NOTHING
    return {"allow": allow, "ask": ask}[decided.behaviour](_told(decided, rows))


def _decided(
    line: str, cwd: str, where: SettingsFolders, restricting: Iterable[Permissions], allowing: Iterable[Permissions]
) -> Permission | None:
    """What a rule says, or that the line only reads, which no host asks about; modes are left to the host."""
    rules = Rules()
    for row in restricting:
        rules |= read_rules({"ask": row.ask, "deny": row.deny})
    for row in allowing:
        rules |= read_rules({"allow": row.allow})
    here = cwd or str(where.project_dir)
    said = decide(
        TOOL, {"command": line}, rules=rules, cwd=here, home=str(where.home), project_dir=str(where.project_dir)
    )
    return said if said.rule is not None or said.behaviour == "allow" else None


def _told(decided: Permission, rows: Iterable[Permissions]) -> str:
    """Why, with the file that the rule stands in."""
    if decided.rule is None:
        return decided.reason
    text = str(decided.rule)
    found = (row.source.label for row in rows if text in (*row.deny, *row.ask, *row.allow))
    return f"{decided.reason} ({next(found, 'settings')})"


def _unread(files: Iterable[File], problems: Iterable[Problem], rows: Iterable[Permissions]) -> list[Problem]:
    """Files that say nothing, and rules that would deny or ask, if only one could tell what."""
    broken = [file for file in files if file.broken]
    unread = [(row, rule) for row in rows for rule in map(read_rule, (*row.deny, *row.ask)) if rule.problem]
    return [
        *(problem for file in broken for problem in file.problems if problem.severity == "error"),
        *problems,
        *(Problem(f"{row.source.label}: permissions", rule.problem) for row, rule in unread),
    ]


def _trusted(rows: Iterable[Permissions], project: str) -> list[Permissions]:
    """The rows without those of files that are new or have changed since they were trusted."""
    from hookline.settings.load import load
    from hookline.settings.trust.store import Trust

    untrusted = {item.path for item in Trust.load().status(load(project, headers=False)).untrusted}
    return [row for row in rows if row.source.path not in untrusted]
