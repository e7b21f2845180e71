"""The benchmark of shapes compares the same results, and notices when they are not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.bench import shape_contestants as by
from penstock.bench.shape_contestants import Outcome, Shape
from penstock.bench.shapes import Contestant, ShapesBench, all_shapes, everyone, needed_bytes
from penstock.errors import InternalError


@pytest.mark.parametrize("aggregates", by.AGGREGATES)
@pytest.mark.parametrize("ratio", [1, 6])
def test_every_way_gives_the_same(aggregates: by.Aggregates, ratio: int) -> None:
    table = by.shape_rows(3000, 20, "text")
    shape = Shape(20, "text", aggregates, ratio)
    ours = by.in_process(table, shape)
    duckdb = pytest.importorskip("duckdb")
    for is_dense in (False, True):
        connection = duckdb.connect()
        connection.register("main", table)
        found = connection.sql(by.duckdb_sql(shape, is_dense=is_dense)).to_arrow_table()
        assert ours.agrees(Outcome(1.0, 1, by.fingerprint([found])))


def test_a_run_has_a_row_per_shape_and_claims_of_the_worst() -> None:
    shapes = [Shape(1, "integer", "count, max", 10), Shape(100_000, "text", "count distinct", 10)]
    report = ShapesBench(4000, lambda line: None, shapes).run()
    assert [(row["keys"], row["ratio"]) for row in report.rows] == [(1, 10), (100_000, 10)]
    assert {c.better for c in report.claims} == {"lower"}
    assert "memory, times needed" in report.rows[1]
    assert len(all_shapes()) == 4 * 2 * 3 * 3


def test_another_result_is_noticed() -> None:
    def lies(table: pa.Table, shape: Shape) -> Outcome:
        found = by.in_process(table, shape)
        return replace(found, fingerprint=(found.fingerprint[0] + 1, *found.fingerprint[1:]))

    bench = ShapesBench(1000, lambda line: None, [Shape(1, "integer", "count, max", 1)])
    bench.contestants = [everyone()[0], Contestant("liar", lies)]
    with pytest.raises(InternalError, match="liar gives another result"):
        bench.run()


def test_what_groups_need_counts_open_panes_and_their_groups() -> None:
    table = by.shape_rows(2000, 1, "integer")
    # The last bound is 5 seconds before the last row, so one or two panes of ten seconds are open.
    row = 8 * (1 + by.NUMBERS["count, max"])
    assert needed_bytes(table, Shape(1, "integer", "count, max", 1)) in (row + row + 8, 2 * row + row + 8)
