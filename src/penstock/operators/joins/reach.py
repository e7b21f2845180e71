"""How far apart the times of rows can be that meet in a join of several streams, and what bounds on them mean.

`most[i][j]` is the most by which the time of input j can be later than that of input i: what the joins say, and what
follows from it through other inputs. That may be more than 64 bits have room for. A result that is still to come has a
row that is still to come, of input i, say, which is not below i's bound. So its time of input j is not below that less
`most[j][i]`, which gives the promises:

- of the time of j, the least of `bound[i] - most[j][i]` over all i;
- of the latest of all times, the least over i of what is known of the latest time of a result with a new row of i;
- of two times x and y together, none is below both X and Y, if for every input one of them says so (`together`).

A row of input i is settled once no row that is still to come can meet it, of any other input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.model.elements import Punctuation, joint, linear
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.joins.nearness import moved, times_moved

Most = tuple[tuple[int, ...], ...]


def reach_of(size: int, apart: Iterable[tuple[int, int, int, int]]) -> Most:
    """From `low <= second - first <= high` of some pairs to the most by which each can be later than each other."""
    far = 1 << 80
    most = [[0 if i == j else far for j in range(size)] for i in range(size)]
    for first, second, low, high in apart:
        most[first][second] = min(most[first][second], high)
        most[second][first] = min(most[second][first], -low)
    for through in range(size):
        for i in range(size):
            for j in range(size):
                most[i][j] = min(most[i][j], most[i][through] + most[through][j])
    return tuple(map(tuple, most))


@dataclass(frozen=True)
class Reach:
    """What the distances of times come to."""

    most: Most
    on_time: tuple[bool, ...]
    """Whether each input is joined by its time."""

    def span(self, known: Sequence[tuple[int, np.ndarray]], other: int) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time of another input that rows of some inputs can meet."""
        firsts = [times_moved(times, -self.most[other][at]) for at, times in known]
        lasts = [times_moved(times, self.most[at][other]) for at, times in known]
        return np.maximum.reduce(firsts), np.minimum.reduce(lasts)

    def span_of_row(self, known: Sequence[tuple[int, int]], other: int) -> tuple[int, int]:
        """The same for one row of each."""
        firsts = [time - self.most[other][at] for at, time in known]
        return max(firsts), min([time + self.most[at][other] for at, time in known])

    def settled(self, at: int, bounds: Sequence[int]) -> int:
        """Rows of an input below this meet nothing that is still to come."""
        return min(moved(bound, -self.most[at][other]) for other, bound in enumerate(bounds) if other != at)

    def least(self, at: int, bounds: Sequence[int], without: int = -1) -> int:
        """No result to come has a time of an input below this; `without` new rows of another."""
        return min(moved(bound, -self.most[at][other]) for other, bound in enumerate(bounds) if other != without)

    def latest(self, times: Sequence[int], bounds: Sequence[int]) -> int:
        """No result to come starts before this."""
        found = []
        for at, bound in enumerate(bounds):
            partners = [moved(bound, -self.most[other][at]) for other, on_time in enumerate(self.on_time) if on_time]
            found.append(max([times[at], *partners]))
        return min(found)

    def together(self, first: int, second: int, bounds: Sequence[int]) -> tuple[int, int]:
        """Of two inputs, the bounds below both of which no result to come is, no further than results can be."""
        one, other = self.least(first, bounds, without=second), bounds[second]
        return min(one, moved(other, self.most[second][first])), min(other, moved(one, self.most[first][second]))


@dataclass(frozen=True)
class MultiPromised:
    """The names under which promises are made."""

    attributes: tuple[str, ...]
    time: str
    pair: tuple[int, int]
    """The inputs of which promises are made together."""

    def of(self, reach: Reach, times: Sequence[int], bounds: Sequence[int]) -> Iterator[Punctuation]:
        """What holds of all that is still to come."""
        linears = [(self.time, reach.latest(times, bounds))]
        linears += [(name, reach.least(at, bounds)) for at, name in enumerate(self.attributes) if name]
        yield from (linear(name, bound) for name, bound in linears if bound > MIN_TICK)
        first, second = self.pair
        both = reach.together(first, second, bounds)
        if MIN_TICK not in both and END_OF_TIME not in both:
            yield joint(**{self.attributes[first]: both[0], self.attributes[second]: both[1]})
