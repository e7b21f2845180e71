"""Batches with lives, rows that tell them, and results as changelogs."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as pk
from penstock.errors import StreamError
from penstock.model.batch import Batch, concat
from penstock.model.causal_order import in_causal_order, in_order_of_causes
from penstock.model.changelog import ResultForm
from penstock.model.elements import Adjust, Insert
from penstock.model.lived_rows import LivedRows
from penstock.model.lives import NOT_AN_ELEMENT, Lives
from penstock.model.schema import Field, Schema, schema_of
from penstock.model.time import END_OF_TIME

SCHEMA = Schema(schema_of([("vs", "bigint"), ("k", "string")], "vs").fields, "vs", lives=("ve", "v_old"))
ELEMENTS = [
    Insert((1, "a"), 1, END_OF_TIME),
    Insert((2, "b"), 2, 5),
    Adjust((1, "a"), 1, END_OF_TIME, 9),
    Adjust((2, "b"), 2, 5, 2),
]


def batch(elements: list[Insert | Adjust], *, columnar: bool = False) -> Batch:
    made = Batch(SCHEMA, [e.payload for e in elements], lives=Lives.of(elements))
    return Batch(SCHEMA, table=made.table, lives=made.lives) if columnar else made


@pytest.mark.parametrize("columnar", [False, True])
def test_lives_stay_with_their_rows(columnar: bool) -> None:
    made = batch(ELEMENTS, columnar=columnar)
    assert made.elements() == ELEMENTS
    assert made.select([True, False, False, True]).elements() == [ELEMENTS[0], ELEMENTS[3]]
    assert made.part(1, 3).elements() == ELEMENTS[1:3]
    assert made.judged_by().tolist() == [1, 2, 9, 2]
    plain = Batch(SCHEMA, [(7, "c")])
    assert concat(SCHEMA, [made, plain]).elements() == [*ELEMENTS, Insert((7, "c"), 7, 8)]


def test_elements_that_came_at_once_are_put_in_an_order_that_makes_sense() -> None:
    first, second = Adjust((1, "a"), 1, END_OF_TIME, 9), Adjust((1, "a"), 1, 9, 4)
    shuffled = [second, first, Insert((1, "a"), 1, END_OF_TIME)]
    assert in_order_of_causes(shuffled) == [shuffled[2], first, second]
    assert in_causal_order(batch(shuffled, columnar=True)).elements() == [shuffled[2], first, second]


def test_a_changelog_says_what_each_row_does() -> None:
    form = ResultForm(SCHEMA, insert_only=False)
    table = form.table(batch(ELEMENTS))
    assert table.to_pylist() == [
        {"op": "insert", "vs": 1, "k": "a", "ve": None, "v_old": None},
        {"op": "insert", "vs": 2, "k": "b", "ve": 5, "v_old": None},
        {"op": "update", "vs": 1, "k": "a", "ve": 9, "v_old": None},
        {"op": "delete", "vs": 2, "k": "b", "ve": 2, "v_old": 5},
    ]
    assert form.elements(table) == ELEMENTS
    lives = LivedRows("ve", "v_old", "op")
    read = lives.read_as(Schema((*form.schema.fields,), "vs"))
    again, dead = lives.split(Batch(read, table=table), lives.payload(read))
    assert again.elements() == ELEMENTS
    assert not dead


def test_a_hidden_time_and_names_that_are_taken() -> None:
    fields = (Field("t", SCHEMA["vs"].type, hidden=True), Field("op", SCHEMA["k"].type))
    form = ResultForm(Schema(fields, "t", lives=("ve", "v_old")), insert_only=False)
    assert form.schema.names == ("_op", "op", "vs", "ve", "v_old")


def test_rows_whose_ends_make_no_sense_are_dead_letters() -> None:
    rows = [{"vs": 1, "ve": 1, "v_old": None}, {"vs": 3, "ve": 9, "v_old": 1}, {"vs": 4, "ve": 5, "v_old": None}]
    flow = pk.Flow().stream("s", rows, time="vs", schema="vs int, ve int, v_old int", lives=("vs", "ve", "v_old"))
    query = flow.query("SELECT vs FROM s")
    assert query.collect().to_pylist() == [{"vs": 4, "ve": 5}]
    assert query.dead_letters["reason"].to_pylist() == [NOT_AN_ELEMENT] * 2


@pytest.mark.parametrize(
    ("lives", "message"),
    [
        (("vs",), "names the start and the end"),
        (("ve", "vs"), "starts at its stream's time"),
        (("vs", "end"), "unknown column"),
        ("vs", "names the start and the end"),
    ],
)
def test_what_lives_cannot_be(lives: object, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        pk.Flow().stream("s", [], time="vs", schema="vs bigint, ve bigint", lives=lives)  # type: ignore[arg-type]


def test_an_iterable_of_elements_is_declared_with_lives() -> None:
    source = [Insert(("a",), 1, 4), Adjust(("a",), 1, 4, 3), pk.linear("vs", END_OF_TIME)]
    plain = pk.Flow().stream("s", iter(source), time="vs", schema="vs bigint, k string").query("SELECT * FROM s")
    assert plain.collect().num_rows == 0
    assert all("lives=True" in reason for reason in plain.dead_letters["reason"].to_pylist())
    lived = pk.Flow().stream("s", iter(source), time="vs", schema="vs bigint, k string", lives=True)
    assert [e for e in lived.query("SELECT k FROM s").elements() if isinstance(e, Insert | Adjust)] == source[:2]  # type: ignore[union-attr]


def test_a_run_writes_a_changelog_where_results_are_revised(tmp_path: object) -> None:
    source = [Insert(("a",), 1, 4), Adjust(("a",), 1, 4, 3)]
    flow = pk.Flow().stream("s", source, time="vs", schema="vs timestamp, k string")
    out: list[dict[str, object]] = []
    run = flow.query("SELECT k FROM s").start(out)
    run.wait()
    assert [(r["op"], r["k"]) for r in out] == [("insert", "a"), ("update", "a")]
    assert list(out[0]) == ["op", "k", "vs", "ve", "v_old"]
    assert isinstance(flow.query("SELECT k FROM s").collect(), pa.Table)
