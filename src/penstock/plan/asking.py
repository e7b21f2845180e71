"""Who is asked for a bound: the least bounds on the streams of a plan from which one on an attribute of a node follows.

Each node's promise is taken back to the least ones of its inputs that it follows from: by its windows, by how far its
bounds stay behind, through computed times (`bounds_before`), by how near rows of a join are to each other. So each
stream has a bound of its own: two that meet under one time need not have come as far by theirs. It is put together once
for a plan, as a function of the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.model.time import MIN_TICK
from penstock.plan.bounds_before import bound_before
from penstock.plan.expressions import Column, Expression, columns_in
from penstock.plan.greatest import NoBoundError, same_in_inputs, sliding
from penstock.plan.join_nodes import Latest, SameWindow
from penstock.plan.nodes import AlterLifetime, Join, Merge, Node, Pattern, Project, RowNumber, Source, WindowAggregate
from penstock.plan.progressing import firsts

Bounds = dict[str, int]
"""Per stream, by its name in lower case."""
Asking = Callable[[int, Bounds], None]
"""Raises bounds on streams to the least from which a bound on an attribute of a node follows."""
Move = Callable[[int], int]


def asking_all(each: Iterable[tuple[Node, str]]) -> Asking:
    """Of several the same bound."""
    askings = [asking_for(node, attribute) for node, attribute in each]
    if len(askings) == 1:
        return askings[0]

    def asking(bound: int, found: Bounds) -> None:
        for one in askings:
            one(bound, found)

    return asking


def _moved(asking: Asking, move: Move) -> Asking:
    """Of a node below, where a bound becomes another one."""
    return lambda bound, found: asking(move(bound), found)


def asking_for(node: Node, attribute: str) -> Asking:
    """The least bounds on streams from which a bound on an attribute of a node follows."""
    is_time = attribute == node.schema.time
    match node:
        case Source(name=name) if is_time:
            return _asking_stream(name.lower())
        case AlterLifetime(input=below, shift=shift) if is_time:
            return _moved(asking_for(below, attribute), lambda bound: bound - shift)
        case Project(input=below, columns=columns):
            expression = dict(columns)[attribute]
            if isinstance(expression, Column):
                return asking_for(below, expression.name)
            if not is_time and attribute not in firsts(node):
                raise NoBoundError
            return _moved(asking_all((below, name) for name in columns_in(expression)), _back_through(expression))
        case Join():
            return _before_join(node, attribute)
        case Pattern(steps=steps) if is_time:
            return asking_all((step, str(step.schema.time)) for step in steps)
        case WindowAggregate() | RowNumber() if is_time:
            window = sliding(node)
            slide, origin = window.slide, window.origin
            # A bound that is reached closes the windows that end there, and the next one ends a slide later.
            return _moved(
                asking_for(node.input, window.attribute), lambda bound: origin + (bound - 1 - origin) // slide * slide
            )
        case Merge(lag=lag) if is_time and lag:
            return _moved(asking_all(same_in_inputs(node, attribute)), lambda bound: bound + lag)
    return asking_all(same_in_inputs(node, attribute))


def _asking_stream(stream: str) -> Asking:
    def asking(bound: int, found: Bounds) -> None:
        if bound > found.get(stream, MIN_TICK):
            found[stream] = bound

    return asking


def _back_through(expression: Expression) -> Move:
    def back(bound: int) -> int:
        found = bound_before(expression, bound)
        if found is None:
            raise NoBoundError
        return found

    return back


def _before_join(node: Join, attribute: str) -> Asking:
    """What a join promises, taken back (`operators.joins.promised`)."""
    (left, right), (on_left, on_right) = node.inputs, node.on
    on_times = node.on == (left.schema.time, right.schema.time)
    is_time, is_latest = attribute == node.schema.time, isinstance(node.near, Latest)
    of_right, of_left = _settling(node)
    if is_time and (on_times or (node.kind == "inner" and not is_latest)):
        waits_left = node.keeps_left or not node.is_of_pairs or is_latest
        asks_left, asks_right = asking_for(left, str(left.schema.time)), asking_for(right, str(right.schema.time))
        moves_left = _no_less(of_left) if node.keeps_right else _as_it_is
        moves_right = _no_less(of_right) if waits_left else _as_it_is
    elif attribute in node.attributes and attribute == node.named_on[0]:
        asks_left, asks_right = asking_for(left, on_left), asking_for(right, on_right)
        moves_left, moves_right = _as_it_is, _no_less(of_right) if is_latest else of_right
    elif attribute in node.attributes and not is_latest:
        asks_left, asks_right = asking_for(left, on_left), asking_for(right, on_right)
        moves_left, moves_right = of_left, _as_it_is
    else:
        raise NoBoundError

    def asking(bound: int, found: Bounds) -> None:
        asks_left(moves_left(bound), found)
        asks_right(moves_right(bound), found)

    return asking


def _settling(node: Join) -> tuple[Move, Move]:
    """By which bound of the right no row of the left below a bound meets what is still to come; and the other way."""
    match node.near:
        case SameWindow(width=width, origin=origin):
            return (lambda bound: bound + (origin - bound) % width,) * 2
        case near:
            high, low = near.high, near.low or 0
            return (lambda bound: bound + high), (lambda bound: bound - low)


def _as_it_is(bound: int) -> int:
    return bound


def _no_less(move: Move) -> Move:
    return lambda bound: max(bound, move(bound))
