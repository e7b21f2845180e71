"""The divergence alarm of merges of ordered streams: the output leaves a trail, and every input walks along it.

The output of such a merge is ordered and never goes back, so what it put out of one start is final as soon as any
joined input has moved on. When an input has moved on from a start, what it brought of that start is compared with what
was put out: as a multiset, ends included, floats within their tolerance. Starts that it passed over are missing.

An input answers for what ends at or after the time from which it is complete, or before which it was told to skip; of
what was given up before it began to walk, it is not asked. The trail is kept until every joined input has passed, at
most `patience` events of it; what is given up unchecked is counted.

Of streams whose starts strictly increase, whole batches can be put and walked (`put_run`, `step_run`): the end of the
trail is then a list of batches, and an input that brings the same table again has passed it without a row being looked
at. Whatever is not quite the same (values that differ, NaN, single rows, a snapshot) has the batches unrolled to
events, and goes its usual way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.elements import Payload
from penstock.model.likeness import alike
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.merge.base import Input
from penstock.operators.merge.divergence import KEPT, PATIENCE, Alarm, Divergence, Reaction

Ending = tuple[Payload, int]
"""An event of a start: payload and end."""
SWEEP = 64


class Walk:
    """How far an input has come on the trail, and what it has brought of the start that it is at."""

    __slots__ = ("endings", "position", "start")

    def __init__(self, position: int) -> None:
        """At a place of the trail, with nothing brought yet."""
        self.position = position
        self.start: int | None = None
        self.endings: list[Ending] = []


class Trail(Alarm):
    """What was put out, by start, until every joined input has passed it."""

    def __init__(self, reaction: Reaction = "report", patience: int = PATIENCE, limit: int | None = KEPT) -> None:
        """What to do when an input diverges, and how many events and divergences to keep at most."""
        super().__init__(reaction, limit)
        self.patience = patience
        self.unchecked = 0
        self.forgotten_to = MIN_TICK
        """What starts before this has been given up."""
        self.starts: list[int] = []
        self.groups: list[list[Ending]] = []
        self.runs: list[Batch] = []
        """Batches that were put after all of `groups`, each row a start of its own."""
        self.base = 0
        """The place of the first start that is kept."""
        self.kept = 0
        self.walks: dict[int, Walk] = {}

    def put(self, vs: int, payload: Payload, ve: int) -> None:
        """The output has an event."""
        if self.runs:
            self.unroll()
        if vs < self.forgotten_to:  # the others of its start were too many
            self.unchecked += 1
            return
        if self.starts and self.starts[-1] == vs:
            self.groups[-1].append((payload, ve))
        else:
            self.starts.append(vs)
            self.groups.append([(payload, ve)])
        self.kept += 1

    def step(self, each: Input, vs: int, payload: Payload, ve: int) -> None:
        """A joined input has an event; what the output makes of it was put before."""
        if self.runs:
            self.unroll()
        walk = self.walks.get(each.number)
        if walk is None:
            walk = self.walks[each.number] = Walk(self.base)
        start = walk.start
        if vs == start:
            walk.endings.append((payload, ve))
            return
        if start is not None:
            place = walk.position - self.base
            starts = self.starts
            if 0 <= place < len(starts) and starts[place] == start and self.groups[place] == walk.endings:
                walk.position += 1  # as nearly always
            else:
                self._compare(each, walk)
        walk.start, walk.endings = vs, [(payload, ve)]

    def put_run(self, batch: Batch) -> None:
        """The output has a batch, whose starts strictly increase."""
        self.runs.append(batch)
        self.kept += len(batch)

    def step_run(self, each: Input, batch: Batch) -> None:
        """A joined input has a batch, whose starts strictly increase; what the output makes of it was put before."""
        walk = self.walks.get(each.number)
        if walk is None:
            walk = self.walks[each.number] = Walk(self.base)
        place = walk.position - self.base - len(self.starts)
        if walk.start is None and place >= 0 and self._has(batch, place):
            walk.position += len(batch)
            return
        for vs, ending in _events(batch):
            self.step(each, vs, *ending)

    def _has(self, batch: Batch, place: int) -> bool:
        """Whether the batches have this one's rows from a place on."""
        tables: list[pa.Table] = []
        rows = 0
        for run in self.runs:
            if not tables:
                if place >= len(run):
                    place -= len(run)
                    continue
                if run is batch and place == 0:
                    return True
            tables.append(run.table)
            rows += len(run)
            if rows - place >= len(batch):
                return bool(pa.concat_tables(tables).slice(place, len(batch)).equals(batch.table))
        return False

    def unroll(self) -> None:
        """Batches as events."""
        for run in self.runs:
            for vs, ending in _events(run):
                self.starts.append(vs)
                self.groups.append([ending])
        self.runs = []

    def passed(self, each: Input, inputs: Iterable[Input]) -> None:
        """An input has said a bound; all before it that it did not bring is missing."""
        walk = self.walks.get(each.number)
        if walk is None:
            walk = self.walks[each.number] = Walk(self.base)
        bound = each.stable
        if self.runs and (walk.start is not None or self._next_start(walk) < bound):
            self.unroll()
        if walk.start is not None and (walk.start < bound or bound == END_OF_TIME):
            self._compare(each, walk)
        self._miss(each, walk, bound)
        self.sweep(inputs)

    def _next_start(self, walk: Walk) -> int:
        """The start that an input has not passed yet; the end of time if it has passed all."""
        place = max(walk.position - self.base, 0)
        if place < len(self.starts):
            return self.starts[place]
        place -= len(self.starts)
        for run in self.runs:
            if place < len(run):
                return int(run.times()[place])
            place -= len(run)
        return END_OF_TIME

    def _compare(self, each: Input, walk: Walk) -> None:
        """The input has moved on from a start."""
        assert walk.start is not None
        start, walk.start = walk.start, None
        if start < self.forgotten_to:
            return
        self._miss(each, walk, start)
        place = walk.position - self.base
        ours: list[Ending] = []
        if place < len(self.starts) and self.starts[place] == start:
            ours = self.groups[place]
            walk.position += 1
        if ours != walk.endings:
            self._differ(each, start, ours, walk.endings)

    def _miss(self, each: Input, walk: Walk, until: int) -> None:
        """The input has nothing of the starts up to a time."""
        place = max(walk.position - self.base, 0)
        while place < len(self.starts) and (self.starts[place] < until or until == END_OF_TIME):
            self._differ(each, self.starts[place], self.groups[place], [])
            place += 1
        walk.position = self.base + place

    def _differ(self, each: Input, vs: int, ours: list[Ending], theirs: list[Ending]) -> None:
        lacking, surplus = _unmatched(ours, theirs)
        must = each.accountable_from
        for payload, ve in lacking:
            if ve >= must:
                other = next((s for s in surplus if alike(s[0], payload)), None)
                if other is not None:
                    surplus.remove(other)
                self.report(Divergence(each.name, payload, vs, ve, None if other is None else other[1]))
        for payload, ve in surplus:
            if ve >= each.complete_from:
                self.report(Divergence(each.name, payload, vs, None, ve))

    def sweep(self, inputs: Iterable[Input]) -> None:
        """Give up what every joined input has passed, and what is too much."""
        joined = [i for i in inputs if i.joined]
        places = [self.walks[i.number].position if i.number in self.walks else self.base for i in joined]
        passed = min(places, default=self.base) - self.base
        if self.runs:
            if self.kept <= self.patience:
                self._sweep_runs(passed)
                return
            self.unroll()
        too_much = self.kept - sum(map(len, self.groups[:passed])) - self.patience
        if too_much > 0:
            while too_much > 0:
                self.unchecked += len(self.groups[passed])
                too_much -= len(self.groups[passed])
                passed += 1
            self._give_up(passed)
        elif passed > 0 and (passed >= SWEEP or passed == len(self.starts)):
            self._give_up(passed)

    def _give_up(self, starts: int) -> None:
        """So many starts, from the first that is kept."""
        self.kept -= sum(map(len, self.groups[:starts]))
        self.forgotten_to = self.starts[starts - 1] + 1
        del self.starts[:starts], self.groups[:starts]
        self.base += starts
        for walk in self.walks.values():
            walk.position = max(walk.position, self.base)

    def _sweep_runs(self, passed: int) -> None:
        """Give up whole batches, and all before them."""
        gone = len(self.starts)
        whole = 0
        while whole < len(self.runs) and gone + len(self.runs[whole]) <= passed:
            gone += len(self.runs[whole])
            whole += 1
        if not whole:
            return
        self.forgotten_to = int(self.runs[whole - 1].times()[-1]) + 1
        self.kept -= sum(map(len, self.groups)) + gone - len(self.starts)
        self.starts, self.groups = [], []
        del self.runs[:whole]
        self.base += gone
        for walk in self.walks.values():
            walk.position = max(walk.position, self.base)

    def forget(self, each: Input) -> None:
        """An input left or begins again: it walks from the beginning of what is kept."""
        self.walks.pop(each.number, None)


def _events(batch: Batch) -> Iterator[tuple[int, Ending]]:
    """The rows of a batch: start, and payload with end."""
    index, life = batch.schema.time_index, batch.schema.lifetime
    for row in batch.rows:
        vs = row[index]
        assert isinstance(vs, int)
        yield vs, (canonical_row(row), vs + life)


def _unmatched(ours: list[Ending], theirs: list[Ending]) -> tuple[list[Ending], list[Ending]]:
    """What only the output has, and what only the input has."""
    here, there = Counter(ours), Counter(theirs)
    lacking, surplus = list((here - there).elements()), list((there - here).elements())
    for one in list(lacking):
        for other in surplus:
            if one[1] == other[1] and alike(one[0], other[0]):
                lacking.remove(one)
                surplus.remove(other)
                break
    return lacking, surplus
