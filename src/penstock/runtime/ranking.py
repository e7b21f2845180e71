"""From the node of row numbers to its operator."""

from __future__ import annotations

from penstock.operators.operator import Operator
from penstock.operators.windows.row_number import RowNumberOperator
from penstock.operators.windows.sliding import Sliding
from penstock.operators.windows.sorting import By
from penstock.plan.nodes import RowNumber


def row_number_operator(node: RowNumber) -> Operator:
    """The operator that numbers rows."""
    below, window = node.input.schema, node.window
    keys = [below.index(key) for key in node.keys]
    order = [By(below.index(each.column), each.descending, each.nulls_last) for each in node.order]
    sliding = Sliding(window.range, window.slide, window.origin)
    return RowNumberOperator(node.schema, below, sliding, keys, order, node.most)
