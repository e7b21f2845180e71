"""The definition of a replaced query, by hand.

```
tick            0 ... 19 | 20 ...
old, every 5    5 10 15  |
new, sums of 2           | 20 25 30 ...
```
"""

from __future__ import annotations

import penstock as pk
from penstock.plan.node import Node
from penstock.reference.evaluation import evaluate
from penstock.reference.replacement import Generation, is_whole_from, replaced

ARRIVALS = [("s", (t, 0, 2)) for t in range(40)]


def flow() -> pk.Flow:
    return pk.Flow().stream("s", [], time="ts", schema="ts bigint, k bigint, v bigint")


def windowed(what: str) -> Node:
    return flow().query(f"SELECT k, {what} AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k").plan


def test_each_time_has_one_generation() -> None:
    one, other = windowed("count(*)"), windowed("sum(v)")
    found = replaced([Generation(one), Generation(other, 20, 7)], ARRIVALS)
    ends = {event[1]: event[0][-1] for event in found}
    assert ends == {5: 5, 10: 10, 15: 10, 20: 20, 25: 20, 30: 20, 35: 20, 40: 20, 45: 10}
    third = replaced([Generation(one), Generation(other, 20, 7), Generation(one, 35, 20)], ARRIVALS)
    assert {event[1]: event[0][-1] for event in third} == {**ends, 35: 10, 40: 10, 45: 5}
    assert replaced([Generation(one)], ARRIVALS) == evaluate(one, ARRIVALS)


def test_at_once_divides_rows_by_their_arrival() -> None:
    made = flow()
    one, other = (made.query(f"SELECT ts, v + {more} AS v FROM s").plan for more in (0, 100))
    arrivals = [("s", (t, 0, 0)) for t in (3, 1, 2, 9, 4)]
    found = replaced([Generation(one), Generation(other, None, 3)], arrivals, late=[1, 4])
    assert sorted(event[0] for event in found) == [(2, 0), (3, 0), (9, 100)]


def test_a_generation_that_takes_over_at_once_does_not_speak_of_what_was_before_the_last_split() -> None:
    made = flow()
    one, two, three = (made.query(f"SELECT ts, v + {more} AS v FROM s").plan for more in (0, 100, 200))
    arrivals = [("s", (t, 0, 0)) for t in (1, 8, 2, 9)]
    found = replaced([Generation(one), Generation(two, 5, 1), Generation(three, None, 2)], arrivals)
    assert sorted(event[0] for event in found) == [(1, 0), (2, 0), (8, 100), (9, 200)]


def test_a_split_is_late_enough_if_nothing_that_was_missed_counts() -> None:
    plan = windowed("sum(v)")
    assert not is_whole_from(plan, ARRIVALS, 12, 20)
    assert is_whole_from(plan, ARRIVALS, 12, 25)
