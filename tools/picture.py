"""`python -m tools.picture`: draws README's picture, a terminal in which real commands run and one push is denied."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "denial.svg"
COMMANDS = (
    "hookline init --pack git secrets",
    "hookline fire --bash 'git fetch && git push origin +main'",
    "hookline fire --bash 'grep KEY .en?'",
)
WIDTH, LINE, LETTER, EDGE = 80, 20, 8.45, 20
COLOURS = {"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
_STYLE = re.compile(r"\x1b\[([\d;]*)m")


def recorded() -> list[str]:
    """The lines of the terminal, with their colours."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="my-project-") as home:
        project = Path(home, "my-project")
        project.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "topic"], cwd=project, check=True)
        (project / ".env").write_text("KEY=1\n")
        env = {"HOME": home, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": str(WIDTH),
               "FORCE_COLOR": "1", "TERM": "xterm-256color", "LANG": "C.UTF-8", "HOOKLINE_SERVICE": "0"}  # fmt: skip
        for command in COMMANDS:
            done = subprocess.run(["bash", "-c", f"{command} --trust" if " fire " in command else command], cwd=project,
                                  env=env, capture_output=True, text=True, check=False)  # fmt: skip
            told = done.stdout.splitlines()
            ends = [n for n, line in enumerate(told) if not line.strip() or line.startswith(("  input", "  ·"))]
            lines += [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", *told[: min([*ends, len(told)])], ""]
    return lines[:-1]


def drawn(lines: list[str]) -> str:
    """The lines as an SVG picture."""
    rows = "".join(
        f'<text x="{EDGE}" y="{EDGE + 44 + number * LINE}" xml:space="preserve">{_spans(line)}</text>\n'
        for number, line in enumerate(lines)
    )
    width, height = WIDTH * LETTER + 2 * EDGE, len(lines) * LINE + 2 * EDGE + 36
    dots = "".join(f'<circle cx="{EDGE + 6 + 20 * n}" cy="22" r="6" fill="{colour}"/>'
                   for n, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")))  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="A terminal: hookline init, then two commands that are denied, each with its reason">\n'
        f'<rect width="100%" height="100%" rx="10" fill="#0d1117"/>{dots}\n'
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#c9d1d9">\n'
        f"{rows}</g>\n</svg>\n"
    )


def _spans(line: str) -> str:
    made, colour, at = [], "", 0
    for found in [*_STYLE.finditer(line), None]:
        text = line[at : found.start() if found else None]
        if text:
            fill = f' fill="{COLOURS[colour]}"' if colour in COLOURS else ""
            made.append(f"<tspan{fill}>{html.escape(text)}</tspan>")
        if found:
            colour = next((code for code in reversed(found[1].split(";")) if code in COLOURS), "")
            at = found.end()
    return "".join(made)


if __name__ == "__main__":
    PICTURE.write_text(drawn(recorded()), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
