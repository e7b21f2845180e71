"""Patterns in which something must not come, beside Flink's MATCH_RECOGNIZE: the same clauses, the same rows.

`python benchmarks/negation.py [rows]`. A log of logins is made at random, up to five seconds out of order. Each clause
is run by Penstock in-process and by Flink SQL (`make bench-peers`), and the matches must be the same. What must not
come after the last row has no words in Flink's clause: there the answer is computed by brute force, row against row.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import penstock as pk

FLINK = Path(".bench/flink/bin/python")
START = datetime(2026, 1, 1, tzinfo=UTC)
DISORDER = 5000
"""Milliseconds."""
LIMIT = 60
CLAUSE = """
    PARTITION BY usr ORDER BY ts
    MEASURES A.n AS a, B.n AS b
    ONE ROW PER MATCH AFTER MATCH SKIP {skip}
    PATTERN (A X*? B) WITHIN INTERVAL '60' SECOND
    DEFINE A AS A.what = 'failed', B AS B.what = 'login', X AS {between}"""
CLAUSES = {
    "from_each_row": CLAUSE.format(skip="TO NEXT ROW", between="X.what <> 'reset'"),
    "past_the_last_row": CLAUSE.format(skip="PAST LAST ROW", between="X.what <> 'reset'"),
    "two_things": CLAUSE.format(skip="TO NEXT ROW", between="X.what <> 'reset' AND X.what <> 'logout'"),
}
TRAILING = f"""
    SELECT a.usr, a.n FROM SEQ(log AS a, NOT log AS b) OVER [{LIMIT} SECONDS FOLLOWING a]
    WHERE a.usr = b.usr AND a.what = 'failed' AND b.what = 'login'"""
Row = dict[str, Any]


def made(rows: int) -> list[Row]:
    """A log whose rows of one user have different times, in an order of arrival that is within the bound."""
    dice = random.Random(7)
    times: set[tuple[str, int]] = set()
    while len(times) < rows:
        times.add((dice.choice("abcdefghij"), dice.randrange(rows * 500)))
    found = [
        {"ms": ms, "usr": user, "what": dice.choice(("failed", "failed", "login", "reset", "logout", "click")), "n": n}
        for n, (user, ms) in enumerate(sorted(times))
    ]
    return sorted(found, key=lambda row: row["ms"] + dice.random() * DISORDER)


def flow_over(rows: list[Row]) -> pk.Flow:
    """A flow with the log as a stream."""
    log = [{**row, "ts": START + timedelta(milliseconds=row["ms"])} for row in rows]
    return pk.Flow().stream("log", log, time="ts", progress=pk.bounded("5 seconds"))


def by_flink(rows: list[Row]) -> dict[str, Counter[tuple[str, ...]]]:
    """What each clause gives, row by row."""
    with tempfile.TemporaryDirectory(prefix="flink-patterns-") as home:
        log, queries, results = (Path(home) / name for name in ("log.csv", "queries.json", "results"))
        origin = int(START.timestamp() * 1000)
        with log.open("w", newline="") as file:
            csv.writer(file).writerows([[origin + r["ms"], r["usr"], r["what"], r["n"]] for r in rows])
        queries.write_text(json.dumps(CLAUSES))
        script = Path(__file__).parent / "peers" / "flink_patterns.py"
        subprocess.run([FLINK, script, log, queries, results], check=True, capture_output=True)
        found = {}
        for name in CLAUSES:
            lines = [line for part in (results / name).glob("part-*") for line in part.read_text().splitlines()]
            found[name] = Counter(tuple(each) for each in csv.reader(lines))
        return found


def by_brute_force(rows: list[Row]) -> Counter[tuple[str, int]]:
    """Failures that no login of the same user follows in time."""
    found: Counter[tuple[str, int]] = Counter()
    for a in rows:
        until = a["ms"] + LIMIT * 1000
        follows = any(b["what"] == "login" and b["usr"] == a["usr"] and a["ms"] < b["ms"] <= until for b in rows)
        if a["what"] == "failed" and not follows:
            found[a["usr"], a["n"]] += 1
    return found


def main(count: int) -> None:
    """Print how many matches each has; differences end the program."""
    rows = made(count)
    theirs = by_flink(rows)
    is_same = True
    for name, clause in CLAUSES.items():
        table = flow_over(rows).query(f"SELECT * FROM log MATCH_RECOGNIZE ({clause})").collect()
        ours = Counter(tuple(str(value) for value in row.values()) for row in table.to_pylist())
        is_same = is_same and ours == theirs[name]
        print(f"{name}: {ours.total()} matches, Flink SQL {theirs[name].total()}, "
              f"{(ours - theirs[name]).total()} only here, {(theirs[name] - ours).total()} only there")  # fmt: skip
    table = flow_over(rows).query(TRAILING).collect()
    ours_after = Counter((row["usr"], row["n"]) for row in table.to_pylist())
    expected = by_brute_force(rows)
    print(f"after the last row: {ours_after.total()} matches, by brute force {expected.total()}, "
          f"{((ours_after - expected) + (expected - ours_after)).total()} differ")  # fmt: skip
    if not is_same or ours_after != expected:
        sys.exit("the answers differ")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
