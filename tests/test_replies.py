"""What a hook may answer, and whether it fits."""

from typing import Any

import pytest

from hookline import Decision, Reply, allow, ask, background, context, defer, deny, keep_going, message, specific, stop
from hookline.errors import ReplyError, ReplyMismatch
from hookline.events import CATALOG, PreToolUse, Stop, spec_of
from hookline.replies import NOTHING, EventFields, check_fits, check_types, only_decides, replace_output, rewrite


def test_decisions_are_ordered_and_read_well() -> None:
    """The strictest is the largest."""
    assert sorted(Decision) == [Decision.PASS, Decision.ALLOW, Decision.ASK, Decision.DEFER, Decision.DENY]
    assert [str(decision) for decision in Decision] == ["pass", "allow", "ask", "defer", "deny"]


def test_constructors_say_one_thing_each() -> None:
    """And combine with `|`."""
    assert [make("why") for make in (allow, ask, defer, deny)] == [
        Reply(decision=decision, reasons=("why",)) for decision in list(Decision)[1:]
    ]
    assert deny() == Reply(decision=Decision.DENY)
    assert rewrite({"a": 1}) == Reply(input={"a": 1})
    assert replace_output(None) == Reply(output=None)
    assert context("c") | message("m") == Reply(context=("c",), messages=("m",))
    assert stop("s") == Reply(stop=True, stop_reason="s")
    assert stop() == Reply(stop=True)
    assert keep_going("k") == Reply(keep_going=True, keep_going_reasons=("k",))
    assert background(timeout=3) == Reply(background=True, background_timeout=3)
    assert specific(retry=True) == Reply(specific=EventFields(retry=True))


def test_joining_keeps_the_reasons_of_those_who_decided() -> None:
    """Both when they agree, the stricter one's otherwise."""
    assert (deny("a") | deny("b")).reason == "a\nb"
    assert (deny("a") | allow("b")).reason == (allow("b") | deny("a")).reason == "a"


def test_joining_takes_the_later_value_and_the_first_reason_to_stop() -> None:
    """Whole values replace each other; `None` is an output like any other."""
    assert (rewrite({"a": 1}) | rewrite({"b": 2})).input == {"b": 2}
    assert (replace_output("x") | replace_output(None)).output is None
    assert (stop("a") | stop("b")).stop_reason == (stop() | stop("a")).stop_reason == "a"
    assert (specific(session_title="a") | specific(retry=True)).specific == EventFields(session_title="a", retry=True)


def test_a_reply_that_does_not_fit_its_event_is_refused_with_what_would() -> None:
    """Never ignored."""
    stopping, calling = spec_of(Stop), spec_of(PreToolUse)

    with pytest.raises(ReplyMismatch, match="`deny` does not fit Stop: it knows `allow`, `pass`; to send"):
        check_fits(deny(), "Stop", stopping.decisions, stopping.fields)
    with pytest.raises(ReplyMismatch, match="`output` does not fit PreToolUse: it understands `context`, `input`"):
        check_fits(replace_output(None), "PreToolUse", calling.decisions, calling.fields)
    with pytest.raises(ReplyMismatch, match="`retry` does not fit PreToolUse"):
        check_fits(specific(retry=True), "PreToolUse", calling.decisions, calling.fields)
    with pytest.raises(ReplyMismatch, match="nothing of its own"):
        check_fits(context("x"), "Odd", {"pass"}, ())


def test_saying_nothing_fits_everywhere() -> None:
    """And so do messages, stopping and being quiet."""
    anything = Reply(messages=("m",), stop=True, suppress_output=True)
    for spec in CATALOG.values():
        for reply in (NOTHING, anything, specific(terminal_sequence="x")):
            check_fits(reply, spec.name, spec.decisions, spec.fields)


WRONG: list[tuple[Any, str]] = [
    (Reply(decision="deny"), "`decision` of the reply: expected a Decision, got `str`"),  # type: ignore[arg-type]
    (deny(ValueError()), "`reasons` of the reply: expected texts, got `ValueError`"),  # type: ignore[arg-type]
    (Reply(context="x"), "`context` of the reply: expected a tuple of texts, got `str`"),  # type: ignore[arg-type]
    (Reply(messages=[1]), "`messages` of the reply: expected a tuple of texts, got `list`"),  # type: ignore[arg-type]
    (Reply(input=[1]), "`input` of the reply: expected a dict, got `list`"),  # type: ignore[arg-type]
    (stop(3), "`stop_reason` of the reply: expected a text, got `int`"),  # type: ignore[arg-type]
    (Reply(background_timeout="5"), "`background_timeout` of the reply: expected seconds"),  # type: ignore[arg-type]
    (Reply(specific={}), "`specific` of the reply: expected a EventFields, got `dict`"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("reply, problem", WRONG)
def test_a_reply_of_wrong_types_is_refused_by_name(reply: Reply, problem: str) -> None:
    """Before it can break a merge."""
    with pytest.raises(ReplyError) as refused:
        check_types(reply)

    assert str(refused.value).startswith(problem)


def test_a_reply_of_right_types_passes() -> None:
    """Whatever it says."""
    for reply in (NOTHING, deny("x"), Reply(context=("a", "b"), input={}, specific=EventFields(), stop_reason="s")):
        check_types(reply)


def test_a_bare_decision_is_told_from_a_reply_that_says_more() -> None:
    """One reason at most, and nothing else."""
    assert all(only_decides(reply) for reply in (NOTHING, deny(), deny("x")))
    more = [deny("a") | deny("b"), deny() | context("c"), deny() | message("m"), deny() | rewrite({}), deny() | stop(),
            deny() | keep_going(), deny() | background(), deny() | replace_output(None), deny() | specific(retry=True),
            Reply(suppress_output=True)]  # fmt: skip
    assert not any(only_decides(reply) for reply in more)
    assert not any(only_decides(reply) for reply, _ in WRONG[:4])


def test_nothing_joins_with_a_reply_on_either_side() -> None:
    """A hook may write `deny("a") | maybe()` without looking at what `maybe` said."""
    assert deny("a") | None == deny("a") == None | deny("a")


def test_only_replies_join() -> None:
    """Joining anything else is a mistake that Python reports."""
    with pytest.raises(TypeError):
        deny("no") | 3  # type: ignore[operator]


def test_an_input_is_rewritten_to_a_mapping() -> None:
    """Not to a command alone; the message shows what to write."""
    with pytest.raises(ReplyError, match="rewrote the input to `str`"):
        rewrite("ls")  # type: ignore[arg-type]
