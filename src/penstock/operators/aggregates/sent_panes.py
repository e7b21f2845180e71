"""Panes of a columnar aggregate that travel: what one operator has brought down, another one takes as its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.operators.aggregates.loose_windows import LooseWindows
from penstock.operators.aggregates.measures import Array, infinite
from penstock.operators.aggregates.pane_numbers import read_pane
from penstock.operators.aggregates.sliding_total import SlidingTotal


class SentPanes(LooseWindows):
    """The part of a columnar aggregate that takes and gives panes."""

    sliding: SlidingTotal

    @abstractmethod
    def _settle(self, end: int | None = None) -> None: ...

    def take_panes(self, panes: Array, keys: Sequence[pa.ChunkedArray], numbers: Sequence[Array | pa.Array]) -> None:
        """Take what was brought down elsewhere: entries of panes and groups, per measure numbers or lists of values."""
        if not len(panes):
            return
        self._tighten()
        state = self._state()
        codes = self.codes.encode(keys, len(panes))
        self.sliding.values.take_lists(self.pages, panes, codes, numbers)
        order = np.lexsort((codes, panes))
        panes, codes = panes[order], codes[order]
        present, starts = np.unique(panes, return_index=True)
        edges = [*starts.tolist(), len(panes)]
        sorted_numbers: list[Array] = []
        for measure, given in zip(self.measures, numbers, strict=True):
            if measure.kind == "distinct":
                sorted_numbers.append(sorted_numbers[0])
                continue
            if measure.kind == "sum" and not measure.is_float:
                state.weigh(int(panes[-1]), max(abs(int(given.min())), abs(int(given.max()))) * len(given))
            wide = state.is_wide(measure) and given.dtype != object
            sorted_numbers.append((given.astype(object) if wide else given)[order])
        for pane, lo, hi in zip(present.tolist(), edges, edges[1:], strict=False):
            with infinite():
                self._put_in_pane(state, pane, (codes[lo:hi], [n[lo:hi] for n in sorted_numbers]))
        self._save(state)

    def give_panes(self) -> tuple[Array, list[pa.Array], list[Array | pa.Array]]:
        """All that there is, as `take_panes` takes it; for an operator that only brings rows down."""
        self._settle()
        self._tighten()
        panes = self._state().panes
        held = [read_pane(self.pages, f"p{pane}", self.measures) for pane in panes]
        codes = [codes for codes, _ in held]
        numbers: list[Array | pa.Array] = [np.concatenate(n) for n in zip(*(n for _, n in held), strict=True)]
        for at, values in self.sliding.values.lists(self.pages, panes, codes).items():
            numbers[at] = values
        return np.repeat(panes, list(map(len, codes))), self.codes.columns(np.concatenate(codes)), numbers
