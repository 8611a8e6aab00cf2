"""Open questions: one for equal calls, one answer each, an end that no clock moves; a file grants nothing."""

from pathlib import Path

import msgspec
import pytest

from hookline.records.approvals import questions as module
from hookline.records.approvals.questions import AskedCall, AskedQuestion, Questions, TooManyQuestions

PUSH = AskedCall(
    event="PreToolUse", session="s", cwd="/p", tool="Bash", input='{"command":"git push"}', policy="sha256:1"
)


class Clocks:
    """A clock that is set, and one that only goes on."""

    wall = 1_000_000.0
    steady = 50.0

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def questions(folder: Path, clocks: Clocks) -> Questions:
    return Questions(folder / "inbox" / "q.json", clock=lambda: clocks.wall, steady=lambda: clocks.steady)


def put(kept: Questions, call: AskedCall = PUSH, seconds: float = 60.0) -> AskedQuestion:
    return kept.ask(AskedQuestion(id="", call=call, why="why"), seconds)[0]


def test_equal_calls_share_a_question_and_one_yes_runs_one(tmp_path: Path, clocks: Clocks) -> None:
    """The second waits for the same answer; a third call needs a new one."""
    kept = questions(tmp_path, clocks)
    one = put(kept)

    assert kept.ask(AskedQuestion(id="", call=PUSH), 60.0) == (one, False)
    assert kept.answer(one.id, yes=True, by="ada", how="page") == ""
    assert kept.take(PUSH) is one
    assert (one.state, kept.take(PUSH)) == ("used", None)
    assert put(kept).id != one.id


def test_two_people_who_answer_at_once_are_told_who_was_first(tmp_path: Path, clocks: Clocks) -> None:
    """The first answer counts, whatever the second is."""
    kept = questions(tmp_path, clocks)
    one = put(kept)
    kept.answer(one.id, yes=False, by="ada", how="page")

    assert kept.answer(one.id, yes=True, by="bob", how="page") == "it was answered before: no, by ada (page)"
    assert kept.take(PUSH) is None


def test_a_yes_fits_the_same_call_only(tmp_path: Path, clocks: Clocks) -> None:
    """Another session, folder, input or policy is another call."""
    kept = questions(tmp_path, clocks)
    kept.answer(put(kept).id, yes=True, by="ada", how="page")

    for name in PUSH.__struct_fields__:
        assert kept.take(msgspec.structs.replace(PUSH, **{name: "x"})) is None, name
    assert kept.take(PUSH) is not None


def test_a_question_ends_in_time_whatever_the_clock_says(tmp_path: Path, clocks: Clocks) -> None:
    """A clock that goes back does not make it last, nor one that goes forward let an answer count."""
    kept = questions(tmp_path, clocks)
    late, early = put(kept), put(kept, msgspec.structs.replace(PUSH, tool="Edit"))
    kept.answer(early.id, yes=True, by="ada", how="page")
    clocks.advance(59)
    clocks.wall -= 3600

    assert kept.take(early.call) is early
    clocks.advance(1)
    assert kept.answer(late.id, yes=True, by="ada", how="page") == "it was answered before: expired"
    other = put(kept)
    clocks.wall += 3600
    assert kept.get(other.id) is other
    assert other.state == "expired"


def test_a_token_is_for_one_person_one_question_and_one_process(tmp_path: Path, clocks: Clocks) -> None:
    """A forged one, another's, one of another question, and one from before a restart are all refused."""
    kept = questions(tmp_path, clocks)
    one, two = put(kept), put(kept, msgspec.structs.replace(PUSH, tool="Edit"))
    token = kept.token(one, "ada")
    again = questions(tmp_path, clocks)

    assert kept.check(one.id, "ada", token) is one
    refused = [(one.id, "bob", token), (two.id, "ada", token), (one.id, "ada", token[:-1] + "x"), (one.id, "ada", ""),
               ("A-none", "ada", token), (one.id, "ada", "ü")]  # fmt: skip
    assert [kept.check(*each) for each in refused] == [None] * len(refused)
    assert again.get(one.id) is not None
    assert again.check(one.id, "ada", token) is None


def test_a_restart_keeps_questions_and_no_answer(tmp_path: Path, clocks: Clocks) -> None:
    """What the file says was answered is asked again: anybody could have written it. What is over stays over."""
    kept = questions(tmp_path, clocks)
    asked, yes = put(kept), put(kept, msgspec.structs.replace(PUSH, tool="Edit"))
    put(kept, msgspec.structs.replace(PUSH, tool="Read"), seconds=1.0)
    kept.answer(yes.id, yes=True, by="ada", how="page")
    file = tmp_path / "inbox" / "q.json"
    forged = msgspec.json.decode(file.read_bytes())
    for one in forged:
        one |= {"state": "yes", "by": "ada", "how": "page"}
    file.write_bytes(msgspec.json.encode(forged))
    clocks.advance(2)
    again = questions(tmp_path, clocks)

    assert [(one.id, one.state, one.by) for one in again.recent()] == [(asked.id, "open", ""), (yes.id, "open", "")]
    assert again.take(yes.call) is None
    clocks.wall -= 3600
    assert questions(tmp_path, clocks).recent() == []


def test_a_file_that_cannot_be_read_or_written_grants_nothing(tmp_path: Path, clocks: Clocks) -> None:
    """Damaged, or no room to write: questions go on in memory."""
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "q.json").write_bytes(b"{")
    kept = questions(tmp_path, clocks)
    assert kept.recent() == []
    full = Questions(Path("/dev/full/q.json"), clock=lambda: clocks.wall, steady=lambda: clocks.steady)
    one = put(full)

    assert full.answer(one.id, yes=True, by="ada", how="page") == ""
    assert full.take(PUSH) is one


def test_there_is_an_end_to_questions(tmp_path: Path, clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that asks without end is told so; old answers are forgotten."""
    monkeypatch.setattr(module, "MOST_OPEN", 2)
    kept = questions(tmp_path, clocks)
    for tool in ("a", "b"):
        put(kept, msgspec.structs.replace(PUSH, tool=tool))

    with pytest.raises(TooManyQuestions, match="2 questions are open already"):
        put(kept)
    clocks.advance(60 + module.KEPT_SECONDS + 1)
    assert kept.recent() == []


def test_a_caller_says_what_it_asks_and_no_more(tmp_path: Path, clocks: Clocks) -> None:
    """Neither an answer, nor its own name and end for a question, nor texts without end."""
    kept = questions(tmp_path, clocks)
    said = AskedQuestion(id="A-mine", call=PUSH, why="x" * 9_999, state="yes", by="ada", how="page", at=1.0, until=1e12,
                         key=kept._key_id, waiting=7, before=("line",) * 99, sent={"ada 1": "sent"})  # fmt: skip
    one, _ = kept.ask(said, 60.0)

    assert (one.state, one.by, one.how, one.at, one.key, one.waiting, one.sent) == ("open", "", "", 0.0, "", 0, {})
    assert (one.until, len(one.why), len(one.before)) == (clocks.wall + 60.0, 4_000, 20)
    assert one.id != "A-mine"
    assert kept.take(PUSH) is None
