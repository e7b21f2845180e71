"""Snapshots of in-process runs: plain data, checked before they are used, and never a way to run code."""

from __future__ import annotations

import os
import pickle
import zlib
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import CheckpointError, StreamError
from penstock.model.batch import Batch
from penstock.model.element_rows import Elements
from penstock.model.plain import decode, encode
from penstock.model.values import NAN
from penstock.operators import state
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.wid import WidAggregate
from penstock.operators.relational.distinct import DistinctOperator
from penstock.testing.asserts import tdb_of

COLUMNS = "ts bigint, k string, v int"
SQL = "SELECT k, count(*) AS n, max(v) AS m [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k"
ROWS: list[tuple[Any, ...]] = [(1, "a", 1), (7, "b", 2), (9, "a", 3), (14, None, 4)]


def execution(
    sql: str = SQL,
    columns: str = COLUMNS,
    progress: Any = None,
    functions: dict[str, Any] | None = None,
    aggregates: dict[str, Any] | None = None,
) -> Any:
    flow = pk.Flow().stream("s", [], time="ts", schema=columns, progress=progress or pk.bounded(100))
    for name, function in (functions or {}).items():
        flow.function(name, function, "int")
    for name, aggregate in (aggregates or {}).items():
        flow.aggregate(name, aggregate, "int")
    query: Any = flow.query(sql)
    return query.execution()


def feed(run: Any, rows: list[tuple[Any, ...]]) -> list[Any]:
    schema = next(n for n in run.graph.nodes if n.stream == "s").operator.schema
    found: list[Any] = run.feed("s", Batch(schema, rows))
    return found


def taken(rows: list[tuple[Any, ...]] | None = None, **options: Any) -> bytes:
    run = execution(**options)
    feed(run, ROWS if rows is None else rows)
    snapshot: bytes = run.snapshot()
    return snapshot


def resealed(snapshot: bytes, change: Any) -> bytes:
    """The snapshot with something in it changed, and whole."""
    content = decode(snapshot[14:])
    change(content)
    return state.seal_snapshot(content, "")


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_snapshot_never_runs_code(tmp_path: Path) -> None:
    """As a whole, as the pages of an operator, and for a merge."""
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    old = pickle.dumps({"version": 2, "operators": ["Source"], "pages": [bomb]})
    for crafted in (bomb, old, state._MAGIC + b"\0\3" + zlib.crc32(bomb).to_bytes(4, "big") + bomb):
        with pytest.raises(CheckpointError):
            execution().restore(crafted)
        with pytest.raises(CheckpointError):
            pk.merge([[], []]).restore(crafted)

    def plant(content: Any) -> None:
        for held in content["operators"].values():
            held["pages"] = dict.fromkeys([*held["pages"], "bound", "slide", "head"], bomb)

    planted = execution()
    try:
        planted.restore(resealed(taken(), plant))
        planted.close()
    except (CheckpointError, TypeError, AttributeError):
        pass  # a page of bytes where numbers belong is found out sooner or later; it is data all the same
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda s: b"", "not a snapshot"),
        (lambda s: b"junk", "not a snapshot"),
        (lambda s: s[:8], "damaged or cut short"),
        (lambda s: s[:12], "damaged or cut short"),
        (lambda s: s[:-1], "damaged or cut short"),
        (lambda s: s + b"x", "damaged or cut short"),
        (lambda s: s[:40] + bytes([s[40] ^ 1]) + s[41:], "damaged or cut short"),
        (lambda s: s[:8] + b"\0\x63" + s[10:], "another format"),
        (lambda s: s.decode("latin-1"), "A snapshot is bytes"),
        (lambda s: None, "A snapshot is bytes"),
        (lambda s: pk.merge([[], []]).snapshot(), "not of a query"),
        (lambda s: state.seal_snapshot([1], ""), "not what its operator writes"),
    ],
)
def test_what_is_no_snapshot_is_told(damage: Any, said: str) -> None:
    run = execution()
    feed(run, ROWS)
    before = run.snapshot()
    with pytest.raises(CheckpointError, match=said):
        run.restore(damage(taken()))
    assert run.snapshot() == before  # nothing was taken up


@given(st.data())
def test_a_snapshot_that_is_cut_or_flipped_anywhere_is_told(data: st.DataObject) -> None:
    whole = taken()
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    for damaged in (whole[:at], flipped):
        with pytest.raises(CheckpointError):
            execution().restore(damaged)


def test_state_of_another_kind_or_of_a_newer_release_names_the_operator() -> None:
    def newer(content: Any) -> None:
        held = next(o for o in content["operators"].values() if o["kind"] == "columnar panes")
        held["version"] = 99

    with pytest.raises(CheckpointError) as caught:
        execution().restore(resealed(taken(), newer))
    text = str(caught.value)
    assert "newer release" in text
    assert "where: Aggregate count(*)" in text
    assert f"columnar panes of version 99; this release reads up to {ColumnarAggregate.version}" in text
    assert "upgrade Penstock" in text

    def other(content: Any) -> None:
        held = next(o for o in content["operators"].values() if o["kind"] == "columnar panes")
        held["kind"] = "magic"

    with pytest.raises(CheckpointError, match="another algorithm") as caught:
        execution().restore(resealed(taken(), other))
    assert "state of 'magic' where 'columnar panes' runs" in str(caught.value)

    def lacking(content: Any) -> None:
        content["operators"].popitem()

    with pytest.raises(CheckpointError, match="lacks the state of an operator"):
        execution().restore(resealed(taken(), lacking))

    def foreign(content: Any) -> None:
        held = next(o for o in content["operators"].values() if o["kind"] == "columnar panes")
        held["pages"]["slide"] = {"panes": [], "colour": 1}

    with pytest.raises(CheckpointError, match="not what its operator writes") as caught:
        execution().restore(resealed(taken(), foreign))
    assert "page slide" in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"columns": COLUMNS.replace("v int", "v string")}, "column v of stream s: was int, is string"),
        ({"columns": COLUMNS.replace("k string", "k bigint")}, "column k of stream s: was string, is bigint"),
        ({"progress": pk.bounded(7)}, "progress of stream s: was bounded(100), is bounded(7)"),
        ({"sql": SQL.replace("SLIDE 5", "SLIDE 10")}, "SLIDE 10"),
    ],
)
def test_a_snapshot_of_another_query_is_refused_by_the_part_that_differs(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError, match="The snapshot was made by another query") as caught:
        execution(**changed).restore(taken())
    assert said in str(caught.value)


def test_other_code_of_a_function_is_refused() -> None:
    sql = "SELECT f(v) AS x, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY f(v)"
    saved = taken(sql=sql, functions={"f": lambda v: v})
    execution(sql, functions={"f": lambda v: v}).restore(saved)
    with pytest.raises(CheckpointError, match="code of function f"):
        execution(sql, functions={"f": lambda v: v + 0}).restore(saved)


def test_wording_and_columns_that_are_not_read_may_change() -> None:
    again = execution(SQL.lower().replace("from s", "\n from S x "), "more double, v int, k string, ts bigint")
    again.restore(taken())
    outputs = [b for b in again.close() if isinstance(b, Batch)]
    whole = execution()
    feed(whole, ROWS)
    assert tdb_of(outputs) == tdb_of([b for b in whole.close() if isinstance(b, Batch)])


@pytest.mark.parametrize("form", ["rows", "table"])
def test_what_has_come_out_and_was_not_taken_is_in_the_snapshot(form: str) -> None:
    options = {"progress": pk.ordered(), "sql": SQL if form == "rows" else SQL.replace("RANGE 10", "RANGE 5")}
    whole, first, second = (execution(**options) for _ in range(3))
    for run in (whole, first):
        push = run.pusher("s")
        for row in ROWS:
            push(row)
    taken_once = whole.take()
    assert any(isinstance(o, Batch) for o in taken_once)
    second.restore(first.snapshot())
    again = second.take()
    assert tdb_of(again) == tdb_of(taken_once)
    assert [o for o in again if not isinstance(o, Batch)] == [o for o in taken_once if not isinstance(o, Batch)]
    assert second.take() == []

    def junk(content: Any) -> None:
        content["outputs"] = [1]

    with pytest.raises(CheckpointError, match="an output that is none"):
        execution(**options).restore(resealed(first.snapshot(), junk))


# User aggregates


class Newest:
    """Keeps an object of a class of its own."""

    def lift(self, value: Any) -> Any:
        return deque([value], maxlen=3)

    def combine(self, left: Any, right: Any) -> Any:
        return deque([*left, *right], maxlen=3)

    def lower(self, partial: Any) -> Any:
        return sum(partial)


class Kept(Newest):
    def to_state(self, partial: Any) -> Any:
        return list(partial)

    def from_state(self, data: Any) -> Any:
        return deque(data, maxlen=3)


class Exact:
    """Plain partials of several types."""

    def lift(self, value: Any) -> Any:
        return {"values": (value, Decimal(value), NAN), "set": {value}}

    def combine(self, left: Any, right: Any) -> Any:
        return {"values": (left["values"][0] + right["values"][0], Decimal(0), NAN), "set": left["set"] | right["set"]}

    def lower(self, partial: Any) -> Any:
        return partial["values"][0] + len(partial["set"])


USER = "SELECT k, newest(v) AS x [RANGE {range}, SLIDE 5, WA ts] FROM s GROUP BY k"


@pytest.mark.parametrize("aggregate", [Kept, Exact])
@pytest.mark.parametrize("length", [5, 20])
@pytest.mark.parametrize("at", range(5))
def test_users_aggregates_go_on_from_a_snapshot(aggregate: Any, length: int, at: int) -> None:
    options = {"sql": USER.format(range=length), "aggregates": {"newest": aggregate}, "progress": pk.bounded(3)}
    whole, first, second = (execution(**options) for _ in range(3))
    outputs = [o for row in ROWS[:at] for o in feed(first, [row])]
    second.restore(first.snapshot())
    outputs += [o for row in ROWS[at:] for o in feed(second, [row])] + second.close()
    expected = [o for row in ROWS for o in feed(whole, [row])] + whole.close()
    assert tdb_of(outputs) == tdb_of(expected)


def test_partials_that_cannot_be_kept_are_told_at_the_first_snapshot() -> None:
    run = execution(USER.format(range=10), aggregates={"newest": Newest})
    feed(run, ROWS)
    with pytest.raises(CheckpointError) as caught:
        run.snapshot()
    text = str(caught.value)
    assert "State cannot be kept: it is not plain data." in text
    assert "where: " in text
    assert "got:   a value of type collections.deque" in text
    assert "to_state(partial) and from_state(data)" in text


class Failing(Kept):
    def to_state(self, partial: Any) -> Any:
        raise KeyError("no")


class Forgetful(Kept):
    def from_state(self, data: Any) -> Any:
        raise RuntimeError("gone")


def test_users_code_that_raises_at_the_border_is_told() -> None:
    run = execution(USER.format(range=10), aggregates={"newest": Failing})
    feed(run, ROWS)
    with pytest.raises(CheckpointError, match="turning it into plain data failed") as caught:
        run.snapshot()
    assert "got:   KeyError: 'no'" in str(caught.value)
    assert "where: Aggregate" in str(caught.value)
    options = {"sql": USER.format(range=10), "aggregates": {"newest": Forgetful}}
    with pytest.raises(CheckpointError, match="not what its operator writes") as caught:
        execution(**options).restore(taken(**options))
    assert "RuntimeError: gone" in str(caught.value)


def test_an_aggregate_needs_both_ways_or_neither() -> None:
    class Half(Newest):
        def to_state(self, partial: Any) -> Any:
            return partial

    with pytest.raises(StreamError, match="to_state and from_state, or neither") as caught:
        pk.Flow().aggregate("half", Half, "int")
    assert "got:   no from_state" in str(caught.value)


# Operators


def test_window_zero_is_a_window_like_any_other() -> None:
    """What is needed from window 0 on is not what is needed from the beginning of time on."""
    run = execution("SELECT count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s")
    node = next(n for n in run.graph.nodes if n.plan.label.startswith("Aggregate"))
    old = node.operator
    wid = WidAggregate(old.schema, old.window, _grouping(run))
    wid.skip_to(0)
    wid.process(0, Batch(_grouping(run).schema, [(-3, None, None), (1, None, None)]))
    assert {w for w, _ in wid.close(1000)} == {0, 1}


def _grouping(run: Any) -> Any:
    from penstock.model.schema import BIGINT
    from penstock.operators.aggregates.functions import count
    from penstock.operators.aggregates.partials import Grouping

    schema = next(n for n in run.graph.nodes if n.stream == "s").operator.schema
    return Grouping(schema, (), (None,), (count(None, BIGINT),))


def test_a_page_of_dupelim_is_two_columns() -> None:
    run = execution("SELECT DISTINCT k, v FROM s")
    feed(run, [*ROWS, *ROWS])
    operator = next(n.operator for n in run.graph.nodes if isinstance(n.operator, DistinctOperator))
    pages = {key: operator.pages.get(key) for key in operator.pages.keys()}  # noqa: SIM118
    for key, page in pages.items():
        plain = decode(encode(operator.to_plain(key, page)))
        assert operator.from_plain(key, plain, 1) == page


def test_results_with_lives_that_nobody_has_taken_keep_their_ends() -> None:
    flow = pk.Flow()
    elements = [pk.Insert((1, "a"), 1, 9), pk.Adjust((1, "a"), 1, 9, 5), pk.Insert((2, "b"), 2, 4)]
    flow.stream("s", elements, time="t", schema="t bigint, k string", lives=True)
    query = flow.query("SELECT * FROM s")
    first, second = query.execution(), query.execution()
    schema = first.graph.sources["s"][0].operator.schema
    for element in elements:
        first.graph.push("s", Elements(schema).batch(element))
    second.restore(first.graph.snapshot())
    kept = [e for b in second.take() if isinstance(b, Batch) for e in b.elements()]
    assert [(e.vs, e.ve) for e in kept] == [(1, 9), (1, 5), (2, 4)]
