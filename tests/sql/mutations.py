"""Queries that are almost right: every query that the pages print and others, changed at random."""

from __future__ import annotations

import random
import re
from functools import lru_cache

import yaml

from tests.docs.pages import PAGES, ROOT, blocks
from tests.judge.queries import Maker

MORE = [
    "SELECT k, count(*) AS n, sum(v) AS x [RANGE 10, SLIDE 5, WA t] FROM s GROUP BY k HAVING n > 1 AND x < 5",
    "SELECT t, CASE WHEN v > 1 THEN 'a' WHEN v IS NULL THEN 'b' ELSE k END AS c, coalesce(v, 1), nullif(v, 2) FROM s",
    "WITH a AS (SELECT t, k, v FROM s WHERE v BETWEEN 1 AND 5) SELECT max(v) [RANGE 4, SLIDE 2, WA t] FROM a",
    "SELECT DISTINCT k FROM (SELECT k, v FROM s WHERE k LIKE '%a_') AS z UNION SELECT k FROM s",
    "SELECT count(DISTINCT k), var_pop(v), avg(d) FROM s [RANGE TUMBLING 8, WA t, ORIGIN 3]",
    "SELECT t, substring(k, 1, 2), upper(k) || lower(k), CAST(v AS string), -v % 3, v div 2, NOT (v <=> 1) FROM s",
    "SELECT year(ts), date_trunc('hour', ts), ts + INTERVAL 5 SECONDS, ts > '2026-01-01 10:00:00' FROM s",
    "SELECT count(*) [RANGE 4 rows, SLIDE 2 rows, WA row-num, PA k] FROM s",
    "SELECT count(*) [RANGE 8, RATTR t, SLIDE 1 row, SATTR rank(t)] FROM s",
    "SELECT count(*) [RANGE ALL, SLIDE 4, WA t] FROM s UNION s",
    "SELECT greatest(v, 2), least(d, 1.5e0), v IN (1, 2, NULL), b IS TRUE, 'it''s', `v`, 1.50 AS x FROM s",
]  # fmt: skip
WORDS = """
SELECT FROM WHERE GROUP BY HAVING UNION ALL DISTINCT AS AND OR NOT IN BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END
CAST INTERVAL ORDER LIMIT JOIN ON USING OVER PARTITION WITH ROLLUP CUBE TABLESAMPLE PIVOT LATERAL VIEW EXPLODE VALUES
EXISTS ANY SOME ESCAPE FILTER QUALIFY WINDOW ROWS RANGE SLIDE WA WATTR PA RATTR SATTR ORIGIN TUMBLING row-num rank
count sum avg min max coalesce if trim year date_trunc nullif array map struct transform lambda -> => :: || <=> != ==
<> <= >= << >> & ^ ~ ! @ # $ % * / + - . , ; : ( ) [ ] { } ' " ` \\ ? 1 0 -1 1e400 1e-400 0x1F .5 5. 5L 5BD 1_0 v t
9223372036854775808 99999999999999999999999999999999999999999 NaN TRUE FALSE '' 'a' '%' '\\' "a" `a` k s ts d b nope
s.k x.y ** /* */ -- é 😀 ∪ GROUPBY GROUP-BY DELETE INSERT DROP FOR UPDATE TIMESTAMP DATE decimal(38,10) int string
decimal(99,99) ARRAY<INT> minutes seconds rows days hour month
"""
POOL = [*WORDS.split(), "\n", "\t", "\x00", "\u00a0", ""]
ALIKE = [
    (
        "k",
        "v",
        "d",
        "b",
        "t",
        "ts",
        "x",
        "n",
        "s",
        "srcIP",
        "len",
        "length",
        "destPort",
        "temp",
        "NULL",
        "TRUE",
        "window_end",
    ),
    ("1", "0", "2", "5", "10", "60", "9223372036854775807", "1.5", "1e300", "'a'", "'2026-01-01'", "-1", "99999999999"),
    ("=", "<", ">", "+", "-", "*", "/", "%", "<=>", "div", "AND", "OR", "||", "LIKE", "IS NOT"),
    (
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "var_pop",
        "abs",
        "floor",
        "lower",
        "length",
        "sqrt",
        "year",
        "trim",
        "upper",
    ),
    ("minutes", "minute", "seconds", "rows", "row", "days", "hours", "ms", "weeks", "h"),
    ("RANGE", "SLIDE", "TUMBLING", "WA", "PA", "RATTR", "SATTR", "ORIGIN"),
    (" ", "\n", "  ", " -- c\n", " /* c */ "),
]
"""Words that can often stand for one another."""
SLIPS = """
, , , . ( ) AS AS ALL DISTINCT NOT * - = 'z' 2 v k IS IN AND BETWEEN CASE WHEN THEN ELSE END UNION ; FROM
"""
SMALL = SLIPS.split()
_WORD = re.compile(r"'(?:[^'\\]|\\.|'')*'|\[[^\]]*\]|`[^`]*`|[\d.]*\d(?:e-?\d+)?|\w+|<=>|[<>!=|]+|[^\s\w]")
_TOKEN = re.compile(r"\s+|\w+|.", re.DOTALL)


@lru_cache(maxsize=1)
def corpus() -> tuple[str, ...]:
    """The queries of the pages and of the transcripts, and those above."""
    found: list[str] = []
    for page in PAGES:
        for block in blocks(page, "sql"):
            found += [q for q in block.text.split(";") if q.strip()]
        for block in blocks(page, "python"):
            found += re.findall(r"\"(SELECT [^\"]+)\"", block.text)
    for path in sorted((ROOT / "tests" / "transcripts").glob("*.yaml")):
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += [str(loaded[key]) for key in ("sql", "query") if isinstance(loaded, dict) and key in loaded]
    return (*found, *MORE)


def mutated(random_: random.Random) -> str:
    """One query of the corpus, or one made at random, with a few things wrong."""
    made = random_.random() < 0.5
    return changed(Maker(random_).query().penstock if made else random_.choice(corpus()), random_)


def changed(text: str, random_: random.Random) -> str:
    """A text with a few things wrong."""
    parts = _TOKEN.findall(text)
    for _ in range(random_.choice((1, 1, 1, 2, 2, 3, 3, 5, 9))):
        _change(parts, random_)
    return "".join(parts)


def slipped(random_: random.Random) -> str:
    """A query of the corpus, or one made at random, with a slip or two: a small word too many, or one missing."""
    made = random_.random() < 0.3
    parts = _WORD.findall(Maker(random_).query().penstock if made else random_.choice(corpus()))
    for _ in range(random_.choice((1, 1, 1, 2))):
        at = random_.randrange(len(parts))
        match random_.randrange(4):
            case 0:
                parts[at : at + 1] = []
            case 1:
                parts[at:at] = [parts[at]]
            case _:
                parts[at:at] = [random_.choice(SMALL)]
        parts = parts or ["SELECT"]
    return " ".join(parts)


def _change(parts: list[str], random_: random.Random) -> None:
    at = random_.randrange(len(parts) + 1)
    other = random_.randrange(len(parts) + 1)
    low, high = min(at, other), max(at, other)
    match random_.choices(range(11), weights=(12, 14, 12, 20, 8, 3, 8, 3, 6, 2, 60))[0]:
        case 0:
            del parts[at : at + random_.choice((1, 1, 1, 3))]
        case 1:
            parts[at:at] = [" ", random_.choice(POOL), " "]
        case 2 if at < len(parts):
            parts[at] = random_.choice(POOL)
        case 3 if at < len(parts):
            parts[at] = random_.choice(_TOKEN.findall(random_.choice(corpus())))
        case 4 if high < len(parts):
            parts[low], parts[high] = parts[high], parts[low]
        case 5:
            parts[at:at] = parts[low : low + 12] * random_.choice((1, 2, 30))
        case 6:
            taken = _TOKEN.findall(random_.choice(corpus()))
            start = random_.randrange(len(taken))
            parts[at:at] = taken[start : start + random_.randrange(1, 15)]
        case 7:
            depth = random_.choice((1, 2, 50, 70, 500))
            before, after = random_.choice((("(", ")"), ("NOT ", ""), ("-", ""), ("coalesce(", ", 1)"), ("[", "]")))
            parts[low:high] = [before * depth, *parts[low:high], after * depth]
        case 8 if at < len(parts) and parts[at]:
            place = random_.randrange(len(parts[at]))
            parts[at] = parts[at][:place] + random_.choice("'\"\\\x00λ😀([") + parts[at][place:]
        case 9:
            joiner = random_.choice((" OR ", " AND ", " + ", ", ", " UNION ALL ", " || "))
            parts[low:high] = [joiner.join(["".join(parts[low:high])] * random_.choice((2, 20)))]
        case 10:
            kinds = [(i, kind) for i, part in enumerate(parts) for kind in ALIKE if part in kind]
            for place, kind in random_.sample(kinds, min(1, len(kinds))):
                parts[place] = random_.choice(kind)
        case _:
            parts.insert(at, random_.choice(" ,()1"))
    if sum(map(len, parts)) > 20_000:
        parts[:] = ["".join(parts)[:10_000]]
    if not parts:
        parts.append(" ")
