"""Project and Apply: new columns from expressions and user functions.

The time column is always among them, so progress passes on; what is promised of some groups, or of other attributes,
passes on where their columns are among them too, as they are. Another attribute that progresses may become the time, or
an expression that rises with one (`time / 60`), or with several: bounds on the attributes are then mapped by it
(`mapped`). A row of which some column has no value, since evaluating it fails, is given back as failed, with the reason
of the first such column.

Lives pass through: an insert and its adjusts are the same row, so they become the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.interleaved import Interleaved
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.operators.operator import Carry, Outputs, Stateless
from penstock.operators.relational.attempt import attempt
from penstock.operators.relational.mapped import Mapped

RowsFunction = Callable[[Sequence[Row]], Sequence[Row]]
ColumnFunction = Callable[[Batch], pa.Table]


class ProjectOperator(Stateless):
    """Computes the output columns of each row."""

    starts_with_the_last = True

    def __init__(
        self,
        schema: Schema,
        by_rows: RowsFunction,
        by_column: ColumnFunction,
        names: Mapping[str, Sequence[str]] | None = None,
        *,
        moves_time: bool = False,
        mapped: Sequence[Mapped] = (),
    ) -> None:
        """The two functions compute the same, by rows and by columns; `names` are those that columns survive under.

        With `moves_time` another attribute becomes the time, or what is computed from some. `mapped` are the columns
        that progress since they rise with attributes.
        """
        super().__init__(schema, names)
        self.by_rows, self.by_column, self.mapped = by_rows, by_column, tuple(mapped)
        self.moves_time = moves_time
        self.starts_with_the_last = not moves_time
        self._same -= {name for each in mapped for name in each.attributes}

    def punctuate(self, port: int, punctuation: Punctuation) -> Iterable[Punctuation]:
        """As it is where columns survive; where a column rises with attributes, bounds become one on what they come to.

        A bound for which nothing comes of it, since computing fails, is dropped, which is sound.
        """
        yield from super().punctuate(port, punctuation)
        for each in self.mapped:
            yield from each.of(self.pages, punctuation, self.names)

    def carries(self, time: str) -> Carry | None:
        """As it is, or what the one column comes to that rises with the time; not where there are more of these."""
        rising = [each for each in self.mapped if time in each.attributes]
        if not rising:
            return super().carries(time)
        (only, *others) = rising
        if others or only.name != self.schema.time or only.attributes != (time,) or self.names.get(time):
            return None
        return partial(_computed, only)

    def feedback(self, bound: int) -> int | None:
        """What ends before a bound on another attribute may start at any time of the input."""
        return None if self.moves_time else super().feedback(bound)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Compute in the form at hand."""
        return attempt(self.schema, batch, self._whole, self.single)

    def interleave(self, port: int, given: Interleaved) -> Outputs:
        """Compute all rows at once; punctuation stands where it stood."""
        try:
            made = self._whole(given.batch)
        except Exception as error:  # some row has no answer: `attempt` finds it
            let_through(error)
            yield from super().interleave(port, given)
        else:
            yield from self.carried_over(port, given, made, given.places)

    def _whole(self, batch: Batch) -> Batch:
        lives = batch.lives if self.schema.lives is not None else None
        if batch.columnar:
            origin = None if batch.origin is None else partial(self._again, batch.origin)
            return Batch(self.schema, table=self.by_column(batch), lives=lives, origin=origin)
        return Batch(self.schema, self.by_rows(batch.rows), lives=lives)

    def _again(self, origin: Callable[[], Batch]) -> Batch:
        return self._whole(origin())

    def single(self, row: Row) -> Row:
        """The row that comes of a row; fails where a column does."""
        return self.by_rows((row,))[0]


def _computed(rising: Mapped, bound: int) -> int | None:
    return rising.reached([bound])


class ProjectBySeveral(ProjectOperator):
    """A projection with a column that rises with several attributes together: it keeps the bounds on them."""

    kind = "project by several"
