"""Random patterns over two streams."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from penstock.model.batch import Batch, Row
from penstock.model.progress import bounded
from penstock.plan.nodes import Source
from tests.runtime.joins import PROGRESS, JoinCase

MODES = ["RECENT", "CHRONICLE", "CONTINUOUS", "CUMULATIVE"]
CONDITIONS = ["{0}.v > 0", "{0}.k <> 'b'", "{0}.d >= 0", "{0}.v IS NULL OR {0}.v < 5", "{0}.k = 'a'"]
KEYS = ["", "", "", "k", "k", "v", "d", "at", "k, v"]


@st.composite
def pattern_queries(draw: st.DrawFn, modes: list[str] | None = None) -> str:
    """SEQ of two steps and more, of which some may have to stay away."""
    mode = draw(st.sampled_from(modes or MODES))
    count = draw(st.sampled_from([2, 2, 3, 3, 4]))
    negated = [False] + [draw(st.sampled_from([False, False, True])) for _ in range(count - 1)]
    names = [f"x{at}" for at in range(count)]
    coming = [name for name, absent in zip(names, negated, strict=True) if not absent]
    streams = [draw(st.sampled_from("AB")) for _ in names]
    steps = [f"{'NOT ' * no}{stream} AS {name}" for no, stream, name in zip(negated, streams, names, strict=True)]
    within = draw(st.sampled_from([3, 6, 12, 30]))
    where = [draw(st.sampled_from(CONDITIONS)).format(name) for name in names if draw(st.integers(0, 3)) == 0]
    keys = [key for key in draw(st.sampled_from(KEYS)).split(", ") if key]
    grouped = bool(keys) and draw(st.booleans())
    if not grouped:
        where += [f"{one}.{key} = {other}.{key}" for key in keys for one, other in pairwise(names)]
    over = f" OVER [{within} FOLLOWING x0]"
    if not negated[-1]:
        over = draw(st.sampled_from([over, f" OVER [{within} PRECEDING {coming[-1]}]", "", " unlimited"]))
    if over == " unlimited":
        over = "" if mode == "RECENT" else f" OVER [UNLIMITED PRECEDING {coming[-1]}]"
    elif not over:
        where.append(draw(st.sampled_from(["{1}.ts <= {0}.ts + {2}", "{1}.ts BETWEEN {0}.ts + 1 AND {0}.ts + {2}"])))
        where[-1] = where[-1].format(coming[0], coming[-1], within) if len(coming) > 1 else ""
    if mode != "CUMULATIVE" and len(coming) > 1 and draw(st.integers(0, 4)) == 0:
        where.append(draw(st.sampled_from(["{0}.v < {1}.v", "6 / {0}.v > {1}.v"])).format(coming[0], coming[-1]))
    partition = f" PARTITION BY {', '.join(keys)}" if grouped else ""
    condition = f" WHERE {' AND '.join(f'({each})' for each in where if each)}" if any(where) else ""
    last = coming[-1]
    chosen = ["*", f"{coming[0]}.v AS v, {last}.k, {last}.ts AS t"]
    if not negated[-1]:
        chosen.append(f"count(*) AS n, max({last}.v) AS m [RANGE 4, SLIDE 2, WA {last}.ts]")
    what = draw(st.sampled_from(chosen))
    return f"SELECT {what} FROM SEQ({', '.join(steps)}){partition}{over} MODE {mode}{condition}"


@st.composite
def followed_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of few keys, near enough in time and number that some follow others; some are of one time."""
    values = st.tuples(
        st.sampled_from(["a", "a", "a", "b", "c", None]),
        st.sampled_from([1, 1, 2, 5, 0, None]),
        st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
        st.sampled_from([0, 0, 60_000_000, None]),
    )
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=4, max_size=16))
    reached, made = 0, []
    for step, behind in steps:
        reached += step
        row = (max(reached - behind, 0), *draw(values))
        made.append((*row[:3], None, None) if row[1] == "c" and draw(st.booleans()) else row)
    return made


@st.composite
def pattern_cases(draw: st.DrawFn, modes: list[str] | None = None) -> JoinCase:
    """A pattern, and how rows arrive; most are not late."""
    batches: list[tuple[str, list[Row]]] = []
    left = {name: draw(followed_rows()) for name in "AB"}
    while any(left.values()):
        name = draw(st.sampled_from([n for n, own in left.items() if own]))
        size = draw(st.integers(1, 6))
        batches.append((name, left[name][:size]))
        del left[name][:size]
    how = st.sampled_from([bounded(4), bounded(4), bounded(9), *PROGRESS])
    return JoinCase(draw(pattern_queries(modes)), (draw(how), draw(how)), batches)


def inputs_of(case: JoinCase, form: str = "rows") -> list[tuple[str, Batch]]:
    """The batches of the streams that the query reads, of which there may be one."""
    read = {node.name for node in case.plan.walk() if isinstance(node, Source)}
    return [(name, batch) for name, batch in case.inputs(form) if name in read]
