"""The planner's cost model for window aggregates.

It is the thesis's formulas 6.1-6.4, with the factor SLIDE/GCD that their per-pane terms lack.
Per window and group, with T rows per window, P panes per window and G groups, in units of one update: WID costs T
(every row updates every window it is in); panes cost T/P*(SLIDE/GCD) for the new panes and then P combinations, or
2*SLIDE/GCD where functions can be taken out again. The number of rows per pane is not known when a query is planned, so
the model takes `ROWS_PER_PANE`, at which the thesis measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.nodes import SlidingWindow, WindowAggregate

ROWS_PER_PANE = 20
_DIFFERENTIAL = frozenset({"count", "sum", "avg"})


@dataclass(frozen=True)
class Choice:
    """An algorithm, its cost and that of the one not taken."""

    name: str
    cost: float
    other: str
    other_cost: float
    differential: bool

    def __str__(self) -> str:
        """For `explain`."""
        form = " (differential)" if self.differential and self.name == "paned" else ""
        return f"{self.name}{form}, cost {self.cost:g} against {self.other_cost:g} for {self.other}"


def is_differential(node: WindowAggregate) -> bool:
    """Whether every aggregate can be taken out of a window exactly."""
    return all(
        a.function in _DIFFERENTIAL
        and not a.distinct
        and not (a.argument_type is not None and a.argument_type.is_fractional and a.function != "count")
        for a in node.aggregates
    )


def choose_aggregate(node: WindowAggregate) -> Choice:
    """Panes or windows as the unit of state."""
    window = node.window
    assert isinstance(window, SlidingWindow)
    panes = window.range // window.pane
    new_panes = window.slide // window.pane
    rows = ROWS_PER_PANE * panes
    differential = is_differential(node)
    wid = float(rows)
    combine = 2 * new_panes if differential else panes
    paned = rows / panes * new_panes + combine
    if panes == 1 or wid <= paned:
        return Choice("wid", wid, "paned", paned, differential)
    return Choice("paned", paned, "wid", wid, differential)
