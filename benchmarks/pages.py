"""Pages as plain data beside pickles of the same: `python benchmarks/pages.py`.

Each page is one that operators keep, of the size that a busy micro-batch writes. Best of several turns, by turns.
"""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.model.elements import Insert
from penstock.model.plain import decode, encode
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.pages import flatten, unflatten
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4

GROUPS = 10_000
TURNS = 5


def pages() -> dict[str, Any]:
    rng = random.Random(1)
    hosts = [f"10.0.{i // 256}.{i % 256}" for i in range(GROUPS)]
    arrays = [np.arange(GROUPS), np.random.default_rng(1).random(GROUPS), np.arange(GROUPS)]
    return {
        "bound of a stream": 1_767_225_600_000_000,
        "pane of 5 groups, columns": (np.arange(5), [a[:5] for a in arrays]),
        "pane of 10,000 groups, columns": (np.arange(GROUPS), arrays),
        "leaving stack, 32 panes of 1,000": {i: [np.arange(1000.0), np.arange(1000.0)] for i in range(32)},
        "keys of 10,000 groups": [(h,) for h in hosts],
        "single rows of 10,000 groups": {5: {(h,): [3, 4, rng.random()] for h in hosts}},
        "window of 1 group, partials": {("10.0.0.1",): [5, (3, 1)]},
        "window of 10,000 groups, partials": {(h, i): [(rng.random(), 3), 5] for i, h in enumerate(hosts)},
        "dupelim, 10,000 rows": ([i // 10 for i in range(GROUPS)], [(h, i) for i, h in enumerate(hosts)]),
    }


def merges() -> dict[str, LogicalMerge]:
    made: dict[str, LogicalMerge] = {"slice of R3, 10,000 events": R3("ab"), "slice of R4, 10,000 events": R4("ab")}
    for merge in made.values():
        for i in range(GROUPS):
            for name in "ab":
                merge.push(name, Insert((f"10.0.{i % 256}", i, 2), i, i + 100))
    return made


def best(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _same(page: Any) -> Any:
    return page


def main() -> None:
    print(f"{'milliseconds':36}{'pickle: write':>14}{'read':>8}{'bytes':>9}{'plain: write':>14}{'read':>8}{'bytes':>9}")
    for name, page in {**pages(), **merges()}.items():
        to_plain, from_plain = _same, _same
        if isinstance(page, LogicalMerge):
            to_plain, from_plain = flatten, lambda data, page=page: unflatten(data, type(page)("ab"))
        pickled, plain = pickle.dumps(page, 5), encode(to_plain(page))
        works: list[Callable[[], Any]] = [
            lambda page=page: pickle.dumps(page, 5),
            lambda data=pickled: pickle.loads(data),
            lambda page=page, to_plain=to_plain: encode(to_plain(page)),
            lambda data=plain, from_plain=from_plain: from_plain(decode(data)),
        ]
        times = [min(turn) * 1000 for turn in zip(*[[best(w) for w in works] for _ in range(TURNS)], strict=True)]
        print(f"{name:36}{times[0]:14.3f}{times[1]:8.3f}{len(pickled):9}{times[2]:14.3f}{times[3]:8.3f}{len(plain):9}")


if __name__ == "__main__":
    main()
