"""The forms of GenMig: what is put before and behind the two boxes.

| way | the old plan is given | the new plan is given | results |
|---|---|---|---|
| `SPLIT` | what is before T | what is from T on | joined at T |
| `CUT` | what starts before T, whole | everything | cut at T and joined there |
| `REFERENCE_POINT` | what starts before T, whole | everything | by their starts |

`SPLIT` is the paper's: neither plan looks at an instant that the other answers for. What it is given has its lives
already: a window *inside* of a plan would be asked about events that the plan was never given. `CUT` gives both plans
whole events, so windows may be inside, and differ; both plans then work on everything until the old one is done. The
reference point is for equivalent plans whose results start with the last of their parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.schema import Schema
from penstock.operators.migration.coalesce import CoalesceOperator
from penstock.operators.migration.reference_point import HandOver
from penstock.operators.migration.split import BeforeSplit, FromSplit
from penstock.operators.operator import Operator


@dataclass(frozen=True)
class Way:
    """How two boxes are put beside each other."""

    name: str
    clips_inputs: bool
    clips_results: bool
    """Whether results are cut at T; if neither is, they go by their starts."""

    @property
    def joins(self) -> bool:
        """Whether there are halves to be joined."""
        return self.clips_inputs or self.clips_results

    def to_old(self, schema: Schema, split: int) -> Operator:
        """Before an input of the old plan."""
        return BeforeSplit(schema, split, clips=self.clips_inputs)

    def to_new(self, schema: Schema, split: int, port: int) -> Operator | None:
        """Before an input of the new plan."""
        return FromSplit(schema, split) if self.clips_inputs else None

    def from_old(self, schema: Schema, split: int) -> Operator | None:
        """Behind the old plan."""
        return BeforeSplit(schema, split) if self.clips_results else None

    def from_new(self, schema: Schema, split: int) -> Operator | None:
        """Behind the new plan."""
        return None if self.clips_inputs else FromSplit(schema, split, clips=self.clips_results)

    def union(self, schema: Schema, split: int, *, revises: bool, ordered: bool) -> CoalesceOperator | HandOver:
        """Where the results of both meet."""
        if self.joins:
            return CoalesceOperator(schema, split, revises=revises, ordered=ordered)
        return HandOver(schema, ordered=ordered)


SPLIT = Way("split and coalesce", clips_inputs=True, clips_results=False)
CUT = Way("whole events, results cut", clips_inputs=False, clips_results=True)
REFERENCE_POINT = Way("reference point", clips_inputs=False, clips_results=False)
WAYS = (SPLIT, CUT, REFERENCE_POINT)
