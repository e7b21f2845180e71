"""Tables of a flow: what they are read from, what is refused, and what becomes of streams that are joined with them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import PenstockError, QueryError, StreamError
from penstock.model.batch import Batch
from penstock.plan.identity import identities

BIDS = [{"ts": 1, "c": "eur", "v": 10}, {"ts": 4, "c": "usd", "v": 20}, {"ts": 6, "c": "eur", "v": 1}]
RATES = [{"c": "eur", "rate": 2}, {"c": "chf", "rate": 3}]
VERSIONS = [
    {"c": "eur", "since": 0, "rate": 2},
    {"c": "eur", "since": 5, "rate": 3},
    {"c": "usd", "since": 5, "rate": 7},
]
JOINED = "SELECT ts, v * rate AS worth FROM bids JOIN rates USING (c)"
AS_OF = "SELECT ts, rate FROM bids b LEFT JOIN rates FOR SYSTEM_TIME AS OF b.ts AS r ON r.c = b.c"


def bids() -> pk.Flow:
    return pk.Flow().stream("bids", BIDS, time="ts")


def sources(folder: Path) -> list[Any]:
    table = pa.Table.from_pylist(RATES)
    pq.write_table(table, folder / "rates.parquet")
    (folder / "rates.csv").write_text("c,rate\neur,2\nchf,3\n")
    (folder / "rates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RATES))
    frames = [pd.DataFrame(RATES), pl.DataFrame(RATES), table, table.to_reader(), RATES]
    return [*frames, folder / "rates.parquet", str(folder / "rates.csv"), [str(folder / "rates.jsonl")]]


def test_a_table_is_read_from_whatever_holds_rows(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        flow = bids().table("rates", source)
        assert flow.query(JOINED).collect().to_pylist() == [{"ts": 1, "worth": 20}, {"ts": 6, "worth": 2}]
        assert "table rates: `c` string, `rate`" in repr(flow)


def test_an_empty_table_has_the_columns_that_are_declared() -> None:
    flow = bids().table("rates", [], schema="c string, rate int")
    assert flow.query(JOINED).collect().num_rows == 0
    assert flow.query("SELECT ts FROM bids WHERE c NOT IN (SELECT c FROM rates)").collect().num_rows == 3


def test_versions_are_those_of_each_rows_time() -> None:
    flow = bids().table("rates", VERSIONS, key="c", valid_from="since")
    assert [row["rate"] for row in flow.query(AS_OF).collect().to_pylist()] == [2, None, 3]


@pytest.mark.parametrize(("key", "rates"), [("r.c = 'eur'", [2, 2, 3]), ("'usd' = r.c", [None, None, 7])])
def test_the_key_of_versions_may_be_a_constant(key: str, rates: list[int | None]) -> None:
    flow = bids().table("rates", VERSIONS, key="c", valid_from="since")
    found = flow.query(AS_OF.replace("r.c = b.c", key)).collect()["rate"].to_pylist()
    assert found == rates
    assert flow.query(f"SELECT ts FROM bids b, rates FOR SYSTEM_TIME AS OF b.ts r WHERE {key}").collect().num_rows == (
        sum(rate is not None for rate in rates)
    )


def test_a_version_may_end_before_the_next_begins() -> None:
    versions = [{"c": "eur", "since": 0, "until": 1, "rate": 2}, {"c": "usd", "since": 0, "until": None, "rate": 7}]
    flow = bids().table("rates", versions, key=["c"], valid_from="since", valid_to="until")
    assert [row["rate"] for row in flow.query(AS_OF).collect().to_pylist()] == [None, 7, None]


def test_times_of_versions_are_read_as_those_of_streams() -> None:
    flow = pk.Flow().stream("bids", [{"ts": dt.datetime(2026, 1, 2), "c": "eur"}], time="ts")
    flow.table("rates", [{"c": "eur", "since": "2026-01-01", "rate": 2}], key=["c"], valid_from="since")
    assert flow.query(AS_OF).collect()["rate"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([{"k": "a", "s": 1}, {"k": "a", "s": 1}], {"key": "k", "valid_from": "s"}, "Two versions of a key start"),
        ([{"k": 0.0, "s": 1}, {"k": -0.0, "s": 1}], {"key": "k", "valid_from": "s"}, "Two versions of a key start"),
        ([{"k": None, "s": 1}, {"k": "a", "s": 1}], {"key": "k", "valid_from": "s"}, "A key of the table is null"),
        ([{"k": "a", "s": None}, {"k": "a", "s": 1}], {"key": "k", "valid_from": "s"}, "s is null"),
        ([{"k": "a", "s": 1}], {"key": "q", "valid_from": "s"}, "does not exist"),
        ([{"k": "a", "s": 1}], {"key": "k"}, "of a table with versions"),
        ([{"k": "a", "s": 1}], {"valid_from": "s"}, "told apart by a key"),
        ([{"k": "a", "s": 1}], {"key": "k", "valid_from": "q"}, "does not exist"),
        ([{"k": "a", "s": 1}], {"key": "k", "valid_from": "s", "valid_to": "k"}, "of different types"),
        ([{"k": "a"}], {"schema": "k int"}, "A row of the table cannot be read"),
        ([], {}, "The columns of an empty list are not known"),
        ([pk.Insert(("a",), 1, 2)], {"schema": "k string"}, "A table is a list of rows"),
        (3, {}, "cannot be read as a table"),
        (iter([{"k": "a"}]), {}, "cannot be read as a table"),
    ],
)
def test_what_is_no_table_is_refused(rows: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(StreamError, match=told) as caught:
        pk.Flow().table("t", rows, **options)
    assert caught.value.where == "table t"


def test_a_name_is_of_one_thing_and_an_identifier() -> None:
    flow = bids().table("rates", RATES)
    for again in (lambda: flow.table("BIDS", RATES), lambda: flow.stream("Rates", BIDS, time="ts")):
        with pytest.raises(StreamError, match="of that name already"):
            again()
    with pytest.raises(StreamError, match="A table's name must be an identifier"):
        flow.table("a b", RATES)
    with pytest.raises(QueryError, match="Unknown stream"):
        flow.query("SELECT 1 AS one FROM bids, rate")


def test_revisions_pass_through() -> None:
    elements = [pk.Insert((1, "eur"), 1, 9), pk.Insert((2, "chf"), 2, 9), pk.Adjust((1, "eur"), 1, 9, 5)]
    flow = pk.Flow().stream("leases", elements, time="vs", schema="vs bigint, c string", progress=pk.bounded(10))
    flow.table("rates", [*RATES, {"c": "eur", "rate": 8}])
    query = flow.query("SELECT vs, rate FROM leases JOIN rates USING (c)")
    found = [e for e in query.elements() if not isinstance(e, pk.Punctuation)]
    assert found == [
        *(pk.Insert((1, rate), 1, 9) for rate in (2, 8)),
        pk.Insert((2, 3), 2, 9),
        *(pk.Adjust((1, rate), 1, 9, 5) for rate in (2, 8)),
    ]
    failing = flow.query("SELECT vs FROM leases LEFT JOIN rates ON rates.c = leases.c AND 6 / (rate - 8) > 0")
    assert [row["ve"] for row in failing.collect().to_pylist()] == [5, 9]
    assert failing.dead_letters.num_rows == 2, "the insert, and its adjust"


def test_punctuation_among_rows_stays_where_it_was() -> None:
    rows = [{"ts": 1, "c": "eur"}, {"ts": 2, "c": "usd"}, {"ts": 3, "c": None}, {"ts": 4, "c": "eur"}]
    how = pk.punctuated("c IS NULL", whole_stream=True)
    flow = pk.Flow().stream("s", pa.Table.from_pylist(rows), time="ts", progress=how)
    flow.table("rates", [*RATES, {"c": "eur", "rate": 8}])
    found = list(flow.query("SELECT ts, rate FROM s JOIN rates USING (c)").elements())
    shown = [e.value if isinstance(e, pk.Punctuation) else e.payload for e in found]
    assert shown[:5] == [(1, 2), (1, 8), 3, (4, 2), (4, 8)]


def test_a_snapshot_is_taken_up_with_another_table() -> None:
    sql = "SELECT sum(rate) AS total [RANGE TUMBLING 10, WA ts] FROM bids JOIN rates USING (c)"
    first = bids().table("rates", RATES).query(sql).execution()
    first.feed("bids", first_batch := _batch(first, [(1, "eur", 1)]))
    second = bids().table("rates", [{"c": "eur", "rate": 100}]).query(sql).execution()
    second.restore(first.snapshot())
    second.feed("bids", first_batch)
    (result,) = [item for item in second.close() if not isinstance(item, pk.Punctuation)]
    assert [row[-1] for row in result.rows] == [102]


def _batch(execution: Any, rows: list[tuple[Any, ...]]) -> Batch:
    return Batch(execution.graph.sources["bids"][0].operator.schema, rows)


def test_queries_of_one_run_share_a_lookup() -> None:
    flow = bids().table("rates", RATES)
    all_of, some = [], []
    queries = {flow.query(JOINED, name="all"): all_of, flow.query(f"{JOINED} WHERE rate * v > 2", name="some"): some}
    flow.start(queries).wait()
    assert [row["ts"] for row in all_of] == [1, 6]
    assert [row["ts"] for row in some] == [1]


def test_a_script_creates_tables(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("c,since,rate\neur,0,2\neur,5,3\n")
    script = f"""
    CREATE TABLE rates (c string, since bigint, rate int)
    WITH (source = '{tmp_path}/rates.csv', format = 'csv', key = 'c', valid_from = 'since');
    CREATE TABLE names WITH (delimiter = ';', source = '{tmp_path}/rates.csv');
    {AS_OF}
    """
    made = bids().sql(script)
    assert made.collect()["rate"].to_pylist() == [2, None, 3]
    flow = pk.Flow()
    with pytest.raises(QueryError, match="Unknown option") as caught:
        flow.sql("CREATE TABLE t WITH (source = 'x.csv', time = 'ts')")
    assert caught.value.column == 40
    with pytest.raises(PenstockError, match="Unknown stream"):
        flow.sql("CREATE TABLE t; SELECT 1 AS one FROM q", sources={"t": RATES})
    assert not flow.catalog.tables, "a script with an error declares nothing"
    given = flow.sql(
        "CREATE STREAM s WITH (time = 'ts'); CREATE TABLE t (c string, rate int) ; "
        "SELECT ts, rate FROM s JOIN t USING (c)",
        sources={"s": BIDS, "t": RATES},
    )
    assert given.collect().num_rows == 2


def test_what_is_not_read_of_a_table_may_change() -> None:
    sql = "SELECT sum(rate) AS total [RANGE TUMBLING 10, WA ts] FROM bids b LEFT JOIN rates r ON r.c = b.c AND rate > v"
    flows = [bids().table("rates", rows) for rows in (RATES, [{"name": "x", **row} for row in RATES])]
    wider = pk.Flow().stream("bids", [{"more": 1, **row} for row in BIDS], time="ts").table("rates", RATES)
    known = [[each.identity for each in identities(flow.query(sql).plan)] for flow in (*flows, wider)]
    assert known[0] == known[1] == known[2]
    other = bids().table("rates", [{"c": "eur", "rate": 2.5}])
    assert known[0][-3:] != [each.identity for each in identities(other.query(sql).plan)][-3:], "another type"
