"""The in-process engine on a real log: what is late is in `late`, and the rest is exact."""

from __future__ import annotations

import penstock as pk
from penstock.model.tdb import tdb
from tests import zeek


def test_a_bound_beyond_the_disorder_leaves_nothing_late() -> None:
    """The log is at most 671 s out of order."""
    rows = zeek.dns_rows()
    flow = pk.Flow().stream("dns", zeek.dns_table(rows), time="ts", progress=pk.bounded("700 seconds"))
    query = flow.query(zeek.SQL)
    got = tdb(query.elements())
    assert query.late.num_rows == 0
    assert query.counts == {
        "read": len(rows),
        "on_time": len(rows),
        "late": 0,
        "dead": 0,
        "punctuation": 0,
        "skipped": 0,
        "failed": 0,
    }
    assert not zeek.expected(query.plan, rows, zeek.Counter()).difference(got)


def test_late_rows_are_all_kept_and_the_rest_is_exact() -> None:
    """With thirty seconds many rows are late, and exactly those."""
    rows = zeek.dns_rows()
    flow = pk.Flow().stream("dns", zeek.dns_table(rows), time="ts", progress=pk.bounded("30 seconds"))
    query = flow.query(zeek.SQL)
    got = tdb(query.elements())
    late = zeek.late_numbers(query.late)
    assert late == zeek.behind(rows, 30)
    assert len(late) > 1000
    assert query.counts["on_time"] + len(late) == len(rows)
    assert not zeek.expected(query.plan, rows, zeek.behind(rows, 30)).difference(got)
