"""The runs of Figures 16 and 17: memory under keys of more and less skew, at rising rates (section 7.3).

A hundred keys by Zipf's law; ten rows a second are processed and twenty to a thousand come, until a thousand results
are delivered. Tuples take half a kilobyte, pages four. What is measured is what the paper does, locations that are set
aside for keys, and what it stands for, the bytes of the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.operators.queues.choosing import memory_of
from penstock.operators.queues.key_orders import InPlace
from penstock.operators.queues.page_pool import PagePool
from penstock.operators.queues.queue import MemoryUsage
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.papers.upstream.simulation import COST, KEY, WIDE, Arrivals, simulate, zipf

KEYS, RESULTS, OUT = 100, 1000, 10
THETAS = (0.0, 0.3, 0.6, 0.9)
RATES = (20, 50, 100, 200, 500, 1000)
MEMORIES = ("on-demand", "naive")
PAGE = 4096
Case = tuple[float, int, str]


def arrivals(theta: float, rate: int, results: int) -> Arrivals:
    """Rows at even distances, of keys by lot."""
    rows = results * rate // OUT
    random = np.random.default_rng(int(theta * 10) + rate)
    shares = zipf(KEYS, theta)
    keys = random.choice(KEYS, rows, p=shares / shares.sum())
    return Arrivals((np.arange(rows) * (COST * OUT / rate)).astype(np.int64), keys)


@lru_cache(maxsize=1)
def grid(results: int, say: Callable[[str], None]) -> dict[Case, MemoryUsage]:
    """What every manager took, by skew and rate."""
    found: dict[Case, MemoryUsage] = {}
    for theta in THETAS:
        for rate in RATES:
            given = arrivals(theta, rate, results)
            for memory in MEMORIES:
                queue = UpdateQueue(WIDE, KEY, InPlace(), memory_of(memory, PagePool(PAGE)))
                found[theta, rate, memory] = simulate(queue, given).memory
        say(f"figures 16 and 17: skew {theta}")
    return found


def averaged(found: dict[Case, MemoryUsage], memory: str, cases: Sequence[tuple[float, int]]) -> dict[str, Any]:
    """Usage on average over some cases."""
    mine = [found[theta, rate, memory] for theta, rate in cases]
    return {
        "memory": memory,
        "effective usage": round(float(np.mean([usage.effective for usage in mine])), 4),
        "average usage, locations": round(float(np.mean([usage.average_locations for usage in mine])), 2),
        "average usage, bytes of pages": round(float(np.mean([usage.average_bytes for usage in mine]))),
    }


def worst(found: dict[Case, MemoryUsage], name: str) -> float:
    """A usage under on-demand paging beside the naive one, where it is greatest."""
    cases = [(theta, rate) for theta in THETAS for rate in RATES]
    return max(
        float(getattr(found[theta, rate, "on-demand"], name) / getattr(found[theta, rate, "naive"], name))
        for theta, rate in cases
    )
