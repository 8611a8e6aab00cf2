"""`hookline learn`: from what was recorded to the smallest policy that asks less, accepted line by line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hookline.agent.session.transcript import project_folder
from hookline.cli.options import numeric, parser_for
from hookline.cli.person import require_person
from hookline.cli.style import agreed, counted, paint
from hookline.core.files import write_atomically
from hookline.display import one_line, unsteered_json
from hookline.errors import HooklineError
from hookline.guards.learned import UNUSED_DAYS, CommandRule, LearnedPolicy, ToolRule, joined, read_policy
from hookline.records.learn import Lesson, gather, learn

DEFAULT = Path(".claude", "hookline.learned.toml")
_HEADER = f"""# What hookline learned from history: calls that a person let happen again and again are not asked about.
# Delete a line to be asked again. A rule that stays unused for {UNUSED_DAYS} days is not applied any more.
"""


def main(argv: list[str]) -> int:
    """Show each rule with its evidence, ask about it, write what was accepted."""
    args = parser_for("learn", count=numeric("a number from 2 on", above=1), default=DEFAULT).parse_args(argv)
    if not args.dry_run and not args.json:
        require_person("learn")
    project, home = str(Path(args.project).resolve()), str(Path.home())
    usual = project_folder(project)
    files = args.files or ([str(usual)] if usual.is_dir() else [])
    missing = [file for file in files if not Path(file).exists()]
    if missing or not files:
        what = f"{missing[0]}: no such file or folder" if missing else f"{project}: no transcripts of this project"
        raise HooklineError(f"{what}; name audit logs or transcripts")
    ran, refused = gather(files, args.since, args.until)
    lesson = learn(ran, refused, project=project, home=home, least=args.min)
    out = Path(args.project, DEFAULT) if args.output is None else Path(args.output)
    old = read_policy(out) if out.exists() else LearnedPolicy()
    if args.json:
        print(unsteered_json(msgspec.json.encode(lesson._asdict())))
        return 0
    print(_summary(lesson, len(ran), args.min))
    policy = LearnedPolicy(**dict(_accepted(lesson.policy, old, ask=not args.dry_run and not args.yes)))
    if args.dry_run:
        return 0
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, (_HEADER + "\n".join(_toml(joined(old, policy)))).encode())
    print(f"written to {out}; use it with `learned.approve`, or `hookline guard learned {out}`")
    return 0


def _summary(lesson: Lesson, ran: int, least: int) -> str:
    share = f" ({lesson.spared / lesson.questions:.0%})" if lesson.questions else ""
    asked = f"{lesson.questions:,} of them with a question; {lesson.spared:,}{share} would not be asked about"
    lines = [f"{counted(ran, 'call')} that ran, {asked}"]
    if not ran:
        lines.append("an audit log says that a call has run with a PostToolUse record: audit that event, too")
    if lesson.dropped:
        lines.append(f"not learned, for they would allow an attack or what was refused: {', '.join(lesson.dropped)}")
    if not lesson.questions:
        lines.append(f"nothing was seen {least} times that is asked about")
    return "\n".join(lines)


def _accepted(policy: LearnedPolicy, old: LearnedPolicy, *, ask: bool) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What is new, shown piece by piece, and what of it was accepted; what is known already stays."""
    for name in policy.__struct_fields__:
        kept = []
        for piece in getattr(policy, name):
            known = piece in getattr(old, name) or any(_is_renewed(piece, one) for one in getattr(old, name))
            if not known:
                print(f"{paint('+', 'green')} {_told(name, piece)}")
            if known or not ask or agreed("  Allow this from now on?"):
                kept.append(piece)
        yield name, tuple(kept)


def _is_renewed(new: Any, old: Any) -> bool:
    """Whether a rule is the same but for how often and when it was seen."""
    if isinstance(new, str) or type(new) is not type(old):
        return False
    return bool(msgspec.structs.replace(new, seen=0, last="") == msgspec.structs.replace(old, seen=0, last=""))


_FOLDERS = {
    "read": "look around in {}", "write": "redirect output to files in {}", "hosts": "reach the host {}",
    "protect": "ask before writing to {}", "look": "tell what there is in {}",
}  # fmt: skip


def _told(name: str, piece: Any) -> str:
    """A piece of the policy in words: what it allows, how often that was seen, and when last."""
    if isinstance(piece, str):
        return _FOLDERS[name].format(paint(one_line(piece), "bold"))
    seen = paint(f"  seen {piece.seen:,} times, last {piece.last or 'at an unknown time'}", "dim")
    if isinstance(piece, ToolRule):
        on = one_line(", ".join(piece.folders or piece.hosts or piece.inputs), 200)
        return f"{paint(one_line(piece.tool), 'bold')} {on}{seen}"
    assert isinstance(piece, CommandRule)
    if piece.exact:
        return f"exactly {', '.join(f'`{one_line(text, 80)}`' for text in piece.exact)}{seen}"
    given = (("with", piece.options), ("given", piece.words), ("on paths in", piece.folders))
    parts = [f"{said} {', '.join(words)}" for said, words in given if words]
    return f"{paint(one_line(piece.run), 'bold')} {one_line('; '.join(parts), 300)}{seen}"


def _toml(policy: LearnedPolicy) -> Iterator[str]:
    """The policy as the file has it: a line a field, in TOML, whose texts and lists are JSON's."""
    table = msgspec.to_builtins(policy)
    for name, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            yield f"{name} = {_json(value)}"
    for name in ("commands", "tools"):
        for rule in table.get(name, ()):
            yield f"\n[[{name}]]"
            yield from (f"{field} = {_json(value)}" for field, value in rule.items())
    yield ""


def _json(value: Any) -> str:
    if isinstance(value, list) and len(value) > 6:
        return "[\n" + "".join(f"  {json.dumps(item, ensure_ascii=True)},\n" for item in value) + "]"
    return json.dumps(value, ensure_ascii=True)
