"""Unions, joins and lives of update streams in the engine, against the oracle, however the input is cut."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.query import Query
from penstock.model.batch import Batch, Row
from penstock.model.elements import Element
from penstock.reference import evaluate
from penstock.reference.updates import last_values

COLUMNS = "ts BIGINT, symbol STRING, price INT"
UPDATES = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.integers(0, 8), st.sampled_from(["X", "Y", None]), st.integers(0, 9), st.booleans()
    ),
    max_size=12,
)
"""Of which stream, the row, and whether a snapshot is taken before it."""
QUERIES = (
    "SELECT * FROM a UNION b",
    "SELECT * FROM b WHERE price > 2 UNION ALL SELECT * FROM a",
    "SELECT * FROM now",
    "SELECT * FROM now WHERE price > 4",
    "SELECT symbol AS s, price + 1 AS p, ts FROM now WHERE price <> 3",
    "SELECT * FROM both",
)


@cache
def flow() -> pk.Flow:
    made = pk.Flow()
    for name in ("a", "b"):
        made.stream(name, [], schema=COLUMNS, time="ts", update_key="symbol", progress=pk.bounded(100))
    made.latest("now", "a")
    made.sql("CREATE VIEW united AS SELECT * FROM a UNION b")
    return made.latest("both", "united")


class Fed:
    """An execution that is restored from a snapshot now and then."""

    def __init__(self, query: Query) -> None:
        self.query, self.run = query, query.execution()  # type: ignore[attr-defined]
        self.out: list[Element] = []

    def push(self, stream: str, row: Row, again: bool) -> None:
        if again:
            restored: LocalExecution = self.query.execution()  # type: ignore[attr-defined]
            restored.restore(self.run.snapshot())
            self.run = restored
        batch = Batch(self.run.graph.sources[stream][0].plan.schema, [row])
        self._take(self.run.feed(stream, batch))

    def close(self) -> list[Element]:
        self._take(self.run.close())
        return self.out

    def _take(self, items: list[Batch | pk.Punctuation]) -> None:
        for item in items:
            self.out += item.elements() if isinstance(item, Batch) else [item]


@given(st.sampled_from(QUERIES), UPDATES)
def test_they_agree(sql: str, updates: list[tuple[str, int, str | None, int, bool]]) -> None:
    query = flow().query(sql)
    read = {n.name for n in query.plan.walk() if hasattr(n, "progress")}
    fed, arrivals = Fed(query), []
    for stream, ts, symbol, price, again in updates:
        if stream in read:
            fed.push(stream, (ts, symbol, price), again)
            arrivals.append((stream, (ts, symbol, price)))
    assert pk.tdb(fed.close()) == evaluate(query.plan, arrivals)


JOIN = (
    "SELECT a.symbol AS symbol, a.price AS p, b.price AS q, a.ts AS t, b.ts AS u FROM a JOIN b ON a.symbol = b.symbol"
)


@given(UPDATES)
def test_of_a_join_the_most_recent_match_comes_out_last(updates: list[tuple[str, int, str | None, int, bool]]) -> None:
    query = flow().query(f"{JOIN} AND b.ts BETWEEN a.ts - 3 AND a.ts + 3")
    fed, rows = Fed(query), {"a": [], "b": []}  # type: tuple[Fed, dict[str, list[Row]]]
    for stream, ts, symbol, price, again in updates:
        fed.push(stream, (ts, symbol, price), again)
        rows[stream].append((ts, symbol, price))
    out = [e.payload for e in fed.close() if isinstance(e, pk.Insert)]
    pairs = [
        (a[1], a[2], b[2], a[0], b[0])
        for a in rows["a"]
        for b in rows["b"]
        if a[1] is not None and a[1] == b[1] and abs(a[0] - b[0]) <= 3  # type: ignore[operator]
    ]
    for symbol in {pair[0] for pair in pairs}:
        best = max((max(t, u), t, u) for s, _, _, t, u in pairs if s == symbol)  # type: ignore[type-var]
        last = [row for row in out if row[0] == symbol][-1]
        assert (last[3], last[4]) == best[1:]
    assert set(out) <= set(pairs)


def test_older_rows_are_counted() -> None:
    rows = [{"ts": 5, "symbol": "A", "price": 1}, {"ts": 3, "symbol": "A", "price": 2}]
    made = pk.Flow().stream("a", rows, time="ts", update_key="symbol", progress=pk.bounded(10)).latest("now", "a")
    run = made.query("SELECT * FROM now").start(None)
    run.wait()
    assert [operator.older for operator in run.progress.operators] == [1, 0]


def test_what_is_newest_survives_a_snapshot_as_a_row_of_its_schema() -> None:
    query = flow().query("SELECT * FROM now")
    fed = Fed(query)
    fed.push("a", (3, "X", 1), False)
    fed.push("a", (2, "X", 2), True)
    assert last_values([e.payload for e in fed.close() if isinstance(e, pk.Insert)], query.schema, ["symbol"]) == {
        ("X",): (3, "X", 1)
    }
