"""Random patches, and shell lines that apply them: mostly well formed, with something odd in some places."""

from __future__ import annotations

import random

BLANKS = ("", " ", "  ", "\t", "\u00a0", "\u3000", "\ufeff", "\u200b", "\r", "\x0c", "\x85", "\u2028", "\x0b", "\x1c")
BREAKS = ("\n", "\n", "\n", "\r\n", "\r", "\u2028", "\x0c", "\x85", "\n\n")
STARS = ("*** ", "*** ", "*** ", "***", "***\t", "****", "** ", "***  ")
KINDS = (
    "Add File",
    "Add File",
    "Update File",
    "Delete File",
    "add file",
    "ADD FILE",
    "Add  File",
    "Copy File",
    "Move to",
)
COLONS = (": ", ": ", ": ", ":", " : ", ":  ", ":\t", "：", ":\u00a0")
BODIES = ("+new", "+new", "-two", " one", "@@", "@@ one", "", "+", "x", "+*** Add File: ", " *** Add File: ", "***",
          "*** End of File", "*** End Patch", "*** Begin Patch", "+\u2028*** Add File: ", "EOF")  # fmt: skip


def make_patch(rng: random.Random, names: list[str]) -> str:
    """A patch that is mostly well formed, with something odd in it, or in several places."""
    odd = rng.choice((0.0, 0.05, 0.15, 0.4))

    def pick(choices: tuple[str, ...]) -> str:
        return rng.choice(choices) if rng.random() < odd else choices[0]

    lines: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.choice(KINDS[:4]) if rng.random() > odd else rng.choice(KINDS)
        lines.append(pick(BLANKS) + pick(STARS) + kind + pick(COLONS) + _path(rng, names, odd) + pick(BLANKS))
        if kind == "Update File":
            moved = [pick(BLANKS) + "*** Move to" + pick(COLONS) + _path(rng, names, odd)] if rng.random() < 0.3 else []
            lines += [*moved, pick(("@@", "@@ one", "")), " one", "-two", "+2"]
        elif kind != "Delete File":
            lines.append("+new")
        if rng.random() < odd:
            body = rng.choice(BODIES)
            lines.insert(rng.randrange(len(lines) + 1), body + (_path(rng, names, odd) if body.endswith(": ") else ""))
    frame = [[pick(BLANKS) + "*** Begin Patch" + pick(BLANKS)], [pick(BLANKS) + "*** End Patch" + pick(BLANKS)]]
    if rng.random() < odd / 2:
        frame[rng.randrange(2)] = [] if rng.random() < 0.5 else ["text", "*** Begin Patch"]
    wrapper = rng.choice((["<<'EOF'"], ["<<EOF"], ["apply_patch <<'EOF'"], ["```"])) if rng.random() < odd / 2 else []
    whole = [*wrapper, *frame[0], *lines, *frame[1], *(["EOF"] if wrapper else [])]
    text = "".join(line + pick(BREAKS) for line in whole)
    return _noise(rng, text) if rng.random() < odd else text


def _path(rng: random.Random, names: list[str], odd: float) -> str:
    name = rng.choice(names)
    if rng.random() < odd:
        at = rng.randrange(len(name) + 1)
        name = name[:at] + rng.choice((*BLANKS[1:], ":", "'", '"', "/./", "//", "..", "\\", "#", "$")) + name[at:]
    return rng.choice(('"{}"', "'{}'", "`{}`", "./{}", "{}/", "{}")).format(name) if rng.random() < odd else name


def _noise(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            text = text[:at] + rng.choice((*BLANKS[1:], "*", "\n", "+", ":", "\\")) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 4) :]
        else:
            text = text[:at] + text[max(0, at - 20) :]
    return text


def make_line(rng: random.Random, names: list[str]) -> str:
    """A shell line that gives a patch to `apply_patch`, in one of many ways."""
    patch = make_patch(rng, names).rstrip("\n")
    quoted = "'" + patch.replace("'", "'\\''") + "'"
    document = rng.choice(("<<'E'", "<<E", '<<"E"', "<<-'E'", "<< 'E'", "0<<'E'", "<<\\E"))
    name = rng.choice(("apply_patch", "apply_patch", "applypatch", "'apply_patch'", "apply_pa\\tch", 'apply"_"patch'))
    form = rng.choice((
        "{name} {doc}\n{patch}\nE", "{name} {doc}\n{patch}\nE\n", "{name} >/dev/null {doc}\n{patch}\nE",
        "{doc} {name}\n{patch}\nE", "cd sub && {name} {doc}\n{patch}\nE", "cd sub; {name} {doc}\n{patch}\nE",
        "{name} {quoted}", "{name} <<< {quoted}", "cat {doc} | {name}\n{patch}\nE", "printf %s {quoted} | {name}",
        "true && {name} {doc}\n{patch}\nE", "bash -c {inner}", "env {name} {doc}\n{patch}\nE",
        "({name} {doc}\n{patch}\nE\n)",
        "cd 'sub' && {name} {doc}\n{patch}\nE\necho done", "cd ~ && {name} {doc}\n{patch}\nE",
        "X=1 {name} {doc}\n{patch}\nE", "if true; then {name} {doc}\n{patch}\nE\nfi",
    ))  # fmt: skip
    inner = "'" + f"{name} {quoted}".replace("'", "'\\''") + "'"
    return form.format(name=name, doc=document, patch=patch, quoted=quoted, inner=inner)
