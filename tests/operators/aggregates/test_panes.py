"""Window aggregates on the thesis's examples."""

from __future__ import annotations

import pytest

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.schema import BIGINT, INT, schema_of
from penstock.operators.aggregates.catalogue import find
from penstock.operators.aggregates.paned import PanedAggregate
from penstock.operators.aggregates.partials import Grouping
from penstock.operators.aggregates.wid import WidAggregate
from penstock.operators.operator import Operator
from penstock.operators.windows.sliding import Sliding

INPUT = schema_of([("ts", "bigint"), ("v", "int")], "ts")
OUTPUT = schema_of(
    [("wid", "bigint"), ("window_start", "bigint"), ("window_end", "bigint"), ("m", "bigint")], "window_end"
)


def grouping(function: str) -> Grouping:
    record = find(function)
    assert record is not None
    return Grouping(INPUT, (), (1,), (record.row_form(INT, BIGINT),))


def feed(operator: Operator, *rows: tuple[int, int]) -> None:
    assert not list(operator.process(0, Batch(INPUT, list(rows))))


def close(operator: Operator, bound: int) -> tuple[list[tuple[object, ...]], list[int]]:
    out = list(operator.punctuate(0, linear("ts", bound)))
    rows = [row for item in out if isinstance(item, Batch) for row in item.rows]
    return rows, [p.value for p in out if isinstance(p, Punctuation)]


@pytest.mark.parametrize("operator", [WidAggregate, PanedAggregate])
def test_p_660_emits_all_windows_up_to_10_and_not_11(operator: type[WidAggregate | PanedAggregate]) -> None:
    # RANGE 600, SLIDE 60: the row at 605 lies in 10 … 19, the one at 5 in 0 … 9
    running = operator(OUTPUT, Sliding(600, 60), grouping("max"))
    feed(running, (605, 7), (5, 3))
    rows, bounds = close(running, 660)
    assert [row[0] for row in rows] == list(range(11))
    assert rows[-1] == (10, 60, 660, 7)
    assert rows[-2] == (9, 0, 600, 3)
    assert bounds == [720]  # window 11 is the next that can come
    assert close(running, 660) == ([], [])


def test_q6_2_panes_of_a_minute() -> None:
    # max of length, RANGE 4 minutes, SLIDE 1 minute: panes of one minute, a row costs one update
    #   pane      0    1    2    3    4
    #   max       5    9    -    2    1
    #   w0 (-3…0) 5
    #   w1        5    9  -> 9
    #   w3 (0…3)  5    9    -    2    -> 9
    #   w4 (1…4)       9    -    2    1 -> 9
    #   w5 (2…5)            -    2    1 -> 2
    running = PanedAggregate(OUTPUT, Sliding(240, 60), grouping("max"))
    feed(running, (10, 5), (70, 9), (70, 4), (200, 2), (250, 1))
    assert sorted(running.pages.get("panes")) == [0, 1, 3, 4]
    rows, _ = close(running, 360)
    assert [(row[0], row[3]) for row in rows] == [(0, 5), (1, 9), (2, 9), (3, 9), (4, 9), (5, 2)]
    assert running.pages.get("panes") == [3, 4]  # panes that no open window holds are given up


def test_state_does_not_grow_with_closed_windows() -> None:
    for operator in (WidAggregate, PanedAggregate):
        running = operator(OUTPUT, Sliding(20, 5), grouping("sum"))
        sizes = []
        for time in range(0, 500, 5):
            feed(running, (time, 1))
            close(running, time)
            sizes.append(len(list(running.pages.keys())))
        assert max(sizes[10:]) == max(sizes[50:])
