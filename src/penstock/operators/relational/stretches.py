"""DupElim over events with lives: one event for each longest stretch of time in which there is one (GenMig, section 2).

At every instant a payload is there once if it is there at all. Stretches that overlap or touch are one, so what comes
out does not depend on how events were cut or in which order they came. A stretch is known when the bound has passed its
end: nothing that starts later can touch it. Until then it holds back the output's bound, which no stretch starts below.
It takes inserts only: an end that moves could take a stretch apart that is out already.

State: the stretches that are not known yet, in pages by the hash of the payload; of each page the least end and the
least start, so that a bound visits those of which something comes out.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.operator import BoundMemory, Operator, Outputs

PAGES = 64
Stretch = tuple[int, int, Row]
"""Start, end, and the row that starts it."""
Page = dict[Row, list[Stretch]]


class StretchesOperator(Operator):
    """Joins the lives of equal rows."""

    kind = "dupelim of stretches"

    def __init__(self, schema: Schema) -> None:
        """Rows are compared by their visible columns."""
        super().__init__(schema)
        self.compared = [i for i, f in enumerate(schema.fields) if not f.hidden]
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Join each event with the stretches that it touches."""
        touched: dict[int, Page] = {}
        starts, ends = batch.times().tolist(), batch.its_lives().ends.tolist()
        for row, start, end in zip(batch.rows, starts, ends, strict=True):
            payload = canonical_row(tuple([row[i] for i in self.compared]))
            number = zlib.crc32(repr(payload).encode("utf-8", "backslashreplace")) % PAGES
            if number not in touched:
                touched[number] = self.pages.get(f"p{number}") or {}
            page = touched[number]
            page[payload] = _joined(page.get(payload, []), (start, end, row))
        for number, page in touched.items():
            self._keep(number, page)
        return ()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Put out the stretches that the bound has passed, in order of start, then say how far that is."""
        if not self.is_on_time(punctuation):
            return
        bound = punctuation.value
        known: list[Stretch] = []
        held: dict[int, tuple[int, int]] = self.pages.get("held") or {}
        for number in [n for n, (least, _) in held.items() if _has_passed(bound, least)]:
            page: Page = self.pages.get(f"p{number}")
            for payload, stretches in list(page.items()):
                known += [s for s in stretches if _has_passed(bound, s[1])]
                page[payload] = [s for s in stretches if not _has_passed(bound, s[1])]
                if not page[payload]:
                    del page[payload]
            self._keep(number, page)
        if known:
            known.sort(key=lambda s: s[:2])
            ends = np.array([end for _, end, _ in known], np.int64)
            yield Batch(self.schema, [row for _, _, row in known], lives=Lives.of_inserts(ends))
        reached = min([bound, *(start for _, start in (self.pages.get("held") or {}).values())])
        if self.passed_on.advance(self.pages, reached):
            yield self.output_bound(reached)

    def _keep(self, number: int, page: Page) -> None:
        held: dict[int, tuple[int, int]] = self.pages.get("held") or {}
        if page:
            every = [s for stretches in page.values() for s in stretches]
            held[number] = min(end for _, end, _ in every), min(start for start, _, _ in every)
            self.pages.put(f"p{number}", page)
        else:
            held.pop(number, None)
            self.pages.delete(f"p{number}")
        self.pages.put("held", held)

    def to_plain(self, key: str, page: Any) -> Any:
        """A page as two columns: start and end, and the row."""
        if key in ("held", self.passed_on.key):
            return page
        every = [s for stretches in page.values() for s in stretches]
        return [s[:2] for s in every], [s[2] for s in every]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The stretches by payload."""
        if key in ("held", self.passed_on.key):
            return data
        page: Page = {}
        for (start, end), row in zip(*data, strict=True):
            page.setdefault(canonical_row(tuple([row[i] for i in self.compared])), []).append((start, end, row))
        return page


def _joined(stretches: list[Stretch], fresh: Stretch) -> list[Stretch]:
    """The stretches of a payload with one event more."""
    apart: list[Stretch] = []
    for stretch in stretches:
        if stretch[1] < fresh[0] or fresh[1] < stretch[0]:
            apart.append(stretch)
        else:
            first = stretch if stretch[0] <= fresh[0] else fresh
            fresh = first[0], max(stretch[1], fresh[1]), first[2]
    return [*apart, fresh]


def _has_passed(bound: int, end: int) -> bool:
    return end < bound or bound == END_OF_TIME
