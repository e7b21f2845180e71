"""MATCH_RECOGNIZE, where it says what a pattern says: against a search by the standard's words, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import QueryError
from penstock.plan.nodes import Pattern

Row = dict[str, Any]
KINDS = {"A": "kind < 3", "B": "kind > 1 AND kind <> 4", "C": "kind IN (0, 5)", "X": "kind <> 4"}
HOLDS: dict[str, Any] = {
    "A": lambda kind: kind < 3, "B": lambda kind: kind in (2, 3, 5), "C": lambda kind: kind in (0, 5),
    "X": lambda kind: kind != 4,
}  # fmt: skip


def search(rows: list[Row], steps: str, within: int, defined: str, *, past_last: bool) -> list[list[Row]]:
    """Matches one after the other: the first start that has one, with as few rows as possible between two steps."""

    def matched(at: int, step: int, found: list[Row]) -> list[Row] | None:
        if step == len(steps):
            return found
        if at == len(rows) or (found and rows[at]["ts"] - found[0]["ts"] >= within):
            return None
        row = rows[at]
        if HOLDS[steps[step]](row["kind"]) or steps[step] not in defined:
            rest = matched(at + 1, step + 1, [*found, row])
            if rest is not None:
                return rest
        if step and ("X" not in defined or HOLDS["X"](row["kind"])):
            return matched(at + 1, step, found)
        return None

    start, made = 0, []
    while start < len(rows):
        match = matched(start, 0, [])
        if match is not None:
            made.append(match)
        start = rows.index(match[-1]) + 1 if match is not None and past_last else start + 1
    return made


@given(
    kinds=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.sampled_from(["x", "y", None])), max_size=25),
    steps=st.sampled_from(["AB", "ABC", "BA", "CAB"]),
    within=st.integers(2, 12),
    skip=st.sampled_from(["TO NEXT ROW", "PAST LAST ROW"]),
    defined=st.sampled_from(["ABC", "AC", "ABCX", "X"]),
)
def test_a_match_is_what_the_standard_says(
    kinds: list[tuple[int, int, str | None]], steps: str, within: int, skip: str, defined: str
) -> None:
    if len(steps) > 2:
        defined = defined.replace("X", "") or "A"
    rows, time = [], 0
    for step, kind, key in kinds:
        time += step
        rows.append({"ts": time, "kind": kind, "k": key})
    measures = ", ".join(f"{step}.ts AS t{at}" for at, step in enumerate(steps))
    define = ", ".join(
        f"{step} AS {KINDS[step].replace('kind', step + '.kind')}" for step in (*steps, "X") if step in defined
    )
    flow = pk.Flow()
    arrived = sorted(rows, key=lambda row: row["ts"] + row["kind"])
    flow.stream("s", arrived, schema="ts bigint, kind int, k string", time="ts", progress=pk.bounded(5))
    query = flow.query(
        f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES {measures} ONE ROW PER MATCH "
        f"AFTER MATCH SKIP {skip} PATTERN ({' X*? '.join(steps)}) WITHIN {within} DEFINE {define})"
    )
    wanted = [
        {"k": key, **{f"t{at}": row["ts"] for at, row in enumerate(match)}}
        for key in ("x", "y", None)
        for match in search(
            [row for row in rows if row["k"] == key], steps, within, defined, past_last=skip == "PAST LAST ROW"
        )
    ]
    assert sorted(map(repr, query.collect().to_pylist())) == sorted(map(repr, wanted))


def flow() -> pk.Flow:
    made = pk.Flow()
    made.stream("s", [], schema="at timestamp, kind int, k string", time="at")
    return made


def text(
    measures: str = "A.kind AS x", pattern: str = "A X*? B", define: str = "A AS A.kind = 1, B AS B.kind = 2",
    rows: str = "", order: str = "ORDER BY at", within: str = "WITHIN INTERVAL '5' MINUTE",
) -> str:  # fmt: skip
    body = f"{order} MEASURES {measures} {rows} PATTERN ({pattern}) {within} DEFINE {define}"
    return f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {body}) AS m"


def test_it_is_a_pattern() -> None:
    query: Any = flow().query(text(rows="AFTER MATCH SKIP TO NEXT ROW", measures="FINAL LAST(B.kind) AS x"))
    (found,) = [node for node in query.plan.walk() if isinstance(node, Pattern)]
    assert (found.context, found.within, len(found.steps)) == ("continuous", 5 * 60_000_000 - 1, 2)
    assert [field.name for field in query.plan.schema.visible] == ["k", "x"]


@pytest.mark.parametrize(
    ("given_", "got", "hint"),
    [
        ({"pattern": "A B"}, "PATTERN (… A B …)", "X*?"),
        ({"pattern": "A X* B"}, "X*", "as few rows"),
        ({"pattern": "A+ X*? B"}, "A+", "one of each step"),
        ({"pattern": "A X*? B?"}, "B?", "one of each step"),
        ({"pattern": "A X*? (B | C)"}, "(", "SEQ(a, b, NOT c)"),
        ({"pattern": "A | B"}, "|", "SEQ(a, b, NOT c)"),
        ({"pattern": "^ A X*? B"}, "^", "SEQ(a, b, NOT c)"),
        ({"pattern": "PERMUTE (A, B)"}, "PERMUTE", "SEQ(a, b, NOT c)"),
        ({"pattern": "A {- X*? -} B"}, "{", "one of each step"),
        ({"pattern": "A X*?"}, "A", "X*?"),
        ({"pattern": "A X*? A", "define": "A AS A.kind = 1"}, "A", "a name"),
        ({"rows": "ALL ROWS PER MATCH"}, "ALL ROWS PER MATCH", "ONE ROW PER MATCH"),
        ({"rows": "AFTER MATCH SKIP TO LAST B"}, "SKIP TO LAST B", "TO NEXT ROW"),
        ({"order": ""}, "MEASURES", "ORDER BY the stream's time"),
        ({"order": "ORDER BY at DESC"}, "DESC", "alone"),
        ({"order": "ORDER BY at, kind"}, ",", "alone"),
        ({"order": "ORDER BY kind"}, "ORDER BY kind", "ORDER BY at"),
        ({"within": ""}, "without WITHIN", "WITHIN INTERVAL"),
        ({"within": "WITHIN LONG"}, "LONG", "WITHIN INTERVAL"),
        ({"within": "WITHIN 5"}, "5", "unit of time"),
        ({"define": "B AS B.kind > A.kind"}, "A.kind", "of what was found"),
        ({"define": "B AS B.kind > PREV(B.kind)"}, "PREV", "of what was found"),
        ({"define": "C AS C.kind = 1"}, "C", "A, B"),
        ({"define": "X AS X.kind = 1", "pattern": "A X*? B Y*? C"}, "X among more", "NOT x"),
        ({"measures": "A.kind"}, "A", "AS x"),
        ({"measures": "kind AS x"}, "MEASURES … kind", "B.kind"),
        ({"measures": "X.kind AS x"}, "X.kind", "B.kind"),
        ({"measures": "count(A.kind) AS n"}, "COUNT", "MODE CUMULATIVE"),
        ({"measures": "MATCH_NUMBER() AS n"}, "MATCH_NUMBER", "leave it out"),
        ({"measures": "CLASSIFIER() AS n"}, "CLASSIFIER", "leave it out"),
        ({"within": "WITHIN INTERVAL '5' MINUTE SUBSET U = (A, B)"}, "SUBSET", "one by one"),
    ],
)
def test_what_is_refused_is_named(given_: dict[str, str], got: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        flow().query(text(**given_))
    assert got in caught.value.got
    assert hint in caught.value.hint
    assert caught.value.line == 1
    assert (caught.value.column or 0) > 10
