"""The way from the last queue to a result, along which a row can be followed by whoever reads the result by its key.

Selections and projections, and what gives rows their lives, say of a row by itself what becomes of it. So where nothing
else stands above the queue, what the query says of a key is what becomes of the newest row of it that has come to the
queue: the one that waits, or else the one that went on last. If a selection leaves that out, nothing holds of the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.operator import Operator
from penstock.operators.queues.conflate import ConflateOperator
from penstock.operators.queues.conflate_windows import ConflateWindows
from penstock.operators.relational.newest import NewestOperator
from penstock.operators.relational.project import ProjectOperator
from penstock.operators.relational.select import SelectOperator
from penstock.plan.nodes import Node, Project
from penstock.runtime.graph import GraphNode


@dataclass(frozen=True)
class ReadingPath:
    """A queue, and what stands between it and a result."""

    operator: ConflateOperator
    above: tuple[Operator, ...]
    """From the queue to the result, but for what gives lives; none where a row cannot be followed."""
    is_whole: bool
    """Whether it can."""
    called: tuple[str, ...]
    """What the columns of the queue's key are called in the result."""

    def key_of(self, key: Row, names: Sequence[str]) -> Row:
        """The queue's key by that of the result, whose columns are in an order of their own."""
        given = dict(zip(names, key, strict=True))
        return tuple([given[name] for name in self.called]) if given.keys() >= set(self.called) else key

    def read(self, key: Row) -> Row | None:
        """What becomes of the newest row of a key, by the queue's own; None if there is none, or it is left out."""
        return followed(self.operator.current(key), self.operator.schema, self.above)


def followed(row: Row | None, schema: Schema, above: Sequence[Operator]) -> Row | None:
    """What selections and projections make of a row; None if there is none, or one of them leaves it out."""
    for operator in above:
        if row is None:
            return None
        made = operator.process(0, Batch(schema, [row]))
        row = next((each.rows[0] for each in made if isinstance(each, Batch) and len(each)), None)
        schema = operator.schema
    return row


def called_above(key: Sequence[str], above: Iterable[Node]) -> tuple[str, ...]:
    """What the columns of a queue's key are called above these nodes, of which the one next to the queue is first."""
    for node in above:
        if isinstance(node, Project):
            key = [node.first_names.get(name, name) for name in key]
    return tuple(key)


def reading_path(result: GraphNode) -> ReadingPath | None:
    """The way to what a node gives from the queue below it, through operators of one input; None if there is none."""
    node, between, is_whole = result, list[GraphNode](), True
    while not isinstance(node.operator, ConflateOperator):
        if len(node.inputs) != 1:
            return None
        between.insert(0, node)
        lives = isinstance(node.operator, NewestOperator) and node.operator.schema.lives is not None
        is_whole = is_whole and (lives or isinstance(node.operator, SelectOperator | ProjectOperator))
        node = node.inputs[0].producer
    called = called_above(node.operator.queue.key, [each.plan for each in between])
    is_whole = is_whole and not isinstance(node.operator, ConflateWindows)
    above = tuple([each.operator for each in between if not isinstance(each.operator, NewestOperator)])
    return ReadingPath(node.operator, above if is_whole else (), is_whole, called)
