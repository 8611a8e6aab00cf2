"""A verdict where people look at values: in a traceback, in Jupyter, with rich."""

import io

from rich.console import Console

from hookline import Hooks, deny
from hookline.core.engine import Verdict
from hookline.events import PreToolUse
from hookline.testing import bash

HOSTILE = "<script>alert(1)</script> [bold red]x[/] \u202eevil\x1b[31m\nsecond line"


async def judged(reason: str = "no", name: str = "guard") -> Verdict:
    hooks = Hooks()

    @hooks.on(PreToolUse, name=name)
    async def guard(event: PreToolUse) -> object:
        return deny(reason)

    return await hooks.fire(bash("rm -rf /"))


async def test_its_repr_is_one_line() -> None:
    """Whatever the hooks said, and however much."""
    assert repr(await judged()) == "<Verdict PreToolUse(Bash) → DENY by guard: no>"

    long = repr(await judged(HOSTILE * 100))
    assert "\n" not in long
    assert "\x1b" not in long
    assert len(long) < 250


async def test_jupyter_shows_a_table() -> None:
    """The word, the reason, a row per hook."""
    verdict = await judged()

    shown = verdict._repr_html_()

    assert ">DENY</b>" in shown
    assert "<b>guard</b>" in shown


async def test_markup_of_others_is_text_in_jupyter() -> None:
    """No tag of a hook's reason or name survives, and no character steers the reader."""
    shown = (await judged(HOSTILE, name="<img src=x onerror=alert(1)>"))._repr_html_()

    assert "<script" not in shown
    assert "<img" not in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;" in shown


async def test_rich_shows_the_explanation_in_colour() -> None:
    """Markup in a reason stays text."""
    verdict = await judged(HOSTILE)
    stream = io.StringIO()

    Console(file=stream, force_terminal=True, width=100, color_system="standard").print(verdict)

    said = stream.getvalue()
    assert "\x1b[1;31mPreToolUse(Bash) → DENY" in said
    assert "[bold red]x[/]" in said
    assert "\u202e" not in said


async def test_a_verdict_of_no_hooks_can_be_shown() -> None:
    """Also where nothing applies."""
    verdict = await Hooks().fire(bash("ls"))

    assert repr(verdict) == "<Verdict PreToolUse(Bash) → PASS (no hook applies)>"
    assert "PASS" in verdict._repr_html_()
    assert verdict.__rich__().plain.startswith("PreToolUse(Bash) → PASS")
