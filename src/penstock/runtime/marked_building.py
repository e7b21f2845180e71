"""The operator of all aggregates above a queue of windows, as the marks of the plan say."""

from __future__ import annotations

from penstock.errors import PlanError
from penstock.operators.operator import Stateless
from penstock.operators.queues.marked_plan import MarkedLevel, MarkedPlan
from penstock.plan.nodes import WindowAggregate
from penstock.plan.physical import Physical
from penstock.plan.update_marks import PlanMarks, sliding_of
from penstock.runtime.aggregate_building import grouping_of
from penstock.runtime.builder import Builder


def marked_plan(planned: Physical, marks: PlanMarks, builder: Builder) -> MarkedPlan:
    """The aggregates of a plan and what stands between them; nothing may stand between the queue and the first.

    Rows are chosen and computed before they wait, so the queue is on what the first aggregate reads.
    """
    if not isinstance(marks.path[0], WindowAggregate):
        raise PlanError(
            "A queue of windows is on what its first aggregate reads.",
            where=marks.path[0].label,
            hint=f"put the queue on the input of {marks.aggregates[0].label}",
        )
    by_node = {id(each.node): each for each in planned.walk()}
    levels: list[MarkedLevel] = []
    for at, node in enumerate(marks.path):
        if isinstance(node, WindowAggregate):
            after: list[Stateless] = []
            for between in marks.path[at + 1 :]:
                if isinstance(between, WindowAggregate):
                    break
                operator = builder.operator(by_node[id(between)])
                assert isinstance(operator, Stateless), "what is between aggregates remembers nothing"
                after.append(operator)
            levels.append(MarkedLevel(node.schema, sliding_of(node), grouping_of(node, builder.catalog), tuple(after)))
    return MarkedPlan(levels, marks.extents)
