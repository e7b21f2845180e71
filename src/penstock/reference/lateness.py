"""Which rows of a stream are late, by playing its arrival under a way of knowing progress.

A bound `p` says that no later row has a time below `p`; a row is late when its time is below the bound before it. A
late row has arrived (`bounded(rows=n)` counts it) but raises nothing: not the greatest time of the stream, nor that
of its source, which it does not make known either. The bound never goes down, and one that would lie before all time
is none. Before the first row there is none (`MIN_TICK`). A punctuation row of which it cannot be told whether it speaks
for the whole stream takes no part, nor does a row of which it cannot be told whether it is punctuation: they move
nothing, not even what rows are compared with that may be too far ahead.

Punctuation with values in columns of `per` is a promise of those rows alone that have these values: such a row is late
when its time is below any bound that holds for it, and the greatest of these condemns it. A promise goes backwards when
its time is below the bound of the stream, or its bound below another one that holds for all rows that it is about.

By row, the bound before a row is the one after the row before it. By batch, it is the one after the batches before:
nothing moves inside a batch, neither for rows nor for punctuation, and the rows of one batch have no order among
them: `bounded(rows=n)` counts a row when the batches after its own hold n rows, and a stream starts at the least time
of its first batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock.errors import EvaluationError, StreamError
from penstock.model.batch import Row
from penstock.model.estimated import Estimated
from penstock.model.progress import Bounded, Ordered, PerSource, Punctuated, Single, span_ticks
from penstock.model.time import END_OF_TIME, MIN_TICK, Domain
from penstock.model.timer import Timer
from penstock.reference.scalars import same


@dataclass(frozen=True)
class Judged:
    """The rows of a stream by what became of them, each in order of arrival."""

    data: tuple[tuple[Row, bool], ...]
    """All data but rows too far ahead, each with whether it is late."""
    on_time: tuple[Row, ...]
    """Data that counts."""
    late: tuple[tuple[Row, int], ...]
    """Data that came too late, with the bound that condemned it."""
    punctuation: tuple[Row, ...]
    """Rows that are punctuation, whether they moved the bound or not."""
    backwards: tuple[tuple[Row, int], ...]
    """Punctuation below the bound it came after, with that bound."""
    ambiguous: tuple[Row, ...]
    """Punctuation that might be meant for some rows alone; not among `punctuation`."""
    ahead: tuple[Row, ...]
    """Rows that were too far ahead of what the stream had reached; they take no part."""
    bounds: tuple[int, ...]
    """The bound after each batch; `MIN_TICK` while there is none."""
    unjudged: tuple[Row, ...] = ()
    """Rows of which it cannot be told whether they are punctuation, since that has no value; they take no part."""
    promises: tuple[tuple[Promise, ...], ...] = ()
    """What was promised of some rows alone, after each batch: all of it, in the order in which it came."""

    @property
    def dead(self) -> int:
        """How many rows are dead letters."""
        return len(self.backwards) + len(self.ambiguous) + len(self.ahead) + len(self.unjudged)


@dataclass(frozen=True)
class Promise:
    """No later row that has these values is below the bound."""

    values: tuple[tuple[int, object], ...]
    """Places in a row, and what stands there."""
    bound: int

    def holds_for(self, row: Row) -> bool:
        """Whether it is about a row."""
        return all(same(row[place]) == same(value) for place, value in self.values)


@dataclass(frozen=True)
class _Arrival:
    """What has arrived, as far as progress is concerned."""

    time: int
    source: object
    kind: Literal["on time", "late", "punctuation", "promise"]
    lot: int
    """Arrivals of one lot came at once, in an order that is not known: a row by itself, or a batch."""


def judge(
    progress: Single,
    time_index: int,
    batches: Sequence[Sequence[Row]],
    *,
    granularity: Literal["row", "batch"],
    is_punctuation: Callable[[Row], bool] | None = None,
    is_ambiguous: Callable[[Row], bool] | None = None,
    source_index: int | None = None,
    per: Sequence[int] = (),
    domain: Domain,
    max_ahead: int | None = None,
    judged_by: Callable[[Row], int] | None = None,
    readings: Sequence[int | None] = (),
) -> Judged:
    """Play the arrival of one stream.

    Args:
        progress: How the stream's progress is known.
        time_index: Where in a row its time is; times are ticks and not null.
        batches: The rows as they arrive.
        granularity: Whether the bound moves after every row or after every batch.
        is_punctuation: Which rows are punctuation; needed for `punctuated()`.
        is_ambiguous: Which of those might be meant for some rows alone; none if it is left out.
        source_index: Where in a row its source is; needed for `per_source()`.
        per: Where in punctuation the values are that say which rows it is about; null stands for any.
        domain: What the ticks of time count.
        max_ahead: How many ticks a row may be beyond the greatest time before it that was not too far ahead itself.
        judged_by: What of a row a bound is compared with; its time if it is left out. Progress goes by the time.
        readings: What the clock says with each batch, for `timer()`: before its rows where the bound moves after every
            row, else after them; None if nobody looks at it.

    Returns:
        The rows by what became of them.
    """
    if isinstance(progress, Punctuated) and is_punctuation is None:
        raise StreamError("punctuated() needs to know which rows are punctuation.", hint="pass is_punctuation=…")
    if isinstance(progress, PerSource) and source_index is None:
        raise StreamError("per_source() needs to know where the source is.", hint="pass source_index=…")
    story = _Story(progress, source_index, tuple(per), domain, judged_by)
    reached: int | None = None
    for number, batch in enumerate(batches):
        reading = readings[number] if number < len(readings) else None
        if granularity == "row":
            story.look(reading)
        kinds = [kind_of(row, progress, is_punctuation, is_ambiguous) for row in batch]
        timed = [
            (row, _time_of(row, time_index), k) for row, k in zip(batch, kinds, strict=True) if story.takes(row, k)
        ]
        if granularity == "batch" and max_ahead is not None and timed:
            reached = _reached([time for _, time, _ in timed], reached, max_ahead)
        for row, time, kind in timed:
            if granularity == "row" and max_ahead is not None:
                reached = _reached([time], reached, max_ahead)
            if reached is not None and time > reached:
                story.ahead.append(row)
                continue
            story.take(row, time, kind, number if granularity == "batch" else len(story.arrived))
            if granularity == "row":
                story.move_bound()
        if granularity == "batch":
            story.move_bound()
            story.look(reading)
        story.bounds.append(story.bound)
        story.promised.append(tuple(story.promises))
    return story.told()


@dataclass
class _Story:
    """What became of the rows so far, and the bound that they have brought about."""

    progress: Single
    source_index: int | None
    per: tuple[int, ...]
    domain: Domain
    judged_by: Callable[[Row], int] | None = None
    bound: int = MIN_TICK
    promises: list[Promise] = field(default_factory=list)
    said: list[Promise] = field(default_factory=list)
    """Promises that do not hold yet, since nothing moves within a batch."""
    promised: list[tuple[Promise, ...]] = field(default_factory=list)
    arrived: list[_Arrival] = field(default_factory=list)
    data: list[tuple[Row, bool]] = field(default_factory=list)
    late: list[tuple[Row, int]] = field(default_factory=list)
    punctuation: list[Row] = field(default_factory=list)
    backwards: list[tuple[Row, int]] = field(default_factory=list)
    ambiguous: list[Row] = field(default_factory=list)
    ahead: list[Row] = field(default_factory=list)
    unjudged: list[Row] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)
    fired: int | None = None
    """The last period in which a timer fired."""

    def takes(self, row: Row, kind: Kind) -> bool:
        """Whether a row takes part; those that do not are put aside."""
        if kind == "ambiguous":
            self.ambiguous.append(row)
        elif kind == "unjudged":
            self.unjudged.append(row)
        return kind in ("data", "punctuation")

    def take(self, row: Row, time: int, kind: Kind, lot: int) -> None:
        """A row that takes part and is not too far ahead, under the bounds as they are."""
        source = row[self.source_index] if self.source_index is not None else None
        if kind == "punctuation":
            self.punctuation.append(row)
            values = tuple((place, row[place]) for place in self.per if row[place] is not None)
            if values:
                self._promise(row, time, values)
            elif time < self.bound:
                self.backwards.append((row, self.bound))
            self.arrived.append(_Arrival(time, source, "promise" if values else "punctuation", lot))
            return
        bound = max([self.bound, *(p.bound for p in self.promises if p.holds_for(row))])
        is_behind = (time if self.judged_by is None else self.judged_by(row)) < bound
        if is_behind:
            self.late.append((row, bound))
        self.data.append((row, is_behind))
        self.arrived.append(_Arrival(time, source, "late" if is_behind else "on time", lot))

    def _promise(self, row: Row, time: int, values: tuple[tuple[int, object], ...]) -> None:
        """Punctuation of some rows alone; one that goes backwards says nothing."""
        is_final = isinstance(self.progress, Punctuated) and self.progress.final
        bound = END_OF_TIME if is_final else time
        places = {place for place, _ in values}
        known = [p.bound for p in self.promises if p.holds_for(row) and places >= {place for place, _ in p.values}]
        before = max([self.bound, *(b for b in known if b > bound)])
        if time < self.bound or bound < before:
            self.backwards.append((row, before))
        else:
            self.said.append(Promise(values, bound))

    def look(self, reading: int | None) -> None:
        """At the clock: in a period in which nobody did before, a timer says what rows have reached."""
        if reading is None or not isinstance(self.progress, Timer):
            return
        period = reading // self.progress.period
        if self.fired is None or period > self.fired:
            self.fired = period
            disorder = span_ticks(self.progress.disorder, self.domain)
            self.bound = max(self.bound, _greatest(self.arrived) - disorder)

    def move_bound(self) -> None:
        """To what the arrivals say now; never back."""
        self.bound = max(self.bound, _bound_after(self.arrived, self.progress, self.domain))
        self.promises += self.said
        self.said = []

    def told(self) -> Judged:
        """At the end."""
        return Judged(
            data=tuple(self.data),
            on_time=tuple(row for row, is_late in self.data if not is_late),
            late=tuple(self.late),
            punctuation=tuple(self.punctuation),
            backwards=tuple(self.backwards),
            ambiguous=tuple(self.ambiguous),
            ahead=tuple(self.ahead),
            bounds=tuple(self.bounds),
            unjudged=tuple(self.unjudged),
            promises=tuple(self.promised),
        )


Kind = Literal["data", "punctuation", "ambiguous", "unjudged"]


def kind_of(
    row: Row,
    progress: Single,
    is_punctuation: Callable[[Row], bool] | None,
    is_ambiguous: Callable[[Row], bool] | None,
) -> Kind:
    """What a row is to its stream."""
    try:
        if not isinstance(progress, Punctuated) or is_punctuation is None or not is_punctuation(row):
            return "data"
    except EvaluationError:
        return "unjudged"
    return "ambiguous" if is_ambiguous is not None and is_ambiguous(row) else "punctuation"


def _time_of(row: Row, index: int) -> int:
    time = row[index]
    assert isinstance(time, int), f"time must be ticks, got {time!r}"
    return time


def _reached(times: Sequence[int], reached: int | None, max_ahead: int) -> int:
    """How far a lot of arrivals brings a stream, in steps of at most `max_ahead`; what is beyond is too far ahead.

    Where nothing was reached before, the stretch with the most arrivals counts: they are at most `max_ahead` apart.
    """
    if reached is None:
        stretches: list[list[int]] = []
        for time in sorted(times):
            if stretches and time - stretches[-1][-1] <= max_ahead:
                stretches[-1].append(time)
            else:
                stretches.append([time])
        return max(stretches, key=len)[-1]
    for time in sorted(times):
        if reached < time <= reached + max_ahead:
            reached = time
    return reached


def _bound_after(arrived: Sequence[_Arrival], progress: Single, domain: Domain) -> int:
    """What the arrivals say, from the whole of them; the caller sees to it that the bound does not go down."""
    match progress:
        case Ordered():
            return _greatest(arrived)
        case Bounded(rows=None):
            assert progress.delay is not None
            greatest = _greatest(arrived)
            return max(greatest - span_ticks(progress.delay, domain), MIN_TICK)
        case Bounded():
            assert progress.rows is not None
            end = max(len(arrived) - progress.rows, 0)
            split = {a.lot for a in arrived[end : end + 1]}  # a lot that reaches into the last rows does not count
            return _greatest([a for a in arrived[:end] if a.lot not in split])
        case Punctuated():
            return max((a.time for a in arrived if a.kind == "punctuation"), default=MIN_TICK)
        case PerSource():
            return _least_source(arrived, progress, domain)
        case Timer():
            return MIN_TICK  # rows alone move nothing
        case Estimated():
            delay = estimated_delay(lots_of(arrived), progress)
            return MIN_TICK if delay is None else max(max(a.time for a in arrived) - delay, MIN_TICK)


def lots_of(arrived: Sequence[_Arrival]) -> list[list[int]]:
    """The times of what came at once, one list for each time that something came."""
    lots: dict[int, list[int]] = {}
    for arrival in arrived:
        lots.setdefault(arrival.lot, []).append(arrival.time)
    return list(lots.values())


def estimated_delay(arrived: Sequence[Sequence[int]], progress: Estimated) -> int | None:
    """The delay after some arrivals, of those that came at once together; None while nothing was estimated."""
    delay: int | None = None
    greatest: int | None = None
    lot: list[int] = []
    newest: list[list[int]] = []
    for times in arrived:
        lot += [0 if greatest is None else max(greatest - time, 0) for time in times]
        greatest = max([*times, *([] if greatest is None else [greatest])])
        if len(lot) >= progress.lot:
            newest.append(lot)
            lot = []
            while sum(map(len, newest[1:])) >= progress.rows:
                newest.pop(0)
            behind = sorted((each for own in newest for each in own), reverse=True)
            delay = behind[progress.beyond(len(behind))]
    return delay


def _greatest(arrived: Sequence[_Arrival]) -> int:
    return max((a.time for a in arrived if a.kind == "on time"), default=MIN_TICK)


def _least_source(arrived: Sequence[_Arrival], progress: PerSource, domain: Domain) -> int:
    """The least bound over the sources that are not idle."""
    if not arrived:
        return MIN_TICK
    disorder = span_ticks(progress.disorder, domain)
    idle = None if progress.idle is None else span_ticks(progress.idle, domain)
    newest = _greatest(arrived)
    first = min(a.time for a in arrived if a.lot == arrived[0].lot)
    bounds = []
    for source in {same(a.source) for a in arrived if a.kind == "on time"}:
        own = _greatest([a for a in arrived if same(a.source) == source])
        if idle is None or newest - own <= idle:
            bounds.append(max(own - disorder, MIN_TICK))
    for name in progress.sources:
        unseen = not any(a.kind == "on time" and same(a.source) == same(name) for a in arrived)
        if unseen and (idle is None or newest - first <= idle):
            bounds.append(MIN_TICK)
    return min(bounds)
