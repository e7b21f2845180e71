"""Random queries of everything with a few things wrong: a result, or an error of our own with a place, and soon."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError, QueryError
from tests.judge.asked import declare
from tests.judge.combined import Combined
from tests.judge.odd_rows import make_data
from tests.sql.mutations import changed

LONGEST = 5.0
_LENGTH = re.compile(r"\d{6,}")


def try_query(seed: int) -> str:
    """What becomes of a query; anything but a result or an error of our own is raised."""
    chance = random.Random(seed)
    data = make_data(chance)
    sql = changed(Combined(chance, data).query().ours, chance)
    flow = pk.Flow()
    declare(flow, data, chance)
    started = time.process_time()
    try:
        queries = flow.sql(sql).queries
    except QueryError as error:
        if min(error.line, error.column) < 1:
            raise AssertionError(f"no place: {error.message}") from error
        return "refused"
    finally:
        assert time.process_time() - started < LONGEST, sql
    if _LENGTH.search(sql):  # every row would be in so many windows, all of which are results
        return "bound"
    for query in queries:
        try:
            query.collect()
        except PenstockError:
            return "failed"
        assert time.process_time() - started < LONGEST, sql
    return "run"


def test_what_becomes_of_them_is_of_every_kind() -> None:
    assert {try_query(seed) for seed in range(60)} >= {"refused", "run"}


@given(seed=st.integers(0, 2**63))
def test_only_errors_of_our_own(seed: int) -> None:
    try_query(seed)


@pytest.mark.slow
def test_five_thousand_mutations_give_only_errors_of_our_own() -> None:
    start = random.SystemRandom().randrange(2**40)
    for seed in range(start, start + 5000):
        try:
            try_query(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
