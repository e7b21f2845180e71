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
