"""A merge as an operator of a query graph, with its state in pages.

The events of one slice of time are in one page, as a merge of their own: what is said of one event does not depend on
others. A head, without events, knows the inputs and how far they have come. So rows touch the slices that they start
in, and a bound touches the slices in which it freezes something.

Rows come in one of two forms. Plain rows are events that live as long as their schema says; then the output is plain
rows too, each once, and none is ever taken back: the policy must be one that waits (`half frozen`, `conservative`), or
the streams ordered (R0 to R2). Element rows have columns for the start, the end and, for an adjust, the old end, and so
has the output; any policy will do that does not compare whole inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.algorithms.merge.base import LogicalMerge
from penstock.algorithms.merge.choose import ALGORITHMS
from penstock.algorithms.merge.ordered import R0
from penstock.algorithms.merge.pages import flatten, unflatten
from penstock.algorithms.merge.r3 import R3
from penstock.algorithms.merge.r4 import R4
from penstock.algorithms.merge.revisable import MAJORITY, RevisableMerge
from penstock.algorithms.operator import Operator, Outputs, Rejected
from penstock.errors import ElementError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Adjust, Element, Insert, Punctuation, linear
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, SECOND, Domain
from penstock.model.values import canonical_row

ELEMENT_COLUMNS = ("vs", "ve", "v_old")
SLICE = {Domain.TIMESTAMP: 60 * SECOND}
OTHER_SLICE = 4096
Due = dict[int, tuple[int | None, int | None]]
"""Per slice: the next time that a bound must visit it for, and the oldest event that holds the output's bound back."""


@dataclass(frozen=True)
class PlainRows:
    """Rows that live as long as their schema says."""

    schema: Schema

    def element(self, row: Row) -> Element:
        """An insert of the whole row."""
        vs = row[self.schema.time_index]
        assert isinstance(vs, int)
        return Insert(canonical_row(row), vs, vs + self.schema.lifetime)

    def row(self, element: Insert | Adjust) -> Row:
        """The payload is the row."""
        return element.payload


@dataclass(frozen=True)
class ElementRows:
    """Rows of time, start, end, old end (null for an insert) and the payload, in this order."""

    schema: Schema

    def element(self, row: Row) -> Element:
        """An insert or an adjust."""
        _, vs, ve, old, *payload = row
        if old is None:
            return Insert(canonical_row(tuple(payload)), vs, ve)  # type: ignore[arg-type]
        return Adjust(canonical_row(tuple(payload)), vs, old, ve)  # type: ignore[arg-type]

    def row(self, element: Insert | Adjust) -> Row:
        """With the time by which lateness is judged."""
        if isinstance(element, Insert):
            return (element.vs, element.vs, element.ve, None, *element.payload)
        return (element.lateness_time, element.vs, element.ve, element.v_old, *element.payload)


class MergeOperator(Operator):
    """Merges replicas that arrive on its ports."""

    kind = "lmerge"

    def __init__(
        self, schema: Schema, inputs: Sequence[str], algorithm: str, *, elements: bool, **options: Any
    ) -> None:
        """`inputs` name the ports; `options` are those of the algorithm."""
        super().__init__(schema)
        self.names, self.ports = list(inputs), len(inputs)
        self.algorithm, self.options = ALGORITHMS[algorithm], options
        self.form: PlainRows | ElementRows = ElementRows(schema) if elements else PlainRows(schema)
        self.span = SLICE.get(schema.domain, OTHER_SLICE)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Each row as an element; rows that their own input contradicts are dead letters."""
        head = self._head()
        name = self.names[port]
        if isinstance(head, R0) and batch.columnar:
            fresh = head.push_batch(name, batch)
            missteps, head.missteps = head.missteps, []
            self.pages.put("head", head)
            yield from self._rejected(missteps)
            if fresh is not None:
                yield fresh
            return
        elements, bad = self._elements(batch)
        yield from bad
        if isinstance(head, RevisableMerge):
            out, missteps = self._into_slices(head, name, elements)
        else:
            out = [o for e in elements for o in head.push(name, e)]
            missteps, head.missteps = head.missteps, []
        self.pages.put("head", head)
        yield from self._rejected(missteps)
        yield from self._rows(out)

    def _elements(self, batch: Batch) -> tuple[list[Element], list[Rejected]]:
        """The rows as elements; those that are none, such as one that ends before it starts, are dead letters."""
        elements: list[Element] = []
        rows: list[Row] = []
        reasons: list[str] = []
        for row in batch.rows:
            try:
                elements.append(self.form.element(row))
            except (ElementError, TypeError):
                rows.append(row)
                reasons.append("not an element: an event needs a start and a later end, an adjust an old end as well")
        return elements, [Rejected("dead", Batch(self.schema, rows), [0] * len(rows), reasons)] if rows else []

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """An input has come further; what that freezes is put right, then the output's own bound follows."""
        if not punctuation.is_linear:
            return
        head = self._head()
        before: int = getattr(head, "frozen", MIN_TICK)
        shown = head.stable
        said = head.push(self.names[port], linear(head.attribute, punctuation.value))
        bound = head.stable
        out: list[Element] = [e for e in said if not isinstance(e, Punctuation)]
        if isinstance(head, RevisableMerge) and (head.frozen != before or head.driver == MAJORITY):
            head.stable = shown
            out, bound = self._freeze(head, before)
            head.stable = bound
        self.pages.put("head", head)
        yield from self._rows(out)
        if bound > shown:
            yield self.output_bound(bound)

    # Slices

    def _head(self) -> Any:
        head: LogicalMerge | None = self.pages.get("head")
        if head is None:
            head = self.algorithm(self.names, **self.options)
        return head

    def _slice(self, number: int, head: RevisableMerge, *, make: bool = False) -> Any:
        """The merge of a slice, with what the head knows; None if there is none and none is to be made."""
        part: R3 | R4 | None = self.pages.get(f"m{number}")
        if part is None and make:
            part = self.algorithm((), **self.options)  # type: ignore[assignment]
        if part is not None:
            part.inputs, part.frozen = head.inputs, head.frozen
            part.stable, part.max_stable = head.stable, head.max_stable
        return part

    def _into_slices(self, head: RevisableMerge, name: str, elements: list[Element]) -> tuple[list[Element], list[Any]]:
        by_slice: dict[int, list[Element]] = defaultdict(list)
        for element in elements:
            by_slice[element.vs // self.span].append(element)  # type: ignore[union-attr]
        out: list[Element] = []
        missteps: list[Any] = []
        due: Due = self.pages.get("slices") or {}
        for number, members in by_slice.items():
            part = self._slice(number, head, make=any(e.vs >= head.frozen for e in members))  # type: ignore[union-attr]
            if part is None:
                continue  # all of it has been decided
            for element in members:
                out += part.push(name, element)
            missteps += part.missteps
            self._keep(number, part, due)
        self.pages.put("slices", due)
        return out, missteps

    def _freeze(self, head: RevisableMerge, before: int) -> tuple[list[Element], int]:
        """Visit the slices in which the bound freezes something; what they say, and how far the output has come."""
        out: list[Element] = []
        due: Due = self.pages.get("slices") or {}
        for number, (next_time, _) in sorted(due.items()):
            if next_time is None or (next_time >= head.frozen and head.frozen != END_OF_TIME):
                continue
            part = self._slice(number, head)
            part.frozen = before
            part.freeze(head.frozen, head.voters)
            out += part.out
            part.out = []
            self._keep(number, part, due)
        self.pages.put("slices", due)
        waiting = [oldest for _, oldest in due.values() if oldest is not None]
        return out, min([head.frozen, *waiting])

    def _keep(self, number: int, part: R3 | R4, due: Due) -> None:
        part.missteps = []
        if part.index.nodes:
            due[number] = part.next_time(), part.oldest_waiting()
            part.inputs = {}
            self.pages.put(f"m{number}", part)
        else:
            due.pop(number, None)
            self.pages.delete(f"m{number}")

    # State

    def to_plain(self, key: str, page: Any) -> Any:
        """A merge, of the head or of a slice, as plain data."""
        return page if key == "slices" else flatten(page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        return data if key == "slices" else unflatten(data)

    # Rows

    def _rows(self, elements: Iterable[Element]) -> Outputs:
        rows = [self.form.row(e) for e in elements if not isinstance(e, Punctuation)]
        if rows:
            yield Batch(self.schema, rows)

    def _rejected(self, missteps: list[Any]) -> Outputs:
        if missteps:
            rows = [self.form.row(m.element) for m in missteps]
            yield Rejected("dead", Batch(self.schema, rows), [0] * len(rows), [m.reason for m in missteps])
