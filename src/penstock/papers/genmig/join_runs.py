"""The joins of section 5: four streams, a left-deep plan that is replaced by a right-deep one while it runs.

Each stream has a value every 10 ms, uniform, of A and B from one range and of C and D from one that is twice as wide;
all four tell how far they have come before each. Windows are a fifth of the run, and the migration begins when two
fifths have gone by. With 5000 values these are the paper's numbers: 50 s, windows of 10 s, from 20 s on, ranges of 500
and 1000. Shorter runs have ranges that are as much narrower, so that every value meets as many others.

Windows are below the plans: what enters lives its tick and the window. Joins are by nested loops. Every strategy must
come to the same results, or nothing is measured. Results come in order of start, as the paper's do, but for Parallel
Track, which does not keep that (see the tests).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InternalError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.lives import Lives
from penstock.model.schema import BIGINT, Schema
from penstock.operators.intervals.join import NestedLoopsJoin
from penstock.operators.intervals.layout import START, interval_schema
from penstock.operators.intervals.least import Progressing
from penstock.operators.migration.box import Box, Node
from penstock.operators.migration.migrating import Migrating
from penstock.operators.migration.parallel_track import ParallelTrack
from penstock.operators.migration.ways import REFERENCE_POINT, SPLIT, Way
from penstock.operators.operator import Operator, Output
from penstock.runtime.held_bytes import bytes_of_pages

STREAMS = 4
VALUES = 5000
STEP = 10
"""Ticks between two values of a stream; a tick is a millisecond."""
Holds = Callable[[Row, Row], bool]
Moment = tuple[int, list[tuple[int, Batch | Punctuation]]]
"""When, and what happens at the ports."""


@dataclass(frozen=True)
class Setting:
    """How long a run is, and all that follows from that."""

    values: int = VALUES
    seed: int = 1

    @property
    def length(self) -> int:
        """Of the run, in ticks."""
        return self.values * STEP

    @property
    def window(self) -> int:
        """How long a value is valid after its tick."""
        return self.length // 5

    @property
    def beginning(self) -> int:
        """When the new plan is put beside the old one."""
        return 2 * self.length // 5

    @cached_property
    def drawn(self) -> np.ndarray:
        """The values, stream by stream."""
        rng = np.random.default_rng(self.seed)
        narrow = max(self.values // 10, 1)
        return np.stack([rng.integers(0, narrow * wide, self.values) for wide in (1, 1, 2, 2)])

    def moments(self, schema: Schema) -> Iterator[Moment]:
        """What happens, moment by moment, in the order of time over all streams."""
        marked = len(schema) == 3
        for at, values in enumerate(self.drawn.T.tolist()):
            now = at * STEP
            end = Lives.of_inserts(np.array([now + 1 + self.window], np.int64))
            happens: list[tuple[int, Batch | Punctuation]] = [(port, linear(START, now)) for port in range(STREAMS)]
            happens += [
                (port, Batch(schema, [(value, 0, now) if marked else (value, now)], lives=end))
                for port, value in enumerate(values)
            ]
            yield now, happens


def equal_at(left: int, right: int) -> Holds:
    """The condition of a join: one place of the left equals one of the right."""
    return lambda one, other: one[left] == other[right]


@dataclass(frozen=True)
class Costly:
    """The same, for which work is done."""

    left: int
    right: int
    work: int = 10

    def __call__(self, left: Row, right: Row) -> bool:
        """Compare what is computed of both."""
        one: int = left[self.left]  # type: ignore[assignment]
        other: int = right[self.right]  # type: ignore[assignment]
        for _ in range(self.work):
            one, other = one ^ 1, other ^ 1
        return one == other


def left_deep(schema: Schema, condition: Callable[[int, int], Holds], kept_for: int | None = None) -> Box:
    """((A ⋈ B) ⋈ C) ⋈ D."""
    made: Node | int = 0
    below = schema
    for port in range(1, STREAMS):
        join = NestedLoopsJoin(below, schema, condition(0, 0), kept_for=kept_for)
        made, below = Node(join, (made, port)), join.schema
    return Box(made, STREAMS)


def right_deep(schema: Schema, condition: Callable[[int, int], Holds], kept_for: int | None = None) -> Box:
    """A ⋈ (B ⋈ (C ⋈ D))."""
    made: Node | int = STREAMS - 1
    below = schema
    for port in reversed(range(STREAMS - 1)):
        join = NestedLoopsJoin(schema, below, condition(0, 0), kept_for=kept_for)
        made, below = Node(join, (port, made)), join.schema
    return Box(made, STREAMS)


class Running(ABC):
    """A strategy at work on the four streams."""

    operator: Migrating | ParallelTrack

    def __init__(self, setting: Setting, condition: Callable[[int, int], Holds], schema: Schema) -> None:
        """The old plan runs."""
        self.setting, self.condition, self.schema = setting, condition, schema

    @abstractmethod
    def replace(self) -> Iterable[Output]:
        """Put the new plan beside the old one."""

    @abstractmethod
    def boxes(self) -> list[Box]:
        """The plans that are there."""

    def given(self, happens: Iterable[tuple[int, Batch | Punctuation]]) -> Iterator[Output]:
        """What comes of what happens."""
        operator: Operator = self.operator
        for port, element in happens:
            if isinstance(element, Batch):
                yield from operator.process(port, element)
            else:
                yield from operator.punctuate(port, element)

    def bytes_held(self) -> int:
        """Of all state, with what waits to come out."""
        return bytes_of_pages(self.operator.pages)

    def values_held(self) -> int:
        """The values in the states of the joins, as the paper counts memory, and those that wait to come out."""
        operators = [each for box in self.boxes() for each in box.operators() if isinstance(each, Progressing)]
        return sum(each.values_held() for each in operators) + STREAMS * self.results_waiting()

    @abstractmethod
    def results_waiting(self) -> int:
        """How many results wait to come out."""


class GenMig(Running):
    """Split and coalesce, or the reference point."""

    def __init__(self, setting: Setting, condition: Callable[[int, int], Holds], way: Way) -> None:
        """`way` is which of the two."""
        super().__init__(setting, condition, interval_schema([BIGINT]))
        self.way = way
        box = left_deep(self.schema, condition)
        self.operator: Migrating = Migrating(box, [self.schema] * STREAMS, ordered=True)

    def replace(self) -> Iterable[Output]:
        """T is by the starts that were seen."""
        made = right_deep(self.schema, self.condition)
        return self.operator.replace(made, [0] * STREAMS, way=self.way, lifetime=self.setting.window + 1)

    def boxes(self) -> list[Box]:
        """One or two."""
        beside = self.operator.beside
        return [self.operator.box] if beside is None else [self.operator.box, beside.box]

    def results_waiting(self) -> int:
        """In the coalesce, or behind the new plan."""
        beside = self.operator.beside
        return 0 if beside is None else int(beside.union.results_waiting())


class Tracks(Running):
    """Parallel Track."""

    def __init__(self, setting: Setting, condition: Callable[[int, int], Holds], *, by_ends: bool) -> None:
        """`by_ends` if results are purged when they end, and not by the youngest of their parts."""
        super().__init__(setting, condition, interval_schema([BIGINT], generations=True))
        self.kept_for = None if by_ends else setting.window + 1
        box = left_deep(self.schema, condition, self.kept_for)
        self.operator: ParallelTrack = ParallelTrack(box, [self.schema] * STREAMS)

    def replace(self) -> Iterable[Output]:
        """It begins at once."""
        return self.operator.replace(right_deep(self.schema, self.condition, self.kept_for))

    def boxes(self) -> list[Box]:
        """One or two."""
        new = self.operator.new_box
        return [self.operator.box] if new is None else [self.operator.box, new]

    def results_waiting(self) -> int:
        """Those of the new plan."""
        return sum(len(batch) for batch in self.operator.results_held())


Contender = Callable[[Setting, Callable[[int, int], Holds]], Running]
COALESCE, POINT = "GenMig, coalesce", "GenMig, reference point"
TRACK, TRACK_BY_ENDS = "Parallel Track", "Parallel Track, purged by ends"
CONTENDERS: dict[str, Contender] = {
    TRACK: lambda setting, condition: Tracks(setting, condition, by_ends=False),
    TRACK_BY_ENDS: lambda setting, condition: Tracks(setting, condition, by_ends=True),
    COALESCE: lambda setting, condition: GenMig(setting, condition, SPLIT),
    POINT: lambda setting, condition: GenMig(setting, condition, REFERENCE_POINT),
}


class Results:
    """What came out: that all strategies say the same is checked, not believed."""

    def __init__(self) -> None:
        """Nothing."""
        self.events: Counter[tuple[Row, int, int]] = Counter()

    def take(self, outputs: Iterable[Output]) -> int:
        """How many results there are among outputs."""
        count = 0
        for each in outputs:
            if isinstance(each, Batch):
                count += len(each)
                ends = each.its_lives().ends.tolist()
                starts = each.times().tolist()
                self.events.update(zip([row[:STREAMS] for row in each.rows], starts, ends, strict=True))
        return count

    def check(self, other: Results, name: str) -> None:
        """Whether another strategy came to the same."""
        if self.events != other.events:
            different = sum(((self.events - other.events) + (other.events - self.events)).values())
            raise InternalError("A strategy came to other results.", where=name, got=f"{different} that differ")
