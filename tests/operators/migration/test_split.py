"""Split: what is before T and what is from it on, also of revisions, by rows and by columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert, Punctuation, groupwise
from penstock.model.lives import Lives
from penstock.model.snapshots import snapshot_at
from penstock.model.tdb import tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.migration.split import BeforeSplit, FromSplit
from penstock.operators.migration.split_time import Seen, after_results, by_ends, by_starts
from penstock.operators.operator import Operator
from penstock.testing.boxes import batch_of, bound, events_of, numbers
from penstock.testing.revisions import revised

SCHEMA = numbers(1)
T = 10
WHOLE = [((1,), 0, 10), ((2,), 5, 15), ((3,), 10, 20), ((4,), 9, 11)]


def of_both(columnar: bool, clips: bool) -> list[list[object]]:
    batch = batch_of(SCHEMA, WHOLE)
    batch = Batch(SCHEMA, table=batch.table, lives=batch.lives) if columnar else batch
    sides: list[Operator] = [BeforeSplit(SCHEMA, T, clips=clips), FromSplit(SCHEMA, T, clips=clips)]
    return [sorted(events_of(list(side.process(0, batch)))) for side in sides]


@pytest.mark.parametrize("columnar", [False, True])
def test_lives_are_cut_at_the_split(columnar: bool) -> None:
    before, after = of_both(columnar, clips=True)
    assert before == [((1,), 0, 10), ((2,), 5, 10), ((4,), 9, 10)]
    assert after == [((2,), 10, 15), ((3,), 10, 20), ((4,), 10, 11)]


@pytest.mark.parametrize("columnar", [False, True])
def test_whole_events_go_where_they_start(columnar: bool) -> None:
    before, after = of_both(columnar, clips=False)
    assert before == [((1,), 0, 10), ((2,), 5, 15), ((4,), 9, 11)]
    assert after == [((3,), 10, 20)]


def bounds(side: Operator, *values: int) -> list[int]:
    return [p.value for v in values for p in side.punctuate(0, bound(v)) if isinstance(p, Punctuation)]


def test_before_the_split_all_is_over_when_the_bound_reaches_it() -> None:
    assert bounds(BeforeSplit(SCHEMA, T), 3, 9, 10, 12) == [3, 9, END_OF_TIME]


def test_from_the_split_on_nothing_begins_earlier() -> None:
    assert bounds(FromSplit(SCHEMA, T), 3, 9, 10, 12) == [10, 12]


def test_promises_of_groups_pass() -> None:
    promise = groupwise("vs", 5, c0=1)
    for side in (BeforeSplit(SCHEMA, T), FromSplit(SCHEMA, T)):
        assert list(side.punctuate(0, promise)) == [promise]


@given(elements=revised(), split=st.integers(0, 20))
def test_revisions_are_cut_like_lives(elements: list[Insert | Adjust | Punctuation], split: int) -> None:
    said = [e for e in elements if not isinstance(e, Punctuation)]
    names = {e.payload: at for at, e in enumerate(said)}
    plain = [
        Insert((names[e.payload],), e.vs, e.ve) if isinstance(e, Insert)
        else Adjust((names[e.payload],), e.vs, e.v_old, e.ve)
        for e in said
    ]  # fmt: skip
    whole = tdb(plain)
    for side, instants in (
        (BeforeSplit(SCHEMA, split), range(-60, split)),
        (FromSplit(SCHEMA, split), range(split, 160)),
    ):
        told = []
        for e in plain:
            batch = Batch(SCHEMA, [(*e.payload, e.vs)], lives=Lives.of([e]))
            told += [one for out in side.process(0, batch) if isinstance(out, Batch) for one in out.elements()]
        got = tdb(told)
        assert all(snapshot_at(got, t) == snapshot_at(whole, t) for t in instants)
        assert all(vs >= split for _, vs, _ in got) or isinstance(side, BeforeSplit)
        assert all(ve <= split for _, _, ve in got) or isinstance(side, FromSplit)


# The split time


def seen(*batches: tuple[int, int, int]) -> Seen:
    found = Seen.of(2)
    for port, vs, ve in batches:
        found.take(port, batch_of(SCHEMA, [((1,), vs, ve)]))
    return found


def test_it_is_one_more_than_what_can_matter() -> None:
    told = seen((0, 5, 16), (1, 9, 20), (0, 3, 14))
    assert by_starts(told, 11, [0, 0]) == 9 + 11 + 1
    assert by_ends(told, [0, 0]) == 20 + 1
    assert by_ends(told, [7, 0]) == 16 + 7 + 1, "the reach of the new plan on each input, one T for all"
    assert by_ends(told, [None, 0]) == 21, "an input that the new plan does not read"


def test_it_is_earlier_where_events_live_shorter_than_they_might() -> None:
    told = seen((0, 5, 7), (1, 9, 12))
    assert (by_starts(told, 100, [0, 0]), by_ends(told, [0, 0])) == (110, 13)


def test_there_is_none_where_nothing_was_seen() -> None:
    assert by_ends(seen(), [0, 0]) is None
    assert by_starts(seen(), 10, [0, 0]) is None


def test_it_waits_for_results_that_are_out() -> None:
    told = seen((0, 5, 16))
    assert after_results(17, told) == 17
    told.give(batch_of(SCHEMA, [((1,), 5, 40)]))
    assert (after_results(17, told), after_results(None, told)) == (40, 40)


def test_revisions_count_by_the_later_of_their_ends() -> None:
    told = Seen.of(1)
    told.take(0, Batch(SCHEMA, [(1, 5)], lives=Lives.of([Adjust((1,), 5, 30, 8)])))
    assert by_ends(told, [0]) == 31


def test_there_is_none_while_an_event_is_open() -> None:
    with pytest.raises(PlanError, match=r"(?s)event is open.*input 1.*without an end"):
        by_ends(seen((1, 5, END_OF_TIME)), [0, 0])
