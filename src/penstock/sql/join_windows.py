"""What windows after the relations of FROM say of a join: `FROM a [RANGE 3, WA ts], b [RANGE 2, WA ts]`.

A row lives from its own time on for as long as the window of its stream is, both ends included, and rows of several
streams meet while all of them live. Lives are intervals, so all of them have a tick in common if each two of them have:
every two streams are held to each other, `b.ts - W_a <= a.ts <= b.ts + W_b`, and the order in FROM says nothing. A
stream without a window beside others has one of length 0: its rows are joined as they come. Two streams that have none
both, and whose conditions bound how far apart they are, go by these.

One tumbling window serves all streams, after the last of them or the same one after each: rows meet that are in it. A
clause of a stream's own says which of its attributes is meant; the others have the one of that name.

Rows of a stream that may be missing, after an outer join, hold nothing where they are. The latest rows of a stream
(`bind_latest.py`) are as old as they are, so nothing is held to them. A sub-query in WHERE is held to what it stands
beside, where either of the two has a window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import QueryError
from penstock.model.schema import BOOLEAN
from penstock.model.time import Domain, show_span, show_ticks
from penstock.plan.differences import Difference
from penstock.plan.expressions import Call, Column, Expression, conjunction
from penstock.plan.join_nodes import SameWindow
from penstock.plan.monotone import moved
from penstock.plan.windows import SlidingWindow
from penstock.sql.bind_latest import takes_latest
from penstock.sql.bind_window import WindowBinder
from penstock.sql.clause import WindowClause
from penstock.sql.operands import Operand
from penstock.sql.reading import Reading


@dataclass(frozen=True)
class Held:
    """A stream is held to an earlier one: `low <= own - other <= high`, both by their names among all columns."""

    other: Column
    own: Column
    low: int
    high: int
    may_miss: bool = False
    """Whether a row of the earlier one may be missing, which then holds nothing."""

    @property
    def on(self) -> tuple[str, str]:
        """The two attributes."""
        return self.other.name, self.own.name

    @property
    def condition(self) -> Expression:
        """The same as a condition; times and the lengths of windows are such that nothing is out of range."""
        if self.low == self.high == 0:
            said: Expression = Call("eq", (self.other, self.own), BOOLEAN)
        else:
            said = conjunction([
                Call("le", (self.other, moved(self.own, -self.low)), BOOLEAN),
                Call("le", (self.own, moved(self.other, self.high)), BOOLEAN),
            ])  # fmt: skip
        return Call("or", (Call("is_null", (self.other,), BOOLEAN), said), BOOLEAN) if self.may_miss else said


Found = Mapping[tuple[str, str], tuple[Difference, list[Expression]]]
"""What conditions say of the difference of two attributes, and which do."""


class JoinWindows:
    """The windows after the relations of one FROM."""

    def __init__(self, operands: Sequence[Operand], reading: Reading) -> None:
        """The relations in the order in which they are joined, with the names of their columns."""
        self.operands, self.reading = operands, reading
        self.written = [o for at, o in enumerate(operands) if o.asked is None and self._is_held(at)]

    def _is_held(self, at: int) -> bool:
        """Whether a relation is a stream that others are held to: the first is, to be refused if it counts rows."""
        operand = self.operands[at]
        return not operand.is_table and (at == 0 or not takes_latest(operand))

    def earlier(self, at: int) -> list[Operand]:
        """The streams before one whose columns are there."""
        return [o for n, o in enumerate(self.operands[:at]) if self._is_held(n) and o.kind not in ("semi", "anti")]

    def attributes(self, at: int) -> list[str]:
        """The attributes of the streams before one that their windows are on."""
        return [self.attribute(o, o.clause) for o in self.earlier(at)]

    def may_miss(self, other: Operand, at: int) -> bool:
        """Whether a row of an earlier stream may be missing when the relation at a place is joined."""
        place = next(n for n, o in enumerate(self.operands) if o is other)
        after = [o.kind for o in self.operands[place + 1 : at]]
        return other.kind in ("left", "full") or "right" in after or "full" in after

    # One tumbling window

    def tumbling(self, at: int) -> tuple[SameWindow, list[str], str] | None:
        """The window that serves all streams, the attributes of those before one that it is on, and that of its own."""
        operand = self.operands[at]
        streams = self.written if operand.asked is None else [*self.written, operand]
        last = streams[-1].clause
        if not any(o.clause is not None and o.clause.tumbling for o in streams):
            return None
        if operand.asked is not None and last is None:
            return None  # the window is of the FROM outside, and the conditions say how near the sub-query is to it
        if last is None or not last.tumbling:
            raise self._not_last(streams)
        window = self._same(streams, last)
        attributes = [self.attribute(o, o.clause or last) for o in (*self.earlier(at), operand)]
        return window, attributes[:-1], attributes[-1]

    def _same(self, streams: Sequence[Operand], last: WindowClause) -> SameWindow:
        """The one window of all streams: what others say, where they say anything, is the same."""
        found = self._cut(streams[-1], last)
        for operand in streams:
            clause = operand.clause
            if clause is None:
                continue
            binder = self._window(operand, clause)
            if not clause.tumbling:
                raise binder.error(
                    "The windows of a join are of one kind.", "range", got="RANGE beside RANGE TUMBLING",
                    hint="leave this one out, since a tumbling window serves all streams, or write RANGE after each",
                )  # fmt: skip
            own = self._cut(operand, clause)
            if own != found:
                raise binder.error(
                    "The tumbling windows of a join differ.", "origin" if own.width == found.width else "range",
                    got=f"{self._worded(own, operand)} beside {self._worded(found, streams[-1])}",
                    hint="give all streams the same one, or write it once, after the last stream",
                )  # fmt: skip
        return found

    def _cut(self, operand: Operand, clause: WindowClause) -> SameWindow:
        window = self._window(operand, clause).bind()
        assert isinstance(window, SlidingWindow)
        return SameWindow(window.range, window.origin % window.range)

    def _worded(self, window: SameWindow, operand: Operand) -> str:
        domain = operand.node.schema.domain
        origin = f", ORIGIN {show_ticks(window.origin, domain)}" if window.origin else ""
        return f"{show_span(window.width, domain)}{origin}"

    def _not_last(self, streams: Sequence[Operand]) -> QueryError:
        operand = next(o for o in reversed(streams) if o.clause is not None and o.clause.tumbling)
        last = min(streams[-1].scope.qualifiers, default="the last one")
        if streams[-1].clause is not None:
            what, hint = (
                "The windows of a join are of one kind.",
                f"write RANGE TUMBLING after {last} too, or after none",
            )
        else:
            what = "A tumbling window of a join stands after the last stream, and serves all."
            hint = f"write it once, after {last}, or the same one after each stream"
        assert operand.clause is not None
        return self._window(operand, operand.clause).error(what, "clause", got=str(operand.clause.range), hint=hint)

    # A window for each stream

    def held(self, at: int, found: Found) -> list[Held]:
        """How a stream is held to those before it, beside what the conditions say."""
        operand, held = self.operands[at], []
        for other in self.earlier(at):
            if operand.clause is None and other.clause is not None and other.clause.tumbling:
                continue
            if other.clause is None and operand.clause is None:
                clauses = operand.asked is None and any(o.clause is not None for o in self.written)
                if not clauses or self._is_bounded(other, operand, found):
                    continue
            held.append(self._pair(other, operand, may_miss=self.may_miss(other, at)))
        return held

    @staticmethod
    def _is_bounded(other: Operand, operand: Operand, found: Found) -> bool:
        """Whether the conditions say how far apart the times of two streams are."""
        known = [each for (one, own), (each, _) in found.items() if one in other.names and own in operand.names]
        return any(each.low is not None and each.high is not None for each in known)

    def _pair(self, other: Operand, operand: Operand, *, may_miss: bool) -> Held:
        lengths = [0 if o.clause is None else self._length(o, o.clause) for o in (other, operand)]
        first, second = (self._column(o) for o in (other, operand))
        if first.type != second.type:
            raise self.reading.error(
                "The times of the two streams are of different types.",
                operand.join or operand.tree,
                got=f"{first.name} {first.type} and {second.name} {second.type}",
                hint="declare both streams with the same kind of time",
            )
        return Held(first, second, -lengths[1], lengths[0], may_miss)

    def _column(self, operand: Operand) -> Column:
        name = self.attribute(operand, operand.clause)
        return Column(name, operand.node.schema[operand.own(name)].type)

    def _window(self, operand: Operand, clause: WindowClause) -> WindowBinder:
        return WindowBinder(clause, operand.scope, self.reading.sql)

    def attribute(self, operand: Operand, clause: WindowClause | None) -> str:
        """The attribute of a relation that a clause is on, by its name among all: its time if none is named."""
        time = str(operand.node.schema.time)
        if clause is not None and clause.wa is not None:
            is_own = operand.clause is clause or clause.wa in operand.node.schema
            wanted = clause.wa if is_own else clause.wa.rpartition(".")[2]
            time = self._window(operand, clause).progressing(wanted, "wa")
        return operand.names[operand.node.schema.index(time)]

    def _length(self, operand: Operand, clause: WindowClause) -> int:
        binder = self._window(operand, clause)
        binder.only("a window of a join", "range", "wa")
        attribute = operand.own(self.attribute(operand, clause))
        if clause.range is not None and clause.range.is_rows:
            raise binder.error(
                "A window of the last rows is that of the second stream.",
                "range",
                got=str(clause.range),
                hint="write the other stream first, or leave out the unit",
            )
        domain = operand.node.schema[attribute].type.domain or Domain.INTEGER
        return binder.length("range", domain)
