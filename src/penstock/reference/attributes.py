"""Which rows of a stream are late where several of its attributes progress, by playing its arrival.

Every attribute is followed by itself, as if the others were not there (`lateness.judge`): a row that is late for one of
them still says how far the others have come. A row of data is late when it contradicts the promise on any of them, or
one that holds for several together: then it is below all of its bounds, and has its constants.

Of the promises that a row contradicts, one condemns it: the linear one on the attribute that is declared first; where
there is none, the one with the greatest bounds, compared in the order of declaration (an attribute that is not bounded
counts as bounded by the end of time), then the one with the fewest constants.

A punctuation row speaks for the attributes of its declaration that are not null in it. It goes backwards where it is
below the bound of one of them; what it says of others holds. A joint punctuation that says nothing new is none the
less in order. A row of data without a value in an attribute, and punctuation without any, takes no part.

By row and by batch are as for one attribute. Punctuation from outside holds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from penstock.errors import EvaluationError
from penstock.model.batch import Row
from penstock.model.elements import Punctuation, linear
from penstock.model.progress import PerSource, Punctuated, Several
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, Domain
from penstock.reference.lateness import judge

Holds = Callable[[Row], bool]
Kind = Literal["data", "punctuation", "ambiguous", "unjudged", "incomplete"]


@dataclass(frozen=True)
class JudgedAttributes:
    """The rows of a stream by what became of them, each in order of arrival."""

    data: tuple[tuple[Row, bool], ...]
    """All data that is complete, each row with whether it is late."""
    late: tuple[tuple[Row, Punctuation], ...]
    """Data that came too late, with the promise that condemned it."""
    punctuation: tuple[Row, ...]
    """Rows that are punctuation, whether they moved a bound or not."""
    backwards: tuple[tuple[Row, Punctuation], ...]
    """Punctuation below a bound it came after, with that bound."""
    refused: tuple[tuple[Row, Kind], ...]
    """Rows that take no part, with why: ambiguous, unjudged or incomplete."""
    bounds: tuple[Mapping[str, int], ...]
    """The bound of each attribute after each batch; `MIN_TICK` while there is none."""
    promises: tuple[tuple[Punctuation, ...], ...]
    """What was promised of several attributes, or of some groups, after each batch: all of it."""

    @property
    def dead(self) -> int:
        """How many rows are dead letters."""
        return len(self.backwards) + len(self.refused)


@dataclass(frozen=True)
class Declared:
    """A stream of which several attributes progress."""

    progress: Several
    schema: Schema
    conditions: tuple[Holds | None, ...]
    """Of each entry of the progress, which rows are its punctuation."""
    silent: tuple[tuple[int, ...], ...]
    """Of each entry, the columns that must be null in its punctuation."""

    def index(self, attribute: str) -> int:
        """Where in a row an attribute is."""
        return self.schema.index(attribute)

    def kind(self, row: Row) -> Kind:
        """What a row is to the stream."""
        try:
            holding = [n for n, holds in enumerate(self.conditions) if holds is not None and holds(row)]
        except EvaluationError:
            return "unjudged"
        if any(row[i] is not None for n in holding for i in self.silent[n]):
            return "ambiguous"
        if holding:
            return "punctuation" if any(self.spoken(n, row) for n in holding) else "incomplete"
        return "incomplete" if any(row[self.index(a)] is None for a in self.progress.attributes) else "data"

    def spoken(self, entry: int, row: Row) -> dict[str, int]:
        """The bounds that a row says, as punctuation of an entry."""
        holds = self.conditions[entry]
        if holds is None or not holds(row):
            return {}
        said = {name: row[self.index(name)] for name in self.progress.entries[entry][0]}
        return {name: value for name, value in said.items() if isinstance(value, int)}


def judge_attributes(
    declared: Declared, batches: Sequence[Sequence[Row | Punctuation]], granularity: Literal["row", "batch"]
) -> JudgedAttributes:
    """Play the arrival of one stream, with punctuation from outside among its rows."""
    story = _Story(declared, [_own_bounds(declared, n, batches, granularity) for n in range(len(declared.conditions))])
    place = 0
    for batch in batches:
        for item in batch:
            if isinstance(item, Punctuation):
                story.promise(item)
            else:
                story.take(item, place)
                if granularity == "row":
                    story.hold()
            place += 1
        story.hold()
        story.close(place)
    return story.told()


def _own_bounds(
    declared: Declared, entry: int, batches: Sequence[Sequence[Row | Punctuation]], granularity: Literal["row", "batch"]
) -> list[int]:
    """The bound that an entry gives its attribute before each item, and after the last, by its rows alone."""
    names, progress = declared.progress.entries[entry]
    sizes = [len(batch) for batch in batches]
    if len(names) > 1:
        return [MIN_TICK] * (sum(sizes) + 1)
    at = declared.index(names[0])

    def counts(item: Row | Punctuation) -> bool:
        if isinstance(item, Punctuation):
            return False
        kind = declared.kind(item)
        return kind == "data" or (kind == "punctuation" and bool(declared.spoken(entry, item)))

    taking_part = [[item for item in batch if counts(item)] for batch in batches]
    lots = [[[row] for batch in taking_part for row in batch], taking_part][granularity == "batch"]
    judged = judge(
        progress,
        at,
        lots,  # type: ignore[arg-type]
        granularity=granularity,
        is_punctuation=declared.conditions[entry] if isinstance(progress, Punctuated) else None,
        source_index=declared.schema.index(progress.column) if isinstance(progress, PerSource) else None,
        domain=declared.schema.fields[at].type.domain or Domain.INTEGER,
    )
    known = [MIN_TICK, *judged.bounds]
    if granularity == "batch":
        return [known[number] for number, size in enumerate(sizes) for _ in range(size)] + [known[-1]]
    came = accumulate((counts(item) for batch in batches for item in batch), initial=0)
    return [known[number] for number in came]


@dataclass
class _Story:
    """What became of the rows so far, and what was promised besides what each attribute says by itself."""

    declared: Declared
    own: list[list[int]]
    told_bounds: dict[str, int] = field(default_factory=dict)
    promises: list[Punctuation] = field(default_factory=list)
    said: list[Punctuation] = field(default_factory=list)
    """Promises that do not hold yet, since nothing moves within a batch."""
    data: list[tuple[Row, bool]] = field(default_factory=list)
    late: list[tuple[Row, Punctuation]] = field(default_factory=list)
    punctuation: list[Row] = field(default_factory=list)
    backwards: list[tuple[Row, Punctuation]] = field(default_factory=list)
    refused: list[tuple[Row, Kind]] = field(default_factory=list)
    bounds: list[Mapping[str, int]] = field(default_factory=list)
    promised: list[tuple[Punctuation, ...]] = field(default_factory=list)

    def bound(self, attribute: str, place: int) -> int:
        """What is promised of one attribute, before an item."""
        entries = self.declared.progress.entries
        own = [self.own[n][place] for n, (names, _) in enumerate(entries) if names == (attribute,)]
        return max([self.told_bounds.get(attribute, MIN_TICK), *own])

    def take(self, row: Row, place: int) -> None:
        """A row, under the promises as they are."""
        kind = self.declared.kind(row)
        if kind == "data":
            condemning = self._condemning(row, place)
            self.data.append((row, condemning is not None))
            if condemning is not None:
                self.late.append((row, condemning))
        elif kind == "punctuation":
            self._speak(row, place)
        else:
            self.refused.append((row, kind))

    def _condemning(self, row: Row, place: int) -> Punctuation | None:
        values = dict(zip(self.declared.schema.names, row, strict=True))
        for name in self.declared.progress.attributes:
            found = linear(name, self.bound(name, place))
            if found.condemns(values):
                return found
        return max((p for p in self.promises if p.condemns(values)), key=self._rank, default=None)

    def _rank(self, promise: Punctuation) -> tuple[list[int], int, str]:
        bounds = dict(promise.bounds)
        vector = [bounds.get(name, END_OF_TIME) for name in self.declared.progress.attributes]
        return vector, -len(promise.constants), str(promise)

    def _speak(self, row: Row, place: int) -> None:
        self.punctuation.append(row)
        back: dict[str, Punctuation] = {}
        for n, (names, _) in enumerate(self.declared.progress.entries):
            bounds = self.declared.spoken(n, row)
            below = [a for a, value in bounds.items() if value < self.bound(a, place)]
            if len(bounds) == 1 and below:
                back[below[0]] = linear(below[0], self.bound(below[0], place))
            elif len(names) > 1 and bounds:
                self.said.append(Punctuation(tuple(sorted(bounds.items()))))
        if back:
            first = next(a for a in self.declared.progress.attributes if a in back)
            self.backwards.append((row, back[first]))

    def promise(self, punctuation: Punctuation) -> None:
        """A promise that holds from now on; what ends one attribute ends the stream."""
        if punctuation.is_end:
            self.told_bounds = dict.fromkeys(self.declared.progress.attributes, END_OF_TIME)
        elif punctuation.is_linear:
            name, bound = punctuation.bounds[0]
            self.told_bounds[name] = max(bound, self.told_bounds.get(name, MIN_TICK))
        else:
            self.promises.append(punctuation)

    def hold(self) -> None:
        """What was said holds from now on."""
        for punctuation in self.said:
            self.promise(punctuation)
        self.said = []

    def close(self, place: int) -> None:
        """A batch is over."""
        self.bounds.append({name: self.bound(name, place) for name in self.declared.progress.attributes})
        self.promised.append(tuple(self.promises))

    def told(self) -> JudgedAttributes:
        """At the end."""
        return JudgedAttributes(
            tuple(self.data),
            tuple(self.late),
            tuple(self.punctuation),
            tuple(self.backwards),
            tuple(self.refused),
            tuple(self.bounds),
            tuple(self.promised),
        )
