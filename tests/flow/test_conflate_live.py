"""A conflated query over a source that goes on: what a run that is finished owes, and what is read while it runs."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

import penstock as pk


class Tap:
    """Gives what was put into it, and has no end."""

    def __init__(self) -> None:
        self.items: deque[Any] = deque()

    def poll(self) -> Any:
        return self.items.popleft() if self.items else pk.IDLE


def tapped(tap: Tap, columns: str = "ts bigint, k string, v bigint", **options: Any) -> pk.Flow:
    """A stream `s` out of it, and what is conflated of that, `c`."""
    return pk.Flow().stream("s", tap, time="ts", schema=columns, update_key="k").conflate("c", "s", **options)


def told(run: Any, tap: Tap, *rows: tuple[Any, ...]) -> None:
    """Each is processed before the next comes."""
    for row in rows:
        tap.items.append(dict(zip(("ts", "k", "v"), row, strict=True)))
        run.process_available()


@pytest.mark.parametrize("paced", [{"every": "1 hour"}, {"access": {"a": "1 hour"}}], ids=str)
@pytest.mark.parametrize("together", [False, True])
def test_a_run_that_is_finished_has_handed_on_the_last_value_of_every_key(
    paced: dict[str, Any], together: bool
) -> None:
    #  a0 goes on, a1 and a2 come within the hour; above it another queue, in which a2 would sleep once more
    tap, out = Tap(), list[Any]()
    flow = tapped(tap, **paced).conflate("twice", "c", **paced)
    query = flow.query("SELECT * FROM twice", name="q")
    run: Any = flow.start({query: out}) if together else query.start(out)
    told(run, tap, (0, "a", 0), (1, "a", 1), (2, "a", 2))
    assert [row["v"] for row in out] == [0]
    run.finish()
    assert [row["v"] for row in out] == [0, 2]
    own = run.runs["q"] if together else run
    assert [queue.waiting for queue in own.progress.queues] == [0, 0]


@pytest.mark.parametrize(
    ("select", "lives"),
    [("*", False), ("k, v", False), ("v * 10 AS v, k AS name, ts", False), ("*", True), ("k, v", True)],
)
def test_what_is_read_is_the_newest_row_whether_it_waits_or_was_delivered(select: str, lives: bool) -> None:
    #  a1 goes on, a2 waits for an hour; a3 would be left out: it waits, and nothing holds of a as soon as it has come
    tap = Tap()
    run = tapped(tap, every="1 hour", lives=lives).query(f"SELECT {select} FROM c WHERE v < 3").start(None)
    times = 10 if "* 10" in select else 1
    found = []
    for row in [(1, "a", 1), (2, "a", 2), (3, "a", 3), (4, "a", 0)]:
        told(run, tap, row)
        read = run.read("a")
        found.append(None if read is None else read["v"])
    assert found == [1 * times, 2 * times, None, 0]
    run.stop()
    assert (run.read("a") or {})["v"] == 0  # it goes on waiting
    assert run.read("b") is None


@pytest.mark.parametrize("lives", [False, True])
def test_nothing_is_read_of_a_key_whose_newest_row_was_left_out(lives: bool) -> None:
    tap, out = Tap(), list[Any]()
    run = tapped(tap, lives=lives).query("SELECT k, v FROM c WHERE v < 3").start(out)
    told(run, tap, (1, "a", 1), (2, "a", 5))
    assert run.progress.queues[0].delivered == 2
    assert run.read("a") is None
    told(run, tap, (3, "a", 2))
    assert run.read("a") == {"k": "a", "v": 2}
    run.stop()


def test_keys_are_read_in_the_order_of_the_result() -> None:
    tap = Tap()
    columns = "ts bigint, i bigint, k bigint, v bigint"
    flow = pk.Flow().stream("s", tap, time="ts", schema=columns, update_key=["i", "k"]).conflate("c", "s")
    run = flow.query("SELECT v, k AS first, i AS second FROM c").start(None)
    tap.items.append({"ts": 1, "i": 1, "k": 2, "v": 7})
    run.process_available()
    assert run.read((2, 1)) == {"v": 7, "first": 2, "second": 1}
    assert run.read((1, 2)) is None
    assert run.staleness((2, 1))["average_queue_staleness"] >= 0
    run.stop()


def test_a_run_from_a_snapshot_reads_what_was_delivered_before() -> None:
    tap = Tap()
    flow = tapped(tap)
    query = flow.query("SELECT k, v FROM c", name="q")
    run = flow.start({query: None})
    told(run, tap, (1, "a", 1), (2, "b", 2))
    run.stop()
    again = flow.start({query: None}, snapshot=run.snapshot())
    assert again.runs["q"].read("a") == {"k": "a", "v": 1}
    told(again, tap, (3, "a", 3))
    assert [again.runs["q"].read(key)["v"] for key in "ab"] == [3, 2]  # type: ignore[index]
    again.stop()


def test_a_key_that_its_queue_forgets_is_read_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.operators.queues.update_queue.LEAST_KEYS", 2)
    tap = Tap()
    run = tapped(tap, forget_after="1 microsecond").query("SELECT * FROM c").start(None)
    told(run, tap, *[(n, f"k{n}", n) for n in range(6)])
    assert run.read("k0") is None
    assert run.read("k5") == {"ts": 5, "k": "k5", "v": 5}
    run.stop()


def test_what_was_kept_to_be_read_does_not_grow_old_where_nobody_reads() -> None:
    tap = Tap()
    query: Any = tapped(tap).query("SELECT * FROM c")
    run = query.start(None)
    told(run, tap, (1, "a", 1))
    run.stop()
    by_hand = query.execution()
    by_hand.restore(run.snapshot())
    by_hand.pusher("s")((2, "a", 2))
    by_hand.release()
    assert by_hand.graph.queued[0].operator.current(("a",)) == (2, "a", 2)


def test_a_row_that_fails_above_the_queue_is_not_read() -> None:
    tap = Tap()
    run = tapped(tap, every="1 hour").query("SELECT k, 10 DIV v AS part FROM c").start(None)
    told(run, tap, (1, "a", 5))
    assert run.read("a") == {"k": "a", "part": 2}
    told(run, tap, (2, "a", 0))
    assert run.read("a") is None  # it waits, and will become a dead letter
    run.stop()
