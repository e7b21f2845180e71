"""SEQ, fed by hand: when results come, what is promised, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.schema import BIGINT, Field, Schema, schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.patterns.seq import SeqOperator
from penstock.operators.patterns.steps import Step, Steps

OWN = schema_of([("t", "bigint"), ("k", "string")], "t")


def seq(context: str, *, within: int | None = None, steps: str = "ab", keyed: bool = True) -> SeqOperator:
    """A pattern of steps, one for each letter; a capital letter must not come."""
    made = [Step(OWN, (1,) if keyed else (), letter.isupper()) for letter in steps]
    fields = [Field(f"{f.name}{at}", f.type) for at, s in enumerate(made) if not s.negated for f in OWN.fields]
    last = [f.name for f in fields][-2]
    if made[-1].negated:
        fields, last = [*fields, Field("until", BIGINT)], "until"
    return SeqOperator(Schema(tuple(fields), last), Steps(made, context, within, [False] * keyed))


def feed(operator: SeqOperator, port: int, *given: tuple[int, str | None] | int) -> list[Any]:
    """Rows, or bounds, one after the other; what comes out, bounds as numbers."""
    found: list[Any] = []
    for each in given:
        if isinstance(each, int):
            out = operator.punctuate(port, linear("t", each))
        else:
            out = operator.process(port, Batch(OWN, [each]))
        for item in out:
            found += [item.value] if isinstance(item, Punctuation) else list(item.rows)  # type: ignore[union-attr]
    return found


def slots(operator: SeqOperator) -> list[str]:
    return [key for key in operator.pages.keys() if key.startswith("slot")]  # noqa: SIM118


def test_a_recent_sequence_waits_for_the_other_step_alone() -> None:
    """a:  1 . . 4 . .   the most recent a before 5 is certain once a has promised to be at 5
    b:  . . . . 5 .
    """
    seq_ = seq("recent")
    assert feed(seq_, 1, (5, "x")) == []
    assert feed(seq_, 0, (4, "x"), (1, "x"), 4) == []
    assert feed(seq_, 0, 5) == [(4, "x", 5, "x")]
    assert feed(seq_, 1, (3, "x")) == [(1, "x", 3, "x")]  # what was recent then is still known


def test_versions_are_given_up_as_the_last_step_goes_on() -> None:
    seq_ = seq("recent")
    feed(seq_, 0, *[(t, "x") for t in range(100)], 100)
    (slot,) = [seq_.pages.get(key) for key in slots(seq_)]
    assert len(slot.keys["x",].context.versions) == 100
    assert feed(seq_, 1, 60) == [60]
    assert len(slot.keys["x",].context.versions) == 41  # that of 59, and those after it
    feed(seq_, 1, 100)
    assert len(slot.keys["x",].context.versions) == 1


@pytest.mark.parametrize("context", ["chronicle", "continuous", "cumulative"])
def test_others_wait_for_both(context: str) -> None:
    seq_ = seq(context, within=10)
    assert feed(seq_, 0, (1, "x"), 9) == []
    assert feed(seq_, 1, (5, "x"), 5) == [5]
    found = feed(seq_, 1, 6)
    assert found[0][-2:] == (5, "x")
    assert found[1:] == [6]


def test_rows_of_one_time_do_not_follow_one_another() -> None:
    for context in ("recent", "chronicle", "continuous", "cumulative"):
        seq_ = seq(context, within=10)
        assert feed(seq_, 0, (5, "x"), END_OF_TIME) + feed(seq_, 1, (5, "x"), END_OF_TIME) == [END_OF_TIME]


def test_of_rows_of_one_time_the_lesser_is_the_earlier() -> None:
    for context, expected in (("recent", "c"), ("chronicle", "b")):
        seq_ = seq(context, within=10, keyed=False)
        feed(seq_, 0, (5, "c"), (5, "b"), END_OF_TIME)
        assert feed(seq_, 1, (6, "z"), 7)[0] == (5, expected, 6, "z")


def test_what_must_not_come_is_told_when_its_time_has_passed_and_no_row_is_needed() -> None:
    """a:  1 . . . . . .    nothing in (1, 6]: out when b has promised to be past 6, whatever a has said
    b:  . . . . . . |
    """
    seq_ = seq("recent", within=5, steps="aB")
    assert feed(seq_, 0, (1, "x")) == []
    assert feed(seq_, 1, 6) == []
    assert feed(seq_, 1, 7) == [(1, "x", 6)]
    assert feed(seq_, 0, 4) == [9]  # what comes of a from 4 on comes out at 9 and later
    assert not slots(seq_)


def test_what_must_not_come_may_have_come_before_it_is_known_after_what() -> None:
    seq_ = seq("recent", within=5, steps="aB")
    feed(seq_, 1, (4, "x"), 100)
    assert feed(seq_, 0, (1, "x"), (4, "x")) == [(4, "x", 9)]  # 4 is not after 4
    assert feed(seq_, 0, 4) == [9]
    assert not slots(seq_)  # of rows from 4 on, none is ended by a row of that time


def test_a_deadline_that_nothing_waits_for_holds_no_promise_back() -> None:
    seq_ = seq("recent", within=5, steps="aB")
    assert feed(seq_, 0, (1, "x"), 50) == [6]
    assert feed(seq_, 1, (3, "x"), 4) == [55]


def test_sequences_are_given_up_when_their_time_is_over() -> None:
    for context in ("recent", "chronicle", "continuous", "cumulative"):
        seq_ = seq(context, within=5, steps="abc")
        feed(seq_, 0, (1, "x"), (2, "y"))
        feed(seq_, 1, (3, "x"), (4, "z"))
        for port in (0, 1, 2):
            feed(seq_, port, 7)
        assert slots(seq_), context  # y may still go on, at 7
        for port in (0, 1, 2):
            feed(seq_, port, 10)
        assert not slots(seq_), context


def test_null_equals_nothing() -> None:
    seq_ = seq("recent")
    assert feed(seq_, 0, (1, None), 9) == []
    assert feed(seq_, 1, (5, None), 9) == [9]


def test_promises_of_other_shapes_are_passed_over() -> None:
    seq_ = seq("recent")
    assert list(seq_.punctuate(0, Punctuation((("t", 5),), (("k", "x"),)))) == []
    assert feed(seq_, 0, 5, 4) == []
