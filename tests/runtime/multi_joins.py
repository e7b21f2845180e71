"""Random inner joins of three and four streams, and how their rows arrive."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch, Row
from penstock.model.progress import Progress, bounded, ordered, punctuated
from penstock.model.properties import StreamProperties
from penstock.model.tdb import TDB
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.nodes import Node
from penstock.reference import judge
from penstock.reference.evaluation import evaluate
from penstock.sql.binder import bind
from tests.runtime.joins import SCHEMA, near_rows

PROGRESS = [ordered(), bounded(3), bounded(5), bounded(100), punctuated("k = 'c'", whole_stream=True)]
ONE, TREE = "/*+ MULTIWAY_JOIN */", "/*+ BINARY_JOINS */"
NEAR = ["{0}.ts BETWEEN {1}.ts - 3 AND {1}.ts + 5", "{0}.ts = {1}.ts", "{1}.ts + 2 <= {0}.ts AND {0}.ts < {1}.ts + 7"]
EQUAL = ["", "{0}.k = {1}.k AND ", "{0}.v = {1}.v AND ", "{0}.d = {1}.d AND ", "{0}.k = {1}.k AND {0}.v = {1}.v AND ",
         "upper({0}.k) = {1}.k AND ", "{0}.k = {1}.k AND {0}.k = {1}.k AND "]  # fmt: skip


@dataclass(frozen=True)
class MultiCase:
    """A query over several streams, with a place for a hint, and how their rows arrive."""

    sql: str
    progress: dict[str, Progress]
    batches: list[tuple[str, list[Row]]]

    @property
    def catalog(self) -> Catalog:
        made = Catalog()
        for name, how in self.progress.items():
            made.add_stream(StreamInfo(name, SCHEMA, how, StreamProperties()))
        return made

    def plan(self, hint: str) -> Node:
        return bind(self.sql.format(hint), self.catalog)

    def execution(self, hint: str = ONE) -> LocalExecution:
        return LocalExecution(self.plan(hint), self.catalog)

    def expected(self) -> TDB:
        arrivals: list[tuple[str, Row]] = []
        for name, how in self.progress.items():
            own = [rows for stream, rows in self.batches if stream == name]
            judged = judge(
                how, 0, own, granularity="row", source_index=1, domain=SCHEMA.domain,
                is_punctuation=lambda row: row[1] == "c",
            )  # fmt: skip
            arrivals += [(name, row) for row in judged.on_time]
        return evaluate(self.plan(ONE), arrivals)

    def inputs(self, form: str = "rows") -> list[tuple[str, Batch]]:
        made = [(name, Batch(SCHEMA, rows)) for name, rows in self.batches]
        return made if form == "rows" else [(name, Batch(SCHEMA, table=batch.table)) for name, batch in made]


@st.composite
def queries(draw: st.DrawFn, names: str) -> str:
    """Each stream is joined with one before it; WHERE may have more."""
    text, compared = names[0], [names[0]]
    for at, name in enumerate(names[1:], 1):
        near, equal = draw(st.sampled_from(compared)), draw(st.sampled_from(names[:at]))
        compared = [near, name]  # a join's output progresses by what it compares
        said = draw(st.sampled_from(EQUAL[1:] if at > 1 else EQUAL)).format(name, equal)
        text += f" JOIN {name} ON {said}{draw(st.sampled_from(NEAR)).format(name, near)}"
        text += draw(st.sampled_from(["", "", f" AND {name}.v > {names[0]}.v", f" AND {name}.k <> 'a'"]))
    one, other = draw(st.permutations(names))[:2]
    where = draw(st.sampled_from(["", "", f" WHERE {one}.k = {other}.k", f" WHERE {one}.v <> {other}.v",
                                  f" WHERE {one}.d = {other}.d AND {one}.v IS NOT NULL",
                                  f" WHERE {one}.v = {one}.ts AND {one}.v = {other}.v"]))  # fmt: skip
    return f"SELECT {{}} * FROM {text}{where}"


@st.composite
def windowed(draw: st.DrawFn, names: str) -> str:
    """Each stream has a window of its own, or none."""
    window = st.sampled_from(["", " [RANGE 1, WA ts]", " [RANGE 3, WA ts]", " [RANGE 9, WA ts]"])
    windows = draw(st.lists(window, min_size=len(names), max_size=len(names)).filter(any))
    equal = [f"{one}.k = {other}.k" for one, other in pairwise(names)]
    near = draw(st.sampled_from(["", f" AND {names[1]}.ts >= {names[-1]}.ts"]))
    relations = ", ".join(map("".join, zip(names, windows, strict=True)))
    return f"SELECT {{}} * FROM {relations} WHERE {' AND '.join(equal)}{near}"


@st.composite
def multi_cases(draw: st.DrawFn) -> MultiCase:
    names = draw(st.sampled_from(["ABC", "ABC", "ABCD"]))
    left = {name: draw(near_rows()) for name in names}
    batches: list[tuple[str, list[Row]]] = []
    while any(left.values()):
        name = draw(st.sampled_from([n for n, own in left.items() if own]))
        size = draw(st.integers(1, 6))
        batches.append((name, left[name][:size]))
        del left[name][:size]
    progress = {name: draw(st.sampled_from(PROGRESS)) for name in names}
    return MultiCase(draw(st.one_of(queries(names), windowed(names))), progress, batches)
