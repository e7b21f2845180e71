"""The planner's cost model for window aggregates.

It is the thesis's formulas 6.1-6.4, with the factor SLIDE/GCD that their per-pane terms lack, and one more way to
compute. Per window and group, with T rows per window and P panes per window, in units of one update of a table:

- wid: T, since every row updates every window that holds it;
- paned: T/P * SLIDE/GCD for the new panes, then P combinations, or 2 * SLIDE/GCD where functions can be taken out;
- columnar: as paned with 2 * SLIDE/GCD (taken out again) or 3 * SLIDE/GCD (two stacks), each a `COLUMN_SPEEDUP`th of
  an update, since arrays do the work; only for counts, sums, averages, extremes and variances of numbers and times.

Over bounded DataFrames Spark has ways of its own, in the same units; bringing a pane to Python costs `CROSSING`:

- copy rows: T, by copying each row to its windows, for any function;
- copy panes: T/P * SLIDE/GCD, then P copies of partials, where Spark can join partials;
- slide: T/P * SLIDE/GCD, then per new pane a crossing and a slide, for columnar functions;
- slide and differences: the same, and two changes per distinct value and pane, for distinct counts beside these.

The number of rows per pane is not known when a query is planned, so the model takes `ROWS_PER_PANE`, at which the
thesis measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.plan.expressions import AggregateCall
from penstock.plan.nodes import WindowAggregate
from penstock.plan.windows import SlidingWindow

ROWS_PER_PANE = 20
COLUMN_SPEEDUP = 20
CROSSING = 1
_DIFFERENTIAL = frozenset({"count", "sum", "avg"})
_NUMBERS = frozenset({"count", "sum", "avg", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop"})
_JOINABLE = frozenset({"count", "sum", "avg", "min", "max"})
_FIXED = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "timestamp"})


@dataclass(frozen=True)
class Choice:
    """An algorithm, and what each of the possible ones would cost."""

    name: str
    costs: dict[str, float]

    def __str__(self) -> str:
        """For `explain`."""
        others = ", ".join(f"{cost:g} for {name}" for name, cost in self.costs.items() if name != self.name)
        return f"{self.name}, cost {self.costs[self.name]:g}" + (f" against {others}" if others else "")


def is_differential(call: AggregateCall) -> bool:
    """Whether an aggregate can be taken out of a window exactly; distinct values are, with how often each is in it."""
    if call.function not in _DIFFERENTIAL:
        return False
    return call.function == "count" or call.argument_type is None or not call.argument_type.is_fractional


def is_columnar(node: WindowAggregate) -> bool:
    """Whether every aggregate is a matter of numbers in arrays, and groups can be told apart by their values."""
    numbers = all(
        a.function in _NUMBERS and not a.distinct and (a.argument_type is None or a.argument_type.name in _FIXED)
        for a in node.aggregates
    )
    return numbers and not any(node.input.schema[k].type.is_fractional for k in node.keys)


def choose_aggregate(node: WindowAggregate) -> Choice:
    """The cheapest way to compute the aggregates of a sliding window."""
    window = node.window
    assert isinstance(window, SlidingWindow)
    panes = window.range // window.pane
    new_panes = window.slide // window.pane
    rows = ROWS_PER_PANE * panes
    differential = all(is_differential(a) for a in node.aggregates)
    costs = {"wid": float(rows)}
    if panes > 1:
        costs["paned"] = ROWS_PER_PANE * new_panes + (2 * new_panes if differential else panes)
    if is_columnar(node):
        costs["columnar"] = (ROWS_PER_PANE + (2 if differential else 3)) * new_panes / COLUMN_SPEEDUP
    return Choice(min(costs, key=lambda name: costs[name]), costs)


def choose_spark(node: WindowAggregate) -> Choice:
    """The cheapest way to compute the aggregates of a sliding window over bounded DataFrames."""
    window = node.window
    assert isinstance(window, SlidingWindow)
    panes = window.range // window.pane
    new_panes = window.slide // window.pane
    costs = {"copy rows": float(ROWS_PER_PANE * panes)}
    if node.aggregates:
        plain = without_distinct(node)
        low = ROWS_PER_PANE * new_panes
        slide = low + new_panes * (CROSSING + 3 / COLUMN_SPEEDUP)
        if is_columnar(node):
            costs["slide"] = slide
        elif len(plain.aggregates) < len(node.aggregates) and is_columnar(plain):
            costs["slide and differences"] = slide + 2 * low
        if all(_is_joinable(a) for a in node.aggregates):
            costs["copy panes"] = low + panes
    return Choice(min(costs, key=lambda name: costs[name]), costs)


def without_distinct(node: WindowAggregate) -> WindowAggregate:
    """The same windows and groups with the aggregates that are not DISTINCT."""
    return replace(node, aggregates=tuple(a for a in node.aggregates if not a.distinct))


def _is_joinable(call: AggregateCall) -> bool:
    """Whether Spark's own partials of panes give the window's value."""
    of_decimals = call.argument_type is not None and call.argument_type.is_decimal
    return call.function in _JOINABLE and not call.distinct and not (call.function == "avg" and of_decimals)
