"""DupElim: of equal rows of one instant the first is kept; punctuation says what can be forgotten (thesis 8.2).

Before rows are sent to where the state is, those that are equal among themselves can be left out (`first_of_equal`).

State: the payloads seen per instant, in pages of neighbouring instants, so that a bound gives up whole pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import SECOND, Domain
from penstock.model.values import canonical
from penstock.operators.operator import Operator, Outputs

Seen = dict[int, set[Row]]


FEW = 256
SAMPLE = 1 << 14
WORTH = 0.75
"""Different rows among those of a sample from which on it is not looked for equal ones."""


def first_of_equal(batch: Batch) -> Batch:
    """The rows of a batch without those that are equal to an earlier one; all of them where it is not worth it."""
    size = min(len(batch), SAMPLE)
    if size < FEW or not batch.columnar or any(_is_no_key(c.type) for c in batch.table.columns):
        return batch
    names = [f.name for f in batch.schema.fields if not f.hidden or f.name == batch.schema.time]
    compared = batch.table.select(names)
    if len(_firsts(compared.slice(0, size))) > WORTH * size:
        return batch
    return Batch(batch.schema, table=batch.table.take(pa.array(np.sort(_firsts(compared)))))


def _is_no_key(arrow: pa.DataType) -> bool:
    """Whether Arrow cannot group by it."""
    return bool(pa.types.is_null(arrow) or pa.types.is_nested(arrow))


def _firsts(table: pa.Table) -> np.ndarray:
    """Where the first of equal rows are."""
    numbered = table.append_column("\0place", pa.array(np.arange(len(table))))
    grouped = numbered.group_by(table.column_names, use_threads=False).aggregate([("\0place", "min")])
    return np.asarray(grouped.column("\0place_min").to_numpy())


class DistinctOperator(Operator):
    """Remembers what it has let through until its instant is past."""

    kind = "dupelim"

    def __init__(self, schema: Schema) -> None:
        """Rows are compared by their visible columns and their time."""
        super().__init__(schema)
        self.span = SECOND if schema.domain is Domain.TIMESTAMP else 1024
        self.compared = [i for i, f in enumerate(schema.fields) if not f.hidden]

    def process(self, port: int, batch: Batch) -> Outputs:
        """Let the first of equal rows through."""
        time = self.schema.time_index
        touched: dict[int, Seen] = {}
        fresh: list[Row] = []
        for row in batch.rows:
            instant = row[time]
            assert isinstance(instant, int)
            page = touched.get(instant // self.span)
            if page is None:
                page = touched[instant // self.span] = self.pages.get(f"s{instant // self.span}") or {}
            seen = page.setdefault(instant, set())
            payload = self._payload(row)
            if payload not in seen:
                seen.add(payload)
                fresh.append(row)
        for number, page in touched.items():
            self.pages.put(f"s{number}", page)
        if touched:
            self.pages.put("spans", sorted({*(self.pages.get("spans") or ()), *touched}))
        if fresh:
            yield Batch(self.schema, fresh)

    def _payload(self, row: Sequence[object]) -> Row:
        return tuple([canonical(row[i]) for i in self.compared])

    def feedback(self, bound: int) -> int | None:
        """Rows of an instant stand or fall together."""
        return bound

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Forget the pages that lie wholly below the bound; what else is promised is passed on: rows are left out."""
        if not self.is_on_time(punctuation):
            yield punctuation
            return
        spans: list[int] = self.pages.get("spans") or []
        kept = [s for s in spans if (s + 1) * self.span > punctuation.value]
        for number in spans[: len(spans) - len(kept)]:
            self.pages.delete(f"s{number}")
        if len(kept) < len(spans):
            self.pages.put("spans", kept)
        yield self.output_bound(punctuation.value)

    def to_plain(self, key: str, page: Any) -> Any:
        """The payloads in one list with their instants in another: two columns are quicker written than many sets."""
        if key == "spans":
            return page
        instants = [instant for instant, seen in page.items() for _ in seen]
        return instants, [payload for seen in page.values() for payload in seen]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """Sets of payloads by instant."""
        if key == "spans":
            return data
        page: Seen = {}
        for instant, payload in zip(*data, strict=True):
            page.setdefault(instant, set()).add(payload)
        return page
