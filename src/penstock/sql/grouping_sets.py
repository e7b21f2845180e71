"""What a GROUP BY comes to: one or more sets of keys, each of which is a grouping of all rows.

ROLLUP has as many sets as keys and one more, CUBE every choice of them; several of these beside one another, and keys
beside them, are every choice of one set of each. Keys in parentheses come and go together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from penstock.sql.reading import Reading

MOST_SETS = 128
"""Each set is an aggregation of its own."""
Keys = tuple[exp.Expr, ...]


@dataclass(frozen=True)
class GroupingSets:
    """The sets of one GROUP BY."""

    sets: tuple[Keys, ...]
    keys: Keys
    """All of them in the order in which they are written; one that is written twice is there twice."""
    are_said: bool
    """Whether the query speaks of sets at all."""


def grouping_sets(group: exp.Expr | None, reading: Reading) -> GroupingSets:
    """The sets of a GROUP BY; without one, all rows are one group."""
    if group is None:
        return GroupingSets(((),), (), are_said=False)
    return _Reader(group, reading).all()


class _Reader:
    def __init__(self, group: exp.Expr, reading: Reading) -> None:
        self.group, self.reading = group, reading

    def all(self) -> GroupingSets:
        listed = self.reading.parts(self.group, "expressions")
        written = [k for each in listed for keys in self._sets(each) for k in keys]
        for arg, kind, made in (("rollup", exp.Rollup, self._rolled), ("cube", exp.Cube, self._cubed)):
            for with_ in self.reading.parts(self.group, arg):  # WITH ROLLUP, WITH CUBE
                if not isinstance(with_, kind) or self.reading.parts(with_, "expressions"):
                    raise self.reading.unread(self.group, arg, with_)
                return GroupingSets(tuple(made([(key,) for key in listed])), tuple(listed), are_said=True)
        given = self.reading.parts(self.group, "grouping_sets")
        if given:  # keys, and then which sets of them
            sets = [keys for each in given for keys in self._sets(each)]
            return GroupingSets(tuple(self._few(sets)), (*listed, *(k for keys in sets for k in keys)), are_said=True)
        chosen = [self._sets(each) for each in listed]
        self._check(_product(map(len, chosen)))
        sets = [tuple(k for keys in each for k in keys) for each in product(*chosen)]
        said = any(isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets) for each in listed)
        return GroupingSets(tuple(sets), tuple(written), are_said=said)

    def _sets(self, node: exp.Expr) -> list[Keys]:
        match node:
            case exp.Rollup():
                return self._rolled([self._together(e) for e in self.reading.parts(node, "expressions")])
            case exp.Cube():
                return self._cubed([self._together(e) for e in self.reading.parts(node, "expressions")])
            case exp.GroupingSets():
                return self._few([keys for e in self.reading.parts(node, "expressions") for keys in self._inside(e)])
            case _:
                return [(node,)]

    def _inside(self, node: exp.Expr) -> list[Keys]:
        """The sets that stand in GROUPING SETS: keys in parentheses are one."""
        return [self._together(node)] if isinstance(node, exp.Tuple | exp.Paren) else self._sets(node)

    def _together(self, node: exp.Expr) -> Keys:
        if isinstance(node, exp.Tuple):
            return tuple(self.reading.parts(node, "expressions"))
        return (self.reading.need(node, "this") if isinstance(node, exp.Paren) else node,)

    def _rolled(self, keys: list[Keys]) -> list[Keys]:
        """All of them, then one fewer from the end each time, down to none."""
        return self._few([_flat(keys[:size]) for size in range(len(keys), -1, -1)])

    def _cubed(self, keys: list[Keys]) -> list[Keys]:
        """Every choice of them, most first."""
        self._check(2 ** len(keys))
        return [_flat(chosen) for size in range(len(keys), -1, -1) for chosen in combinations(keys, size)]

    def _few(self, sets: list[Keys]) -> list[Keys]:
        self._check(len(sets))
        return sets

    def _check(self, sets: int) -> None:
        if sets > MOST_SETS:
            raise self.reading.error(
                "GROUP BY has too many grouping sets.",
                self.group,
                got=str(sets),
                hint=f"at most {MOST_SETS}: name those that are wanted with GROUPING SETS (…)",
            )


def _flat(chosen: Iterable[Keys]) -> Keys:
    return tuple(k for keys in chosen for k in keys)


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
