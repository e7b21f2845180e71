"""How a columnar aggregate holds many small windows: as runs of cells (`loose_cells`) instead of a page for each pane.

Cells are in one or in the other: either there are panes, or there are runs. A batch whose rows are in many panes takes
panes that there are into a run; who needs panes (promises of some groups, feedback, partials that are sent on) has the
runs put into them.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.cells import FAR
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.aggregates.loose_cells import are_small, as_one_run, cut, portions
from penstock.operators.aggregates.measures import Array, Measure, infinite
from penstock.operators.aggregates.pane_numbers import Pane, read_pane
from penstock.operators.aggregates.slide import Slide
from penstock.operators.aggregates.window_tables import Block, WindowTables
from penstock.operators.operator import Operator, Outputs
from penstock.operators.windows.sliding import Sliding


class LooseWindows(Operator):
    """The part of a columnar aggregate that knows of runs."""

    window: Sliding
    measures: tuple[Measure, ...]
    _tables: WindowTables
    _may_be_loose: bool
    """Whether windows tumble, and measures are such that runs can be put together."""

    @property
    @abstractmethod
    def codes(self) -> GroupCodes:
        """The codes of the groups."""

    @abstractmethod
    def _state(self) -> Slide: ...

    @abstractmethod
    def _save(self, state: Slide) -> None: ...

    @abstractmethod
    def _put_in_pane(self, state: Slide, pane: int, cells: Pane) -> None: ...

    @abstractmethod
    def _tidy(self, state: Slide) -> None: ...

    def _loose(self) -> list[Block]:
        """Cells of small windows, where panes have none: in one or in the other."""
        return self.pages.get("loose") or []

    def _goes_loose(self, state: Slide, panes: Array) -> bool:
        """Whether the cells of a batch are held as runs."""
        if not self._may_be_loose or int(panes.max()) - int(panes.min()) >= FAR:
            return False
        if self._loose():
            return True
        if not are_small(panes) or len(state.panes) > len(panes):
            return False
        self._loosen(state)
        return True

    def _loosen(self, state: Slide) -> None:
        """Put panes into a run."""
        held = [read_pane(self.pages, f"p{pane}", self.measures) for pane in state.panes]
        runs: list[Block] = [(np.full(len(own[0]), pane), *own) for pane, own in zip(state.panes, held, strict=True)]
        if runs:
            self.pages.put("loose", [as_one_run(self.measures, runs)])
            for pane in state.panes:
                self.pages.delete(f"p{pane}")
            state.panes = []

    def _tighten(self) -> None:
        """Put cells of runs into panes, for whoever needs these."""
        runs = self._loose()
        if runs:
            self.pages.delete("loose")
            state = self._state()
            panes, codes, numbers = as_one_run(self.measures, runs)
            present, starts = np.unique(panes, return_index=True)
            for pane, lo, hi in zip(present.tolist(), starts.tolist(), [*starts[1:].tolist(), len(panes)], strict=True):
                _, own, held = cut((panes, codes, numbers), lo, hi)
                self._put_in_pane(state, pane, (own, held))
            self._save(state)

    def _close_loose(self, state: Slide, bound: int) -> Outputs:
        """The results of small windows that are held as runs; what was put out counts as closed."""
        runs = self._loose()
        if not runs:
            return
        first_open = max(int(run[0][-1]) for run in runs) + 1 if bound == END_OF_TIME else self.window.first(bound)
        if state.closed is not None and first_open <= state.closed:
            return
        ends = [int(np.searchsorted(run[0], first_open)) for run in runs]
        begins = [0 if state.closed is None else int(np.searchsorted(run[0], state.closed)) for run in runs]
        closing = [cut(run, lo, hi) for run, lo, hi in zip(runs, begins, ends, strict=True) if lo < hi]
        for block in portions(as_one_run(self.measures, closing)) if closing else ():
            state.closed = int(block[0][-1]) + 1
            self._save(state)
            with infinite():
                results = list(self._tables.of([block], self.codes))
            yield from results
        left = [cut(run, hi, len(run[0])) for run, hi in zip(runs, ends, strict=True) if hi < len(run[0])]
        if left:
            self.pages.put("loose", left)
        else:
            self.pages.delete("loose")
        state.closed = first_open if state.closed is None else max(state.closed, first_open)
        state.forget_weights(first_open)
        self._tidy(state)
        self._save(state)
