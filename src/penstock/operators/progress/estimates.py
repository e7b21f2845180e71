"""The tracker of `estimated()`: the greatest time less a delay, which is estimated from the rows that came.

What the delay means is said in `model.estimated`. It is one of the greatest among numbers by which rows were behind, so
of each lot no more is kept than its greatest ones; rows that were not behind need no place at all. So the state has at
most (lots + 1) x (share x rows + 1) numbers, whatever came. A row costs a comparison, one that was behind an insertion
into that short list, and a lot the choice of one number among those kept. Many rows at once cost a few array operations
and one choice per lot.

Summary: how many rows, their greatest time, and as many of the least times as can matter.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.model.estimated import Estimated
from penstock.model.time import MIN_TICK
from penstock.operators.progress.marks import Marks
from penstock.operators.progress.running import running_greatest

State = dict[str, Any]
"""Plain values: the `greatest` time, the `bound`, the `delay` or None, how many `rows` came, how many of them below the
bound (`late`), the lot at hand (`open`) and those that are complete (`lots`): of each how many rows it has, and the
greatest numbers by which some of them were behind, ascending."""
Summary = tuple[int, int, list[int]]
Lot = list[Any]


def _started(state: State | None) -> State:
    if state is not None:
        return state
    return {"greatest": MIN_TICK, "bound": MIN_TICK, "delay": None, "rows": 0, "late": 0, "open": [0, []], "lots": []}


@dataclass(frozen=True)
class EstimateTracker:
    """The greatest time less an estimated delay. The state is changed in place."""

    how: Estimated

    @property
    def kept(self) -> int:
        """So many of the numbers by which rows of a lot were behind can matter."""
        return self.how.beyond(self.how.rows) + 1

    # By batch

    def summarise(self, times: np.ndarray, marks: Marks) -> Summary:
        """The least times are those that are furthest behind, whatever came before."""
        if not len(times):
            return 0, MIN_TICK, []
        least = times if len(times) <= self.kept else np.partition(times, self.kept - 1)[: self.kept]
        return len(times), int(times.max()), sorted(least.tolist())

    def join(self, left: Summary, right: Summary) -> Summary:
        """Of both."""
        return left[0] + right[0], max(left[1], right[1]), sorted([*left[2], *right[2]])[: self.kept]

    def advance(self, state: State | None, summary: Summary) -> State | None:
        """All rows of a batch fall into the lot at hand; of its late rows only as many are counted as can matter."""
        rows, greatest, least = summary
        if not rows:
            return state
        state = _started(state)
        before = state["greatest"]
        state["late"] += sum(time < state["bound"] for time in least)
        state["rows"] += rows
        self._add(state["open"], rows, [before - time for time in least if time < before])
        state["greatest"] = max(before, greatest)
        if state["open"][0] >= self.how.lot:
            self._estimate(state)
        self._move(state)
        return state

    def bound(self, state: State | None) -> int:
        """As it was reached."""
        return MIN_TICK if state is None else int(state["bound"])

    def _add(self, lot: Lot, rows: int, behind: Sequence[int]) -> None:
        """So many rows came; these numbers say by how much some of them were behind."""
        lot[0] += rows
        if len(behind):
            lot[1] = sorted([*lot[1], *behind])[-self.kept :]

    def _estimate(self, state: State) -> None:
        """The lot at hand is complete."""
        lots = state["lots"]
        lots.append(state["open"])
        state["open"] = [0, []]
        held = sum(rows for rows, _ in lots)
        while held - lots[0][0] >= self.how.rows:
            held -= lots.pop(0)[0]
        behind = sorted([each for _, own in lots for each in own], reverse=True)
        at = self.how.beyond(held)
        state["delay"] = behind[at] if at < len(behind) else 0

    def _move(self, state: State) -> None:
        if state["delay"] is not None:
            state["bound"] = max(state["bound"], state["greatest"] - state["delay"])

    # By row

    def observe(self, state: State | None, time: int, mark: Any) -> State:
        """One row came."""
        state = _started(state)
        greatest, lot = state["greatest"], state["open"]
        state["rows"] += 1
        lot[0] += 1
        if time >= greatest:
            state["greatest"] = time
        else:
            if time < state["bound"]:
                state["late"] += 1
            behind, most = greatest - time, lot[1]
            if len(most) < self.kept:
                insort(most, behind)
            elif behind > most[0]:
                del most[0]
                insort(most, behind)
        if lot[0] >= self.how.lot:
            self._estimate(state)
        if state["delay"] is not None and state["greatest"] - state["delay"] > state["bound"]:
            state["bound"] = state["greatest"] - state["delay"]
        return state

    def by_row(
        self, state: State | None, times: np.ndarray, marks: Marks, *, loosely: bool = False
    ) -> tuple[np.ndarray, State | None]:
        """Delays change where lots end; between them the bound follows the greatest time."""
        if not len(times):
            return np.empty(0, np.int64), state
        state = _started(state)
        running = running_greatest(state["greatest"], times)[1:]
        # A difference of times may not fit 64 bits with a sign; without one it does.
        behind = running.astype(np.uint64) - times.astype(np.uint64)
        before = np.empty(len(times), np.int64)
        start = 0
        while start < len(times):
            end = min(start + max(self.how.lot - state["open"][0], 1), len(times))
            before[start] = state["bound"]
            if end - start > 1:
                before[start + 1 : end] = self._bounds(state, running[start : end - 1])
                state["bound"] = int(before[end - 1])
            self._add(state["open"], end - start, self._most(behind[start:end]))
            state["greatest"] = int(running[end - 1])
            if state["open"][0] >= self.how.lot:
                self._estimate(state)
            self._move(state)
            start = end
        state["rows"] += len(times)
        state["late"] += int(np.count_nonzero(times < before))
        return before, state

    def _bounds(self, state: State, running: np.ndarray) -> np.ndarray | int:
        """The bounds that follow greatest times while the delay stays."""
        if state["delay"] is None:
            return int(state["bound"])
        less = (running.astype(np.uint64) - np.uint64(state["delay"])).astype(np.int64)
        return np.maximum(less, state["bound"])

    def _most(self, behind: np.ndarray) -> list[int]:
        """The greatest of some numbers, but no zeros."""
        some = behind[behind > 0]
        if len(some) > self.kept:
            some = np.partition(some, len(some) - self.kept)[-self.kept :]
        found: list[int] = some.tolist()
        return found
