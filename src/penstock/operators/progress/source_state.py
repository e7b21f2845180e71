"""What is known of the sources of a stream, and the bound that follows from it.

The least is kept as a heap with one entry per source, whose time may lag behind; it is brought up to date when it gets
to the top. So a row costs O(lg sources) at worst and one comparison as a rule, and never a look at all sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np

from penstock.model.time import MIN_TICK, earlier
from penstock.model.values import canonical

State = dict[str, Any]
"""Plain values: `greatest` per source, `heap` of (time, number, source), `awaited` names, `first`, `newest`, `bound`,
and how many entries were `made`."""


def started(state: State | None, sources: Sequence[Any]) -> State:
    """The state, or that of a stream which waits for some sources and of which nothing was heard."""
    if state is not None:
        return state
    awaited = list(dict.fromkeys(canonical(s) for s in sources))
    return {"greatest": {}, "heap": [], "awaited": awaited, "first": None, "newest": MIN_TICK, "bound": MIN_TICK,
            "made": 0}  # fmt: skip


def hear(state: State, source: Any, time: int) -> bool:
    """Whether a source has come further with a row that is on time; it is known from then on."""
    known = state["greatest"].get(source)
    if known is None:
        heappush(state["heap"], (time, state["made"], source))
        state["made"] += 1
        if source in state["awaited"]:
            state["awaited"].remove(source)
    elif time <= known:
        return False
    state["greatest"][source] = time
    state["newest"] = max(state["newest"], time)
    return True


def before_by(times: np.ndarray, by: int) -> np.ndarray:
    """Times less a length, as `earlier`; what would lie before all time is no bound."""
    made: np.ndarray = times - by
    if len(times) and int(times.min()) < MIN_TICK + by:
        made[times < MIN_TICK + by] = MIN_TICK
    return made


@dataclass(frozen=True)
class Rule:
    """How far behind its source a row may come, and from when on a source is idle."""

    disorder: int
    idle: int | None

    def settle(self, state: State) -> None:
        """Forget what is idle, and let the bound follow the least of the rest."""
        floor = MIN_TICK if self.idle is None else earlier(state["newest"], self.idle)
        if state["awaited"]:
            if self.idle is None or state["first"] >= floor:
                return
            state["awaited"] = []  # the stream has come too far to wait for them
        greatest, heap = state["greatest"], state["heap"]
        while heap:
            noted, number, source = heap[0]
            time = greatest[source]
            if time < floor:
                heappop(heap)
                del greatest[source]
            elif time > noted:
                heapreplace(heap, (time, number, source))
            else:
                state["bound"] = max(state["bound"], earlier(time, self.disorder))
                return
