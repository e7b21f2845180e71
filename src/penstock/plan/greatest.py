"""What attributes have come to in a plan, by the greatest times of the rows that its streams have brought.

Up the plan goes the greatest value that an attribute has in what comes of what has come. It may be more than that: rows
that a selection leaves out count, and so do windows that have no rows. It is put together once for a plan, as a
function of the greatest times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.plan.bounds_before import value_at
from penstock.plan.expressions import Column, Expression, columns_in
from penstock.plan.nodes import (
    AlterLifetime,
    Conflate,
    Distinct,
    Join,
    Lookup,
    Merge,
    Newest,
    Node,
    Pattern,
    Project,
    RowNumber,
    Select,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import SlidingWindow

Times = Mapping[str, int]
"""The greatest times of the rows of streams, by their names in lower case, without those that have none."""
Last = Callable[[Times], int | None]
"""What follows from these for an attribute of a node: a greatest value, or a bound; None if there are no rows."""


class NoBoundError(Exception):
    """There is no such value, or bound, or none is known."""


def after(last: Last, by: int = 1) -> Last:
    """Later by so much."""

    def later(times: Times) -> int | None:
        found = last(times)
        return None if found is None else found + by

    return later


def latest_of(each: Sequence[Last]) -> Last:
    """The latest of several; None if none has rows."""
    if len(each) == 1:
        return each[0]
    return lambda times: max([found for last in each if (found := last(times)) is not None], default=None)


def last_of(node: Node, attribute: str) -> Last:
    """The greatest value that an attribute has in what comes of what has come, or more."""
    is_time = attribute == node.schema.time
    match node:
        case Source(name=name) if is_time:
            stream = name.lower()
            return lambda times: times.get(stream)
        case AlterLifetime(input=below, shift=shift) if is_time:
            return after(last_of(below, attribute), shift)
        case Project(input=below, columns=columns):
            expression = dict(columns)[attribute]
            return last_of(below, expression.name) if isinstance(expression, Column) else _computed(below, expression)
        case Join(left=left, right=right) if is_time and node.is_of_pairs:
            return latest_of([last_of(side, str(side.schema.time)) for side in (left, right)])
        case Join(left=left, right=right):
            at, half = node.schema.index(attribute), len(left.schema.fields)
            side, place = (left, at) if at < half else (right, at - half)
            return last_of(side, side.schema.names[place])
        case Pattern() if is_time:
            return end_of_pattern(node)
        case WindowAggregate() | RowNumber() if is_time:
            return end_of_windows(node)
        case _:
            return latest_of([last_of(below, name) for below, name in same_in_inputs(node, attribute)])


def _computed(below: Node, expression: Expression) -> Last:
    lasts = {name: last_of(below, name) for name in columns_in(expression)}
    latest = latest_of(list(lasts.values()))

    def computed(times: Times) -> int | None:
        greatest = latest(times)
        if greatest is None:
            return None
        known = {name: last(times) for name, last in lasts.items()}
        found = value_at(expression, {name: greatest if last is None else last for name, last in known.items()})
        if found is None:
            raise NoBoundError
        return found

    return computed


def end_of_windows(node: WindowAggregate | RowNumber) -> Last:
    """The end of the last window that can have a row."""
    window = sliding(node)
    last, length, slide, origin = last_of(node.input, window.attribute), window.range, window.slide, window.origin

    def end(times: Times) -> int | None:
        found = last(times)
        return None if found is None else origin + (found - origin + length) // slide * slide

    return end


def sliding(node: WindowAggregate | RowNumber) -> SlidingWindow:
    """The windows of a node, if they slide over the time of its input."""
    if not isinstance(node.window, SlidingWindow) or node.window.attribute != node.input.schema.time:
        raise NoBoundError
    return node.window


def end_of_pattern(node: Pattern) -> Last:
    """The last time of a sequence: that of its last row, or until which nothing must come after its first one."""
    lasts = [last_of(node.steps[at], str(node.steps[at].schema.time)) for at in node.places]
    within = node.within or 0

    def end(times: Times) -> int | None:
        known = [found for last in lasts if (found := last(times)) is not None]
        if len(known) < len(lasts):
            return None
        return min(known[0], known[-1]) + within if node.ends_with_nothing else known[-1]

    return end


def same_in_inputs(node: Node, attribute: str) -> Iterator[tuple[Node, str]]:
    """The inputs of a node whose rows are among its own, with what an attribute is called there."""
    match node:
        case Unnest(input=below) if all(part.name != attribute for part in node.parts):
            yield below, attribute
        case Distinct() | Newest() if node.schema.lives is not None:
            raise NoBoundError
        case Merge(elements=False) | Select() | Distinct() | Conflate() | Lookup() | Newest() | Union():
            at = node.schema.index(attribute)
            for below in node.inputs:
                if at >= len(below.schema.fields):
                    raise NoBoundError
                yield below, below.schema.names[at]
        case _:
            raise NoBoundError
