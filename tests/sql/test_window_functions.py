"""Windows in the words of Spark and of Flink: theirs start where these say, and are otherwise those of the clause.

length 6, slide 4, start 1     -3   1   5   9   13
the windows of Spark            [=====)
                                    [=====)
                                        [=====)
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import QueryError
from penstock.model.progress import bounded
from penstock.model.schema import schema_of
from penstock.model.time import SECOND
from penstock.reference.arrivals import Arrivals
from penstock.sql.binder import bind
from penstock.verify.agreement import agreement
from tests.profiles import examples
from tests.sql.test_errors import catalog

SCHEMA = schema_of([("ts", "timestamp"), ("k", "string")], "ts")
PAIRS = [
    ("count(*) AS n FROM main GROUP BY window(ts, '10 minutes')", "[RANGE TUMBLING 10 minutes, WA ts]", ""),
    ("count(*) AS n FROM main GROUP BY window(ts, '10 minutes', '2 minutes')", "[RANGE 10 m, SLIDE 2 m, WA ts]", ""),
    ("count(*) AS n FROM main GROUP BY srcIP, window(ts, '1 hour 30 minutes')", "[TUMBLING 90 m, WA ts]", "srcIP"),
    ("count(*) AS n FROM main GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)", "[TUMBLING 1 minute, WA ts]", ""),
    ("count(*) AS n FROM main GROUP BY hop(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES), srcIP",
     "[RANGE 5 minutes, SLIDE 1 minute, WA ts]", "srcIP"),
    ("count(*) AS n FROM TABLE(TUMBLE(TABLE main, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) GROUP BY window_start, "
     "window_end", "[RANGE 10 s, SLIDE 10 s, WA ts]", ""),
    ("count(*) AS n FROM TABLE(HOP(TABLE main, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '7' DAYS)) w "
     "WHERE length > 1 GROUP BY w.window_end, srcIP HAVING n > 2",
     "[RANGE 1 week, SLIDE 1 day, WA ts] WHERE length > 1", "srcIP HAVING n > 2"),
    ("count(*) AS n FROM TABLE(HOP(DATA => TABLE main, SIZE => INTERVAL '9' HOURS, SLIDE => INTERVAL '3' HOURS, "
     "TIMECOL => DESCRIPTOR(ts))) GROUP BY window_start", "[RANGE 9 hours, SLIDE 3 hours, WA ts]", ""),
    ("count(*) AS n FROM TABLE(TUMBLE((SELECT ts FROM main), DESCRIPTOR(ts), INTERVAL 1 DAY)) GROUP BY window_start",
     "(SELECT ts FROM main) [TUMBLING 1 day, WA ts]", ""),
]  # fmt: skip


@pytest.mark.parametrize(("form", "clause", "keys"), PAIRS)
def test_a_form_whose_starts_and_ends_align_is_the_same_plan_as_the_clause(form: str, clause: str, keys: str) -> None:
    source = clause if clause.startswith("(") else f"main {clause}"
    grouped = f" GROUP BY {keys}" if keys else ""
    assert bind(f"SELECT {form}", catalog()) == bind(f"SELECT count(*) AS n FROM {source}{grouped}", catalog())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window.start AS a, window.end AS b, count(*) AS n FROM main GROUP BY window(ts, '1 minute')",
        "SELECT window_start AS a, window_end AS b, count(*) AS n FROM TABLE(TUMBLE(TABLE main, DESCRIPTOR(ts), "
        "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
        "SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS a, TUMBLE_END(ts, INTERVAL '1' MINUTE) AS b, count(*) AS n "
        "FROM main GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
    ],
)
def test_bounds_of_the_window_have_the_names_that_they_have_there(sql: str) -> None:
    clause = "[TUMBLING 1 minute, WA ts]"
    assert bind(sql, catalog()) == bind(
        f"SELECT window_start AS a, window_end AS b, count(*) AS n {clause} FROM main", catalog()
    )
    bare = sql.replace(" AS a", "").replace(" AS b", "")
    assert bind(bare, catalog()).schema.names[:4] == ("wid", "window_start", "window_end", "n")


@st.composite
def lengths(draw: st.DrawFn) -> tuple[int, int, int]:
    """Length, slide and start, in seconds; the slide is no longer than the length, as Spark wants it."""
    range_ = draw(st.integers(1, 12))
    slide = draw(st.integers(1, range_))
    return range_, slide, draw(st.integers(1 - slide, slide - 1))


FORMS = [
    "SELECT k, count(*) AS n FROM s GROUP BY window(ts, '{range} seconds', '{slide} seconds', '{start} seconds'), k",
    "SELECT k, count(*) AS n FROM s GROUP BY HOP(ts, INTERVAL '{slide}' SECONDS, INTERVAL '{range}' SECONDS, "
    "INTERVAL '{start}' SECONDS), k",
    "SELECT k, count(*) AS n FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{slide}' SECONDS, "
    "INTERVAL '{range}' SECONDS, INTERVAL '{start}' SECONDS)) GROUP BY window_start, window_end, k",
]


@pytest.mark.parametrize("form", FORMS)
@examples(20)
@given(
    lengths=lengths(),
    rows=st.lists(st.tuples(st.integers(-30, 30), st.sampled_from("ab")), min_size=1, max_size=12),
)
def test_windows_start_where_the_other_systems_put_them(
    form: str, lengths: tuple[int, int, int], rows: list[tuple[int, str]]
) -> None:
    range_, slide, start = lengths
    sql = form.format(range=range_, slide=slide, start=start)
    stream = Arrivals("s", SCHEMA, bounded("100 seconds"), (tuple((t * SECOND, k) for t, k in rows),))
    expected: dict[tuple[int, int, str], int] = {}
    for t, k in rows:
        for first in range(t - range_ + 1, t + 1):
            if (first - start) % slide == 0:
                key = (first * SECOND, (first + range_) * SECOND, k)
                expected[key] = expected.get(key, 0) + 1
    found = agreement(sql, [stream], evaluators=("local",))
    assert found.agrees, found.render()
    (verdict,) = found.verdicts
    assert verdict.got is not None
    assert {payload[1:4]: payload[4] for payload, _, _ in verdict.got.result} == expected


CASES = [
    ("SELECT count(*) FROM main GROUP BY ^session_window(ts, '5 minutes')", "Unknown function", "not supported"),
    ("SELECT count(*) FROM main GROUP BY ^SESSION(ts, INTERVAL '5' MINUTE)", "Unknown function", "[RANGE 10 minutes"),
    ("SELECT count(*) FROM TABLE(^SESSION(TABLE main PARTITION BY srcIP, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) "
     "GROUP BY window_start", "not supported", "sessions are not supported"),
    ("SELECT count(*) FROM TABLE(^CUMULATE(TABLE main, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)) "
     "GROUP BY window_start", "not supported", "write TUMBLE with the step"),
    ("SELECT count(*) FROM TABLE(^GENERATE(1)) GROUP BY window_start", "table function", "TUMBLE and HOP are"),
    ("SELECT count(*) FROM ^TUMBLE(TABLE main, DESCRIPTOR(ts), INTERVAL '1' DAY)", "cannot stand here", "TABLE(TUMBLE"),
    ("SELECT ^srcIP, count(*) FROM TABLE(TUMBLE(TABLE main, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY srcIP",
     "aggregated by window", "GROUP BY window_start, window_end"),
    ("SELECT ^* FROM TABLE(TUMBLE(TABLE main, DESCRIPTOR(ts), INTERVAL '1' DAY))", "aggregated by window"),
    ("SELECT count(*) FROM TABLE(TUMBLE(TABLE main, DESCRIPTOR(ts), INTERVAL '1' DAY)) WHERE ^window_end > ts "
     "GROUP BY window_end", "cannot stand here", "use HAVING"),
    ("SELECT count(*) FROM TABLE(TUMBLE(TABLE main, ^ts, INTERVAL '1' DAY)) GROUP BY window_end", "DESCRIPTOR(ts)"),
    ("SELECT count(*) FROM TABLE(TUMBLE(TABLE main, ^DESCRIPTOR(length), INTERVAL '1' DAY)) GROUP BY window_end",
     "does not progress"),
    ("SELECT count(*) FROM TABLE(TUMBLE(TABLE ^mian, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_end",
     "did you mean main?"),
    ("SELECT ^window, count(*) FROM main GROUP BY window(ts, '1 day')", "two bounds", "window.start and window.end"),
    ("SELECT ^window(ts, '1 day'), count(*) FROM main GROUP BY window(ts, '1 day')", "GROUP BY", "window.start"),
    ("SELECT count(*) FROM main GROUP BY window(ts, ^'1 month')", "no length", "weeks or smaller"),
    ("SELECT count(*) FROM main GROUP BY window(ts, '1 day', ^'2 days')", "no slide longer"),
    ("SELECT count(*) FROM main GROUP BY window(ts, '1 day', '1 hour', ^'1 hour')", "less than a slide off"),
    ("SELECT count(*) FROM main GROUP BY window(ts, '1 day', '1 hour', ^5)", "unit does not fit"),
    ("SELECT count(*) FROM main GROUP BY window(ts, '1 day', '1 hour', '0 s', ^'x')", "does not take this argument"),
    ("SELECT count(*) FROM main GROUP BY ^window(ts)", "Something is missing", "length before slide"),
    ("SELECT count(*) FROM main GROUP BY ^HOP(ts, INTERVAL '1' DAY)", "Something is missing", "slide before length"),
    ("SELECT count(*) FROM main GROUP BY TUMBLE(^ts + INTERVAL 1 DAY, INTERVAL '1' DAY)", "stands on a column"),
    ("SELECT count(*) FROM nums GROUP BY TUMBLE(t, INTERVAL ^'1' DAY)", "does not fit a number"),
    ("SELECT count(*) [TUMBLING 1 day, WA ts] FROM main GROUP BY ^window(ts, '1 day')", "window clauses of one SELECT"),
    ("SELECT ^TUMBLE_END(ts, INTERVAL '2' DAY), count(*) FROM main GROUP BY TUMBLE(ts, INTERVAL '1' DAY)",
     "another one than that of GROUP BY"),
    ("SELECT ^tumble_rowtime(ts, INTERVAL '1' DAY), count(*) FROM main GROUP BY TUMBLE(ts, INTERVAL '1' DAY)",
     "write window_end"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_is_not_there_is_refused_with_what_to_write(case: tuple[str, ...]) -> None:
    marked, *parts = case
    with pytest.raises(QueryError) as caught:
        bind(marked.replace("^", ""), catalog())
    for part in parts:
        assert part in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, marked.index("^") + 1), caught.value.message
