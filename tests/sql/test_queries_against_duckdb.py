"""Random queries that put everything together against DuckDB, which nobody here wrote: the same rows in-process.

Joins, lookups, versions, sub-queries, unions, views, the functions that DuckDB can be taught, aggregates, grouping
sets, windows in everybody's words and in one another, over odd rows, some of them late. A failure prints its
seed: `check(seed)` does it again.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache

import pytest

from penstock.errors import QueryError
from tests.docs.pages import ROOT
from tests.judge.asked import duck, ours
from tests.judge.combined import Combined, CombinedQuery
from tests.judge.compare import difference
from tests.judge.odd_rows import Data, make_data

NO_SENSE = ("cannot hold together", "does not progress")
"""Why a query may be refused: chance made no sense of its times, or took a copy of a time that a join does not know."""


def made(seed: int) -> tuple[CombinedQuery, Data, random.Random]:
    chance = random.Random(seed)
    data = make_data(chance)
    return Combined(chance, data).query(), data, chance


def check(seed: int) -> int:
    query, data, chance = made(seed)
    expected = duck(query, data)
    told = f"seed {seed}\n{query.ours}\n{query.duck}"
    try:
        found = ours(query, data, chance)
    except QueryError as error:
        assert any(reason in error.message for reason in NO_SENSE), f"{told}\n{error.message}"  # noqa: PT017
        return 0
    except AssertionError as error:
        raise AssertionError(f"{told}\n{error}") from error
    if query.open_number:
        found, expected = [row[1:] for row in found], [row[1:] for row in expected]
    differs = difference(found, expected)
    assert not differs, f"{told}\n{differs}"
    return len(expected)


def test_random_queries_of_everything_give_what_duckdb_gives() -> None:
    assert sum(check(seed) > 0 for seed in range(100)) > 40  # there is something to compare


@pytest.mark.slow
def test_two_thousand_random_queries_of_everything_give_what_duckdb_gives() -> None:
    start = random.SystemRandom().randrange(2**40)
    assert sum(check(start + n) > 0 for n in range(2000)) > 800


FORMS = [
    " JOIN ", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", " SEMI ", " ANTI ", "NOT IN (SELECT", " IN (SELECT", "NOT EXISTS",
    "EXISTS", "FOR SYSTEM_TIME AS OF", "JOIN dim", "UNION ALL", " UNION SELECT", "FROM x UNION", "WITH v",
    "CREATE VIEW", "TUMBLING", ", SLIDE", "ORIGIN", "GROUP BY window(", "TUMBLE(", "HOP(", "TABLE(", "WA r",
    "ROLLUP", "CUBE", "GROUPING SETS", "GROUP BY ALL", "grouping_id()", "HAVING", "FILTER (WHERE", "DISTINCT",
    "IGNORE NULLS", "CASE ", " div ", "<=>", "INTERVAL", "RLIKE", "get_json_object", "date_format", "percentile",
    "mode(", "max_by", "first(", "IS DISTINCT FROM", "ASOF JOIN", "ASOF LEFT JOIN", "WA row-num", " greatest(",
    "months_between",
]  # fmt: skip


PLAIN = ("Text", "Numbers", "Times and dates", "Choice")
"""Sections of the page of which the functions are asked: those of values that are not made of others."""


@lru_cache(maxsize=1)
def texts() -> str:
    return "\n".join(made(seed)[0].ours for seed in range(1000))


def test_queries_are_of_every_form() -> None:
    assert [form for form in FORMS if form not in texts()] == []


def test_every_function_of_the_page_is_asked() -> None:
    """Those of the lists of plain values, under one of their names."""
    page = (ROOT / "docs" / "concepts" / "functions.md").read_text(encoding="utf-8")
    listed = page.partition("<!-- functions -->")[2].partition("<!-- end of functions -->")[0]
    sections = dict(part.partition("\n")[::2] for part in listed.split("### ")[1:])
    lines = [line for kind in PLAIN for line in sections[kind].splitlines() if line.startswith("| `")]
    rows = [re.findall(r"`(\w+)[(`]", line) for line in lines]
    asked = texts().lower()
    missing = [names[0] for names in rows if not any(f"{name}(" in asked or f" {name} " in asked for name in names)]
    assert len(rows) > 60
    assert missing == []


def test_rows_are_odd() -> None:
    """Every nuisance is among the rows of the ordinary run."""
    made_ = [make_data(random.Random(seed)) for seed in range(100)]
    rows = [row for data in made_ for stream in data.streams.values() for row in stream.rows]
    doubles = {repr(row["d"]) for row in rows}
    assert {"nan", "inf", "-inf", "-0.0", "None"} <= doubles
    assert {"null", "NaN", " 7", "1e3", ""} <= {row["w"] for row in rows}
    assert any(len(stream.on_time) < len(stream.rows) - 5 for data in made_ for stream in data.streams.values())
    assert {0, 1} <= {len(stream.rows) for data in made_ for stream in data.streams.values()}
