"""What all hooks together say, and how it is told."""

import asyncio
from typing import Any

from hookline import (
    Decision,
    Hooks,
    Reply,
    allow,
    ask,
    context,
    deny,
    keep_going,
    message,
    replace_output,
    rewrite,
    stop,
)
from hookline.core.engine.composition import merge
from hookline.core.engine.verdict import Outcome, Status, Verdict
from hookline.events import Notification, PostToolUse, PreToolUse, Stop
from hookline.replies import NOTHING, specific

BASH = PreToolUse(tool_name="Bash", tool_input={"command": "ls"})


def said(hook: str, reply: Reply = NOTHING, **more: Any) -> Outcome:
    return Outcome(hook=hook, event="PreToolUse", reply=reply, **more)


def test_one_deny_beats_any_number_of_allows() -> None:
    """No hook can vote another hook's deny away."""
    verdict = merge(BASH, [said("a", allow()), said("b", deny("no")), said("c", allow())])

    assert verdict.reply == deny("no")
    assert (verdict.blocked, verdict.reason, verdict.decided_by) == (True, "no", "b")


def test_reasons_of_all_who_decided_are_told_in_order() -> None:
    """And only theirs."""
    verdict = merge(BASH, [said("a", deny("one")), said("b", ask("perhaps")), said("c", deny("two"))])

    assert (verdict.reason, verdict.decided_by) == ("one\ntwo", "a, c")


def test_a_stop_blocks_only_what_can_be_blocked() -> None:
    """On a gate what was announced does not happen either."""
    assert merge(BASH, [said("a", stop("enough"))]).blocked
    assert not merge(Notification(), [said("a", stop("enough"))]).blocked


def test_a_stop_overrules_keeping_going() -> None:
    """The agent ends, and the reason is the stop's."""
    verdict = merge(Stop(), [said("a", keep_going("more")), said("b", stop("enough"))])

    assert (verdict.keep_going, verdict.stop, verdict.stop_reason) == (False, True, "enough")
    assert (verdict.reason, verdict.decided_by) == ("enough", "b")
    assert merge(Stop(), [said("a", keep_going("more"))]).reason == "more"


def test_a_verdict_has_the_shape_that_fire_json_prints() -> None:
    """Every key of DESIGN, in plain values."""
    verdict = merge(
        BASH, [said("a", rewrite({"command": "cat"}) | allow("ok") | context("c") | message("m"), ms=1.23456)]
    )

    assert verdict.to_dict() == {
        "event": "PreToolUse", "decision": "allow", "blocked": False, "reason": "ok", "decided_by": "a",
        "input": {"command": "cat"}, "output": None, "stop": False, "stop_reason": None, "keep_going": False,
        "context": ["c"], "messages": ["m"], "suppress_output": False,
        "outcomes": [{"hook": "a", "source": "code", "status": "ok", "decision": "allow", "ms": 1.235,
                      "exit_code": None, "error": None}],
    }  # fmt: skip


def test_the_parts_of_a_verdict_can_be_read_one_by_one() -> None:
    """Attributes are named as the keys are."""
    verdict = merge(PostToolUse(tool_name="Bash"), [said("a", replace_output("x")), said("b", error="e")])

    assert (verdict.output, verdict.decision, verdict.suppress_output) == ("x", Decision.PASS, False)
    assert (verdict.input, verdict.context, verdict.messages) == ({}, (), ())
    assert [outcome.hook for outcome in verdict.failures] == ["b"]
    assert merge(Notification(), []).input is None


def test_a_headline_is_one_line() -> None:
    """The event, the word, who and why."""
    lines = {
        "PreToolUse(Bash) → DENY by a: no": merge(BASH, [said("a", deny("no"))]),
        "PreToolUse(Bash) → STOP by a": merge(BASH, [said("a", stop())]),
        "Stop → KEEP GOING by a: more": merge(Stop(), [said("a", keep_going("more"))]),
        "PreToolUse(Bash) → REWRITE": merge(BASH, [said("a", rewrite({"command": "ls"}))]),
        "PreToolUse(Bash) → STOP by b: enough": merge(BASH, [said("a", allow("ok")), said("b", stop("enough"))]),
        "PostToolUse(Bash) → REPLACE": merge(PostToolUse(tool_name="Bash"), [said("a", replace_output("x"))]),
        "PreToolUse(Bash) → DENY by a: no⏎Stop → ALLOW \\x1b[2J": merge(
            BASH, [said("a", deny("no\nStop → ALLOW \x1b[2J"))]
        ),
        "Stop → PASS": merge(Stop(), [said("a")]),
        "Stop → PASS (no hook applies)": merge(Stop(), []),
    }
    assert [str(verdict) for verdict in lines.values()] == list(lines)


def test_an_explanation_is_read_at_a_glance() -> None:
    """Exactly this, in eighty columns: who decided, what each said, what failed with what consequence, what follows."""
    why = "hook `scanner` gave no reply within 5 s; it fails closed, so `Bash` was denied"
    long = (
        "this command was looked at by every rule there is, and one by one they found nothing to say against it, " * 3
    )
    verdict = merge(BASH, [
        said("stay_inside", deny("cannot write outside the project directory"), ms=0.1),
        said("scanner", deny(why), status=Status.TIMEOUT, error="gave no reply within 5 s", ms=5000.0),
        said("flaky", status=Status.FAILED, error="raised ValueError: broken\nwith more lines", ms=1.0,
             note="judged the rewritten input too"),
        said("rewriter", rewrite({"command": "ls -l"}) | allow("fine"), ms=2.5),
        said("talkative", allow(long), ms=0.25, note="judged the rewritten input too"),
        said("notes", context("mind the gap") | message("hello\nthere") | specific(session_title="t"), ms=0.0),
        said("a_name_that_is_much_longer_than_the_column", ms=12345.6),
        said("later", status=Status.BACKGROUND, ms=0.3),
        said("unasked", status=Status.SKIPPED, note="`stay_inside` denied"),
    ])  # fmt: skip

    assert (
        verdict.explain()
        == """\
PreToolUse(Bash) → DENY by stay_inside, scanner: cannot write outside the
  │ project directory
  │ hook `scanner` gave no reply within 5 s; it fails closed, so `Bash` was
  │ denied
  ► stay_inside               deny: cannot write outside the project      0.1 ms
                              directory
  ► scanner                   timeout → deny: gave no reply within 5   5000.0 ms
                              s
  ✗ flaky                     failed: raised ValueError: broken,          1.0 ms
                              judged the rewritten input too
  ✓ rewriter                  allow: fine, rewrote the input              2.5 ms
  ✓ talkative                 allow: this command was looked at by        0.2 ms
                              every rule there is, and one by one
                              they found nothing to say against it,…
  ✓ notes                     context, message, more                      0.0 ms
  ✓ a_name_that_is_much_lon…  nothing to say                          12345.6 ms
  … later                     background                                  0.3 ms
  · unasked                   skipped (`stay_inside` denied)
  input   {'command': 'ls -l'}
  context mind the gap
  message hello
          there"""
    )
    assert max(map(len, verdict.explain().splitlines())) <= 80


def test_a_replaced_output_and_a_long_reason_are_shown_too() -> None:
    """Cut where they would fill the screen."""
    verdict = merge(
        PostToolUse(tool_name="Bash"), [said("a", replace_output("x" * 500) | stop() | Reply(keep_going=True))]
    )

    assert verdict.explain().splitlines()[2:] == [
        "  output  " + "x" * 70, "          " + "x" * 70, "          " + "x" * 69 + "…",
    ]  # fmt: skip
    assert "replaced the output, stop, keep going" in verdict.explain()


def test_outcomes_of_the_quick_way_are_made_when_asked_for() -> None:
    """Times are what the clock said; they are made once."""
    ticks = iter(range(100))
    hooks = Hooks(clock=lambda: float(next(ticks)))

    async def nothing(event: Any) -> None:
        return None

    async def no(event: Any) -> Reply:
        return deny("no")

    for name, call in {"a": nothing, "b": no, "c": nothing}.items():
        hooks.on(PreToolUse, name=name)(call)

    async def run() -> Verdict:
        await hooks.fire(BASH)
        return await hooks.fire(BASH)

    verdict = asyncio.run(run())

    assert verdict.known is None
    assert verdict.outcomes is verdict.outcomes
    assert [(o.hook, o.status, o.reply, o.ms, o.note) for o in verdict.outcomes] == [
        ("a", Status.OK, NOTHING, 1000.0, None),
        ("b", Status.OK, deny("no"), 1000.0, None),
        ("c", Status.SKIPPED, NOTHING, 0.0, "`b` denied"),
    ]
