"""The planner's cost model for window aggregates.

It is the thesis's formulas 6.1-6.4 (chapter 6.2.3), with the factor SLIDE/GCD that their per-pane terms lack. Per
window, with R rows and G groups per pane, P panes per window and N new panes from one window to the next, in units of
one update of a table:

- wid (Eq. 6.3): R·P, since every row updates every window that holds it;
- paned (6.1): R·N for the new panes, then P·G to combine them;
- paned differential (6.2): R·N, then 2·N·G to put panes in and take them out, where every function allows that exactly;
- buffered differential (6.4): 2·R·N. Rows kept in order, each put in and taken out: what panes are compared with where
  functions can be taken out. Order is what we do not ask for, so nothing here runs like that;
- columnar: R·N, then 2·N·G (taken out again) or 3·N·G (two stacks), each a `COLUMN_SPEEDUP`th of an update, since
  arrays do the work; for functions that have an array form.

A pane is updated in place, so the cost of handing its groups on (b in the thesis) is none. Where windows leave gaps
(SLIDE above RANGE), only the panes inside windows count.

Over bounded DataFrames Spark has ways of its own, in the same units; bringing a pane's group to Python costs
`CROSSING`:

- copy rows: R·P, by copying each row to its windows, for any function;
- copy panes: R·N, then P·G copies of partials, where Spark can join partials;
- slide: R·N, then per new pane and group a crossing and a slide, for functions that have an array form;
- slide and differences: the same, and two changes per distinct value and pane, for distinct counts beside these.

How many rows and groups a pane will hold is not known when a query is planned: `Volume` has what the thesis measured
with, and can be given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import PlanError
from penstock.plan.aggregates import record_of
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import AggregateCall
from penstock.plan.nodes import WindowAggregate
from penstock.plan.windows import SlidingWindow

COLUMN_SPEEDUP = 20
CROSSING = 1
WID, PANED, DIFFERENTIAL, COLUMNAR = "wid", "paned", "paned differential", "columnar"


@dataclass(frozen=True)
class Volume:
    """How much a pane holds: so many rows, in so many groups."""

    rows: float = 20
    """At which the thesis measured (Fig. 6-15)."""
    groups: float = 1

    def __post_init__(self) -> None:
        """A group has a row."""
        if not 0 < self.groups <= self.rows:
            raise PlanError(
                "A pane holds at least one group, and at least a row of each.",
                where="cost of a window aggregate",
                got=f"{self.rows:g} rows in {self.groups:g} groups",
            )


@dataclass(frozen=True)
class Work:
    """The work per window, by formulas 6.1 to 6.4 and ours."""

    window: SlidingWindow
    volume: Volume = Volume()

    @property
    def panes(self) -> int:
        """Panes per window."""
        return self.window.range // self.window.pane

    @property
    def new_panes(self) -> int:
        """Panes of a window that were not in the one before."""
        return min(self.window.slide // self.window.pane, self.panes)

    @property
    def new_rows(self) -> float:
        """Rows of a window that were not in the one before, each brought down to its pane."""
        return self.volume.rows * self.new_panes

    @property
    def each_row_in_each_window(self) -> float:
        """Eq. 6.3."""
        return self.volume.rows * self.panes

    @property
    def combined(self) -> float:
        """Eq. 6.1."""
        return self.new_rows + self.panes * self.volume.groups

    @property
    def differential(self) -> float:
        """Eq. 6.2."""
        return self.new_rows + 2 * self.new_panes * self.volume.groups

    @property
    def buffered(self) -> float:
        """Eq. 6.4."""
        return 2 * self.new_rows

    def columnar(self, *, inverts: bool) -> float:
        """In arrays."""
        return (self.new_rows + (2 if inverts else 3) * self.new_panes * self.volume.groups) / COLUMN_SPEEDUP

    @property
    def crossed(self) -> float:
        """Spark's panes, brought to a total in Python that slides over them."""
        return self.new_rows + self.new_panes * self.volume.groups * (CROSSING + 3 / COLUMN_SPEEDUP)


@dataclass(frozen=True)
class Choice:
    """An algorithm, and what each of the possible ones would cost."""

    name: str
    costs: dict[str, float]
    is_kept: bool = False
    """Whether it was taken because saved state is of it."""

    def __str__(self) -> str:
        """For `explain`."""
        others = ", ".join(f"{cost:g} for {name}" for name, cost in self.costs.items() if name != self.name)
        kept = " as the saved state is" if self.is_kept else ""
        return f"{self.name}{kept}, cost {self.costs[self.name]:g}" + (f" against {others}" if others else "")


def choose_aggregate(node: WindowAggregate, catalog: Catalog, volume: Volume) -> Choice:
    """The cheapest way to compute the aggregates of a sliding window with operators of ours."""
    work = Work(_sliding(node), volume)
    inverts = all(record_of(a, catalog).inverts(a.argument_type, a.type) for a in node.aggregates)
    costs = {WID: work.each_row_in_each_window, PANED: work.combined}
    if inverts:
        costs[DIFFERENTIAL] = work.differential
    if has_array_form(node, catalog):
        costs[COLUMNAR] = work.columnar(inverts=inverts)
    return _cheapest(costs)


def choose_spark(node: WindowAggregate, catalog: Catalog, volume: Volume) -> Choice:
    """The cheapest way to compute the aggregates of a sliding window over bounded DataFrames."""
    work = Work(_sliding(node), volume)
    costs = {"copy rows": work.each_row_in_each_window}
    if node.aggregates:
        plain = without_distinct(node)
        if has_array_form(plain, catalog):
            if len(plain.aggregates) == len(node.aggregates):
                costs["slide"] = work.crossed
            else:
                costs["slide and differences"] = work.crossed + 2 * work.new_rows
        if all(record_of(a, catalog).joins_natively(a.argument_type) for a in node.aggregates):
            costs["copy panes"] = work.combined
    return _cheapest(costs)


def _cheapest(costs: dict[str, float]) -> Choice:
    """The one that costs least; of equals the first."""
    return Choice(min(costs, key=lambda name: costs[name]), costs)


def _sliding(node: WindowAggregate) -> SlidingWindow:
    assert isinstance(node.window, SlidingWindow)
    return node.window


def has_array_form(node: WindowAggregate, catalog: Catalog) -> bool:
    """Whether every aggregate is a matter of numbers in arrays, and groups can be told apart by their values."""
    if any(node.input.schema[k].type.is_fractional for k in node.keys):
        return False
    return all(record_of(a, catalog).has_array_form(a.argument_type) for a in node.aggregates)


def without_distinct(node: WindowAggregate) -> WindowAggregate:
    """The same windows and groups with the aggregates that are not distinct counts of one column."""
    return replace(node, aggregates=tuple(a for a in node.aggregates if not counts_distinct(a)))


def counts_distinct(call: AggregateCall) -> bool:
    """Whether a call counts the distinct values of one column."""
    return call.distinct and call.function == "count" and not call.others
