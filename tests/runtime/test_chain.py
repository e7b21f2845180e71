"""Chain: the lower envelope of progress charts, the parts that follow from it, and what they hold in bursts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.runtime.chain import Step, envelope
from penstock.runtime.sampling import Clocks
from penstock.runtime.strategies import NAMED
from penstock.testing.asserts import assert_same, tdb_of

COLUMNS = "ts bigint, k bigint, v bigint"
STEPS = st.lists(
    st.builds(Step, st.floats(0.1, 10), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0, 1.5, 3.0])), min_size=1, max_size=7
)


@given(STEPS)
def test_the_envelope_is_the_steepest_descent_from_every_point(path: list[Step]) -> None:
    times, sizes = [0.0], [1.0]
    for step in path:
        times.append(times[-1] + sizes[-1] * step.cost)
        sizes.append(sizes[-1] * step.selectivity)
    at, slopes = 0, []
    for end, slope in envelope(path):
        assert end > at
        if sizes[at] == 0:
            assert (end, slope) == (len(path), 0.0)
        else:
            for other in range(at + 1, len(path) + 1):
                # no point lies below the line of a segment
                assert sizes[other] >= sizes[at] - slope * (times[other] - times[at]) - 1e-9
            assert sizes[end] == pytest.approx(sizes[at] - slope * (times[end] - times[at]))
        slopes.append(slope)
        at = end
    assert at == len(path)
    assert all(after <= before + 1e-9 for before, after in pairwise(slopes))


def test_charts_by_hand() -> None:
    # the example of Chain's paper: a second for a tuple, of which a fifth is left; a second for that
    assert envelope([Step(1, 0.2), Step(5, 0.0)]) == [(1, pytest.approx(0.8)), (2, pytest.approx(0.2))]
    # an operator that lets everything through belongs to the one behind it that does not
    assert envelope([Step(1, 1.0), Step(1, 0.1), Step(8, 0.0)]) == [(2, pytest.approx(0.45)), (3, pytest.approx(0.125))]
    # what gets steeper is one segment: 0.1 in 2 s, then 0.81 in 0.9 s
    assert envelope([Step(2, 0.9), Step(1, 0.1)]) == [(2, pytest.approx(0.91 / 2.9))]
    assert envelope([Step(1, 1.0)] * 3) == [(3, 0.0)]
    assert envelope([Step(1, 0.0), Step(1, 0.5)]) == [(2, 1.0)]


class Played:
    """A graph of one query whose functions take so many seconds for a row, while more rows arrive."""

    size = 1
    """So many rows come at a time, as a batch."""

    def __init__(self, sql: str, costs: dict[str, int]) -> None:
        self.now = 0
        self.held: list[int] = []
        """Rows that have come and are not done with, by the second."""
        self.arrivals: list[int] = []
        self.begun = 0
        """How many batches were handed to the graph."""
        flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.punctuated("k < 0"))
        for name, cost in costs.items():
            flow.function(name, self._working(name, cost), "bigint")
        self.run = SharedExecution(flow.catalog, {"q": flow.query(sql).plan})
        self.run.graph.measure(Clocks(lambda: float(self.now), lambda: float(self.now), every=1))
        self.schema = self.run.graph.sources["s"][0].operator.schema

    def _working(self, name: str, cost: int) -> Callable[[int], int]:
        def work(value: int) -> int:
            for _ in range(cost):
                self.held.append(self.waiting() + self.in_hand(name))
                self.now += 1
            return value

        return work

    def in_hand(self, name: str) -> int:
        """How many rows the operator has taken that is at work."""
        return 1

    def waiting(self) -> int:
        """Rows that have come by now and that no operator has taken: outside, at the entrance, on arcs."""
        found = sum(at <= self.now for at in self.arrivals) - self.begun
        found += sum(len(node.inbox) for node in self.run.graph.nodes)
        for arc in (arc for node in self.run.graph.nodes for arc in node.inputs):
            arc.count()
        return self.size * found + sum(arc.rows for node in self.run.graph.nodes for arc in node.inputs)

    def due(self) -> list[Batch]:
        """What has arrived and was not handed on yet."""
        count = sum(at <= self.now for at in self.arrivals) - self.begun
        first, self.begun = self.begun, self.begun + count
        return [self.batch(first + at) for at in range(count)]

    def batch(self, number: int) -> Batch:
        return Batch(self.schema, [(number, row, number) for row in range(self.size)])

    def play(self, arrivals: list[int]) -> list[Any]:
        """A batch arrives at each of these seconds; what comes out."""
        self.now, self.held, self.arrivals, self.begun = 0, [], arrivals, 0
        while self.begun < len(arrivals):
            self.now = max(self.now, arrivals[self.begun])
            for _ in self.run.graph.burst("s", self.due()):
                more = self.due()
                if more:
                    self.run.graph.admit("s", more)
        return [element for _, element in self.run.take()]


class Tuples(Played):
    """Tuples of five rows, of which the first operator leaves one; each operator takes five seconds for a tuple."""

    size = 5

    def __init__(self) -> None:
        super().__init__("SELECT ts, end_with(v) AS w FROM s WHERE begin_with(k) = 0", {"begin_with": 1, "end_with": 5})

    def in_hand(self, name: str) -> int:
        return 5 if name == "begin_with" else 1


def test_the_example_of_the_paper() -> None:
    # A tuple comes whenever an operator has taken its time for one. First in, first out holds 1, 1.2, 2, 2.2 and 3
    # tuples then, the greedy order 1, 1.2, 1.4, 1.6 and 1.8.
    found = []
    for rule in (None, "chain"):
        played = Tuples()
        played.play([0] * 4)
        played.run.place_breaks(rule)
        played.play([0, 5, 10, 15, 20])
        found.append([held / 5 for held in played.held[:25:5]])
    assert found == [[1.0, 1.2, 2.0, 2.2, 3.0], [1.0, 1.2, 1.4, 1.6, 1.8]]


SEEN = "SELECT ts, k, glance(v) AS v FROM s"
THROUGH = f"SELECT ts, dear(v) AS w FROM (SELECT ts, k, v FROM ({SEEN}) a WHERE sift(v) % 10 = 0) b"
COSTS = {"glance": 1, "sift": 1, "dear": 8}
"""A projection that lets everything through, a selection that leaves a tenth, a projection that is dear."""
BURSTS = [0] * 100 + [130] * 100 + [260] * 100


def test_break_nodes_stand_where_chain_has_them() -> None:
    played = Played(THROUGH, COSTS)
    with pytest.raises(StreamError) as told:
        played.run.place_breaks("chain")
    assert told.value.what == "Nothing has been measured yet by which break nodes could be placed."
    played.play([0] * 40)
    found = played.run.place_breaks("chain")
    assert [each.operators for each in found] == [("σ", "Σ1", "Σ2"), ("Σ3",)]
    # 0.9 of a row in two seconds; a row in eight
    assert [each.slope for each in found] == [pytest.approx(0.45), pytest.approx(0.125)]
    breaks = [(arc.producer, arc.consumer) for arc in played.run.statistics().arcs if arc.kind == "break"]
    assert breaks == [("Σ2", "Σ3")]
    assert played.run.place_breaks("chain") == found
    assert played.run.place_breaks(None) == []
    assert not any(arc.kind == "break" for arc in played.run.statistics().arcs)


def peaks(arrivals: list[int]) -> dict[str, int]:
    """The most rows that were held, by strategy; the results are the same."""
    most: dict[str, int] = {}
    results = {}
    for name, strategy in {**NAMED, "chain": None}.items():
        played = Played(THROUGH, COSTS)
        played.play([0] * 40)  # something is measured
        if strategy is None:
            played.run.place_breaks("chain")
        else:
            played.run.use(strategy)
        results[name] = tdb_of(played.play(arrivals))
        most[name] = max(played.held)
    for other in results.values():
        assert_same(results["chain"], other)
    return most


def test_chain_holds_less_in_bursts_than_any_other_strategy() -> None:
    most = peaks(BURSTS)
    assert all(most["chain"] < held for name, held in most.items() if name != "chain"), most
