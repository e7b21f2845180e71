"""Group-wise punctuation from source to sink, against the oracle: any arrival order, any cut, every operator.

A punctuation row has `p` true, a bound in `ts`, and values in `a` or `b` if it speaks for the rows with these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.progress import Punctuated, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.aggregates import columnar, partials, slide
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.cost import COLUMNAR, DIFFERENTIAL, PANED, WID
from penstock.plan.nodes import Node
from penstock.plan.windows import SlidingWindow
from penstock.reference import Judged, evaluate, judge
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts, sliding_windows
from tests.runtime.cases import clause, in_the_way

SCHEMA = schema_of([("ts", "bigint"), ("a", "int"), ("b", "string"), ("v", "int"), ("p", "boolean")], "ts")
PROGRESS = [punctuated("p", per=["a", "b"]), punctuated("p", per=["b", "a"], final=True)]
WAYS = [WID, PANED, DIFFERENTIAL, COLUMNAR]
Output = Batch | Punctuation

STEPS = st.integers(-6, 4)
"""A row is so much behind or ahead of its place in the stream, so that bounds rise slowly and rows come between."""
GROUPS = st.sampled_from([(0, "x"), (0, "y"), (1, "x"), (None, "x"), (1, None)])
DATA = st.tuples(STEPS, GROUPS, st.integers(0, 9))
SPOKEN = st.tuples(
    STEPS, st.sampled_from([(0, None), (0, None), (0, None), (None, "x"), (0, "y"), (1, "x"), (None, None)])
)


def placed(drawn: Sequence[tuple[object, ...]]) -> list[Row]:
    """Data as (step, group, value) and punctuation as (step, group), one after the other."""
    return [
        (at + step, *group, *((value[0], None) if value else (None, True)))  # type: ignore[operator,misc]
        for at, (step, group, *value) in enumerate(drawn)
    ]


ROWS: st.SearchStrategy[list[Row]] = st.lists(DATA | DATA | DATA | SPOKEN, max_size=24).map(placed)


def catalog(progress: Punctuated, *names: str) -> Catalog:
    made = Catalog()
    for name in names or ("s",):
        made.add_stream(StreamInfo(name, SCHEMA, progress, StreamProperties()))
    return made


def judged_by_row(progress: Punctuated, batches: Sequence[Sequence[Row]]) -> Judged:
    return judge(
        progress, 0, batches, granularity="row", is_punctuation=lambda row: row[4] is True, per=[1, 2],
        is_ambiguous=lambda row: row[3] is not None, domain=SCHEMA.domain,
    )  # fmt: skip


@dataclass(frozen=True)
class Case:
    sql: str
    progress: Punctuated
    batches: list[list[Row]]
    keys: tuple[str, ...] = ()

    @property
    def plan(self) -> Node:
        return bind(self.sql, catalog(self.progress))

    def judged(self) -> Judged:
        return judged_by_row(self.progress, self.batches)

    def expected(self) -> TDB:
        data = self.judged().data
        late = [place for place, (_, is_late) in enumerate(data) if is_late]
        return evaluate(self.plan, [("s", row) for row, _ in data], late=late)

    def execution(self, aggregate: str | None = None) -> LocalExecution:
        own = catalog(self.progress)
        return LocalExecution(self.plan, own, in_the_way(self.plan, own, aggregate))

    def inputs(self, form: str) -> list[Batch]:
        made = [Batch(SCHEMA, rows) for rows in self.batches]
        return [Batch(SCHEMA, table=b.table) if form == "arrow" or (form == "mixed" and i % 2) else b
                for i, b in enumerate(made)]  # fmt: skip


def promised(judged: Judged, batch: int) -> list[Punctuation]:
    """What the stream has promised after a batch, by the oracle."""
    of_groups = [
        groupwise("ts", p.bound, **{SCHEMA.names[at]: value for at, value in p.values}) for p in judged.promises[batch]
    ]
    return [linear("ts", judged.bounds[batch]), *of_groups]


@st.composite
def window_cases(draw: st.DrawFn) -> Case:
    keys = draw(st.sampled_from([("a",), ("a",), ("a",), ("b",), ("a", "b"), ("b", "a"), ()]))
    shown = "".join(f"{k}, " for k in keys)
    window = SlidingWindow("ts", SCHEMA.domain, draw(st.integers(1, 8)), draw(st.integers(1, 3)))
    aggregates = draw(st.sampled_from(["count(*) AS n, sum(v) AS s", "max(v) AS m, count(v) AS n", "min(v) AS m"]))
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    rows = draw(ROWS)
    batches = [rows[c] for c in draw(cuts(len(rows)))]
    sql = f"SELECT {shown}{aggregates} {clause(window)} FROM s{by}"
    return Case(sql, draw(st.sampled_from(PROGRESS)), batches, keys)


@st.composite
def plain_cases(draw: st.DrawFn) -> Case:
    sql = draw(
        st.sampled_from(
            [
                "SELECT * FROM s",
                "SELECT a AS x, v, ts AS t FROM s WHERE v > 2",
                "SELECT a AS x, a AS y, b FROM s",
                "SELECT a + 1 AS a, b AS a2 FROM s",
                "SELECT DISTINCT a, b FROM s",
                "SELECT a, b FROM s UNION ALL SELECT a AS c, upper(b) AS d FROM s",
                "SELECT b FROM s UNION ALL SELECT b FROM s WHERE v > 4",
                "SELECT count(*) AS n [RANGE 3 rows, SLIDE 2 rows, WA row-num] FROM s",
                "SELECT b, max(n) AS m [RANGE 12, SLIDE 4, WA window_end] FROM "
                "(SELECT a, b, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s GROUP BY a, b) i GROUP BY b",
                "SELECT a, n + 1 AS m FROM (SELECT a, count(*) AS n [RANGE 6, SLIDE 2, WA ts] FROM s GROUP BY a) i "
                "WHERE n > 1",
                "SELECT a, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM s GROUP BY a UNION ALL "
                "SELECT a, count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM s WHERE b = 'x' GROUP BY a",
            ]
        )
    )
    rows = draw(ROWS)
    return Case(sql, draw(st.sampled_from(PROGRESS)), [rows[c] for c in draw(cuts(len(rows)))])


every_form = pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])


@every_form
@given(case=plain_cases())
def test_the_tdb_is_the_oracles(form: str, case: Case) -> None:
    execution = case.execution()
    outputs = [item for batch in case.inputs(form) for item in execution.feed("s", batch)] + execution.close()
    assert_same(case.expected(), tdb_of(outputs))
    assert_sound(outputs)


@every_form
@pytest.mark.parametrize("aggregate", WAYS)
@given(case=window_cases())
def test_windows_of_a_group_come_with_the_promise_that_closes_them(aggregate: str, form: str, case: Case) -> None:
    """After each batch exactly those are out of which the stream has promised that nothing more comes."""
    judged, expected = case.judged(), case.expected()
    with (
        mock.patch.object(partials, "MIN_COLUMNAR", 1),
        mock.patch.object(columnar, "MIN_COLUMNAR", 1),
        mock.patch.object(columnar, "SPARE_CODES", 0),
        mock.patch.object(slide, "SAFE", 50),
    ):
        execution = case.execution(aggregate)
        outputs: list[Output] = []
        for number, batch in enumerate(case.inputs(form)):
            outputs += execution.feed("s", batch)
            closed = [p for p in promised(judged, number) if {n for n, _ in p.constants} <= set(case.keys)]
            complete = {e: n for e, n in expected.items() if any(closes(p, e, case.keys) for p in closed)}
            assert_same(TDB(complete), tdb_of(outputs))
            assert_promised(outputs, closed, execution)
        outputs += execution.close()
    assert_same(expected, tdb_of(outputs))
    assert_sound(outputs)


def closes(promise: Punctuation, event: tuple[tuple[object, ...], int, int], keys: Sequence[str]) -> bool:
    """Whether a promise completes the window of a result, whose keys follow its id, start and end."""
    constants = dict(promise.constants)
    group = dict(zip(keys, event[0][3 : 3 + len(keys)], strict=True))
    return event[1] <= promise.value and all(group[name] == value for name, value in constants.items())


def assert_promised(outputs: list[Output], closed: list[Punctuation], execution: LocalExecution) -> None:
    """Prompt: what a promise on times allows to say of the ends of windows has been said."""
    said = Frontier([item for item in outputs if isinstance(item, Punctuation)])
    (window,) = [n.operator.window for n in execution.graph.nodes if hasattr(n.operator, "window")]
    for promise in closed:
        bound = promise.value
        if bound > MIN_TICK:
            out = END_OF_TIME if bound == END_OF_TIME else window.output_bound(bound)
            assert said.implies(Punctuation((("window_end", out),), promise.constants)), f"{promise} is not in {said}"


@pytest.mark.parametrize("aggregate", WAYS)
@given(case=window_cases(), at=st.integers(0, 4), form=st.sampled_from(["rows", "arrow"]))
def test_a_restored_run_goes_on_as_if_nothing_had_happened(aggregate: str, case: Case, at: int, form: str) -> None:
    inputs = case.inputs(form)
    first, second, whole = (case.execution(aggregate) for _ in range(3))
    outputs = [item for batch in inputs[:at] for item in first.feed("s", batch)]
    second.restore(first.snapshot())
    outputs += [item for batch in inputs[at:] for item in second.feed("s", batch)] + second.close()
    expected = [item for batch in inputs for item in whole.feed("s", batch)] + whole.close()
    assert_same(tdb_of(expected), tdb_of(outputs))
    assert said_by(outputs) == said_by(expected)


def said_by(outputs: list[Output]) -> list[Punctuation]:
    return [item for item in outputs if isinstance(item, Punctuation)]


@given(left=ROWS, right=ROWS, data=st.data(), final=st.booleans())
def test_a_union_promises_of_a_group_what_both_streams_do(
    left: list[Row], right: list[Row], data: st.DataObject, final: bool
) -> None:
    progress = PROGRESS[final]
    own = catalog(progress, "s", "z")
    window = data.draw(sliding_windows(longest=9))
    sql = f"SELECT a, count(*) AS n, sum(v) AS t {clause(window)} FROM s UNION z GROUP BY a"
    execution = LocalExecution(bind(sql, own), own)
    queues, arrived = {"s": list(left), "z": list(right)}, {"s": list[Row](), "z": list[Row]()}
    outputs: list[Output] = []
    whole = evaluate(
        bind(sql, own),
        [(n, row) for n, rows in (("s", left), ("z", right)) for row in judged_by_row(progress, [rows]).on_time],
    )
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        size = data.draw(st.integers(1, 4))
        arrived[name] += queues[name][:size]
        outputs += execution.feed(name, Batch(SCHEMA, queues[name][:size]))
        del queues[name][:size]
        both = [Frontier(promised(judged_by_row(progress, [arrived[n]]), 0)) for n in ("s", "z")]
        closed = [p for p in both[0].common(both[1]) if {n for n, _ in p.constants} <= {"a"}]
        complete = {e: n for e, n in whole.items() if any(closes(p, e, ("a",)) for p in closed)}
        assert_same(TDB(complete), tdb_of(outputs))
    outputs += execution.close()
    assert_same(whole, tdb_of(outputs))
    assert_sound(outputs)


@given(rows=ROWS, final=st.booleans())
def test_single_rows_are_judged_as_batches_are(rows: list[Row], final: bool) -> None:
    own = catalog(PROGRESS[final])
    sql = "SELECT a, count(*) AS n [RANGE 6, SLIDE 2, WA ts] FROM s GROUP BY a"
    single, whole = (LocalExecution(bind(sql, own), own) for _ in range(2))
    push = single.pusher("s")
    for row in rows:
        push(row)
    outputs = single.take() + single.close()
    together = whole.feed("s", Batch(SCHEMA, rows)) + whole.close()
    assert_same(tdb_of(together), tdb_of(outputs))
    assert list(single.side.late) == list(whole.side.late)
    assert single.counts == whole.counts


@pytest.mark.parametrize("aggregate", WAYS)
@every_form
def test_a_group_that_is_closed_ahead_leaves_what_the_others_share(aggregate: str, form: str) -> None:
    """
    RANGE 6, SLIDE 2             -4 ... 0 ... 2 ... 4 ... 6 ... 8 ... 10
    a 0 and a 1                            1           5
    p2 of all closes             [----------)
    p8 of a 0 closes       up to          [-----------------)        of a 0 alone, and its row at 1 is given up
    p10 of all closes                                 [--------------) of a 0, from its row at 5 alone
    """
    rows: list[Row] = [(t, a, "x", t, None) for t in (1, 5) for a in (0, 1)]
    rows += [(2, None, None, None, True), (8, 0, None, None, True), (10, None, None, None, True)]
    sql = "SELECT a, count(*) AS n, max(v) AS m, sum(v) AS s [RANGE 6, SLIDE 2, WA ts] FROM s GROUP BY a"
    case = Case(sql, PROGRESS[0], [rows[:4], *[[row] for row in rows[4:]]], ("a",))
    with mock.patch.object(partials, "MIN_COLUMNAR", 1), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        execution = case.execution(aggregate)
        steps = [execution.feed("s", batch) for batch in case.inputs(form)]
    found = [sorted(row[2:] for item in step if isinstance(item, Batch) for row in item.rows) for step in steps]
    one, both, late = (1, 1, 1), (2, 5, 6), (1, 5, 5)
    assert found == [
        [],
        [(2, 0, *one), (2, 1, *one)],
        [(4, 0, *one), (6, 0, *both), (8, 0, *late)],
        [(4, 1, *one), (6, 1, *both), (8, 1, *late), (10, 0, *late), (10, 1, *late)],
    ]
