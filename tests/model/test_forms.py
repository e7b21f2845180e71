"""Open/close and positive/negative streams say the same as their elements."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.form_reading import from_open_close, from_signed
from penstock.model.forms import Close, Open, Signed, to_open_close, to_signed
from penstock.model.snapshots import snapshot_equivalent
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME

A, B, C = ("A",), ("B",), ("C",)

# Example 2 of the paper: three prefixes that are equivalent
S = [Open(A, 1), Open(B, 2), Open(C, 3), Close(A, 4), Close(B, 5)]
U = [Open(A, 1), Close(A, 4), Open(B, 2), Close(B, 5), Open(C, 3)]
W = [Open(B, 2), Close(B, 6), Open(A, 1), Open(C, 3), Close(A, 4), Close(B, 5)]


@pytest.mark.parametrize("prefix", [S, U, W])
def test_the_papers_three_prefixes_are_one_tdb(prefix: list[Open | Close]) -> None:
    assert tdb(from_open_close(prefix)) == TDB([(A, 1, 4), (B, 2, 5), (C, 3, END_OF_TIME)])


@st.composite
def lives(draw: st.DrawFn) -> list[Element]:
    """Events of a few payloads, one after the other per payload, with revisions of the last."""
    elements: list[Element] = []
    clock = dict.fromkeys("ab", 0)
    for _ in range(draw(st.integers(0, 8))):
        name = draw(st.sampled_from("ab"))
        vs = clock[name] + draw(st.integers(0, 3))
        ends = [vs + n for n in draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))]
        elements.append(Insert((name,), vs, ends[0]))
        for old, new in pairwise(ends):
            if old != new:
                elements.append(Adjust((name,), vs, old, new))
        clock[name] = max(ends) + 1
    return elements


@given(lives())
def test_open_close_and_back_is_the_same_tdb(elements: list[Element]) -> None:
    assert tdb(from_open_close(to_open_close(elements))) == tdb(elements)


@given(lives())
def test_signed_and_back_is_the_same_at_every_instant(elements: list[Element]) -> None:
    assert snapshot_equivalent(list(from_signed(to_signed(elements))), elements)


def test_signed_tuples_of_repeated_events() -> None:
    events = TDB({(A, 1, 5): 2, (A, 3, 9): 1})
    assert tdb(from_signed(to_signed(events))).size == 3
    assert [(s.time, s.sign) for s in to_signed(events)] == [(1, 1), (1, 1), (3, 1), (5, -1), (5, -1), (9, -1)]


def test_punctuation_passes_through() -> None:
    stream = [Open(A, 1), linear("vs", 2), Close(A, 4)]
    assert list(from_open_close(stream))[1] == linear("vs", 2)
    assert next(from_signed([linear("vs", 2), Signed(A, 3, 1)])) == linear("vs", 2)


@pytest.mark.parametrize(
    ("convert", "stream", "message"),
    [
        (from_open_close, [Close(A, 4)], "needs an event that was opened"),
        (from_open_close, [Open(A, 1), Open(A, 2)], "open already"),
        (from_signed, [Signed(A, 4, -1)], "needs a positive one"),
        (to_open_close, [Insert(A, 1, 3), Insert(A, 5, 7), Adjust(A, 1, 3, 4)], "opened last"),
    ],
)
def test_what_makes_no_sense_is_an_error(convert: object, stream: list[object], message: str) -> None:
    with pytest.raises(ElementError, match=message):
        list(convert(stream))  # type: ignore[operator]
