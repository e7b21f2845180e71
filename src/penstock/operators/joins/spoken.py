"""What the inputs of a join have promised of groups, and the names under which results can be promised of them.

A promise of one input has constants for columns of that side. Where such a column equals one of the other side, the
constant is that one's too: of a pair it can be said under either name. So a promise about one side is about as many
groups of results as its columns have names there (`Naming`), and the bound that holds of a side of such a group is
asked for with the constants of both.

Promises on other attributes than those that a side is joined by, and on several together, say nothing of partners; they
are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import rows_of
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical, canonical_row
from penstock.operators.joins.forms import Side
from penstock.operators.joins.loose import Key
from penstock.operators.joins.nearness import LEFT, RIGHT
from penstock.operators.state import PROMISES, Pages

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Naming:
    """Columns of the output by which groups of results are told apart, and what they are on both sides."""

    names: tuple[str, ...]
    columns: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
    """Of each side: columns, with the places of their values among those of the names."""
    sides: tuple[int, ...]
    """Of which side each name is."""

    def is_of(self, side: int) -> bool:
        """Whether all names are of one side: rows of it that come out without a partner may then have the values."""
        return all(each == side for each in self.sides)

    def constants(self, side: int, schema: Schema, values: Values) -> dict[str, Any]:
        """What rows of a side have that come out with these values."""
        return {schema.fields[column].name: values[at] for column, at in self.columns[side]}


class Spoken:
    """The promises of both inputs that are about groups."""

    def __init__(self, schema: Schema, sides: tuple[Side, Side], *, of_pairs: bool) -> None:
        """`schema` is that of the output, which has the columns of both sides, or of the left."""
        self.sides, self.of_pairs = sides, of_pairs
        halves = [len(side.schema.fields) for side in sides]
        self._names = [schema.names[: halves[LEFT]], schema.names[halves[LEFT] : sum(halves)] if of_pairs else ()]
        self.equal = list(zip(sides[LEFT].keys, sides[RIGHT].keys, strict=True))
        self._namings: dict[tuple[tuple[int, int], ...], Naming] = {}

    # Promises of the inputs

    @staticmethod
    def of(pages: Pages, port: int) -> Frontier | None:
        """What an input has promised of groups; None if nothing."""
        found: Frontier | None = pages.get(f"{PROMISES}{port}")
        return found

    def take(self, pages: Pages, port: int, promise: Punctuation) -> bool:
        """Whether a promise says something new of partners; if so it is kept."""
        side = self.sides[port]
        own = {side.attribute, str(side.schema.time)}
        if promise.is_joint or not promise.constants or promise.attribute not in own:
            return False
        told = own if promise.value == END_OF_TIME else {promise.attribute}
        frontier = self.of(pages, port) or Frontier()
        fresh = [frontier.add(Punctuation(((name, promise.value),), promise.constants)) for name in sorted(told)]
        if any(fresh):
            pages.put(f"{PROMISES}{port}", frontier)
        return any(fresh)

    def forget(self, pages: Pages, port: int, names: Sequence[str], values: Values) -> None:
        """Nobody asks any more for what ended with these constants."""
        frontier, side = self.of(pages, port), self.sides[port]
        if frontier is not None:
            for name in {side.attribute, str(side.schema.time)}:
                frontier.forget(Punctuation(((name, END_OF_TIME),), tuple(zip(names, values, strict=True))))
            pages.put(f"{PROMISES}{port}", frontier)

    def bound(self, pages: Pages, port: int, constants: dict[str, Any], *, on_time: bool = False) -> int:
        """What was promised of the rows of a side that have these constants; `MIN_TICK` if nothing."""
        frontier, side = self.of(pages, port), self.sides[port]
        if frontier is None or not constants:
            return MIN_TICK
        return frontier.bound(str(side.schema.time) if on_time else side.attribute, constants)

    # Rows of the other side

    def of_key(self, pages: Pages, port: int, key: Key) -> int:
        """What the other input has promised of the partners of a row of this key."""
        frontier, found = self.of(pages, 1 - port), MIN_TICK
        for columns, places in self._usable(frontier, port):
            assert frontier is not None
            values = tuple([key[at] for at in places])
            found = max(found, frontier.bound_of(self.sides[1 - port].attribute, columns, values))
        return found

    def of_rows(self, pages: Pages, port: int, table: pa.Table) -> np.ndarray | None:
        """The same of the rows of a table; None if nothing was promised of groups."""
        frontier = self.of(pages, 1 - port)
        shapes = list(self._usable(frontier, port))
        if not shapes or frontier is None:
            return None
        found, attribute = np.full(table.num_rows, MIN_TICK, np.int64), self.sides[1 - port].attribute
        for columns, places in shapes:
            keys = values_in(table, [self.sides[port].keys[at] for at in places])
            told = [frontier.bound_of(attribute, columns, key) for key in keys]
            np.maximum(found, np.array(told, np.int64), out=found)
        return found

    def _usable(self, frontier: Frontier | None, port: int) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        """The columns that promises of the other input are about, and their places in a key of this one.

        A promise with a column that need not be equal speaks for some of the partners only.
        """
        if frontier is None:
            return
        other = self.sides[1 - port]
        places = {other.schema.fields[column].name: at for at, column in enumerate(other.keys)}
        for columns in frontier.groupings(other.attribute):
            if all(name in places for name in columns):
                yield columns, [places[name] for name in columns]

    # Groups of results

    def groups(self, port: int, promise: Punctuation) -> Iterator[tuple[Naming, Values]]:
        """The groups of results that a promise of an input is about."""
        schema = self.sides[port].schema
        said = [(schema.index(name), canonical(value)) for name, value in promise.constants]
        options = [list(self._called(port, column)) for column, _ in said]
        for chosen in product(*options):
            order = sorted(range(len(chosen)), key=lambda at: self._name(*chosen[at]))
            yield self._naming(tuple(chosen[at] for at in order)), tuple(said[at][1] for at in order)

    def _called(self, port: int, column: int) -> Iterator[tuple[int, int]]:
        """The side and the place of a column, and of those of the other side that equal it, as far as they come out."""
        if self.of_pairs or port == LEFT:
            yield port, column
        if self.of_pairs or port == RIGHT:
            others = {pair[1 - port] for pair in self.equal if pair[port] == column}
            yield from ((1 - port, other) for other in sorted(others))

    def _name(self, side: int, column: int) -> str:
        return self._names[side][column]

    def _naming(self, chosen: tuple[tuple[int, int], ...]) -> Naming:
        found = self._namings.get(chosen)
        if found is None:
            columns: list[dict[int, int]] = [{}, {}]
            for at, (side, column) in enumerate(chosen):
                columns[side].setdefault(column, at)
                for pair in self.equal:
                    if pair[side] == column:
                        columns[1 - side].setdefault(pair[1 - side], at)
            names = tuple(self._name(*each) for each in chosen)
            own = tuple(columns[LEFT].items()), tuple(columns[RIGHT].items())
            found = Naming(names, own, tuple(side for side, _ in chosen))
            self._namings[chosen] = found
        return found


def values_in(table: pa.Table, columns: Sequence[int]) -> list[Values]:
    """The values of some columns of every row, as constants."""
    return [canonical_row(row) for row in rows_of(table.select(list(columns)))]
