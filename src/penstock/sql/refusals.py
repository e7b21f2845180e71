"""What to write instead of the parts of SQL that queries over streams have not.

Each is named as it is written; whoever refuses one finds its hint here. A text that does not even parse gets one if a
word of it tells what was meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.sql.window_names import HOW_WINDOWS_ARE_WRITTEN

_SORTED = "sort or cut the collected result instead; the row with the greatest value of a window is max_by(x, value)"
_SCATTERED = "leave it out: where rows go is decided by the plan"

_OF_PARTS: dict[str, str] = {
    **dict.fromkeys(("ORDER BY", "LIMIT", "OFFSET", "SORT BY"), _SORTED),
    **dict.fromkeys(("DISTRIBUTE BY", "CLUSTER BY"), _SCATTERED),
    "WINDOW": HOW_WINDOWS_ARE_WRITTEN,
    "QUALIFY": "number the rows of a window in a sub-query, and choose among them: WHERE rn <= 10",
    "PIVOT": "write an aggregate for each column: sum(x) FILTER (WHERE kind = 'a') AS a",
    "UNPIVOT": "write a SELECT for each column, with UNION ALL between them",
    "DISTINCT ON": "take one row of each group of a window: GROUP BY the columns, with first(x) or max_by(x, y)",
    "* EXCEPT": "name the columns",
    "* REPLACE": "name the columns",
    "* RENAME": "name the columns",
    "RECURSIVE": "a query cannot read its own result: write each step as a query of WITH",
    "INTO": "write INSERT INTO name SELECT … in a script, flow.sql(…)",
    "FOR UPDATE": "leave it out: a query changes no rows",
    "TABLESAMPLE": "choose rows by a column: WHERE pmod(id, 10) = 0",
    "TOTALS": "write GROUP BY ROLLUP (…)",
    "BY NAME": "name the columns in the same order in each SELECT",
    "a list of column names after an alias": "name the columns with AS in the sub-query",
}
_OF_QUERIES: dict[type[exp.Expr], str] = {
    exp.Intersect: "write SELECT … FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND …), or IN",
    exp.Except: "write SELECT … FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND …), or NOT IN",
}
_OF_WORDS = {
    "MATCH_RECOGNIZE": "write PATTERN (A X*? B) WITHIN INTERVAL '5' MINUTE DEFINE A AS …, or SEQ(a, b) OVER […] MODE …",
    "TOP": "cut the collected result instead",
    "~": "write text RLIKE 'pattern'",
    "{": "write each part as a column",
}
_RANKED = "rows of a window are numbered by ROW_NUMBER() OVER (PARTITION BY window_start, window_end, … ORDER BY …)"
_NEIGHBOURS = "join the stream with itself, near in time; first(x) and last(x) are those of a window"
_OVER = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"), _RANKED),
    **dict.fromkeys(("lag", "lead", "nth_value"), _NEIGHBOURS),
}
STATEMENTS = {"CREATE", "INSERT"}
"""What a script has beside queries."""


def instead_of(part: str) -> str:
    """What to do about a part of a query that there is not."""
    return _OF_PARTS.get(part, "leave it out, or say it in another way")


def instead_of_query(tree: exp.Expr) -> str:
    """What to do about a kind of query that there is not."""
    return _OF_QUERIES.get(type(tree), "use SELECT and UNION")


def instead_of_over(window: exp.Expr) -> str:
    """What to do about a function over rows before and after."""
    called = window.this
    return _OVER.get(called.name.lower() if isinstance(called, exp.Anonymous) else "", HOW_WINDOWS_ARE_WRITTEN)


def instead_of_text(words: Sequence[str]) -> str:
    """What to do about a text that does not parse; empty if nobody knows. The last word is where it stopped."""
    said = [word.upper() for word in words]
    if said[:2] == ["SELECT", "TOP"]:
        return _OF_WORDS["TOP"]
    if said[-2:] == ["NULLS", "FILTER"] or said[-3:-1] == ["NULLS", "FILTER"]:
        return "FILTER stands before IGNORE NULLS: first(x) FILTER (WHERE …) IGNORE NULLS"
    if "MATCH_RECOGNIZE" in said:
        return _OF_WORDS["MATCH_RECOGNIZE"]
    return next((_OF_WORDS[word] for word in reversed(said[-3:]) if word in ("~", "{")), "")


def instead_of_statement(word: str) -> str:
    """What to do about a statement that is no query."""
    if word.upper() in STATEMENTS:
        return "statements beside SELECT are for a script: flow.sql(…)"
    return "write SELECT … FROM …"
