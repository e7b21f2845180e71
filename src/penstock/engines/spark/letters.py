"""Dead letters of operators that Spark runs natively: the rows come from Spark, the reasons from the rows' own code.

Spark says which rows of an operator, or of a stream's punctuation predicate, have no value and not why, so those few
are evaluated once more, by the code that evaluates rows in-process, which says what it says there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.engines.spark import entrance
from penstock.model.batch import Row, rows_of, table_of
from penstock.model.letters import DEAD_SCHEMA, plain_text, row_text
from penstock.model.schema import Schema
from penstock.operators.progress.entrance import Ingest
from penstock.operators.progress.lateness import AMBIGUOUS_REASON, goes_backwards, is_ahead
from penstock.operators.progress.marks import PunctuationMarks
from penstock.operators.relational.attempt import by_row
from penstock.operators.relational.project import ProjectOperator
from penstock.operators.relational.select import SelectOperator
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import GroupAggregate, Source, WindowAggregate
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder

UNEXPLAINED = "No value on Spark"


@dataclass(frozen=True)
class LetterWriter:
    """Writes the dead letters of one node."""

    planned: Physical
    catalog: Catalog

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over the rows that failed.

        For an aggregate they are windows (or times), keys and the reason; for a source, rows, why and the tick that
        condemned it.
        """
        node = self.planned.node
        streams = ", ".join(dict.fromkeys(n.name for n in node.walk() if isinstance(n, Source)))
        is_aggregate = isinstance(node, WindowAggregate | GroupAggregate)
        schema = node.schema if isinstance(node, Source) else node.inputs[0].schema
        operator = None if isinstance(node, Source) else node.label
        if isinstance(node, WindowAggregate | GroupAggregate):
            lead = 3 if isinstance(node, WindowAggregate) else 1
            schema = Schema(node.schema.fields[: lead + len(node.keys)])
        for batch in batches:
            table = pa.Table.from_batches([batch])
            rows = rows_of(table.select(list(range(len(schema)))).cast(schema.arrow))
            said = [table.column(i).to_pylist() for i in range(len(schema), table.num_columns)]
            if isinstance(node, Source):
                reasons = self._refusals(rows, *said)
            else:
                reasons = said[0] if is_aggregate else self._reasons(rows)
            letters = [
                (streams, operator, plain_text(reason), row_text(schema, row))
                for row, reason in zip(rows, reasons, strict=True)
            ]
            yield from table_of(DEAD_SCHEMA, letters).to_batches()

    def _refusals(self, rows: list[Row], whys: list[str], ticks: list[int]) -> list[str]:
        """Why rows die where their stream enters."""
        ingest = Builder(self.catalog).operator(self.planned)
        assert isinstance(ingest, Ingest)
        reasons = []
        for row, why, tick in zip(rows, whys, ticks, strict=True):
            match why:
                case entrance.UNJUDGED:
                    assert isinstance(ingest.marks_of, PunctuationMarks)
                    reasons.append(ingest.marks_of.reason(row))
                case entrance.AMBIGUOUS:
                    reasons.append(AMBIGUOUS_REASON)
                case entrance.BACKWARDS:
                    reasons.append(goes_backwards(tick, ingest.schema))
                case _:
                    assert ingest.guard is not None
                    reasons.append(is_ahead(tick, ingest.guard.max_ahead, ingest.schema))
        return reasons

    def _reasons(self, rows: list[Row]) -> list[str]:
        """Why an operator failed on rows."""
        operator = Builder(self.catalog).operator(self.planned)
        assert isinstance(operator, SelectOperator | ProjectOperator)
        reasons = []
        for row in rows:
            _, failed = by_row([row], operator.single)
            reasons.append(failed[0][1] if failed else UNEXPLAINED)
        return reasons
