"""From the node of a pattern to its operator."""

from __future__ import annotations

from penstock.operators.operator import Operator
from penstock.operators.patterns.seq import SeqOperator
from penstock.operators.patterns.steps import Step, Steps
from penstock.plan.nodes import Pattern


def pattern_operator(node: Pattern) -> Operator:
    """The operator that finds sequences."""
    steps = [
        Step(below.schema, tuple(below.schema.index(columns[port]) for columns in node.equal), node.negated[port])
        for port, below in enumerate(node.steps)
    ]
    groups = [key.is_group for key in node.keys]
    return SeqOperator(node.schema, Steps(steps, node.context, node.within, groups))
