"""The bounds that close what streams have brought, and nothing more.

When everything that has come is to be put out, the end of time as bound would do, and would make every later row late.
The least bound that does it is the end of the last window that holds a row: results up to there are out, so a row below
it is late, and a row from there on falls into windows that nobody has seen. Windows of windows, a merge that stays
behind its inputs, computed times, and joins, whose rows reach into the time after them, need another one.

It is found in two directions. Up the plan goes the greatest value that an attribute has in what has come (`_last`).
What waits for a bound on an attribute waits for bounds on the streams, which are found down the plan (`_before`): each
node's promise is taken back to the least ones of its inputs that it follows from, through computed times as well
(`bounds_before`). So each stream has a bound of its own: two that meet under one time need not have come as far by
theirs.

There is no such bound where a row can matter for ever: windows that do not slide over an attribute of the stream,
groups without a window, and elements whose end may still be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from penstock.model.time import END_OF_TIME
from penstock.plan.bounds_before import bound_before, value_at
from penstock.plan.expressions import Column, Expression, columns_in
from penstock.plan.join_nodes import Band, Latest, SameWindow
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
from penstock.plan.progressing import firsts
from penstock.plan.windows import SlidingWindow

Bounds = dict[str, int]
"""Per stream, by its name in lower case."""


class _NoBound(Exception):
    """There is none, or none is known."""


def closing_bound(plan: Node, greatest: int) -> int | None:
    """The least bound on all streams after which nothing is open, if their rows go up to `greatest`; None if none."""
    streams = {node.name.lower() for node in plan.walk() if isinstance(node, Source)}
    found = closing_bounds(plan, dict.fromkeys(streams, greatest))
    return None if found is None else max(found.values())


def closing_bounds(plan: Node, newest: Mapping[str, int]) -> Bounds | None:
    """The least bound on each stream after which nothing is open; None if there are none.

    `newest` are the greatest times of the rows of streams, by their names in lower case, without those that have none.
    A stream of which nothing is waited for has no bound.
    """
    time = str(plan.schema.time)
    try:
        last = _last(plan, time, newest)
        found = _all_of([_closing(plan, newest), *(() if last is None else (_before(plan, time, last + 1),))])
    except _NoBound:
        return None
    return None if any(bound >= END_OF_TIME for bound in found.values()) else found


def _all_of(each: Iterable[Bounds]) -> Bounds:
    """The bounds that go as far as all of these."""
    found: Bounds = {}
    for bounds in each:
        for stream, bound in bounds.items():
            found[stream] = max(bound, found.get(stream, bound))
    return found


# What has come, up the plan


def _last(node: Node, attribute: str, newest: Mapping[str, int]) -> int | None:
    """The greatest value that an attribute has in what comes of what has come, or more; None if there are no rows."""
    is_time = attribute == node.schema.time
    match node:
        case Source(name=name) if is_time:
            return newest.get(name.lower())
        case AlterLifetime(input=below, shift=shift) if is_time:
            found = _last(below, attribute, newest)
            return None if found is None else found + shift
        case Project(input=below, columns=columns):
            return _last_computed(below, dict(columns)[attribute], newest)
        case Join(left=left, right=right) if is_time and node.is_of_pairs:
            return _latest([_last(side, str(side.schema.time), newest) for side in (left, right)])
        case Join(left=left, right=right):
            at, half = node.schema.index(attribute), len(left.schema.fields)
            side, place = (left, at) if at < half else (right, at - half)
            return _last(side, side.schema.names[place], newest)
        case Pattern() if is_time:
            return _last_of_pattern(node, newest)
        case WindowAggregate() | RowNumber() if is_time:
            return _last_end(node, newest)
        case _:
            return _latest([_last(below, name, newest) for below, name in _same_in_inputs(node, attribute)])


def _last_computed(below: Node, expression: Expression, newest: Mapping[str, int]) -> int | None:
    lasts = {name: _last(below, name, newest) for name in columns_in(expression)}
    latest = _latest(lasts.values())
    if latest is None:
        return None
    found = value_at(expression, {name: latest if last is None else last for name, last in lasts.items()})
    if found is None:
        raise _NoBound
    return found


def _last_end(node: WindowAggregate | RowNumber, newest: Mapping[str, int]) -> int | None:
    """The end of the last window that can have a row."""
    window = _sliding(node)
    last = _last(node.input, window.attribute, newest)
    if last is None:
        return None
    return window.origin + (last - window.origin + window.range) // window.slide * window.slide


def _sliding(node: WindowAggregate | RowNumber) -> SlidingWindow:
    """The windows of a node, if they slide over the time of its input."""
    if not isinstance(node.window, SlidingWindow) or node.window.attribute != node.input.schema.time:
        raise _NoBound
    return node.window


def _last_of_pattern(node: Pattern, newest: Mapping[str, int]) -> int | None:
    """The last time of a sequence: that of its last row, or until which nothing must come after its first one."""
    lasts = [_last(node.steps[at], str(node.steps[at].schema.time), newest) for at in node.places]
    first, last = lasts[0], lasts[-1]
    if first is None or last is None or None in lasts:
        return None
    return min(first, last) + (node.within or 0) if node.ends_with_nothing else last


def _latest(lasts: Iterable[int | None]) -> int | None:
    return max([last for last in lasts if last is not None], default=None)


def _same_in_inputs(node: Node, attribute: str) -> Iterator[tuple[Node, str]]:
    """The inputs of a node whose rows are among its own, with what an attribute is called there."""
    match node:
        case Unnest(input=below) if all(part.name != attribute for part in node.parts):
            yield below, attribute
        case Distinct() | Newest() if node.schema.lives is not None:
            raise _NoBound
        case Merge(elements=False) | Select() | Distinct() | Conflate() | Lookup() | Newest() | Union():
            at = node.schema.index(attribute)
            for below in node.inputs:
                if at >= len(below.schema.fields):
                    raise _NoBound
                yield below, below.schema.names[at]
        case _:
            raise _NoBound


# What is waited for, down the plan


def _closing(node: Node, newest: Mapping[str, int]) -> Bounds:
    """The bounds after which nothing waits in a node, nor in those below it."""
    below = [_closing(each, newest) for each in node.inputs]
    match node:
        case Source(name=name):
            known = newest.get(name.lower())
            return {} if known is None else {name.lower(): known + 1}
        case WindowAggregate() | RowNumber():
            end = _last_end(node, newest)
            own = {} if end is None else _before(node.input, _sliding(node).attribute, end)
        case Join():
            own = _met(node, newest)
        case Pattern():
            own = _followed(node, newest)
        case Merge() if (last := _last(node, str(node.schema.time), newest)) is not None:
            own = _before(node, str(node.schema.time), last + 1)
        case AlterLifetime() | Project():
            own = {}
        case _:
            list(_same_in_inputs(node, str(node.schema.time)))  # which are all that others pass on
            own = {}
    return _all_of([*below, own])


def _met(node: Join, newest: Mapping[str, int]) -> Bounds:
    """Rows that have come are settled, and meet none that come later, once the bound is beyond their reach.

    Rows that come out a few at a time are all out at the end of time only.
    """
    if node.schema.lives is not None or node.max_burst is not None:
        raise _NoBound
    last = _latest([_last(side, on, newest) for side, on in zip(node.inputs, node.on, strict=True)])
    if last is None:
        return {}
    match node.near:
        case SameWindow(width=width, origin=origin):
            end = origin + ((last - origin) // width + 1) * width
        case near:
            end = last + max(near.high, -(near.low or 0) if isinstance(near, Band) else 0, 0) + 1
    return _all_of(_before(side, on, end) for side, on in zip(node.inputs, node.on, strict=True))


def _followed(node: Pattern, newest: Mapping[str, int]) -> Bounds:
    """Sequences are out once every step is past the last row, and what must not come after it past their time."""
    last, until = (
        _last(node.steps[node.last], str(node.steps[node.last].schema.time), newest),
        _last_of_pattern(node, newest),
    )
    if last is None or until is None:
        return {}
    return _all_of(
        _before(step, str(step.schema.time), (until if at > node.last else last) + 1)
        for at, step in enumerate(node.steps)
    )


def _before(node: Node, attribute: str, bound: int) -> Bounds:
    """The least bounds on streams from which a bound on an attribute of a node follows."""
    is_time = attribute == node.schema.time
    match node:
        case Source(name=name) if is_time:
            return {name.lower(): bound}
        case AlterLifetime(input=below, shift=shift) if is_time:
            return _before(below, attribute, bound - shift)
        case Project(input=below, columns=columns):
            expression = dict(columns)[attribute]
            if isinstance(expression, Column):
                return _before(below, expression.name, bound)
            found = bound_before(expression, bound) if is_time or attribute in firsts(node) else None
            if found is None:
                raise _NoBound
            return _all_of(_before(below, name, found) for name in columns_in(expression))
        case Join():
            return _all_of(_before(*each) for each in _before_join(node, attribute, bound))
        case Pattern(steps=steps) if is_time:
            return _all_of(_before(step, str(step.schema.time), bound) for step in steps)
        case WindowAggregate() | RowNumber() if is_time:
            window = _sliding(node)
            before = (bound - 1 - window.origin) // window.slide  # of the window that ends there or next
            return _before(node.input, window.attribute, window.origin + before * window.slide)
        case Merge(lag=lag) if is_time:
            bound += lag
    return _all_of(_before(below, name, bound) for below, name in _same_in_inputs(node, attribute))


def _before_join(node: Join, attribute: str, bound: int) -> Iterator[tuple[Node, str, int]]:
    """Of each input the bound that a promise of a join follows from (`operators.joins.promised`)."""
    (left, right), (on_left, on_right) = node.inputs, node.on
    on_times = node.on == (left.schema.time, right.schema.time)
    is_time, is_latest = attribute == node.schema.time, isinstance(node.near, Latest)
    match node.near:
        case SameWindow(width=width, origin=origin):
            of_right = of_left = bound + -(bound - origin) % width
        case near:
            of_right, of_left = bound + near.high, bound - (near.low or 0)
    if is_time and (on_times or (node.kind == "inner" and not is_latest)):
        waits_left = node.keeps_left or not node.is_of_pairs or is_latest
        yield left, str(left.schema.time), max(bound, of_left) if node.keeps_right else bound
        yield right, str(right.schema.time), max(bound, of_right) if waits_left else bound
    elif attribute in node.attributes and attribute == node.named_on[0]:
        yield left, on_left, bound
        yield right, on_right, max(bound, of_right) if is_latest else of_right
    elif attribute in node.attributes and not is_latest:
        yield right, on_right, bound
        yield left, on_left, of_left
    else:
        raise _NoBound
