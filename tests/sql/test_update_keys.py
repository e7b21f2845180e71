"""The update key goes through a query; what loses it, or counts what was passed over, is refused where it stands."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.errors import QueryError, StreamError
from penstock.plan.nodes import Newest, Union

PRICES = [{"ts": 1, "symbol": "A", "venue": "x", "price": 1}]
WINDOW = "[RANGE 10, SLIDE 10, WA ts]"


@pytest.fixture
def flow() -> pk.Flow:
    made = pk.Flow().stream("quotes", PRICES, time="ts", update_key="symbol")
    made.stream("others", PRICES, time="ts", update_key=["SYMBOL"])
    made.stream("venues", PRICES, time="ts", update_key=["symbol", "venue"])
    made.stream("feed", PRICES, time="ts", update_key=[])
    made.stream("trades", PRICES, time="ts")
    made.stream("arrays", [{"ts": 1, "symbol": "A", "many": [1, 2]}], time="ts", update_key="symbol")
    made.table("names", [{"id": "A", "name": "a"}, {"id": "B", "name": "b"}])
    made.table("members", [{"id": "A", "name": "a"}, {"id": "A", "name": "b"}])
    made.latest("now", "quotes")
    return made.conflate("calm", "quotes").conflate("windows", "quotes", windows="lazy")


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT * FROM quotes WHERE price > 1", {"symbol"}),
        ("SELECT symbol AS s, price * 2 AS p FROM quotes", {"s"}),
        ("SELECT symbol, price FROM trades", None),
        ("SELECT price FROM feed", set()),
        (f"SELECT symbol, max(price) {WINDOW} FROM quotes GROUP BY symbol", {"symbol"}),
        (f"SELECT symbol AS s, venue, max(price) {WINDOW} FROM quotes GROUP BY symbol, venue", {"s", "venue"}),
        (f"SELECT max(price) {WINDOW} FROM feed", set()),
        (f"SELECT symbol, count(DISTINCT symbol) AS n {WINDOW} FROM quotes GROUP BY symbol", {"symbol"}),
        (f"SELECT symbol, max(price) {WINDOW} FROM windows GROUP BY symbol", {"symbol"}),
        (f"SELECT symbol, max(price) {WINDOW} FROM feed GROUP BY symbol", {"symbol"}),
        ("SELECT * FROM quotes UNION others", {"symbol"}),
        ("SELECT symbol, venue FROM quotes UNION ALL SELECT symbol, venue FROM others", {"symbol"}),
        ("SELECT * FROM trades UNION trades", None),
        ("SELECT q.symbol AS s FROM quotes q JOIN others o ON q.symbol = o.symbol AND o.ts = q.ts", {"s"}),
        ("SELECT q.symbol AS s FROM quotes q ASOF JOIN trades t ON q.venue = t.venue AND q.ts >= t.ts", {"s"}),
        ("SELECT t.venue FROM trades t ASOF JOIN quotes q ON q.symbol = t.symbol AND t.ts >= q.ts", None),
        ("SELECT symbol, name FROM quotes JOIN names ON symbol = id", {"symbol"}),
        ("SELECT * FROM quotes WHERE EXISTS (SELECT * FROM trades t WHERE t.ts = quotes.ts)", {"symbol"}),
        ("SELECT DISTINCT symbol FROM quotes", {"symbol"}),
        ("SELECT symbol, price FROM calm WHERE price > 1", {"symbol"}),
        ("SELECT s FROM (SELECT symbol AS s, price FROM quotes) AS inner WHERE price > 1", {"s"}),
    ],
)
def test_what_keeps_the_key(flow: pk.Flow, sql: str, key: set[str] | None) -> None:
    assert flow.query(sql).properties.update_key == (None if key is None else frozenset(key))


@pytest.mark.parametrize(
    ("sql", "at", "what", "hint"),
    [
        ("SELECT price FROM quotes", "price", "The select list loses the update key.", "select symbol as it is"),
        ("SELECT ts, upper(symbol) AS symbol FROM quotes", "upper", "The select list changes the update key", "symbol"),
        (f"SELECT count(*) {WINDOW} FROM quotes", "count", "GROUP BY does not keep the update key.", "GROUP BY symbol"),
        (
            f"SELECT count(*) {WINDOW} FROM venues GROUP BY venue",
            "venue", "GROUP BY does not keep the update key.", "GROUP BY symbol",
        ),
        (f"SELECT count(*) {WINDOW} FROM quotes GROUP BY symbol", "count", "list loses the update key", "symbol"),
        ("SELECT * FROM quotes UNION trades", "quotes", "updated by different keys", "same update key"),
        ("SELECT * FROM quotes UNION venues", "quotes", "updated by different keys", "same update key"),
        ("SELECT * FROM now UNION quotes", "now", "which the next update of another side would not end", "latest(…)"),
        ("SELECT * FROM quotes UNION ALL SELECT * FROM now", "*", "of another side would not end", "in a view"),
        (
            "SELECT q.symbol FROM quotes q JOIN others o ON o.ts = q.ts",
            "others", "Update streams are joined by equal update keys.", "ON a.k = b.k",
        ),
        (
            "SELECT q.symbol FROM quotes q JOIN venues v ON q.symbol = v.symbol AND v.ts = q.ts",
            "venues", "Update streams are joined by equal update keys.", "every column of both",
        ),
        (
            "SELECT q.symbol FROM quotes q JOIN trades t ON q.symbol = t.symbol AND t.ts = q.ts",
            "trades", "An update stream is joined with one of which every row matters.", "ASOF JOIN",
        ),
        (
            "SELECT q.symbol FROM quotes q FULL JOIN others o ON q.symbol = o.symbol AND o.ts = q.ts",
            "others", "A row of the second stream alone would lack the update key.", "INNER or LEFT",
        ),
        (
            "SELECT symbol, name FROM quotes JOIN members ON symbol = id",
            "members", "A row of an update stream would meet several rows of the table", "unique in the table",
        ),
        (
            "SELECT symbol, explode(many) AS one FROM arrays",
            "symbol", "What comes out could not be told apart by the update key.", "without an update key",
        ),
        (
            f"SELECT symbol, count(*) {WINDOW} FROM calm GROUP BY symbol",
            "symbol", "Rows of a conflated stream are not all there", "conflate the result",
        ),
        (
            f"SELECT venue, count(*) {WINDOW} FROM windows GROUP BY venue",
            "venue", "GROUP BY does not keep the update key.", "GROUP BY symbol",
        ),
        (
            "SELECT t.venue FROM trades t ASOF JOIN calm c ON c.symbol = t.symbol AND t.ts >= c.ts",
            "calm", "Every row of the first stream is owed an answer", "join the stream itself",
        ),
    ],
)  # fmt: skip
def test_what_would_be_wrong_is_refused(flow: pk.Flow, sql: str, at: str, what: str, hint: str) -> None:
    with pytest.raises(QueryError, match=what) as refused:
        flow.query(sql)
    place = sql.index(at, sql.index("GROUP BY")) if "GROUP BY does" in what and "GROUP" in sql else sql.index(at)
    place = sql.rindex(at) if "conflated stream" in what else place
    assert (refused.value.line, refused.value.column) == (1, place + 1)
    assert hint in refused.value.hint
    assert refused.value.got


def test_a_union_of_updates_is_what_is_newest_and_another_one_is_a_bag(flow: pk.Flow) -> None:
    assert isinstance(flow.query("SELECT * FROM quotes UNION others").plan, Newest)
    assert isinstance(flow.query("SELECT * FROM trades UNION trades").plan, Union)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("UPDATE KEY (symbol)", {"symbol"}),
        ("UPDATE KEY (symbol, venue)", {"symbol", "venue"}),
        ("UPDATE KEY", set()),
        ("UPDATE KEY ()", set()),
        ("", None),
    ],
)
def test_a_script_declares_it(written: str, key: set[str] | None) -> None:
    flow = pk.Flow()
    columns = "(ts BIGINT, symbol STRING, venue STRING, price INT)"
    flow.sql(f"CREATE STREAM quotes {columns} {written} WITH (time = 'ts')", sources={"quotes": PRICES})
    assert flow.streams["quotes"].properties.update_key == (None if key is None else frozenset(key))


@pytest.mark.parametrize(
    ("written", "what", "place"),
    [
        ("UPDATE (symbol) WITH (time = 'ts')", "KEY is expected here", "(symbol"),
        ("UPDATE KEY (symbol WITH (time = 'ts')", "'\\)' is expected here", "WITH"),
        ("UPDATE KEY (symbol,) WITH (time = 'ts')", "The name of a column is expected here", ") WITH"),
        ("UPDATE KEY (symbol venue) WITH (time = 'ts')", "'\\)' is expected here", "venue"),
        ("UPDATE KEY (symbol) WITH (time = 'ts', update_key = 'venue')", "The update key is given twice", "'venue"),
        ("UPDATE KEY (symbol, nothing) WITH (time = 'ts')", "update_key names an unknown column", "nothing"),
        ("UPDATE KEY (symbol, ts) WITH (time = 'ts')", "The time tells every update apart", "ts)"),
    ],
)
def test_a_script_that_declares_it_wrong_says_where(written: str, what: str, place: str) -> None:
    with pytest.raises(QueryError, match=what) as refused:
        pk.Flow().sql(f"CREATE STREAM quotes\n  {written}", sources={"quotes": PRICES})
    assert (refused.value.line, refused.value.column) == (2, 3 + written.index(place))


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("ts", "The time tells every update apart"),
        (["symbol", "nothing"], "update_key names an unknown column"),
        ([7], "update_key names columns"),
        (7, "update_key names columns"),
    ],
)
def test_a_key_that_is_none_is_refused(key: object, what: str) -> None:
    with pytest.raises(StreamError, match=what):
        pk.Flow().stream("quotes", PRICES, time="ts", update_key=key)  # type: ignore[arg-type]


def test_rows_with_lives_are_no_updates() -> None:
    rows = [{"ts": 1, "end": 2, "symbol": "A"}]
    with pytest.raises(StreamError, match="no updates"):
        pk.Flow().stream("quotes", rows, time="ts", lives=("ts", "end"), update_key="symbol")
