"""Coalesce joins what a split has cut, as bags, by the progress of both inputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.snapshots import snapshot_equivalent
from penstock.model.tdb import TDB, Event, tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.migration.coalesce import NEW, OLD, CoalesceOperator
from penstock.operators.operator import Output
from penstock.operators.state import MemoryPages, seal, unseal
from penstock.testing.asserts import assert_sound
from penstock.testing.boxes import batch_of, bound, events_of, numbers, starts_of

SCHEMA = numbers(1)
T = 10


def coalesce(**options: bool) -> CoalesceOperator:
    return CoalesceOperator(SCHEMA, T, **options)


def fed(operator: CoalesceOperator, *given_: tuple[int, Event | int]) -> list[Output]:
    outputs: list[Output] = []
    for port, what in given_:
        if isinstance(what, int):
            outputs += operator.punctuate(port, bound(what))
        else:
            outputs += operator.process(port, batch_of(SCHEMA, [what]))
    return outputs


def told(outputs: list[Output]) -> list[int]:
    return [p.value for p in outputs if isinstance(p, Punctuation)]


def elements(outputs: list[Output]) -> list[Insert | Adjust]:
    return [e for each in outputs if isinstance(each, Batch) for e in each.elements()]


def event(value: int, start: int, end: int) -> Event:
    return (value,), start, end


def test_halves_are_one_whichever_comes_first() -> None:
    one = coalesce()
    assert elements(fed(one, (OLD, event(1, 4, T)))) == []
    assert elements(fed(one, (NEW, event(1, T, 15)))) == [Insert((1,), 4, 15)]
    assert elements(fed(one, (NEW, event(2, T, 12)))) == []
    assert elements(fed(one, (OLD, event(2, 7, T)))) == [Insert((2,), 7, 12)]


def test_what_does_not_touch_the_split_passes_at_once() -> None:
    made = fed(coalesce(), (OLD, event(1, 4, 9)), (NEW, event(1, 11, 15)))
    assert events_of(made) == TDB([event(1, 4, 9), event(1, 11, 15)])


def test_bags_are_joined_one_by_one() -> None:
    made = fed(coalesce(), (OLD, event(1, 4, T)), (OLD, event(1, 2, T)), (NEW, event(1, T, 15)), (NEW, event(1, T, 20)))
    assert elements(made) == [Insert((1,), 2, 15), Insert((1,), 4, 20)]


def test_progress_is_that_of_both_inputs_and_of_what_waits() -> None:
    one = coalesce()
    assert told(fed(one, (NEW, T), (OLD, 3))) == [3]
    assert told(fed(one, (OLD, event(1, 4, T)), (OLD, 8))) == [4], "an event that waits begins at 4"
    assert told(fed(one, (OLD, END_OF_TIME))) == []
    assert told(fed(one, (NEW, event(1, T, 15)), (NEW, T + 1))) == [T + 1]


def test_what_waits_in_vain_comes_out_when_its_half_can_no_longer_come() -> None:
    one = coalesce()
    fed(one, (OLD, event(1, 4, T)), (NEW, event(2, T, 15)))
    assert elements(fed(one, (OLD, END_OF_TIME))) == [Insert((2,), T, 15)]
    assert elements(fed(one, (NEW, T))) == [], "another one may still begin at T"
    last = fed(one, (NEW, T + 1))
    assert elements(last) == [Insert((1,), 4, T)]
    assert told(last) == [T + 1]
    assert not one.is_waiting()
    assert elements(fed(one, (NEW, event(3, T + 1, 20)))) == [Insert((3,), T + 1, 20)]


def test_a_consumer_of_revisions_gets_the_first_half_at_once() -> None:
    one = coalesce(revises=True)
    assert elements(fed(one, (OLD, event(1, 4, T)))) == [Insert((1,), 4, T)]
    assert told(fed(one, (OLD, END_OF_TIME), (NEW, T))) == [T], "its end may still be moved"
    assert elements(fed(one, (NEW, event(1, T, 15)))) == [Adjust((1,), 4, T, 15)]
    assert told(fed(one, (NEW, 12))) == [12]


def test_order_is_kept_by_letting_others_wait() -> None:
    one = coalesce(ordered=True)
    made = fed(one, (OLD, event(1, 2, T)), (OLD, event(2, 3, 5)), (OLD, event(3, 4, 6)))
    assert elements(made) == [], "an event that begins at 2 waits"
    made = fed(one, (NEW, event(1, T, 15)))
    assert elements(made) == [Insert((1,), 2, 15), Insert((2,), 3, 5), Insert((3,), 4, 6)]
    assert elements(fed(one, (NEW, event(4, 11, 15)), (OLD, event(5, 9, T)), (OLD, END_OF_TIME))) == []
    assert starts_of(fed(one, (NEW, 12))) == [9, 11]


HALVES = st.one_of(
    st.tuples(st.just(OLD), st.builds(event, st.integers(0, 1), st.integers(4, 7), st.integers(8, T))),
    st.tuples(st.just(NEW), st.builds(event, st.integers(0, 1), st.integers(T, T + 2), st.integers(13, 16))),
)


@given(halves=st.lists(HALVES, max_size=12), revises=st.booleans(), data=st.data())
def test_snapshots_stay_and_promises_hold(halves: list[tuple[int, Event]], revises: bool, data: st.DataObject) -> None:
    one = coalesce(revises=revises)
    outputs: list[Output] = []
    for at, (port, what) in enumerate(halves):
        outputs += fed(one, (port, what))
        later = [e[1] for own, e in halves[at + 1 :] if own == port]
        if data.draw(st.booleans()):
            outputs += fed(one, (port, min(later, default=20)))
        if data.draw(st.booleans()):
            kept = {key: seal(one, key, one.pages.get(key), "it") for key in list(one.pages.keys())}
            one = coalesce(revises=revises)
            one.attach(MemoryPages({key: unseal(one, key, page, "it") for key, page in kept.items()}))
    outputs += fed(one, (OLD, END_OF_TIME), (NEW, END_OF_TIME))
    assert snapshot_equivalent(events_of(outputs), TDB([e for _, e in halves]))
    assert_sound(outputs)  # type: ignore[arg-type]
    assert not one.is_waiting()
    assert told(outputs)[-1] == END_OF_TIME
    assert tdb(elements(outputs)).size <= len(halves)


@pytest.mark.parametrize("first", [OLD, NEW])
def test_the_row_is_the_old_ones(first: int) -> None:
    made = fed(coalesce(), *sorted([(OLD, event(1, 4, T)), (NEW, event(1, T, 15))], key=lambda g: g[0] != first))
    assert [row for each in made if isinstance(each, Batch) for row in each.rows] == [(1, 4)]
