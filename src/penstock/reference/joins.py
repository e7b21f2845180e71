"""Which rows of two streams meet, by two definitions (thesis 5.2).

`near` compares the times of two rows. `joined_by_windows` goes by windows: each stream is cut into window extents, one
per tick or one per window, `widjoin` pairs extents of the two streams by number, and two rows meet if they are in
extents that are paired. `match` is the same from the side of a row: the numbers of the other stream's extents with the
rows of which it meets. The definitions agree, which the tests show; joins are evaluated by the first.

A row of the left is in the extents of the ticks from its own on for as long as it is joined, both ends included, and so
is one of the right. Two rows are then in one if the later of them comes while the earlier is still joined. Where a band
does not hold rows of equal times, the left's times are moved so that it does.

Where a row meets the latest ones only, these are chosen among all that it could meet (`latest`).

A table is joined as it is at a time, if it has versions and is looked at as of one, and else as it is: every row of it
with every row of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from penstock.model.batch import Row
from penstock.plan.join_nodes import Band, Join, Latest, Mutual, Near, SameWindow
from penstock.plan.lookup_nodes import Lookup, TableInfo
from penstock.reference.latest import latest
from penstock.reference.scalars import same_row, value_of

Side = Literal["left", "right"]
PlacedRow = tuple[int, Row]
"""A row and its place in the order of arrival."""


def near(how: Near, left: int, right: int) -> bool:
    """Whether rows of these times are near each other."""
    match how:
        case Band(low=low, high=high):
            return left + low <= right <= left + high
        case Latest(high=high, low=low):  # of these, the latest
            return right <= left + high and (low is None or left + low <= right)
        case SameWindow(width=width, origin=origin):
            return (left - origin) // width == (right - origin) // width


def extents(how: Mutual, side: Side, time: int) -> range:
    """The numbers of the extents of its stream that a row is in."""
    match how:
        case Band(low=low, high=high):
            moved = min(max(0, low), high)  # the least move after which rows of equal times are near each other
            if side == "left":
                return range(time + moved, time + high + 1)
            return range(time, time + moved - low + 1)
        case SameWindow(width=width, origin=origin):
            number = (time - origin) // width
            return range(number, number + 1)


def widjoin(lefts: Iterable[int], rights: Iterable[int]) -> set[tuple[int, int]]:
    """The pairs of extents that are joined: those with the same number."""
    return {(number, number) for number in set(lefts) & set(rights)}


def match(how: Mutual, side: Side, time: int, others: Iterable[int]) -> set[int]:
    """The numbers of the other stream's extents with the rows of which a row meets, of those that there are."""
    own = extents(how, side, time)
    return {number for number in others if number in own}


def joined_by_windows(how: Mutual, lefts: Iterable[int], rights: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The places, in two lists of times, of the rows that meet, by window extents."""
    of_left = [set(extents(how, "left", time)) for time in lefts]
    of_right = [set(extents(how, "right", time)) for time in rights]
    paired = widjoin(set().union(*of_left), set().union(*of_right))
    for place, own in enumerate(of_left):
        for other_place, other in enumerate(of_right):
            if any(i in own and j in other for i, j in paired):
                yield place, other_place


def join(
    node: Join, lefts: Sequence[PlacedRow], rights: Sequence[PlacedRow], holds: Callable[[Row], bool]
) -> list[PlacedRow]:
    """All that comes out of a join, each pair where the later of its rows is; `holds` is asked where all else fits."""
    pairs = [(i, j) for i, a in enumerate(lefts) for j, b in enumerate(rights) if _fit(node, a[1], b[1])]
    if isinstance(node.near, Latest):
        pairs = latest(node, node.near.rows, pairs, [row for _, row in rights])
    if node.condition is not None:
        pairs = [(i, j) for i, j in pairs if holds(_pair(node, lefts[i][1], rights[j][1]))]
    met = [{pair[side] for pair in pairs} for side in (0, 1)]
    if not node.is_of_pairs:
        return [item for i, item in enumerate(lefts) if (i in met[0]) == (node.kind == "semi")]
    found = [(max(lefts[i][0], rights[j][0]), _pair(node, lefts[i][1], rights[j][1])) for i, j in pairs]
    none = [(None,) * len(side.schema.fields) for side in node.inputs]
    if node.keeps_left:
        found += [(place, _pair(node, row, none[1])) for i, (place, row) in enumerate(lefts) if i not in met[0]]
    if node.keeps_right:
        found += [(place, _pair(node, none[0], row)) for i, (place, row) in enumerate(rights) if i not in met[1]]
    return found


def _fit(node: Join, left: Row, right: Row) -> bool:
    """Whether two rows are near each other, and equal where they are to be."""
    one, other = node.left.schema, node.right.schema
    times: Any = left[one.index(node.on[0])], right[other.index(node.on[1])]
    if not near(node.near, *times):
        return False
    values = [(left[one.index(a)], right[other.index(b)]) for a, b in node.equal]
    return all(None not in both and same_row(both[:1]) == same_row(both[1:]) for both in values)


def _pair(node: Join, left: Row, right: Row) -> Row:
    """The columns of both and the later of their times; one of the rows may be of nulls."""
    times: Any = left[node.left.schema.time_index], right[node.right.schema.time_index]
    return (*left, *right, max(time for time in times if time is not None))


def looked_up(node: Lookup, row: Row, table: Sequence[Row], holds: Callable[[Row], bool]) -> list[Row]:
    """What comes of a row of the stream; `holds` is asked where all else fits."""
    seen = table
    if node.as_of is not None:
        time: Any = row[node.input.schema.index(node.as_of)]
        seen = [] if time is None else as_of(node.table, table, time)
    pairs = [(*row, *other) for other in seen if _equals(node, row, other)]
    if node.condition is not None:
        pairs = [pair for pair in pairs if holds(pair)]
    if not node.is_of_pairs:
        return [row] if bool(pairs) == (node.kind == "semi") else []
    return pairs if pairs or node.kind == "inner" else [(*row, *[None] * len(node.table.schema.fields))]


def as_of(table: TableInfo, rows: Sequence[Row], time: int) -> list[Row]:
    """The versions that are valid at a time: of each key the one that began last, unless it has ended."""
    schema = table.schema
    start = schema.index(str(table.valid_from))
    keys = [schema.index(name) for name in table.key]

    def version(row: Row) -> tuple[Any, Any]:
        return same_row(tuple(row[i] for i in keys)), row[start]

    begun = [row for row in rows if version(row)[1] <= time]
    latest = [
        row
        for row in begun
        if not any(version(o)[0] == version(row)[0] and version(o)[1] > version(row)[1] for o in begun)
    ]
    ends: list[Any] = [None if table.valid_to is None else row[schema.index(table.valid_to)] for row in latest]
    return [row for row, end in zip(latest, ends, strict=True) if end is None or time < end]


def _equals(node: Lookup, row: Row, other: Row) -> bool:
    for name, expression in node.equal:
        both = row[node.input.schema.index(name)], value_of(expression, other, node.table.schema, {})
        if None in both or same_row(both[:1]) != same_row(both[1:]):
            return False
    return True
