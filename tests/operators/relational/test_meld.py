"""Meld passes the least bound of its inputs on, once."""

from __future__ import annotations

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.relational.meld import MeldOperator

SCHEMA = schema_of([("ts", "bigint")], "ts")
R, S = 0, 1


def bounds(meld: MeldOperator, port: int, *values: int) -> list[int]:
    out = [p for v in values for p in meld.punctuate(port, linear("ts", v))]
    return [p.value for p in out if isinstance(p, Punctuation)]


def test_the_thesis_example_of_duplicate_punctuation() -> None:
    #  R  20
    #  S      19    20  21  22
    # out     19    20             R's 20 holds the rest back: one 20, not three
    meld = MeldOperator(SCHEMA, 2)
    assert bounds(meld, R, 20) == []
    assert bounds(meld, S, 19) == [19]
    assert bounds(meld, S, 20, 21, 22) == [20]


def test_what_goes_back_or_repeats_says_nothing() -> None:
    meld = MeldOperator(SCHEMA, 2)
    assert bounds(meld, R, 5, 5, 3) == []
    assert bounds(meld, S, 0, -1, 0) == [0]
    assert bounds(meld, R, END_OF_TIME) == []
    assert bounds(meld, S, END_OF_TIME) == [END_OF_TIME]


def test_rows_pass_at_once_and_groupwise_punctuation_does_not() -> None:
    meld = MeldOperator(SCHEMA, 2)
    batch = Batch(SCHEMA, [(1,)])
    assert list(meld.process(S, batch)) == [batch]
    assert list(meld.punctuate(R, groupwise("ts", 5, router="a"))) == []
