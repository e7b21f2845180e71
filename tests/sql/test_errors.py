"""What a user can get wrong in SQL: each message says what, where, what was got and what to do."""

from __future__ import annotations

import pickle

import pytest

import penstock as pk
from penstock.errors import PenstockError, QueryError
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.sql.binder import bind

MAIN = schema_of([("ts", "timestamp"), ("srcIP", "string"), ("length", "int"), ("seq", "bigint")], "ts")
NUMS = schema_of([("t", "bigint"), ("k", "string"), ("v", "int")], "t")


def catalog() -> Catalog:
    result = Catalog()
    for name, schema in (("main", MAIN), ("nums", NUMS)):
        result.add_stream(StreamInfo(name, schema, ordered(), StreamProperties()))
    return result


# The caret marks where the error must point; parts of the message follow.
CASES = [
    # Names
    ("SELECT * FROM ^mian", "Unknown stream", "mian", "did you mean main?"),
    ("SELECT * FROM ^other", "Unknown stream", "known: main, nums"),
    ("SELECT ^srcIPs FROM main", "Unknown column", "did you mean srcIP?"),
    ("SELECT ^x.length FROM main", "Unknown stream", "known: main"),
    ("SELECT length FROM main WHERE ^foo > 1", "Unknown column", "foo", "known: ts, srcIP, length, seq"),
    ("SELECT count(*) [RANGE 10, SLIDE 1, WA t] FROM nums GROUP BY ^zz", "Unknown column", "known: t, k, v"),
    ("SELECT ^nope(k) FROM nums", "Unknown function", "flow.function"),
    # Aggregates
    ("SELECT ^count(*) FROM main", "needs a window", "[RANGE 10 minutes, SLIDE 1 minute, WA ts]", "GROUP BY ts"),
    ("SELECT k, ^sum(v) FROM nums GROUP BY k", "needs a window", "[RANGE 100, SLIDE 10, WA t]"),
    ("SELECT k FROM nums WHERE ^count(*) > 1", "An aggregate cannot stand here", "HAVING"),
    ("SELECT k, ^v, count(*) [RANGE 9, SLIDE 1, WA t] FROM nums GROUP BY k", "neither grouped", "add v to GROUP BY"),
    ("SELECT count(*) [RANGE 9, SLIDE 1, WA t] FROM nums HAVING ^v > 1", "neither grouped nor aggregated"),
    ("SELECT ^sum(sum(v)) [RANGE 10, SLIDE 1, WA t] FROM nums", "inside another", "sub-query"),
    ("SELECT ^sum(*) [RANGE 10, SLIDE 1, WA t] FROM nums", "Only count takes *"),
    ("SELECT ^* [RANGE 10, SLIDE 1, WA t] FROM nums", "SELECT * cannot be aggregated"),
    ("SELECT k, count(*) [RANGE 9, SLIDE 1, WA t] FROM nums GROUP BY ^5", "a position that the select list has not"),
    ("SELECT ^sum(k) [RANGE 10, SLIDE 1, WA t] FROM nums", "sum does not apply", "string"),
    ("SELECT ^median(k, v) [RANGE 10, SLIDE 1, WA t] FROM nums", "median takes one argument"),
    ("SELECT ^corr(v) [RANGE 10, SLIDE 1, WA t] FROM nums", "corr takes two arguments"),
    ("SELECT ^corr(k, v) [RANGE 10, SLIDE 1, WA t] FROM nums", "corr does not apply", "string"),
    ("SELECT ^median(k) [RANGE 10, SLIDE 1, WA t] FROM nums", "median does not apply", "string"),
    ("SELECT ^bit_and(k) [RANGE 10, SLIDE 1, WA t] FROM nums", "bit_and does not apply", "string"),
    ("SELECT ^median(*) [RANGE 10, SLIDE 1, WA t] FROM nums", "Only count takes *"),
    ("SELECT count_if(^v) [RANGE 10, SLIDE 1, WA t] FROM nums", "must be boolean", "of type"),
    ("SELECT percentile(v, ^2) [RANGE 10, SLIDE 1, WA t] FROM nums", "from 0 to 1", "percentile(x, 0.9)"),
    ("SELECT percentile(v, ^v) [RANGE 10, SLIDE 1, WA t] FROM nums", "from 0 to 1", "the same for all rows"),
    ("SELECT ^percentile_cont(0.5) [RANGE 9, SLIDE 1, WA t] FROM nums", "no values", "percentile(x, share)"),
    ("SELECT sum(v) FILTER (WHERE ^max(v) > 1) [RANGE 9, SLIDE 1, WA t] FROM nums", "cannot stand in FILTER", "HAVING"),
    ("SELECT sum(v) FILTER (WHERE ^v) [RANGE 9, SLIDE 1, WA t] FROM nums", "must be boolean"),
    ("SELECT ^lower(k) FILTER (WHERE v > 1) [RANGE 9, SLIDE 1, WA t] FROM nums", "An aggregate is expected before"),
    ("SELECT ^sum(v) IGNORE NULLS [RANGE 9, SLIDE 1, WA t] FROM nums", "IGNORE NULLS stands after first"),
    ("SELECT sum(v) WITHIN GROUP (ORDER BY ^v) [RANGE 9, SLIDE 1, WA t] FROM nums", "WITHIN GROUP stands after mode"),
    ("SELECT mode() WITHIN GROUP (ORDER BY ^v DESC) [RANGE 9, SLIDE 1, WA t] FROM nums", "upwards", "leave DESC out"),
    # Aggregates that are refused by name
    ("SELECT ^listagg(k) [RANGE 9, SLIDE 1, WA t] FROM nums", "not supported", "array_join(collect_list(text)"),
    ("SELECT ^collect_set(map(k, 1)) [RANGE 9, SLIDE 1, WA t] FROM nums", "Maps cannot be compared", "map_keys(m)"),
    ("SELECT ^percentile_approx(v, 0.5) [RANGE 9, SLIDE 1, WA t] FROM nums", "not supported", "percentile(x, share)"),
    ("SELECT ^approx_count_distinct(v) [RANGE 9, SLIDE 1, WA t] FROM nums", "is not supported", "count(DISTINCT x)"),
    ("SELECT ^string_agg(k, ',') [RANGE 9, SLIDE 1, WA t] FROM nums", "not supported", "array_join(collect_list"),
    ("SELECT ^grouping(k) FROM nums", "is not supported", "ROLLUP(…), CUBE(…) or GROUPING SETS"),
    # Grouping sets
    ("SELECT k, ^count(*) FROM nums GROUP BY ROLLUP(k)", "needs a window"),
    ("SELECT ^grouping(k), count(*) [RANGE 9, SLIDE 1, WA t] FROM nums GROUP BY k", "not supported here", "ROLLUP(…)"),
    ("SELECT grouping(^v) [RANGE 9, SLIDE 1, WA t] FROM nums GROUP BY ROLLUP(k)", "no key of GROUP BY"),
    ("SELECT ^grouping(k, v) [RANGE 9, SLIDE 1, WA t] FROM nums GROUP BY CUBE(k, v)", "takes one key", "grouping_id"),
    (
        "SELECT count(*) [RANGE 9, SLIDE 1, WA t] FROM nums GROUP BY CUBE(^k, v, k, v, k, v, k, v)",
        "too many grouping sets",
        "256",
        "at most 128",
    ),
    # Window clauses
    ("SELECT count(*) [RANGE 9, SLIDE 1, ^WA seq] FROM main", "does not progress", "ts", "time='seq'"),
    ("SELECT count(*) [RANGE 9 hours, SLIDE 1 hour, ^WA nope] FROM main", "does not exist", "columns: ts, srcIP"),
    ("SELECT count(*) [RANGE 10 minutes, ^SLIDE 0 minutes, WA ts] FROM main", "SLIDE must be greater", "0 minutes"),
    ("SELECT count(*) [^RANGE -10 minutes, SLIDE 1 minute, WA ts] FROM main", "RANGE must be greater", "-10 minutes"),
    ("SELECT count(*) [^RANGE 10 rows, SLIDE 1 row, WA ts] FROM main", "fit a timestamp", "10 rows", "of time"),
    ("SELECT count(*) [^RANGE 9 minutes, SLIDE 1 minute, WA t] FROM nums", "does not fit a number", "a plain number"),
    ("SELECT count(*) [RANGE 9 ^fortnights, SLIDE 1 day, WA ts] FROM main", "Unknown unit", "fortnights", "weeks"),
    ("SELECT count(*) [RANGE 9 days, ^STEP 1 day, WA ts] FROM main", "Unknown window parameter", "STEP", "SLIDE"),
    ("SELECT count(*) [RANGE 9, ^RANGE 5, SLIDE 1, WA t] FROM nums", "given twice", "RANGE"),
    ("SELECT count(*) [RANGE 9 days ^SLIDE 1 day, WA ts] FROM main", "A comma is missing", "SLIDE"),
    ("SELECT count(*) ^[RANGE 9, SLIDE 1] FROM nums", "which attribute it is on", "add WA"),
    ("SELECT count(*) [^RANGE 9, WA t] FROM nums", "SLIDE is missing", "TUMBLING"),
    ("SELECT count(*) ^[SLIDE 1, WA t] FROM nums", "RANGE is missing"),
    ("SELECT count(*) [RANGE ^ten, SLIDE 1, WA t] FROM nums", "must start with a number", "ten"),
    ("SELECT count(*) [RANGE ^0.3 us, SLIDE 1 s, WA ts] FROM main", "whole microseconds", "0.3 us"),
    ("SELECT count(*) [RANGE ^1.5 rows, SLIDE 1 row, WA t] FROM nums", "whole rows", "1.5 rows"),
    ("SELECT count(*) [RANGE 9 s, SLIDE 1 s, WA ts, ^ORIGIN 5] FROM main", "ORIGIN does not", "a timestamp in"),
    ("SELECT count(*) [RANGE 9, SLIDE 1, WA t, ^ORIGIN '2026-01-01'] FROM nums", "ORIGIN does not", "a whole number"),
    ("SELECT count(*) [RANGE 9, SLIDE 1, WA t, ORIGIN ^x] FROM nums", "ORIGIN takes a whole number or a timestamp"),
    ("SELECT count(*) [RANGE 9, SLIDE 1, WA t, ^ORIGIN 1152921504606846977] FROM nums", "ORIGIN does not", "1152921"),
    ("SELECT count(*) [RANGE TUMBLING 9, ^SLIDE 1, WA t] FROM nums", "tumbling window has no SLIDE"),
    ("SELECT count(*) [RANGE 9, SLIDE 1, WA t, ^PA k] FROM nums", "partitioned window counts rows", "WA row-num"),
    ("SELECT count(*) [RANGE 9 rows, SLIDE 1 row, WA row-num, ^PA zz] FROM nums", "partitioning attribute", "zz"),
    ("SELECT count(*) [RANGE 9 rows, ^SLIDE 1 day, WA row-num, PA k] FROM nums", "SLIDE must be a number of rows"),
    ("SELECT count(*) [RANGE 9, RATTR t, SLIDE 1 row, ^SATTR k] FROM nums", "SATTR must be row-num or rank"),
    (
        "SELECT count(*) [RANGE 9, RATTR t, SLIDE 1 row, ^SATTR row-num] FROM (SELECT t, k AS row_num FROM nums) i",
        "SATTR row-num counts rows by arrival, and the stream has a column of that name",
        "row_num",
        "rename the column",
    ),
    ("SELECT count(*) [RANGE 9, RATTR t, SLIDE 1 row, ^SATTR rank(zz)] FROM nums", "rank() must be on", "rank(t)"),
    ("SELECT count(*) [RANGE 9, RATTR t, SLIDE 1 row, ^SATTR rank(k)] FROM nums", "rank() must be on", "k"),
    ("SELECT count(*) ^[RANGE 9, SLIDE 1, WA t FROM nums", "not closed", "no ']'"),
    ("^[RANGE 9, SLIDE 1, WA t] SELECT count(*) FROM nums", "outside a SELECT"),
    ("SELECT count(*) [RANGE 9, SLIDE 1, WA t], sum(v) ^[RANGE 20, SLIDE 1, WA t] FROM nums", "clauses of one"),
    # What has no meaning on a stream
    ("SELECT k FROM nums ORDER BY ^k", "ORDER BY has no meaning on a stream"),
    ("SELECT k FROM nums LIMIT ^3", "LIMIT has no meaning on a stream"),
    ("SELECT k FROM (SELECT k FROM nums ORDER BY ^k) x", "ORDER BY has no meaning on a stream"),
    # Types
    ("SELECT ^k + 1 FROM nums", "Arithmetic needs numbers", "string and int", "CAST"),
    ("SELECT k FROM nums WHERE ^k > 1", "cannot be compared", "string and int"),
    ("SELECT k FROM nums WHERE ^v IN ('a')", "cannot be compared", "int and string"),
    ("SELECT k FROM nums WHERE ^v", "must be boolean", "v of type int"),
    ("SELECT -^k FROM nums", "Only numbers can be negated"),
    ("SELECT CASE WHEN ^v > 1 THEN 'x' ELSE 2 END FROM nums", "branches", "string, int"),
    ("SELECT ts FROM main WHERE ^ts > 'yesterday'", "Not a timestamp", "'yesterday'"),
    ("SELECT ^ts + INTERVAL 1 MONTH FROM main", "no fixed length", "1 MONTH", "weeks"),
    ("SELECT ^length + INTERVAL 1 DAY FROM main", "INTERVAL can be added to"),
    ("SELECT count(*) [^RNGE 8, SLIDE 4, WA t] FROM nums", "Unknown window parameter", "RNGE"),
    ("SELECT CAST(^k AS BOOLEAN) FROM nums", "cast is not supported", "string to boolean"),
    ("SELECT TRY_CAST(^k AS INT) FROM nums", "TRY_CAST is not supported"),
        ("SELECT CAST(^k AS GEOGRAPHY) FROM nums", "Unknown type", "decimal(p,s)"),
    ("SELECT upper(^v) FROM nums", "Text is expected", "v of type int"),
    ("SELECT substring(k, ^1.5) FROM nums", "A whole number is expected", "decimal(2,1)"),
    ("SELECT ^abs(k) FROM nums", "A number is expected", "string"),
    ("SELECT ^year(v) FROM nums", "A timestamp or a date is expected", "int"),
    ("SELECT ^date_trunc('minute', k) FROM nums", "A timestamp or a date is expected", "string"),
    ("SELECT ^count(DISTINCT *) AS n [RANGE 8, SLIDE 8, WA t] FROM nums", "not *", "name a column"),
    ("SELECT '^\ud800' AS x, k FROM nums", "a character that is none", "'\\ud800'"),
    ("SELECT k FROM nums WHERE k LIKE 'a^\udfff'", "a character that is none", "'\\udfff'"),
    ("SELECT k AS `^\ud800` FROM nums", "a character that is none", "in a pair"),
    # Functions
    ("SELECT transform(^split(k, ','), x -> x) AS y FROM nums", "not supported", "explode the array"),
    ("SELECT split(k, ^'x*') AS y FROM nums", "can match nothing", "x*"),
    ("SELECT ^k.f FROM nums", "has no fields", "f of string", "only structs have fields"),
    ("SELECT ^array(k, 1) AS y FROM nums", "do not go together", "string, int", "CAST"),
    ("SELECT element_at(map(k, 1), ^2) AS y FROM nums", "of another type", "int for string"),
    ("SELECT t FROM nums WHERE ^map(k, 1) = map(k, 1)", "Maps cannot be compared", "map_keys(m)"),
    ("SELECT named_struct(^k, 1) AS y FROM nums", "must be a constant", "k"),
    ("SELECT ^struct(k, t AS K) AS y FROM nums", "have the same name", "k", "AS"),
    ("SELECT ^map(k) AS y FROM nums", "does not take 1 values", "map(key, value, …)"),
    ("SELECT flatten(^split(k, ',')) AS y FROM nums", "An array of arrays is expected", "array<string>"),
    ("SELECT ^k[0] AS y FROM nums", "An array or a map is expected", "string"),
    ("SELECT ^regexp_replce(k, 'a', 'b') FROM nums", "Unknown function", "did you mean regexp_replace?"),
    ("SELECT ^now() FROM nums", "Unknown function", "a query has no clock"),
    ("SELECT ^inline(k) FROM nums", "Unknown function", "explode the array"),
    ("SELECT ^from_json(k, 'a INT') FROM nums", "Unknown function", "get_json_object(text, '$.name')"),
    ("SELECT ^decode(v, 1, 'a') FROM nums", "Unknown function", "CASE x WHEN"),
    ("SELECT ^left(k) FROM nums", "left does not take 1 values", "write left(text, length)"),
    ("SELECT k RLIKE ^k FROM nums", "The pattern must be a constant", "flow.function"),
    ("SELECT regexp_extract(k, ^'(?<=a)b', 0) FROM nums", "regular expression cannot be used", "(?<=", "lookahead can"),
    ("SELECT ^regexp_extract(k, 'a') FROM nums", "no such group", "group 1 of 0", "0 is the whole match"),
    ("SELECT regexp_replace(k, '(a)', ^'$2') FROM nums", "The replacement is wrong", "$2", "$1 is what"),
    ("SELECT regexp_replace(k, 'a', ^k) FROM nums", "The replacement must be a constant"),
    ("SELECT get_json_object(k, ^'$.*') FROM nums", "The path cannot be used", "$.*", "without wildcards"),
    ("SELECT date_format(ts, ^'yyyy-DD') FROM main", "pattern of times", "the letters DD", "HH mm ss SSS"),
    ("SELECT to_timestamp(srcIP, ^'MMM d') FROM main", "pattern of times", "MMM, which are only written"),
    ("SELECT ^date_trunc('century', ts) FROM main", "date_trunc does not know this unit", "CENTURY", "quarter"),
    ("SELECT extract(^epoch FROM ts) FROM main", "extract does not know this unit", "EPOCH"),
    ("SELECT ^trunc(ts, 'day') FROM main", "trunc does not know this unit", "DAY", "week, month"),
    ("SELECT round(v, ^v) FROM nums", "The number of digits must be a constant"),
    ("SELECT ln(^k) FROM nums", "A number is expected", "k of type string"),
    ("SELECT date_add(^k, 1) FROM nums", "A date or a timestamp is expected", "to_date"),
    ("SELECT quarter(^k) FROM nums", "A timestamp or a date is expected"),
    ("SELECT ^v << 2 FROM nums", "not supported", "shiftleft"),
    ("SELECT ^k & 1 FROM nums", "A whole number is expected"),
    # Unions
    ("SELECT ^k FROM nums UNION SELECT k, v FROM nums", "different numbers of columns", "1 and 2"),
    ("SELECT ^k FROM nums UNION SELECT srcIP FROM main", "different time scales"),
    ("SELECT ^v FROM nums UNION SELECT k FROM nums", "different types", "v int and k string"),
    # Syntax
    ("SELECT k FRM ^nums", "does not parse"),
    ("SELECT k ^FROM", "Expected table name but got the end"),
    ("SELECT ^1", "FROM is missing"),
    ("SELECT ^k FROM nums INTERSECT SELECT k FROM nums", "not supported", "INTERSECT"),
    ("SELECT k FROM nums WHERE ^v IN (SELECT v FROM nums)", "how far apart", "windows after the streams"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_errors_point_at_their_place(case: tuple[str, ...]) -> None:
    marked, *parts = case
    sql = marked.replace("^", "")
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    error = caught.value
    for part in parts:
        assert part in error.message
    assert (error.line, error.column) == (1, marked.index("^") + 1)
    assert f"line 1, column {error.column}" in error.message


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("", "The query is empty"),
        ("  \n ", "The query is empty"),
        ("DELETE FROM nums", "One SELECT is expected"),
        ("SELECT k FROM nums; SELECT k FROM nums", "One SELECT is expected"),
        ("SELECT FROM nums", "The select list is empty"),
        ("SELECT 'abc FROM nums", "cannot be read"),
    ],
)
def test_errors_of_the_whole_query(sql: str, part: str) -> None:
    with pytest.raises(QueryError, match=part):
        bind(sql, catalog())


def test_the_users_own_line_is_shown_with_a_caret() -> None:
    sql = "SELECT k,\n       sum(v) [RANGE 9, SLIDE 0, WA t]\nFROM nums GROUP BY k"
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    lines = caught.value.message.splitlines()
    assert (caught.value.line, caught.value.column) == (2, 25)
    shown = next(i for i, line in enumerate(lines) if "SLIDE 0" in line)
    assert lines[shown][lines[shown + 1].index("^") :].startswith("SLIDE 0")


@pytest.mark.parametrize("before", [0, 50, 100, 300, 3000])
@pytest.mark.parametrize("after", [0, 50, 3000])
def test_of_a_long_line_the_part_around_the_place_is_shown(before: int, after: int) -> None:
    sql = f"SELECT k FROM nums WHERE {'v > 1 AND ' * (before // 10)}nope > 1{' AND v > 1' * (after // 10)}"
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    lines = caught.value.message.splitlines()
    caret = next(i for i, line in enumerate(lines) if line.strip() == "^")
    assert lines[caret - 1][lines[caret].index("^") :].startswith("nope > 1")
    assert len(lines[caret - 1]) < 180
    assert caught.value.column == sql.index("nope") + 1


def test_errors_arrive_whole_from_another_process() -> None:
    error = QueryError("What.", sql="SELECT x", line=1, column=8, got="x", hint="y")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, QueryError)
    assert isinstance(again, PenstockError)
    assert again.message == error.message


def test_errors_of_the_parser_do_not_show_its_classes() -> None:
    with pytest.raises(PenstockError) as told:
        pk.Flow().stream("s", [{"t": 1, "k": "a"}], time="t", progress=pk.punctuated("k ="))
    assert "sqlglot" not in told.value.message
    assert "a part of EQ is missing" in told.value.message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT get_json_object(k, '$[') FROM nums", "SELECT k:a[ FROM nums", "SELECT k -> '$[' FROM nums",
        "SELECT json_extract(k, '[[') FROM nums", "SELECT k:['x FROM nums", "SELECT k::json -> '$..[' FROM nums",
    ],
)  # fmt: skip
def test_the_parser_writes_nothing_to_logs(sql: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(QueryError):
        bind(sql, catalog())
    assert not caplog.records
