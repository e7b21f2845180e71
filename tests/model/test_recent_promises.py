"""What was lately promised: no more than was, not too much of it, and in a form that JSON can hold."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Punctuation, groupwise, joint, linear
from penstock.model.frontier import Frontier
from penstock.model.recent_promises import MOST, RecentPromises
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME

BOUNDS = st.integers(0, 6) | st.just(END_OF_TIME)
PROMISES = st.lists(
    st.builds(lambda b: linear("t", b), st.integers(0, 6))
    | st.builds(lambda b, k: groupwise("t", b, k=k), BOUNDS, st.sampled_from(["a", "b", None, 1.5, math.nan]))
    | st.builds(lambda b, k, j: groupwise("t", b, k=k, j=j), BOUNDS, st.sampled_from("ab"), st.integers(0, 1))
    | st.builds(lambda a, b: joint(t=a, u=b), st.integers(0, 6), st.integers(0, 6)),
    max_size=30,
)


@given(promises=PROMISES)
def test_few_promises_are_those_of_the_frontier_that_are_not_linear(promises: list[Punctuation]) -> None:
    frontier, recent = Frontier(promises), RecentPromises(promises)
    last = linear("t", frontier.bound("t"))
    assert Frontier([last, *recent]) == frontier
    assert not any(p.is_linear for p in recent)
    assert Frontier([last, *frontier.newest(MOST)]) == frontier
    assert all(frontier.implies(p) for p in frontier.newest(2))
    assert len(frontier.newest(2)) <= 2
    again = RecentPromises.from_text(recent.to_text(), "here")
    assert Frontier(list(again)) == Frontier(list(recent))


def test_of_many_the_last_are_kept() -> None:
    """Ends of groups are passed by nothing, so their number is bounded."""
    promises = [groupwise("t", END_OF_TIME, k=i) for i in range(3 * MOST)]
    recent = RecentPromises(promises)
    assert list(recent) == promises[-MOST:]
    assert Frontier(promises).newest(MOST) == promises[-MOST:]
    recent.add(linear("t", END_OF_TIME))
    assert len(recent) == 0


def test_what_is_shown_goes_through_json() -> None:
    schema = schema_of([("t", "timestamp"), ("k", "decimal(4,1)"), ("d", "date"), ("at", "timestamp"), ("x", "double")],
                       "t")  # fmt: skip
    promise = groupwise("t", 60_000_000, k=Decimal("1.5"), d=dt.date(2026, 1, 2), at=0, x=math.nan)
    (shown,) = RecentPromises([promise]).shown(schema)
    assert json.loads(json.dumps(shown, allow_nan=False)) == {
        "of": {"k": "1.5", "d": "2026-01-02", "at": "1970-01-01 00:00:00", "x": "nan"},
        "up_to": {"t": "1970-01-01 00:01:00"},
    }
    (ended,) = RecentPromises([groupwise("t", END_OF_TIME, x=0.5)]).shown(schema)
    assert ended == {"of": {"x": 0.5}, "up_to": {"t": "end"}}
