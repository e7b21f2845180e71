"""Several attributes that progress, from source to sink, against the oracle: any progress of each, any order, any cut.

A row has a time `ts` and a number `seq`; `p` marks punctuation, for either attribute or for both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.flow.replicas import merge_node
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, groupwise, joint, linear
from penstock.model.frontier import Frontier
from penstock.model.letters import promise_text
from penstock.model.progress import Progress, bounded, declared, estimated, ordered, per_source, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import progressing, schema_of
from penstock.model.tdb import TDB
from penstock.model.time import MIN_TICK
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Node
from penstock.plan.windows import SlidingWindow
from penstock.reference import evaluate
from penstock.reference.arrivals import Arrivals
from penstock.reference.attributes import JudgedAttributes, judge_attributes
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts

COLUMNS = schema_of([("ts", "bigint"), ("seq", "int"), ("k", "string"), ("v", "int"), ("p", "boolean")], "ts")
SCHEMA = progressing(COLUMNS, ["ts", "seq"])
Item = Row | Punctuation
Output = Batch | Punctuation

ONE = [
    ordered(),
    bounded(3),
    bounded(8),
    bounded(rows=2),
    estimated("25%", rows=4),
    per_source("k", idle=9, disorder=2),
    punctuated("p"),
]
PROGRESS: st.SearchStrategy[Progress] = st.builds(
    lambda ts, seq, both: declared({"ts": ts, "seq": seq, **({("ts", "seq"): punctuated("p")} if both else {})}, "ts"),
    st.sampled_from(ONE),
    st.sampled_from(ONE),
    st.booleans(),
) | st.just(declared({("ts", "seq"): punctuated("p")}, "ts"))
"""The last has no bounds but those that punctuation says of both together, which then have something to condemn."""
STEPS = st.integers(-6, 4)
"""An attribute is so much behind or ahead of its place in the stream, so that bounds rise slowly."""
ROWS = st.tuples(STEPS, STEPS, st.sampled_from(["a", "b"]), st.integers(0, 9), st.none())
INCOMPLETE = st.tuples(st.none() | STEPS, st.none(), st.just("a"), st.just(1), st.none())
SPOKEN = st.tuples(st.none() | STEPS, st.none() | STEPS, st.none(), st.none(), st.just(True))
BOTH = st.tuples(STEPS, STEPS, st.none(), st.none(), st.just(True))
AMBIGUOUS = st.tuples(STEPS, STEPS, st.none(), st.just(1), st.just(True))
OUTSIDE = st.one_of(
    st.builds(lambda a, b: joint(ts=a, seq=b), STEPS, STEPS),
    st.builds(lambda a: linear("seq", a), STEPS),
    st.builds(lambda a: linear("ts", a), STEPS),
    st.builds(lambda a, k: groupwise("seq", a, k=k), STEPS, st.sampled_from(["a", "b"])),
    st.builds(lambda a, b: Punctuation((("seq", a), ("ts", b)), (("k", "a"),)), STEPS, STEPS),
)


def placed(drawn: Sequence[Item]) -> list[Item]:
    """Each item around its place in the stream."""
    made: list[Item] = []
    for at, item in enumerate(drawn):
        if isinstance(item, Punctuation):
            made.append(Punctuation(tuple((name, at + bound) for name, bound in item.bounds), item.constants))
        else:
            ts, seq = (None if v is None else at + v for v in item[:2])  # type: ignore[operator]
            made.append((ts, seq, *item[2:]))
    return made


EVERY = ROWS | ROWS | ROWS | ROWS | SPOKEN | BOTH | BOTH | INCOMPLETE | AMBIGUOUS | OUTSIDE
ITEMS = st.lists(EVERY, max_size=24).map(placed)


def catalog(progress: Progress, *names: str) -> Catalog:
    made = Catalog()
    for name in names or ("s",):
        made.add_stream(StreamInfo(name, SCHEMA, progress, StreamProperties()))
    return made


def judged(progress: Progress, batches: Sequence[Sequence[Item]]) -> JudgedAttributes:
    return judge_attributes(Arrivals("s", SCHEMA, progress, ()).declared(Catalog()), batches, "row")


@dataclass(frozen=True)
class Case:
    sql: str
    progress: Progress
    batches: list[list[Item]]
    window: SlidingWindow | None = None

    @property
    def plan(self) -> Node:
        return bind(self.sql, catalog(self.progress))

    def expected(self) -> TDB:
        data = judged(self.progress, self.batches).data
        late = [place for place, (_, is_late) in enumerate(data) if is_late]
        return evaluate(self.plan, [("s", row) for row, _ in data], late=late)

    def execution(self) -> LocalExecution:
        return LocalExecution(self.plan, catalog(self.progress))

    def inputs(self, form: str) -> list[list[Batch | Punctuation]]:
        """The batches, cut once more where punctuation comes from outside."""
        return [list(fed(batch, form == "arrow" or (form == "mixed" and i % 2 > 0)))
                for i, batch in enumerate(self.batches)]  # fmt: skip


def fed(items: Sequence[Item], arrow: bool) -> list[Batch | Punctuation]:
    made: list[Batch | Punctuation] = []
    rows: list[Row] = []
    for item in [*items, None]:
        if isinstance(item, tuple):
            rows.append(item)
            continue
        if rows:
            made.append(Batch(SCHEMA, table=Batch(SCHEMA, rows).table) if arrow else Batch(SCHEMA, rows))
            rows = []
        if item is not None:
            made.append(item)
    return made


@st.composite
def window_cases(draw: st.DrawFn) -> Case:
    attribute = draw(st.sampled_from(["ts", "seq"]))
    window = SlidingWindow(attribute, SCHEMA.domain, draw(st.integers(1, 8)), draw(st.integers(1, 4)))
    keys = draw(st.sampled_from(["", "k"]))
    what = draw(st.sampled_from(["count(*) AS n, sum(v) AS s", "max(seq) AS m, min(ts) AS f", "max(k) AS m"]))
    clause = f"[RANGE {window.range}, SLIDE {window.slide}, WA {attribute}]"
    source = draw(st.sampled_from(["s", "(SELECT seq, v, k, ts FROM s WHERE v > 1) i"]))
    sql = f"SELECT {keys + ', ' if keys else ''}{what} {clause} FROM {source}{' GROUP BY ' + keys if keys else ''}"
    items = draw(ITEMS)
    return Case(sql, draw(PROGRESS), [items[c] for c in draw(cuts(len(items)))], window)


PLAIN = [
    "SELECT * FROM s",
    "SELECT seq AS a, seq AS b, k FROM s WHERE v > 2",
    "SELECT ts + 1 AS t, k FROM s",
    "SELECT DISTINCT k, seq FROM s",
    "SELECT k, seq FROM s UNION ALL SELECT k, seq FROM s WHERE v > 4",
    "SELECT k, seq FROM s UNION ALL SELECT k, v FROM s",
    "SELECT seq, count(*) AS n FROM s GROUP BY seq",
    "SELECT seq, ts, count(*) AS n FROM s GROUP BY seq, ts",
    "SELECT count(*) AS n [RANGE 4, SLIDE 2, WA seq] FROM (SELECT k, seq FROM s UNION ALL SELECT k, seq FROM s) u",
    "SELECT count(*) AS n [RANGE 3 rows, SLIDE 2 rows, WA row-num] FROM s",
    "SELECT max(n) AS m [RANGE 8, SLIDE 4, WA window_end] FROM "
    "(SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA seq] FROM s GROUP BY k) i",
    "SELECT count(*) AS n [RANGE 4, SLIDE 4, WA seq] FROM s UNION ALL "
    "SELECT count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM s",
]


@st.composite
def plain_cases(draw: st.DrawFn) -> Case:
    items = draw(ITEMS)
    return Case(draw(st.sampled_from(PLAIN)), draw(PROGRESS), [items[c] for c in draw(cuts(len(items)))])


every_form = pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])


@every_form
@given(case=plain_cases())
def test_the_tdb_and_what_is_late_are_the_oracles(form: str, case: Case) -> None:
    execution, story = case.execution(), judged(case.progress, case.batches)
    outputs = [out for batch in case.inputs(form) for item in batch for out in execution.feed("s", item)]
    outputs += execution.close()
    assert_same(case.expected(), tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.dead == story.dead
    assert execution.counts.punctuation == len(story.punctuation) - len(story.backwards)
    if "row-num" not in case.sql:
        assert [bound for _, bound, _ in execution.side.late] == [promise_text(p, SCHEMA) for _, p in story.late]


@every_form
@given(case=window_cases())
def test_windows_come_with_the_bound_on_their_attribute(form: str, case: Case) -> None:
    """After each batch exactly those windows are out that the attribute's bound, or a group's, has passed."""
    execution, story, expected = case.execution(), judged(case.progress, case.batches), case.expected()
    assert case.window is not None
    attribute, outputs = case.window.attribute, list[Output]()
    grouped = "GROUP BY k" in case.sql
    for number, batch in enumerate(case.inputs(form)):
        outputs += [out for item in batch for out in execution.feed("s", item)]
        promises = [linear(attribute, story.bounds[number][attribute])]
        promises += [p for p in story.promises[number] if not p.is_joint and p.attribute == attribute and grouped]
        complete = {e: n for e, n in expected.items() if any(closes(p, e) for p in promises)}
        assert_same(TDB(complete), tdb_of(outputs))
        assert_prompt(outputs, promises, case.window)
    outputs += execution.close()
    assert_same(expected, tdb_of(outputs))
    assert_sound(outputs)


def closes(promise: Punctuation, event: tuple[tuple[object, ...], int, int]) -> bool:
    """Whether a promise completes the window of a result, whose key, if it has one, follows its id, start and end."""
    return event[1] <= promise.value and all(event[0][3] == value for _, value in promise.constants)


def assert_prompt(outputs: Sequence[Output], promises: Sequence[Punctuation], window: SlidingWindow) -> None:
    said = Frontier([item for item in outputs if isinstance(item, Punctuation)])
    for promise in promises:
        if promise.value > MIN_TICK:
            # Windows end at multiples of SLIDE: the first that is open ends after the bound.
            end = (promise.value // window.slide + 1) * window.slide
            assert said.implies(Punctuation((("window_end", end),), promise.constants)), f"{promise} is not in {said}"


@given(case=window_cases() | plain_cases(), at=st.integers(0, 4), form=st.sampled_from(["rows", "arrow"]))
def test_a_restored_run_goes_on_as_if_nothing_had_happened(case: Case, at: int, form: str) -> None:
    inputs = case.inputs(form)
    first, second, whole = (case.execution() for _ in range(3))
    outputs = [out for batch in inputs[:at] for item in batch for out in first.feed("s", item)]
    second.restore(first.snapshot())
    outputs += [out for batch in inputs[at:] for item in batch for out in second.feed("s", item)] + second.close()
    expected = [out for batch in inputs for item in batch for out in whole.feed("s", item)] + whole.close()
    assert_same(tdb_of(expected), tdb_of(outputs))
    assert [o for o in outputs if isinstance(o, Punctuation)] == [o for o in expected if isinstance(o, Punctuation)]


@given(case=window_cases())
def test_single_rows_are_judged_as_batches_are(case: Case) -> None:
    single, whole = case.execution(), case.execution()
    push = single.pusher("s")
    for item in (i for batch in case.batches for i in batch):
        if isinstance(item, Punctuation):
            single.feed("s", item)
        else:
            push(item)
        single.take()
    for batch in case.inputs("rows"):
        for each in batch:
            whole.feed("s", each)
    assert list(single.side.late) == list(whole.side.late)
    assert single.counts == whole.counts


@given(left=ITEMS, right=ITEMS, progress=PROGRESS, data=st.data())
def test_a_union_promises_what_both_streams_do(
    left: list[Item], right: list[Item], progress: Progress, data: st.DataObject
) -> None:
    own = catalog(progress, "s", "z")
    sql = data.draw(
        st.sampled_from(
            ["SELECT seq, k FROM s UNION ALL SELECT seq, k FROM z", "SELECT DISTINCT seq, k FROM s UNION z",
             "SELECT count(*) AS n [RANGE 5, SLIDE 2, WA seq] FROM s UNION z"]
        )
    )  # fmt: skip
    execution = LocalExecution(bind(sql, own), own)
    queues = {"s": list(left), "z": list(right)}
    outputs: list[Output] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        size = data.draw(st.integers(1, 4))
        outputs += [out for item in fed(queues[name][:size], arrow=False) for out in execution.feed(name, item)]
        del queues[name][:size]
    outputs += execution.close()
    on_time = [(n, row) for n, items in (("s", left), ("z", right))
               for row, is_late in judged(progress, [items]).data if not is_late]  # fmt: skip
    assert_same(evaluate(bind(sql, own), on_time), tdb_of(outputs))
    assert_sound(outputs)


@every_form
def test_joint_punctuation_among_rows_condemns_what_follows_it(form: str) -> None:
    """
    ts    1   p10   3   9   10    9
    seq   1   p10   3  10    9    9      the third and the last are below both
    """
    rows: list[Item] = [(1, 1, "a", 1, None), (10, 10, None, None, True), (3, 3, "a", 1, None), (9, 10, "a", 1, None)]
    rows += [(10, 9, "a", 1, None), (9, 9, "a", 1, None)]
    case = Case("SELECT ts, seq FROM s", declared({("ts", "seq"): punctuated("p")}, "ts"), [rows])
    execution = case.execution()
    outputs = [out for batch in case.inputs(form) for item in batch for out in execution.feed("s", item)]
    assert [row for item in outputs if isinstance(item, Batch) for row in item.rows] == [(1, 1), (9, 10), (10, 9)]
    assert [item for item in outputs if isinstance(item, Punctuation)] == [joint(ts=10, seq=10)]
    assert [bound for _, bound, _ in execution.side.late] == ["seq >= 10 or ts >= 10"] * 2


@given(items=st.lists(ROWS | ROWS | BOTH, max_size=20).map(placed), data=st.data())
def test_what_joint_punctuation_condemns_is_what_the_oracle_says(items: list[Item], data: st.DataObject) -> None:
    progress = declared({("ts", "seq"): punctuated("p")}, "ts")
    case = Case("SELECT * FROM s", progress, [items[c] for c in data.draw(cuts(len(items)))])
    execution = case.execution()
    outputs = [out for batch in case.inputs("mixed") for item in batch for out in execution.feed("s", item)]
    assert_same(case.expected(), tdb_of([*outputs, *execution.close()]))
    assert [bound for _, bound, _ in execution.side.late] == [
        promise_text(p, SCHEMA) for _, p in judged(progress, case.batches).late
    ]


def test_joint_promises_that_are_passed_are_forgotten() -> None:
    progress = declared({"ts": bounded(5), "seq": bounded(5), ("ts", "seq"): punctuated("p")}, "ts")
    execution = Case("SELECT * FROM s", progress, []).execution()
    (entrance,) = execution.graph.sources["s"]
    for at in range(0, 1000, 10):
        # One after the other, neither of two neighbours follows from the other.
        spoken: list[Row] = [(at + step, at + 9 - step, None, None, True) for step in (0, 9)]
        execution.feed("s", Batch(SCHEMA, [(at, at, "a", 1, None), *spoken]))
    kept = entrance.operator.frontier()  # type: ignore[attr-defined]
    assert sum(not promise.is_linear for promise in kept) <= 4


def test_bounds_go_on_only_where_somebody_can_use_them() -> None:
    progress = declared({"ts": ordered(), "seq": ordered()}, "ts")
    case = Case("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA seq] FROM s", progress, [])
    execution = case.execution()
    for at in range(25):
        execution.feed("s", Batch(SCHEMA, [(100 * at, at, "a", 1, None)]))
    (entrance,) = execution.graph.sources["s"]
    assert entrance.statistics.punctuations_out == 3  # at 0, 10 and 20 of seq; none of ts


@given(items=ITEMS, progress=PROGRESS, data=st.data(), policy=st.sampled_from(["half frozen", "conservative"]))
def test_a_merge_promises_nothing_that_a_row_which_it_keeps_back_contradicts(
    items: list[Item], progress: Progress, data: st.DataObject, policy: str
) -> None:
    """Two replicas, each cut in its own way; rows come out when they are decided, later than they came."""
    own = catalog(progress, "s", "z")
    own.views["m"] = merge_node(own, "m", ["s", "z"], None, None, None, policy, 0, "leading", False)
    execution = LocalExecution(bind("SELECT ts, seq, k, v FROM m", own), own)
    outputs: list[Output] = []
    queues = {name: [items[c] for c in data.draw(cuts(len(items)))] for name in ("s", "z")}
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        batch = queues[name].pop(0)
        outputs += [out for item in fed(batch, arrow=False) for out in execution.feed(name, item)]
    outputs += execution.close()
    assert_sound(outputs)
    assert all(p.is_linear and p.attribute == "ts" for p in outputs if isinstance(p, Punctuation))
    on_time = [row for row, is_late in judged(progress, [items]).data if not is_late]
    assert tdb_of(outputs).size == len(on_time)


@every_form
def test_punctuation_of_both_that_goes_back_for_one_is_dead_though_another_tracker_knows(form: str) -> None:
    progress = declared({"ts": ordered(), "seq": ordered(), ("ts", "seq"): punctuated("p")}, "ts")
    rows = [(0, 0, "a", 0, None), (4, 2, "a", 0, None), (3, None, None, None, True)]
    execution = Case("SELECT * FROM s", progress, [rows]).execution()
    for item in (item for batch in Case("SELECT * FROM s", progress, [rows]).inputs(form) for item in batch):
        execution.feed("s", item)
    assert (execution.counts.dead, execution.counts.punctuation) == (1, 0)
