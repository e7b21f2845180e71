"""GenMig over positive and negative rows (section 4.6).

Rows go by their times, whatever their sign. The old plan is given those before T, the new one all that come after it is
there; results before T are the old plan's, those from T on the new one's. A row lives one tick, so nothing is cut, and
`HandOver` is all that is behind. At T both plans have the same state if they are equivalent, whatever they compute,
since nothing that came before the new one was there is left: so the difference that the new one tells from T on is
right for what the old one has told before. That holds for aggregates as well.

A negative row whose positive came before the new plan was there must not reach it: it would take away what was never
there. Payloads are bags, so as many negative rows of a payload are left out as positive ones of it were open; which of
equal ones they belong to is no matter. `OpenRows` counts those before a migration.

T must be later than every end of what came before, by one: a negative row *at* T would be given to neither plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.model.values import canonical_row
from penstock.operators.migration.ways import Way
from penstock.operators.operator import Operator, Outputs, Stateless

OPEN, SKIPPED = "open", "skipped"


def _counted(data: Any) -> Counter[Row]:
    return Counter({canonical_row(tuple(row)): n for row, n in data})


class OpenRows(Stateless):
    """Passes signed rows on, and knows how many of each payload are open. State: these numbers."""

    kind = "open rows"

    def process(self, port: int, batch: Batch) -> Outputs:
        """Count."""
        opened = self.opened()
        for *payload, sign, _ in batch.rows:
            key = canonical_row(tuple(payload))
            opened[key] += sign  # type: ignore[operator]
            if not opened[key]:
                del opened[key]
        self.pages.put(OPEN, opened)
        yield batch

    def opened(self) -> Counter[Row]:
        """How many of each payload have begun and not ended."""
        found: Counter[Row] | None = self.pages.get(OPEN)
        return Counter() if found is None else found

    def to_plain(self, key: str, page: Any) -> Any:
        """Pairs."""
        return [list(pair) for pair in page.items()]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return _counted(data)


class SinceActivation(Stateless):
    """Leaves out the ends of what began before it was there. State: how many are still to come."""

    kind = "since activation"

    def __init__(self, schema: Schema, opened: Counter[Row]) -> None:
        """`opened` is what had begun and not ended, and comes to its end now."""
        super().__init__(schema)
        self.opened = dict(opened)

    def process(self, port: int, batch: Batch) -> Outputs:
        """As many negative rows of a payload as had begun before do not go on."""
        found: Counter[Row] | None = self.pages.get(SKIPPED)
        left = Counter(self.opened) if found is None else found
        kept = []
        for row in batch.rows:
            *payload, sign, _ = row
            key = canonical_row(tuple(payload))
            skips = sign == -1 and left[key] > 0
            left[key] -= skips
            kept.append(not skips)
        self.pages.put(SKIPPED, left)
        if any(kept):
            yield batch.select(kept)

    def to_plain(self, key: str, page: Any) -> Any:
        """Pairs."""
        return [list(pair) for pair in page.items()]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return _counted(data)


@dataclass(frozen=True)
class Signed(Way):
    """Signed rows by their times, for plans that are equivalent."""

    name: str = "positive and negative"
    clips_inputs: bool = False
    clips_results: bool = False
    opened: Sequence[Counter[Row]] = field(default=(), compare=False)
    """What is open at each input when the new plan is put beside the old one."""

    def to_new(self, schema: Schema, split: int, port: int) -> Operator | None:
        """Without the ends of what began before."""
        return SinceActivation(schema, self.opened[port])
