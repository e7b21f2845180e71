"""Meld passes the least bound of its inputs on, once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.plain import encode
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.relational.meld import MeldOperator
from penstock.operators.state import MemoryPages, seal, unseal

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


class ReadPages(MemoryPages):
    """Pages that tell which of them were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def get(self, key: str) -> Any:
        self.read.append(key)
        return super().get(key)


def test_many_inputs_that_promise_at_once_are_looked_at_once() -> None:
    meld, pages = MeldOperator(SCHEMA, 1000), ReadPages()
    meld.attach(pages)
    (told,) = meld.punctuate_all([(port, linear("ts", 5 + port)) for port in range(1000)])
    assert told == linear("ts", 5)
    assert sorted(pages.read) == ["bound", "inputs"]


PROMISES = st.one_of(
    st.builds(lambda value: linear("ts", value), st.integers(0, 9)),
    st.builds(lambda value, router: groupwise("ts", value, router=router), st.integers(0, 9), st.sampled_from("ab")),
)
ROUTED = schema_of([("ts", "bigint"), ("router", "string")], "ts")


@given(st.lists(st.tuples(st.integers(0, 2), PROMISES), max_size=12), st.integers(0, 12))
def test_promises_that_are_taken_at_once_come_to_what_they_come_to_one_by_one(
    promises: list[tuple[int, Punctuation]], cut: int
) -> None:
    one_by_one, at_once = MeldOperator(ROUTED, 3), MeldOperator(ROUTED, 3)
    each = [p for port, promise in promises for p in one_by_one.punctuate(port, promise)]
    together = [p for part in (promises[:cut], promises[cut:]) for p in at_once.punctuate_all(part)]
    assert sorted(Frontier(each), key=str) == sorted(Frontier(together), key=str)


def test_bounds_of_an_earlier_release_may_have_promises_beside_them() -> None:
    before = MeldOperator(ROUTED, 2)
    assert list(before.punctuate(R, groupwise("ts", 7, router="a"))) == []
    kept = {key: seal(before, key, before.pages.get(key), "meld") for key in before.pages.keys()}  # noqa: SIM118
    kept["inputs"] = encode(["meld", 1, before.pages.get("inputs").bounds])
    now = MeldOperator(ROUTED, 2)
    now.attach(MemoryPages({key: unseal(now, key, page, "meld") for key, page in kept.items()}))
    assert list(now.punctuate(S, linear("ts", 9))) == [groupwise("ts", 7, router="a")]
