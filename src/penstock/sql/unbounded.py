"""The error for a join whose rows could never be given up, with the reason and what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import QueryError
from penstock.model.time import Domain
from penstock.plan.differences import Difference, differences
from penstock.plan.expressions import Call, Expression, columns_in, renamed
from penstock.plan.nodes import Node
from penstock.plan.progressing import progressing
from penstock.sql.join_windows import JoinWindows
from penstock.sql.operands import Operand
from penstock.sql.reading import Reading


@dataclass(frozen=True)
class Unbounded:
    """A join that nothing bounds: what was joined before, the relation, and the conditions."""

    left: Node
    names: Sequence[str]
    operands: Sequence[Operand]
    at: int
    conditions: Sequence[Expression]
    known: Mapping[tuple[str, str], Difference]
    """What the conditions say of times that progress, on one side."""
    reading: Reading

    @property
    def operand(self) -> Operand:
        """The relation that is joined."""
        return self.operands[self.at]

    def error(self) -> QueryError:
        """The error."""
        return self.reading.error(
            "Nothing says how far apart the times of two rows may be that meet, so none could ever be given up.",
            self.operand.join or self.operand.tree, got=self._got(), hint=self._hint(),
        )  # fmt: skip

    def _got(self) -> str:
        if self.known:
            (one, other), difference = next(iter(self.known.items()))
            side = "later" if difference.high is None else "earlier"
            return f"{self.said(other)} may be any time {side} than {self.said(one)}"
        return self._of_other_times() or self._of_parts() or "no condition compares their times"

    def _of_other_times(self) -> str:
        """That a time is compared which may be missing, or which does not progress after the joins before."""
        windows = JoinWindows(self.operands, self.reading)
        for other in windows.earlier(self.at):
            found = differences(self.conditions, other.times, self.operand.times)
            for one, _ in found:
                if windows.may_miss(other, self.at):
                    return f"{self.said(one)} may be missing, after an outer join"
                return f"{self.said(one)}, of which nothing is promised after the joins before"
        return ""

    def _of_parts(self) -> str:
        """That times are compared by something else than whole ticks between them."""
        before = {name for other in self.operands[: self.at] if not other.is_table for name in other.times}
        for condition in self.conditions:
            used = columns_in(condition)
            if isinstance(condition, Call) and used & before and used & self.operand.times.keys():
                said = renamed(condition, {name: self.said(name) for name in used})
                return f"{said}, which is no difference in whole ticks"
        return ""

    def _hint(self) -> str:
        left, operand = self.left, self.operand
        of_left = [self.names[left.schema.index(name)] for name in progressing(left)]
        one = next((name for name in of_left if any(name in o.names for o in self.operands)), None)
        other = operand.names[operand.node.schema.time_index]
        if self.known:
            one, other = next(iter(self.known))
        is_time = operand.node.schema.domain is Domain.TIMESTAMP
        by = "INTERVAL 5 MINUTES" if is_time else "100"
        if left.schema.domain is not operand.node.schema.domain:
            return "declare both streams with times of one type"
        if one is None:
            return "after this join either time may be missing: do it last, or in a sub-query that selects greatest(…)"
        if self._is_hidden(one) or self._is_hidden(other):
            return f"select the times in the sub-queries, and bound how far apart they are, by {by} or less"
        one, other = self.said(one), self.said(other)
        hint = f"add {other} BETWEEN {one} - {by} AND {one} + {by}, or windows after the streams, "
        return hint + f"[RANGE {'5 minutes' if is_time else '100'}, WA …]"

    def _is_hidden(self, name: str) -> bool:
        found = [o.node.schema[o.own(name)].hidden for o in self.operands if name in o.names]
        return any(found)

    def said(self, name: str) -> str:
        """A column as a query would name it."""
        for operand in self.operands:
            if name in operand.names and operand.scope.qualifiers:
                return f"{min(operand.scope.qualifiers)}.{operand.own(name)}"
        return name
