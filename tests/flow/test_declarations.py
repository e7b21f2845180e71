"""What a user can get wrong when declaring streams, functions and queries, and what becomes of bad rows."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import PenstockError, QueryError, SourceError, StreamError, UnsupportedError
from penstock.model.progress import Progress

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TIMED = [{"ts": NOON, "k": "a"}]
PLAIN = [{"t": 1, "k": "a"}]


NUMBERED = [{"t": 1, "n": 1, "k": "a"}]


def both(progress: Any, name: str = "n") -> Any:
    """The time in order, and another attribute in its own way."""
    return {"t": pk.ordered(), name: progress}


def message(error: type[PenstockError], source: Any, time: str, **options: Any) -> str:
    with pytest.raises(error) as caught:
        pk.Flow().stream("s", source, time=time, **options)
    return caught.value.message


@pytest.mark.parametrize(
    ("source", "time", "options", "parts"),
    [
        (PLAIN, "ts", {}, ["The time column does not exist", "stream s", "ts", "columns: t, k"]),
        ([{"t": 1.5}], "t", {}, ["must be a timestamp, a date, an integer, or text", "t double"]),
        ([{"t": True}], "t", {}, ["must be a timestamp, a date, an integer, or text", "t boolean"]),
        ([], "t", {}, ["The columns of an empty list are not known", "stream s", "schema="]),
        ([{"t": 1, "x": 1}, {"t": 2, "x": "a"}], "t", {}, ["types that do not go together", "x: bigint, string"]),
        ([{"t": []}], "t", {}, ["must be a timestamp, a date, an integer, or text", "t array<void>"]),
        (PLAIN, 5, {}, ["time must be a text", "stream s", "5"]),
        (PLAIN, "t", {"schema": 5}, ["schema must be a text", "5"]),
        (PLAIN, "t", {"time_format": True}, ["time_format must be a text", "True"]),
        (PLAIN, "t", {"delimiter": ";"}, ["Only files of delimited text", "';'"]),
        (TIMED, "ts", {"progress": pk.bounded(5)}, ["does not fit the time column", "5", "timedelta(seconds=5)"]),
        (TIMED, "ts", {"progress": pk.per_source("k", idle=5)}, ["does not fit the time column", "stream s"]),
        (TIMED, "ts", {"progress": pk.per_source("k", disorder=5)}, ["does not fit the time column", "stream s"]),
        (PLAIN, "t", {"progress": pk.bounded(dt.timedelta(1))}, ["does not fit the time column", "timedelta"]),
        (PLAIN, "t", {"progress": pk.bounded(2**61)}, ["The length is too great", str(2**61), str(2**60)]),
        (TIMED, "ts", {"progress": pk.bounded("99999 days")}, ["The length is too great", "867816 hours"]),
        (pa.table({"t": [1]}), "t", {"schema": "t bigint, x int"}, ["lacks columns of the schema", "x", "it has t"]),
        (iter(PLAIN), "t", {}, ["not known before it is read", "schema="]),
        ([pk.Insert((1,), 1, 2)], "t", {}, ["The columns of elements are not known", "schema="]),
        ([1, 2], "t", {}, ["A list must hold dictionaries, elements or paths", "int"]),
        (5, "t", {}, ["cannot be read as a stream", "int", "a list of dicts"]),
        (PLAIN, "t", {"schema": "t bigint, x"}, ["list of names and types", "x"]),
        (PLAIN, "t", {"schema": "t bigint, `` int"}, ["list of names and types", "`` int"]),
        (PLAIN, "t", {"schema": "t bigint, x decimal(0,0)"}, ["There is no such decimal", "decimal(0,0)"]),
        (PLAIN, "t", {"schema": "t bigint, x decimal(39,2)"}, ["There is no such decimal", "decimal(39,2)"]),
        (PLAIN, "t", {"schema": "t bigint, x decimal(5,10)"}, ["There is no such decimal", "s ≤ p"]),
        ([{"t": 1, 5: 6}], "t", {}, ["The name of a column must be a text", "5"]),
        (PLAIN, "t", {"schema": f"t bigint, x decimal({'9' * 5000},1)"}, ["Unknown type", "decimal(p,s)"]),
        (PLAIN, "t", {"max_ahead": "9" * 5000}, ["The length is too great", "of 5000 digits"]),
        (PLAIN, "t", {"schema": "t bigint, x money"}, ["Unknown type", "money", "decimal(p,s)"]),
        (PLAIN, "t", {"progress": {"k": pk.ordered()}}, ["time is not among the attributes that progress", "stream s"]),
        (PLAIN, "t", {"progress": {}}, ["time is not among the attributes that progress", "{}", "'t': pk.ordered()"]),
        (PLAIN, "t", {"progress": {"t": 5}}, ["Not a progress", "stream s", "'t': 5", "pk.ordered()"]),
        (PLAIN, "t", {"progress": {5: pk.ordered()}}, ["is given by its name", "5", "('ts', 'seq')"]),
        (PLAIN, "t", {"progress": {("t", "T"): pk.punctuated("true")}}, ["named twice", "('t', 'T')", "each once"]),
        (PLAIN, "t", {"progress": {("t", "k"): pk.ordered()}}, ["Only punctuation speaks for several", "ordered()"]),
        (PLAIN, "t", {"progress": both(pk.punctuated("true", per=["k"]))}, ["groups cannot be declared", "per="]),
        (PLAIN, "t", {"progress": {"t": pk.ordered(), "x": pk.ordered()}}, ["progresses does not exist", "x", "t, k"]),
        (PLAIN, "t", {"progress": both(pk.ordered(), "k")}, ["a timestamp or an integer", "k string", "schema="]),
        (NUMBERED, "t", {"progress": both(pk.bounded("5 seconds"))}, ["does not fit the time column", "stream s"]),
        (NUMBERED, "t", {"progress": both(pk.per_source("x"))}, ["names an unknown column", "x"]),
        (NUMBERED, "t", {"progress": both(pk.punctuated("x"))}, ["names an unknown column", "x"]),
        (NUMBERED, "t", {"progress": {**both(pk.ordered()), "T": pk.ordered()}}, ["is given two progresses", "'T'"]),
        (NUMBERED, "t", {"progress": both(pk.ordered()), "max_ahead": 5}, ["max_ahead is not supported", "t, n"]),
        (NUMBERED, "t", {"progress": both(pk.ordered()), "lives": ("t", "n")}, ["progress by their start alone"]),
        (PLAIN, "t", {"progress": "ordered"}, ["Not a progress", "stream s", "'ordered'", "pk.ordered()"]),
        (PLAIN, "t", {"progress": pk.bounded("5 seconds")}, ["does not fit the time column", "'5 seconds'"]),
        (TIMED, "ts", {"progress": pk.per_source("kk")}, ["an unknown column", "kk", "did you mean k?"]),
        (PLAIN, "t", {"progress": pk.per_source("k", idle="1 s")}, ["does not fit the time column", "'1 s'"]),
        (PLAIN, "t", {"progress": pk.per_source("k", disorder="1 s")}, ["does not fit the time column", "'1 s'"]),
        (PLAIN, "t", {"progress": pk.punctuated("k =")}, ["does not parse", "stream s", "k ="]),
        (PLAIN, "t", {"progress": pk.punctuated("kk = 'p'")}, ["an unknown column", "kk", "did you mean k?"]),
        (PLAIN, "t", {"progress": pk.punctuated("k")}, ["must be boolean", "stream s"]),
        (PLAIN, "t", {"progress": pk.punctuated("k > 1")}, ["cannot be compared", "string and int"]),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value)),
)
def test_streams_that_cannot_be(source: Any, time: str, options: dict[str, Any], parts: list[str]) -> None:
    text = message(StreamError, source, time, **options)
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (pk.bounded, ["one of the two", "bounded('5 seconds') or bounded(rows=100)"]),
        (lambda: pk.bounded(5, rows=5), ["one of the two", "bounded(5, rows=5)"]),
        (lambda: pk.bounded(rows=-1), ["cannot be negative", "-1"]),
        (lambda: pk.bounded(-5), ["does not fit", "-5"]),
        (lambda: pk.bounded(True), ["does not fit", "True"]),
        (lambda: pk.bounded(5.0), ["does not fit", "5.0"]),
        (lambda: pk.bounded("5 rows"), ["does not fit", "'5 rows'"]),
        (lambda: pk.bounded(rows=True), ["takes a number of rows", "True"]),
        (lambda: pk.bounded(rows=1.5), ["takes a number of rows", "1.5"]),
        (lambda: pk.bounded(dt.timedelta(-1)), ["does not fit", "timedelta"]),
        (lambda: pk.punctuated(5), ["takes a condition in SQL", "5"]),
        (lambda: pk.punctuated(" "), ["takes a condition in SQL"]),
        (lambda: pk.punctuated("p", per="k"), ["takes a list of columns", "'k'", "per=['auction']"]),
        (lambda: pk.punctuated("p", per=["k", "K"]), ["names a column twice", "['k', 'K']"]),
        (lambda: pk.punctuated("p", final=True), ["groups end", "punctuated('p', final=True)", "per=['auction']"]),
        (lambda: pk.per_source(5), ["takes the name of a column", "5"]),
        (lambda: pk.per_source("k", sources="abc"), ["takes a list", "'abc'"]),
        (lambda: pk.per_source("k", idle=True), ["does not fit", "True"]),
        (lambda: pk.bounded("9" * 5000 + " seconds"), ["The length is too great", "of 5000 digits"]),
        (lambda: pk.bounded("0." + "9" * 5000 + " seconds"), ["The length is too great", "of 5002 digits"]),
        (lambda: pk.bounded("soon"), ["Not a length of time", "'soon'", "'5 seconds'"]),
        (lambda: pk.bounded("1 month"), ["Not a length of time", "'1 month'"]),
        (lambda: pk.bounded("0.1 us"), ["whole microseconds", "0.1 us"]),
        (lambda: pk.per_source("k", idle="never"), ["Not a length of time", "'never'"]),
        (lambda: pk.per_source("k", disorder="-1 s"), ["does not fit", "'-1 s'"]),
    ],
)
def test_progress_that_cannot_be(make: Any, parts: list[str]) -> None:
    with pytest.raises(StreamError) as caught:
        make()
    for part in parts:
        assert part in caught.value.message


def test_names_are_identifiers_and_used_once() -> None:
    with pytest.raises(StreamError, match="must be an identifier"):
        pk.Flow().stream("my stream", PLAIN, time="t")
    with pytest.raises(StreamError, match="There is a stream of that name already"):
        pk.Flow().stream("s", PLAIN, time="t").stream("S", PLAIN, time="t")


def test_files_that_cannot_be_read(tmp_path: Any) -> None:
    assert "There is no such file" in message(SourceError, "nowhere/*.parquet", "t")
    (tmp_path / "x.txt").write_text("t\n1\n")
    assert "The kind of file is not known" in message(SourceError, tmp_path / "x.txt", "t")
    (tmp_path / "x.csv").write_text("t\n1\n")
    (tmp_path / "x.jsonl").write_text('{"t": 1}\n')
    assert "different kinds" in message(SourceError, [tmp_path / "x.csv", tmp_path / "x.jsonl"], "t")


def test_an_aggregate_needs_its_three_parts() -> None:
    class Half:
        def lift(self, value: int) -> int:
            return value

    with pytest.raises(StreamError, match=r"no combine, lower"):
        pk.Flow().aggregate("half", Half, "bigint")


def test_an_unknown_stream_is_found_before_anything_runs() -> None:
    with pytest.raises(QueryError, match=r"did you mean main\?"):
        pk.Flow().stream("main", PLAIN, time="t").query("SELECT * FROM maim")


@pytest.mark.parametrize(
    "clause",
    [
        "[RANGE ALL, SLIDE 5, WA t]",
        "[RANGE 4 rows, SLIDE 2 rows, WA row-num, PA k]",
        "[RANGE 8, RATTR t, SLIDE 1 row, SATTR row-num]",
    ],
)
def test_what_the_engine_has_not_is_refused_with_a_way_out(clause: str) -> None:
    flow = pk.Flow().stream("s", PLAIN, time="t")
    with pytest.raises(UnsupportedError, match=r"not yet: use the oracle"):
        flow.query(f"SELECT count(*) AS n {clause} FROM s")


def run(rows: list[dict[str, Any]], progress: Progress, schema: str | None = None) -> Any:
    query = pk.Flow().stream("s", rows, time="t", progress=progress, schema=schema).query("SELECT * FROM s")
    query.collect()
    return query


def test_rows_with_a_null_or_unreadable_time_are_dead_letters() -> None:
    query = run([{"t": 1, "k": "a"}, {"t": None, "k": "b"}, {"t": "soon", "k": "c"}], pk.ordered())
    assert query.counts == {"read": 3, "on_time": 1, "late": 0, "dead": 2, "punctuation": 0, "skipped": 0, "failed": 0}
    assert query.dead_letters["reason"].to_pylist() == ["t is null", "t is not a bigint: 'soon'"]
    assert query.dead_letters["row"].to_pylist()[0] == '{"t": null, "k": "b"}'


def test_punctuation_that_goes_backwards_is_a_dead_letter() -> None:
    rows = [{"t": t, "k": k} for t, k in ((5, "a"), (10, "p"), (8, "p"), (9, "a"), (10, "p"), (12, "a"))]
    query = run(rows, pk.punctuated("k = 'p'"))
    assert query.counts == {"read": 6, "on_time": 2, "late": 1, "dead": 1, "punctuation": 2, "skipped": 0, "failed": 0}
    (reason,) = query.dead_letters["reason"].to_pylist()
    assert reason == "punctuation goes backwards, below the bound 10"
    assert query.late["bound"].to_pylist() == [10]


def test_punctuation_of_groups_names_columns_of_its_stream() -> None:
    rows = [{"t": 1, "auction": 7, "p": True}]
    unknown = message(StreamError, rows, "t", progress=pk.punctuated("p", per=["acution"]))
    assert "names an unknown column" in unknown and "acution" in unknown and "auction" in unknown  # noqa: PT018
    of_time = message(StreamError, rows, "t", progress=pk.punctuated("p", per=["t"]))
    assert "tells no rows apart" in of_time and "per=['t']" in of_time  # noqa: PT018


def test_a_promise_of_a_group_may_come_from_outside() -> None:
    """
    auction 7   1   promise 10   5!      auction 8        5
    """
    elements = [
        pk.Insert((1, 7, None), 1, 2),
        pk.groupwise("t", 10, auction=7),
        pk.Insert((5, 7, None), 5, 6),
        pk.Insert((5, 8, None), 5, 6),
        pk.groupwise("t", 10, price=3),  # nothing was declared of prices: it says nothing
        pk.Insert((6, 8, None), 6, 7),
    ]
    schema = "t bigint, auction int, p boolean"
    flow = pk.Flow().stream("s", elements, time="t", schema=schema, progress=pk.punctuated("p", per=["auction"]))
    query = flow.query("SELECT auction, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY auction")
    out = list(query.elements())
    assert out[:2] == [pk.Insert((0, 0, 10, 7, 1), 10, 20), pk.groupwise("window_end", 20, auction=7)]
    assert pk.Insert((0, 0, 10, 8, 2), 10, 20) in out
    assert query.late["bound"].to_pylist() == [10]


def test_a_declared_schema_holds_when_nothing_comes() -> None:
    flow = pk.Flow().stream("s", [], time="t", schema="t bigint, v int")
    result = flow.query("SELECT sum(v) AS x [RANGE 10, SLIDE 5, WA t] FROM s").collect()
    assert result.num_rows == 0
    assert result.schema.names == ["wid", "window_start", "window_end", "x"]


def test_elements_bring_their_own_punctuation() -> None:
    # the punctuation 10 closes [0, 10) while the stream goes on; the row at 3 is late by it
    elements = [pk.Insert((1,), 1, 2), pk.linear("t", 10), pk.Insert((3,), 3, 4), pk.Insert((12,), 12, 13)]
    flow = pk.Flow().stream("s", elements, time="t", schema="t bigint", progress=pk.bounded(100))
    query = flow.query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s")
    out = list(query.elements())
    first = out.index(pk.Insert((0, 0, 10, 1), 10, 20))
    assert out[first + 1] == pk.linear("window_end", 20)
    assert pk.tdb(out) == pk.TDB([((0, 0, 10, 1), 10, 20), ((1, 10, 20, 1), 20, 30)])
    assert query.late["bound"].to_pylist() == [10]


def test_elements_that_do_not_fit_are_dead_letters() -> None:
    elements = [pk.Insert((1,), 1, 2), pk.Insert((1,), 2, 3), pk.Insert((4,), 4, 9), pk.Adjust((1,), 1, 2, 3)]
    query = pk.Flow().stream("s", iter(elements), time="t", schema="t bigint").query("SELECT * FROM s")
    query.collect()
    assert query.counts["dead"] == 3
    assert "declare it with lives=True" in query.dead_letters["reason"].to_pylist()[2]
    lived = (
        pk.Flow().stream("s", elements, time="t", schema="t bigint", progress=pk.bounded(9)).query("SELECT * FROM s")
    )
    assert lived.collect().to_pylist() == [{"t": 1, "ve": 3}, {"t": 4, "ve": 9}]
    assert lived.counts["dead"] == 1


def test_a_value_that_cannot_say_what_it_is_is_a_dead_letter() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    query = run([{"t": Silent(), "k": "a"}, {"t": 1, "k": Silent()}], pk.ordered(), "t bigint, k string")
    assert query.counts["dead"] == 2
    assert query.dead_letters["reason"].to_pylist() == ["t is not a bigint: a Silent", "k is not a string: a Silent"]
    assert '"t": "a Silent"' in query.dead_letters["row"].to_pylist()[0]


def test_names_with_blanks_and_numbers_beyond_64_bits() -> None:
    flow = pk.Flow().stream("s", [{"t": 1, "my col": 7}], time="t", schema="t bigint, `my col` int, v varchar(3)")
    assert flow.query("SELECT `my col` AS c, v FROM s").collect().to_pylist() == [{"c": 7, "v": None}]
    query: Any = pk.Flow().stream("s", [{"t": 1, "u": 2**64}, {"t": 2**63, "u": 1}], time="t").query("SELECT u FROM s")
    assert query.collect()["u"].to_pylist() == [2**64]
    assert query.dead_letters["reason"].to_pylist() == [f"t is not a bigint: {2**63}"]


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ("", "has no name"),
        (" ", "has no name"),
        ("\n", "has no name"),
        ("a\nb", "holds a character"),
        ("a\x00b", "holds a character"),
        ("\ud800", "holds a character"),
        (7, "time must be a text"),
        (None, "time must be a text"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"timestamps": pk.internal()}, {"schema": "k string"}])
def test_a_time_that_has_no_name_to_be_called_by_is_refused(time: Any, told: str, options: dict[str, Any]) -> None:
    with pytest.raises(StreamError, match=told) as found:
        pk.Flow().stream("s", [{"k": "a"} if options else {time: 1, "k": "a"}], time=time, **options)
    assert "stream s" in str(found.value)
    assert str(found.value).encode()


@pytest.mark.parametrize(
    "time", ["a.b", "s.t", "s.k", 'a"b', "a`b", "a'b", "select", "T", "é", "a b", "1", "*", "__time", "wid"]
)
def test_a_time_may_have_any_other_name(time: str, tmp_path: Path) -> None:
    quoted = f"`{time.replace('`', '``')}`"
    rows = [{time: at, "k": at % 2} for at in range(10)]
    flow = pk.Flow().stream("s", rows, time=time)
    for name in (quoted, f"x.{quoted}"):
        sql = f"SELECT count(*) AS n [RANGE 5, SLIDE 5, WA {name}] FROM s x"
        assert flow.query(sql).collect()["n"].to_pylist() == [5, 5]
    assert flow.query(f"SELECT {quoted} AS t FROM s").collect()["t"].to_pylist() == list(range(10))
    assert flow.query(f"SELECT y.k FROM s x JOIN s y ON x.{quoted} = y.{quoted}").collect().num_rows == 10
    for ending in ("csv", "jsonl", "parquet"):
        place = str(tmp_path / f"all.{ending}")
        assert flow.query("SELECT * FROM s").start(place).wait(30)
        again = pk.Flow().stream("s", place, time=time, schema=f"{quoted} bigint, k bigint")
        assert again.query("SELECT * FROM s").collect().to_pylist() == rows


def test_a_windowing_attribute_that_may_be_two_columns_is_to_be_told_apart() -> None:
    flow = pk.Flow().stream("s", [{"t": 1, "s.t": 2}], time="t")
    with pytest.raises(QueryError, match="The name means several columns"):
        flow.query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA s.t] FROM s")
    assert flow.query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA t] FROM s").collect()["n"].to_pylist() == [1]
    with pytest.raises(QueryError, match="Unknown stream"):
        flow.query("SELECT count(*) AS n [RANGE 5, SLIDE 5, WA r.t] FROM s")


@pytest.mark.parametrize(
    "declare",
    [
        lambda flow: flow.stream("s", [{"t": 1, "\ud800": 2}], time="t"),
        lambda flow: flow.stream("s", [], time="t", schema="t bigint, `\ud800` bigint"),
        lambda flow: flow.table("s", [{"t": 1, "\ud800": 2}]),
        lambda flow: flow.stream("s", pd.DataFrame({"t": [1], "\ud800": [2]}), time="t"),
    ],
)
def test_a_column_whose_name_is_no_text_is_refused(declare: Any) -> None:
    with pytest.raises(StreamError, match="The name of a column holds a character that is none") as found:
        declare(pk.Flow())
    assert "\\ud800" in str(found.value)
    assert " s" in found.value.where


def test_a_query_or_a_run_whose_name_is_no_text_is_refused() -> None:
    flow = pk.Flow().stream("s", PLAIN, time="t")
    query = flow.query("SELECT t FROM s")
    for call in (
        lambda: flow.query("SELECT t FROM s", name="\ud800"),
        lambda: query.start([], name="\ud800"),
        lambda: flow.start({query: []}, name="\ud800"),
    ):
        with pytest.raises(PenstockError, match="holds a character that is none") as found:
            call()
        assert "\\ud800" in str(found.value)
    run = flow.start({flow.query("SELECT t FROM s", name="a\nb é 🙂 <&>"): []})
    assert run.wait(30)
    with pytest.raises(StreamError, match="There is no such query") as found:
        run.remove("\ud800")
    assert str(found.value).encode(), "an error can be printed, whatever was got"
