"""Parallel Track beside GenMig: right on joins, wrong on the paper's Example 1, and later."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.tdb import TDB, Event
from penstock.operators.migration.parallel_track import ParallelTrack
from penstock.operators.operator import Output
from penstock.operators.state import MemoryPages, seal, unseal
from penstock.reference.migration import Arrival, Migration, instants, unlike
from penstock.reference.snapshot_plans import Distinct, Input, Join, SnapshotPlan
from penstock.testing.asserts import assert_sound
from penstock.testing.boxes import Builder, batch_of, bound, events_of, numbers, starts_of
from penstock.testing.migrations import Play
from penstock.testing.snapshot_plans import Said, Step, arrivals, plans, rewritten

INPUTS = (1, 1, 1)
MARKED = [numbers(width, generations=True) for width in INPUTS]
A, B = Input(0), Input(1)
OLD = Distinct(Join(A, B, ((0, 0),)))
NEW = Join(Distinct(A), Distinct(B), ((0, 0),))
#        10        50        110  120       150  170
# A      1111111111111111111111111
#                  11111111111111111111111111111
# B        111111111111111111111111111
#                      11111111111111111111111111111
WINDOW = 100
STARTS = ((0, 10), (1, 20), (0, 50), (1, 70))
MOMENT = 2
"""The new plan is put beside the old one at 40: two events came before."""


def event(start: int) -> Event:
    return ((1,), start, start + WINDOW + 1)


def example(schemas: Sequence[Schema]) -> list[Step]:
    """The events of Example 1 in the order of their starts, with a promise by both inputs before each."""
    steps: list[Step] = []
    for port, start in STARTS:
        steps += [*(Said(each, start) for each in range(len(schemas))), (port, event(start))]
    return steps


def fed(track: ParallelTrack, steps: Sequence[Step]) -> list[Output]:
    outputs: list[Output] = []
    for step in steps:
        if isinstance(step, Said):
            outputs += track.punctuate(step.port, bound(step.bound))
        else:
            outputs += track.process(step[0], batch_of(track.inputs[step[0]], [step[1]]))
    return outputs


def track_of(plan: SnapshotPlan, schemas: Sequence[Schema] = MARKED, kept_for: int | None = None) -> ParallelTrack:
    return ParallelTrack(Builder(schemas, kept_for=kept_for).box(plan), schemas)


def events_among(steps: Sequence[Step]) -> list[Arrival]:
    return [step for step in steps if not isinstance(step, Said)]


def test_example_1_parallel_track_repeats_snapshots() -> None:
    schemas = MARKED[:2]
    steps = example(schemas)
    track = track_of(OLD, schemas)
    before = fed(track, steps[: 3 * MOMENT])
    track.replace(Builder(schemas).box(NEW))
    outputs = [*before, *fed(track, [*steps[3 * MOMENT :], Said(0, 1000), Said(1, 1000)])]
    assert events_of(outputs) == TDB([((1, 1), 20, 111), ((1, 1), 111, 121), ((1, 1), 70, 151)])
    streams = [[e for port, e in events_among(steps) if port == own] for own in (0, 1)]
    told = unlike(lambda t: OLD.at(streams, t), events_of(outputs), instants(*streams))
    assert [u.instant for u in told] == list(range(70, 121))
    assert {u.instant for u in told} >= set(range(111, 121)), "those that the paper names"
    assert all(dict(u.extra) == {(1, 1): 1} and not u.missing for u in told)


def test_example_1_genmig_does_not() -> None:
    schemas = [numbers(1), numbers(1)]
    steps = example(schemas)
    play = Play(schemas, OLD).feed(steps[: 3 * MOMENT])
    assert play.replace(NEW) == 20 + WINDOW + 1 + 1
    play.feed([*steps[3 * MOMENT :], Said(0, 1000), Said(1, 1000)])
    assert play.oracle().unlike(events_of(play.outputs)) == []
    assert not play.running.is_migrating


@given(data=st.data(), steps=arrivals(INPUTS))
def test_parallel_track_is_right_on_joins(data: st.DataObject, steps: list[Step]) -> None:
    old = data.draw(plans(INPUTS, kinds="spuj"))
    track, done = track_of(old), 0
    outputs: list[Output] = []
    for cut in sorted(data.draw(st.lists(st.integers(0, len(steps)), min_size=1, max_size=2))):
        outputs += fed(track, steps[done:cut])
        done = cut
        if not track.is_migrating:
            outputs += track.replace(Builder(MARKED).box(data.draw(rewritten(old, INPUTS))))
    outputs += fed(track, steps[done:])
    assert Migration(old, old, 0, 0, events_among(steps), len(INPUTS)).unlike(events_of(outputs)) == []
    assert_sound(outputs)  # type: ignore[arg-type]
    assert not track.is_migrating
    assert isinstance(outputs[-1], Punctuation)
    assert outputs[-1].is_end


@given(data=st.data(), steps=arrivals(INPUTS))
def test_it_can_be_kept_at_any_moment(data: st.DataObject, steps: list[Step]) -> None:
    old = data.draw(plans(INPUTS, kinds="spuj", depth=2))
    new = data.draw(rewritten(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    again = data.draw(st.integers(cut, len(steps)))
    before = track_of(old)
    outputs = [*fed(before, steps[:cut]), *before.replace(Builder(MARKED).box(new)), *fed(before, steps[cut:again])]
    kept = {key: seal(before, key, before.pages.get(key), "it") for key in list(before.pages.keys())}
    after = ParallelTrack(Builder(MARKED).box(old if before.of_box == 1 else new), MARKED, generation=before.of_box)
    if before.is_migrating:
        after.go_on(Builder(MARKED).box(new))
    after.attach(MemoryPages({key: unseal(after, key, page, "it") for key, page in kept.items()}))
    outputs += fed(after, steps[again:])
    assert Migration(old, old, 0, 0, events_among(steps), len(INPUTS)).unlike(events_of(outputs)) == []


DEEP = Join(Join(A, B, ((0, 0),)), Input(2), ((0, 0),))
FLAT = Join(A, Join(B, Input(2), ((0, 0),)), ((0, 0),))


def ticking(kept_for: int | None) -> tuple[int, list[Output], list[Output]]:
    """How long a migration of a join of three takes, with windows of 10; and what came out during it and at its end."""
    track = track_of(DEEP, kept_for=kept_for)
    during: list[Output] = []
    for now in range(60):
        if now == 20:
            track.replace(Builder(MARKED, kept_for=kept_for).box(FLAT))
        out: list[Output] = []
        for port in range(3):
            out += fed(track, [Said(port, now)])
        if now > 20 and not track.is_migrating:
            return now - 20, during, out
        for port in range(3):
            out += fed(track, [(port, ((1,), now, now + 11))])
        during += out if now >= 20 else []
    raise AssertionError("the migration does not end")


def test_it_takes_two_windows_where_results_are_purged_by_their_youngest_part() -> None:
    """A pair of an old row and one that came when that was about to end is kept for a window more."""
    took, during, last = ticking(11)
    assert took == 20
    quiet = [e for b in during if not isinstance(b, Punctuation) for e in b.elements() if e.vs > 30]  # type: ignore[union-attr]
    assert quiet == []
    assert len(starts_of(last)) > 0, "what was held comes out at once"


def test_it_takes_one_window_where_they_are_purged_by_their_ends() -> None:
    took, _, _ = ticking(None)
    assert took == 10


def test_order_is_not_kept() -> None:
    """What was held starts before results that are out."""
    _, during, last = ticking(None)
    assert min(starts_of(last)) < max(starts_of(during))


def test_it_needs_to_know_what_is_old() -> None:
    with pytest.raises(PlanError, match=r"(?s)needs to know what is old.*with_generations"):
        ParallelTrack(Builder([numbers(1)]).box(Distinct(A)), [numbers(1)])


def test_one_at_a_time() -> None:
    track = track_of(DEEP)
    fed(track, [(0, event(0))])
    track.replace(Builder(MARKED).box(FLAT))
    with pytest.raises(PlanError, match="being replaced already"):
        track.replace(Builder(MARKED).box(DEEP))
