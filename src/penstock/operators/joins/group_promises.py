"""Promises of groups through a join: what they give up, and what follows for the results (thesis 2.1, 4 and 7).

An input that promises of some groups that nothing of theirs comes below a bound says so of the partners that rows of
the other side wait for, if all of its constants are in columns that must be equal. Those rows are settled as by a bound
on the whole input, and rows that come later are not kept.

What is promised of results with such constants is the least that can still come of them (`group_bounds`), where rows
that are kept count one by one: a group has ended once neither a row of it can come nor one that is kept can be met. A
promise is renewed when an input says more of the group, and when the oldest of its rows is given up. Between, bounds on
a whole input are not told again for every group: they hold of all results.

A promise of groups looks at the rows that are kept of theirs, those in runs by a comparison of the columns. What has
ended on both sides is forgotten; what has ended on one is kept, since it is asked for with every row of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical
from penstock.operators.joins.group_bounds import NOTHING, GroupBounds, Half, Least, either
from penstock.operators.joins.kept_rows import KeptRows, having
from penstock.operators.joins.nearness import LEFT, RIGHT
from penstock.operators.joins.spoken import Spoken
from penstock.operators.joins.waiting_groups import Group, WaitingGroups
from penstock.operators.operator import Outputs
from penstock.operators.state import PROMISES

if TYPE_CHECKING:
    from penstock.operators.joins.bounds import Bounds
    from penstock.operators.joins.oa_join import OAJoin

BOTH = (LEFT, RIGHT)
WAITING = "groups"


class GroupPromises:
    """What a join makes of promises that are about groups."""

    def __init__(self, join: OAJoin) -> None:
        """The pages are the join's."""
        self.join = join
        self.spoken = Spoken(join.schema, join.sides, of_pairs=join.is_of_pairs)
        self.kept = KeptRows(join)
        self.bounds = GroupBounds(join.near, (join.sides[LEFT].on_time, join.sides[RIGHT].on_time))

    # Rows that come

    def settled(self, port: int, key: tuple[Any, ...], linear: int) -> int:
        """Below this no row of a key is met any more; `linear` is what holds of all."""
        pages = self.join.pages
        if self.spoken.of(pages, 1 - port) is None:
            return linear
        return max(linear, self.join.near.settled(port, self.spoken.of_key(pages, port, key)))

    def settled_rows(self, port: int, table: pa.Table, linear: int) -> np.ndarray | int:
        """The same of every row of a table."""
        told = self.spoken.of_rows(self.join.pages, port, table)
        if told is None:
            return linear
        of_bound = {int(b): self.join.near.settled(port, int(b)) for b in np.unique(told)}
        return np.maximum(linear, np.array([of_bound[b] for b in told.tolist()], np.int64))

    # Promises

    def take(self, port: int, promise: Punctuation, known: Bounds) -> Outputs:
        """A promise of an input that is about groups."""
        if not self.spoken.take(self.join.pages, port, promise):
            return
        schema = self.join.sides[port].schema
        constants = {schema.index(name): canonical(value) for name, value in promise.constants}
        yield from self._give_up(port, promise, constants, known)
        yield from self.join._promise(known)
        told = [group for group in self.spoken.groups(port, promise) if not self._may_be_missing(group)]
        meant = [*told, *self._waiting().about(port, constants)]
        yield from self._renew(meant, known)
        if promise.value == END_OF_TIME:
            self._forget(port, constants)

    def gave_up(self, port: int, settled: int, known: Bounds) -> Outputs:
        """Rows of a side below a time were given up, by a bound of the other side."""
        if self.join.pages.get(WAITING) is None:
            return
        waiting = self._waiting()
        yield from self._renew(waiting if settled == END_OF_TIME else waiting.given_up(port, settled), known)

    def met(self, port: int, batch: Batch, known: Bounds) -> Outputs:
        """Rows have come by which others may be done with."""
        if self.join.pages.get(WAITING) is None:
            return
        waiting, keys = self._waiting(), self.join.sides[port].keys
        found = {tuple([canonical(row[column]) for column in keys]) for row in batch.rows}
        groups = [group for key in found for group in waiting.about(port, dict(zip(keys, key, strict=True)))]
        yield from self._renew(groups, known)

    def _give_up(self, port: int, promise: Punctuation, constants: dict[int, Any], known: Bounds) -> Outputs:
        """Give up the rows of the other side whose partners it speaks for."""
        own, other, join = self.join.sides[port], 1 - port, self.join
        places = {column: at for at, column in enumerate(own.keys)}
        if not constants.keys() <= places.keys() or (
            promise.attribute != own.attribute and promise.value < END_OF_TIME
        ):
            return
        settled = join.near.settled(other, promise.value)
        loose = join._loose(other)
        gone = loose.give_up_of({places[column]: value for column, value in constants.items()}, settled)
        if gone:
            yield from join._gave_up_loose(other, loose, gone)
        columns = [join.sides[other].keys[places[column]] for column in constants]
        kept: list[int] = []
        for number in known.runs[other]:
            run = join._run(number)
            over = np.zeros(0, np.bool_)
            if run.oldest < settled:
                over = (run.times < settled) & having(run.select(columns), list(constants.values()))
            if not over.any():
                kept.append(number)
                continue
            if join.sides[other].keeps and (alone := over & ~run.met).any():
                yield join.forms.alone(other, run.chosen(np.flatnonzero(alone)), of_pairs=join.is_of_pairs)
            if over.all():
                join.pages.delete(f"run{number}")
            else:
                join.pages.put(f"run{number}", run.kept(~over))
                kept.append(number)
        known.runs[other] = kept
        join.pages.put("bounds", known)

    def _forget(self, port: int, constants: dict[int, Any]) -> None:
        """What has ended on both sides is asked for by nobody any more.

        An input that is joined by another attribute than its time may say of each that a group has ended.
        """
        sides, pages = self.join.sides, self.join.pages
        if not all(side.on_time for side in sides):
            return
        partners = dict(zip(sides[port].keys, sides[1 - port].keys, strict=True))
        other = self.spoken.of(pages, 1 - port)
        if other is None or not constants.keys() <= partners.keys():
            return
        named = sorted((sides[1 - port].schema.fields[partners[c]].name, value) for c, value in constants.items())
        names, values = tuple(name for name, _ in named), tuple(value for _, value in named)
        if other.bound_of(sides[1 - port].attribute, names, values) < END_OF_TIME:
            return
        self.spoken.forget(pages, 1 - port, names, values)
        own = [sides[port].schema.fields[column].name for column in constants]
        self.spoken.forget(pages, port, own, tuple(constants.values()))
        frontier: Frontier | None = pages.get(PROMISES)
        if frontier is not None:
            promise = Punctuation(((sides[port].attribute, 0),), tuple(zip(own, constants.values(), strict=True)))
            for naming, of_group in self.spoken.groups(port, promise):
                for told in self._told((naming, of_group), NOTHING):
                    frontier.forget(told)
            pages.put(PROMISES, frontier)

    # Results

    def _renew(self, groups: Iterable[Group], known: Bounds) -> Outputs:
        """Promise of groups what can be promised now."""
        chosen = list({(naming.names, values): (naming, values) for naming, values in groups}.values())
        if not chosen:
            return
        waiting, frontier = self._waiting(), self.join.pages.get(PROMISES) or Frontier()
        fresh: list[Punctuation] = []
        for group, *halves in zip(chosen, *self._halves(chosen, known), strict=True):
            least = self._least(group, *halves)
            told = [*self._told(group, least), *self._told_of_both(group, *halves)]
            fresh += [promise for promise in told if frontier.add(promise)]
            if least.is_over or self._is_passed(group, known):
                waiting.remove(group)
            else:
                waiting.put(group, (halves[LEFT].kept, halves[RIGHT].kept))
        if len(waiting) > 2 * waiting.swept + 64:
            for group in [group for group in waiting if self._is_passed(group, known)]:
                waiting.remove(group)
            waiting.swept = len(waiting)
        self._keep(waiting)
        if fresh:
            self.join.pages.put(PROMISES, frontier)
        yield from fresh

    def _least(self, group: Group, left: Half, right: Half) -> Least:
        """What can still come out that has the constants of a group."""
        naming, values = group
        join, found = self.join, NOTHING
        equal = {at for side in BOTH for column, at in naming.columns[side] if column in join.sides[side].keys}
        meets = all(values[at] is not None for at in equal)  # null equals nothing
        if meets and join.is_of_pairs:
            found = self.bounds.pairs(left, right)
        elif meets and join.is_semi:
            found = self.bounds.with_partner(left, right)
        for side, half in ((LEFT, left), (RIGHT, right)):
            if join.sides[side].keeps and naming.is_of(side):
                found = either(found, self.bounds.alone(side, half))
        return found

    def _may_be_missing(self, group: Group) -> bool:
        """Whether a null may stand for a row that is not there, of which no input speaks."""
        naming, values = group
        nulls = {side for side, value in zip(naming.sides, values, strict=True) if value is None}
        return any(self.join.sides[1 - side].keeps for side in nulls)

    def _told(self, group: Group, least: Least) -> Iterator[Punctuation]:
        naming, values = group
        constants, promised = tuple(zip(naming.names, values, strict=True)), self.join.promised
        for name, bound in ((promised.time, least.time), (promised.left, least.left), (promised.right, least.right)):
            if name and bound > MIN_TICK:
                yield Punctuation(((name, bound),), constants)

    def _told_of_both(self, group: Group, left: Half, right: Half) -> Iterator[Punctuation]:
        """No pair of a group is below both bounds at once."""
        promised, (naming, values) = self.join.promised, group
        if promised.left and promised.right:
            both = self.join.near.together(left.bound, right.bound)
            if MIN_TICK not in both and END_OF_TIME not in both:
                bounds = tuple(sorted(zip((promised.left, promised.right), both, strict=True)))
                yield Punctuation(bounds, tuple(zip(naming.names, values, strict=True)))

    def _halves(self, groups: list[Group], known: Bounds) -> tuple[list[Half], list[Half]]:
        """What was promised of each side of some groups, and what it keeps of them."""
        bounds = [[self._bounds_of(side, group, known) for group in groups] for side in BOTH]
        made: list[list[Half]] = []
        for side in BOTH:  # rows that the other side's bound of the group has passed are met no more
            settled = [self.join.near.settled(side, bound) for bound, _ in bounds[1 - side]]
            kept = self.kept.of(side, groups, settled, known)
            made.append([Half(*bound, *own) for bound, own in zip(bounds[side], kept, strict=True)])
        return made[LEFT], made[RIGHT]

    def _bounds_of(self, side: int, group: Group, known: Bounds) -> tuple[int, int]:
        """On the attribute and on the time; what ends one ends the other."""
        naming, values = group
        constants = naming.constants(side, self.join.sides[side].schema, values)
        pages = self.join.pages
        bound = max(known.attributes[side], self.spoken.bound(pages, side, constants))
        time = max(known.times[side], self.spoken.bound(pages, side, constants, on_time=True))
        return (END_OF_TIME, END_OF_TIME) if END_OF_TIME in (bound, time) else (bound, time)

    def _is_passed(self, group: Group, known: Bounds) -> bool:
        """Whether bounds on whole inputs say as much as was promised of a group."""
        naming, values = group
        for side in BOTH:
            constants = naming.constants(side, self.join.sides[side].schema, values)
            for on_time, linear in ((False, known.attributes[side]), (True, known.times[side])):
                if self.spoken.bound(self.join.pages, side, constants, on_time=on_time) > linear:
                    return False
        return True

    # State

    def _waiting(self) -> WaitingGroups:
        found: WaitingGroups | None = self.join.pages.get(WAITING)
        return WaitingGroups() if found is None else found

    def _keep(self, waiting: WaitingGroups) -> None:
        if len(waiting):
            self.join.pages.put(WAITING, waiting)
        else:
            self.join.pages.delete(WAITING)
