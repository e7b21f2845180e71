"""The way from a queue to the result of a query on Spark, along which a row can be followed (see `reading_path`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.flow.reading_path import called_above, followed
from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.operators.operator import Operator
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Conflate, Project, Select
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder


@dataclass(frozen=True)
class SparkPath:
    """What stands between a queue of rows and a result: selections and projections only."""

    schema: Schema
    """Of the queue."""
    above: tuple[Operator, ...]
    """From the queue to the result."""
    called: tuple[str, ...]
    """What the columns of the queue's key are called in the result."""

    def key_of(self, key: Row, names: Sequence[str]) -> Row:
        """The queue's key by that of the result, whose columns are in an order of their own."""
        given = dict(zip(names, key, strict=True))
        return tuple([given[name] for name in self.called])

    def followed(self, row: Row) -> Row | None:
        """What becomes of a row; None if it is left out."""
        return followed(row, self.schema, self.above)


def spark_path(planned: Physical, catalog: Catalog) -> SparkPath | None:
    """The way to the result of a plan; None if something else stands above its queue, or windows wait there."""
    between: list[Physical] = []
    while isinstance(planned.node, Select | Project):
        between.insert(0, planned)
        (planned,) = planned.inputs
    queue = planned.node
    if not isinstance(queue, Conflate) or queue.windows is not None:
        return None
    builder = Builder(catalog)
    called = called_above(queue.key, [each.node for each in between])
    return SparkPath(queue.schema, tuple([builder.operator(each) for each in between]), called)
