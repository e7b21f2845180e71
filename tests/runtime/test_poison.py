"""One bad row never stops a query: it is a dead letter, and everything else is as if it had never come.

Rows are poisoned at random, for expressions in every position: WHERE, SELECT, GROUP BY, arguments of aggregates,
HAVING, the select list over aggregates, inside CASE, AND, OR and coalesce, in a subquery and in a branch of a union.
The oracle says which rows die, where and why; rows, Arrow tables, rows and tables in turn, and pushed rows must all
say the same.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import PenstockError, reason_of
from penstock.model.batch import Batch, Row
from penstock.model.letters import row_text
from penstock.model.progress import bounded, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, schema_of
from penstock.model.tdb import TDB
from penstock.operators.aggregates import columnar, emission, partials
from penstock.operators.relational import attempt
from penstock.plan.catalog import Catalog, StreamInfo, UserFunction
from penstock.plan.nodes import Node
from penstock.reference import outcome
from penstock.reference.arrivals import Arrivals
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, tdb_of
from tests.runtime.cases import in_the_way

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int"), ("w", "bigint"), ("text", "string")], "ts")
FORMS = ("rows", "arrow", "mixed", "pushed")
Letters = Counter[tuple[str, str, str, str]]


class Picky:
    """The greatest value; refuses 13 as a value, 14 as a result, and two equal values side by side."""

    def lift(self, value: int) -> int:
        if value == 13:
            raise ValueError("thirteen")
        return value

    def combine(self, left: int, right: int) -> int:
        return max(left, right)

    def lower(self, partial: int) -> object:
        return "fourteen" if partial == 14 else partial


class Total:
    """A sum that can be taken out again; refuses 13."""

    def lift(self, value: int) -> tuple[int, int]:
        if value == 13:
            raise ValueError("thirteen")
        return value, 1

    def combine(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return left[0] + right[0], left[1] + right[1]

    def invert(self, total: tuple[int, int], leaving: tuple[int, int]) -> tuple[int, int] | None:
        rest = total[0] - leaving[0], total[1] - leaving[1]
        return rest if rest[1] else None

    def lower(self, partial: tuple[int, int]) -> int:
        return partial[0]


class Absorb:
    """A sum that a negative value makes nothing of: None is a partial like any other."""

    def lift(self, value: int) -> int | None:
        return None if value < 0 else value

    def combine(self, left: int | None, right: int | None) -> int | None:
        return None if left is None or right is None else left + right

    def lower(self, partial: int | None) -> int:
        return -1 if partial is None else partial


class Bare:
    """A sum in which None is nothing: it can be taken out again, but does not tell whether a value is left."""

    def lift(self, value: int) -> int | None:
        return value or None

    def combine(self, left: int | None, right: int | None) -> int | None:
        return ((left or 0) + (right or 0)) or None

    def invert(self, total: int | None, leaving: int | None) -> int | None:
        return ((total or 0) - (leaving or 0)) or None

    def lower(self, partial: int | None) -> int:
        return partial or 0


OWN = {"picky": Picky(), "total": Total(), "absorb": Absorb(), "bare": Bare()}


def moody(value: int | None) -> object:
    if value is None:
        return -1
    if value == 7:
        raise KeyError("seven")
    return "eight" if value == 8 else 2 * value


def catalog() -> Catalog:
    made = Catalog(
        functions={"moody": UserFunction("moody", moody, BIGINT)},
        aggregates={name: (own, BIGINT) for name, own in OWN.items()},
    )
    made.add_stream(StreamInfo("s", SCHEMA, bounded(30), StreamProperties()))
    return made


WINDOWS = ("[RANGE 10, SLIDE 10, WA ts]", "[RANGE 12, SLIDE 4, WA ts]", "[RANGE 20, SLIDE 2, WA ts]")
POISON = (
    "100 div v", "100 / v", "w + 1", "w * 3", "-w", "w % v", "CAST(text AS INT)", "CAST(w AS INT)", "moody(v)",
    "CASE WHEN v > 5 THEN 100 div (v - 6) ELSE v END", "coalesce(v, 100 div (w - 3))", "abs(w - 9)",
    "CASE WHEN text = 'x' THEN CAST(text AS INT) ELSE moody(v) END", "v + 100 div w", "length(text) + moody(v)",
)  # fmt: skip
PREDICATES = (
    "100 div v > 10", "v > 3 AND 100 div (v - 5) > 0", "v < 3 OR moody(v) > 10", "NOT (w + 1 > 0)",
    "CAST(text AS INT) IS NULL", "v IN (1, 100 div w, 3)", "moody(v) BETWEEN 1 AND 20",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A query and its rows in batches."""

    sql: str
    batches: list[list[Row]]

    @property
    def plan(self) -> Node:
        return bind(self.sql, catalog())

    def expected(self) -> tuple[TDB, Letters]:
        rows = [("s", row) for batch in self.batches for row in batch]
        came = outcome(self.plan, rows, functions={"moody": moody}, aggregates=OWN)
        letters: Letters = Counter()
        for letter, n in came.dead.items():
            letters[letter.streams, letter.operator, kind(letter.reason), letter.row] += n
        return came.result, letters

    def run(self, form: str, aggregate: str | None = None) -> tuple[TDB, Letters]:
        execution = LocalExecution(self.plan, catalog(), in_the_way(self.plan, catalog(), aggregate))
        outputs = []
        for i, rows in enumerate(self.batches):
            batch = Batch(SCHEMA, rows)
            if form == "pushed":
                push = execution.pusher("s")
                for row in rows:
                    push(row)
                outputs += execution.take()
            else:
                as_table = form == "arrow" or (form == "mixed" and i % 2)
                outputs += execution.feed("s", Batch(SCHEMA, table=batch.table) if as_table else batch)
        outputs += execution.close()
        letters: Letters = Counter()
        for letter in execution.dead_letters().to_pylist():
            letters[letter["stream"], letter["operator"], kind(letter["reason"]), letter["row"]] += 1
        counts = execution.counts
        assert counts.read == counts.on_time == sum(map(len, self.batches))
        assert counts.failed == letters.total()
        return tdb_of(outputs), letters


def kind(reason: str) -> str:
    """What a reason says apart from the values."""
    return reason.split(":", maxsplit=1)[0]


@st.composite
def some_rows(draw: st.DrawFn) -> list[list[Row]]:
    size = draw(st.integers(0, 24))
    rows: list[Row] = []
    for i in range(size):
        rows.append(
            (
                i + draw(st.integers(0, 5)),
                draw(st.sampled_from(["a", "b", None])),
                draw(st.none() | st.integers(-1, 15)),
                draw(st.none() | st.sampled_from([0, 1, 3, 2**31, 2**62, 2**63 - 1, -(2**63)])),
                draw(st.none() | st.sampled_from(["1", "x", "", "99"])),
            )
        )
    cut = draw(st.integers(0, size))
    return [rows[:cut], rows[cut:]]


@st.composite
def queries(draw: st.DrawFn) -> str:
    poison, other = draw(st.sampled_from(POISON)), draw(st.sampled_from(POISON))
    predicate, window = draw(st.sampled_from(PREDICATES)), draw(st.sampled_from(WINDOWS))
    return draw(
        st.sampled_from(
            [
                f"SELECT ts, {poison} AS x, {other} AS y FROM s",
                f"SELECT {poison} AS x FROM s WHERE {predicate}",
                f"SELECT k, v FROM s WHERE {predicate}",
                f"SELECT x + 1 AS y FROM (SELECT ts, {poison} AS x FROM s WHERE {predicate}) i",
                f"SELECT DISTINCT {poison} AS x FROM s",
                f"SELECT k, count(*) AS n {window} FROM s WHERE {predicate} GROUP BY k",
                f"SELECT {poison} AS g, count(*) AS n {window} FROM s GROUP BY {poison}",
                f"SELECT k, max({poison}) AS m, count({other}) AS n {window} FROM s GROUP BY k",
                f"SELECT k, sum(w) AS s, count(*) AS n {window} FROM s GROUP BY k",
                f"SELECT sum(w) AS s, avg(w) AS a, max(k) AS m {window} FROM s",
                f"SELECT k, sum(w) AS s, count(*) AS n {window} FROM s GROUP BY k HAVING 10 div (count(*) - 2) > 0",
                f"SELECT k, 100 div (count(*) - 1) AS x, min(v) + 2147483640 AS y {window} FROM s GROUP BY k",
                f"SELECT k, picky(v) AS p, count(*) AS n {window} FROM s GROUP BY k",
                f"SELECT total(v) AS p {window} FROM s",
                f"SELECT k, total(v) AS p, sum(v) AS q {window} FROM s WHERE {predicate} GROUP BY k",
                f"SELECT ts, {poison} AS x FROM s UNION ALL SELECT ts, {other} FROM s",
                f"SELECT max(n) AS m [RANGE 40, SLIDE 20, WA window_end] FROM "
                f"(SELECT k, 100 div (count(*) - 2) AS n {window} FROM s GROUP BY k) i",
            ]
        )
    )


CASES = st.builds(Case, queries(), some_rows())


LAST_OF_SOME = [(at, "a", None, None, None) for at in range(5)]
"""Rows before one on which a selection fails and one on which what follows it does, in one piece."""
POISONED = [(5, "a", None, 2**63 - 1, None), (6, "a", None, -(2**63), None)]


@pytest.mark.parametrize("form", FORMS)
@given(case=CASES)
@example(case=Case("SELECT w * 3 AS x FROM s WHERE NOT (w + 1 > 0)", [LAST_OF_SOME[:2], LAST_OF_SOME[2:] + POISONED]))
@example(case=Case("SELECT w * 3 AS x FROM s WHERE NOT (w + 1 > 0) AND moody(w) < 0", [[], LAST_OF_SOME + POISONED]))
def test_what_dies_and_what_lives_is_what_the_oracle_says(form: str, case: Case) -> None:
    result, letters = case.expected()
    with (
        mock.patch.object(partials, "MIN_COLUMNAR", 1),
        mock.patch.object(columnar, "MIN_COLUMNAR", 1),
        mock.patch.object(attempt, "PIECE", 4),
        mock.patch.object(emission, "PORTION", 3),
        mock.patch.object(columnar, "PORTION", 3),
    ):
        got, dead = case.run(form)
    assert_same(result, got)
    assert dead == letters


@pytest.mark.parametrize("aggregate", ["wid", "paned", "paned differential"])
@given(rows=some_rows(), window=st.sampled_from(WINDOWS), form=st.sampled_from(["rows", "arrow"]))
def test_every_way_to_aggregate_loses_the_same_groups(
    aggregate: str, rows: list[list[Row]], window: str, form: str
) -> None:
    for functions in (
        "sum(w) AS s, count(*) AS n", "picky(v) AS p", "total(v) AS t", "total(v) AS t, total(w) AS u",
        "absorb(v) AS a", "bare(v) AS b, total(v) AS t",
    ):  # fmt: skip
        case = Case(f"SELECT k, {functions} {window} FROM s GROUP BY k", rows)
        result, letters = case.expected()
        got, dead = case.run(form, aggregate)
        assert_same(result, got)
        assert dead == letters


@pytest.mark.parametrize("form", ["rows", "arrow", "single"])
@given(rows=some_rows(), predicate=st.sampled_from(["100 div v > 40", "CAST(text AS INT) = 1", "moody(v) > 20"]))
def test_a_row_of_which_it_cannot_be_told_whether_it_is_punctuation_is_dead_and_moves_nothing(
    form: str, rows: list[list[Row]], predicate: str
) -> None:
    progress = punctuated(predicate, whole_stream=True)
    own = catalog()
    own.streams.clear()
    own.add_stream(StreamInfo("s", SCHEMA, progress, StreamProperties()))
    judged = Arrivals("s", SCHEMA, progress, tuple(map(tuple, rows))).judge("row", own)
    execution = LocalExecution(bind("SELECT * FROM s", own), own)
    outputs = []
    for batch in rows:
        parts = [[row] for row in batch] if form == "single" else [batch]
        for part in parts:
            made = Batch(SCHEMA, part)
            outputs += execution.feed("s", Batch(SCHEMA, table=made.table) if form == "arrow" else made)
    execution.close()
    assert [row for item in outputs if isinstance(item, Batch) for row in item.rows] == list(judged.on_time)
    counts = execution.counts
    assert counts.dead == len(judged.unjudged) + len(judged.backwards)
    assert (counts.late, counts.punctuation) == (len(judged.late), len(judged.punctuation) - len(judged.backwards))
    died = [letter for letter in execution.dead_letters().to_pylist() if "backwards" not in letter["reason"]]
    assert [letter["row"] for letter in died] == [row_text(SCHEMA, row) for row in judged.unjudged]
    assert all(letter["operator"] is None for letter in died)


def test_a_few_bad_rows_of_many_are_found_in_their_places() -> None:
    """The batch is columnar, so it is tried as a whole, in pieces, and only bad pieces by rows."""
    n = 10_000
    table = pa.table(
        {"ts": pa.array(range(n), pa.int64()), "v": pa.array([i % 5000 - 1234 for i in range(n)], pa.int32())}
    )
    flow = pk.Flow().stream("s", table, time="ts")
    query = flow.query("SELECT ts, 1000 div v AS x, 100 / v AS y FROM s WHERE 1 / v < 2")
    got = query.collect()
    assert got.num_rows == n - 2
    assert got["ts"].to_pylist() == [i for i in range(n) if i not in (1234, 6234)]
    assert [json.loads(row)["ts"] for row in query.dead_letters["row"].to_pylist()] == [1234, 6234]
    assert set(query.dead_letters["reason"].to_pylist()) == {"Division by zero"}
    assert set(query.dead_letters["operator"].to_pylist()) == {query.plan.inputs[0].label}


@pytest.mark.parametrize("given_as", ["rows", "table"])
def test_rows_that_ended_a_query_are_dead_letters(given_as: str) -> None:
    """The trial's own cases: division by zero, a function that raises, a timestamp beyond the calendar that is late."""
    rows = [{"ts": i, "v": i - 2} for i in range(5)]
    source = rows if given_as == "rows" else pa.Table.from_pylist(rows)
    query = pk.Flow().stream("s", source, time="ts").query("SELECT ts, 10 div v AS x FROM s")
    assert query.collect()["x"].to_pylist() == [-5, -10, 10, 5]
    assert query.counts == {
        "read": 5, "on_time": 5, "late": 0, "dead": 0, "punctuation": 0, "skipped": 0, "failed": 1,
    }  # fmt: skip


def test_rows_beyond_the_calendar_are_kept_and_stop_nothing() -> None:
    flow = pk.Flow().stream("s", iter(()), time="ts", schema="ts timestamp, at timestamp, v int", progress=pk.ordered())
    execution = flow.query("SELECT ts, v FROM s").execution()
    push = execution.pusher("s")
    push((2**62, 5, 1))
    push((9, 2**61, 2))
    push((8, 5, 3))
    execution.close()
    counts = execution.counts
    assert counts.read == 3
    assert counts.late + counts.dead + counts.on_time == 3
    assert execution.late().num_rows + execution.dead_letters().num_rows == counts.late + counts.dead
    assert row_text(schema_of([("at", "timestamp")], "at"), (2**61,)) == f'{{"at": "{2**61} us"}}'


def test_a_reason_is_one_line() -> None:
    assert reason_of(ValueError("a\nb")) == "ValueError: a b"
    assert reason_of(PenstockError("What.", where="here", got="this")) == "What (here): this"


@pytest.mark.parametrize(
    ("sql", "operator", "row"),
    [
        (
            "SELECT k, count(*) AS n [RANGE 2, SLIDE 2, WA ts] FROM s GROUP BY k HAVING 8 div sum(v) > 1",
            "Select ((8 div sum(v)) > 1)",
            '{"wid": 0, "window_start": 0, "window_end": 2, "k": "a", "count(*)": 2, "sum(v)": 0}',
        ),
        (
            "SELECT upper(k) AS key, 8 div max(v - 1) AS x [RANGE 2, SLIDE 2, WA ts] FROM s GROUP BY upper(k)",
            "Project wid, window_start, window_end, upper(k) AS key, (8 div max((v - 1))) AS x",
            '{"wid": 0, "window_start": 0, "window_end": 2, "upper(k)": "A", "max((v - 1))": 0}',
        ),
        (
            "SELECT sum(8 div (v + 1)) AS x [RANGE 2, SLIDE 2, WA ts] FROM s GROUP BY upper(k)",
            "Project upper(k), (8 div (v + 1))",
            '{"ts": 1, "k": "a", "v": -1}',
        ),
        (
            "SELECT 8 div v AS y FROM (SELECT v + 1 AS v FROM s) i",
            "Project (8 div v) AS y",
            '{"v": 0, "ts": 1}',
        ),
    ],
)
def test_dead_letters_speak_in_the_words_of_the_query(sql: str, operator: str, row: str) -> None:
    rows = [{"ts": 0, "k": "a", "v": 1}, {"ts": 1, "k": "a", "v": -1}]
    query = pk.Flow().stream("s", rows, time="ts", schema="ts bigint, k string, v int").query(sql)
    query.collect()
    assert query.dead_letters.to_pylist() == [
        {"stream": "s", "operator": operator, "reason": "Division by zero", "row": row}
    ]


def test_no_two_columns_of_a_dead_letter_have_one_name() -> None:
    schema = schema_of([("a", "int"), ("x + 1", "int"), ("b", "int"), ("c", "int")], None)
    words = {"a": "x + 1", "b": "y", "c": "z"}
    worded = replace(schema, fields=tuple(replace(f, words=words.get(f.name, "")) for f in schema.fields))
    assert row_text(worded, (1, 2, 3, 4)) == '{"a": 1, "x + 1": 2, "y": 3, "z": 4}'
