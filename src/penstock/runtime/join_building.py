"""From a join of two streams in a plan to the operator that runs it."""

from __future__ import annotations

from penstock.operators.joins.asof_join import AsOfJoin, AsOfNames
from penstock.operators.joins.forms import Condition, Side
from penstock.operators.joins.latest_keeper import Latest as LatestRows
from penstock.operators.joins.nearness import InWindow, Nearness, Within
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.joins.promised import Promised
from penstock.operators.joins.smoothed_join import SmoothedJoin
from penstock.operators.operator import Operator
from penstock.plan.join_nodes import Band, Join, Latest, SameWindow


def build_join(node: Join, condition: Condition | None) -> Operator:
    """The operator of a join; the condition is what must hold of a pair besides."""
    sides = _side(node, 0), _side(node, 1)
    known = node.attributes
    left, right = (name if name in known else "" for name in node.named_on)
    near: Nearness
    match node.near:
        case Band(low=low, high=high):
            near = Within(low, high)
        case SameWindow(width=width, origin=origin):
            near = InWindow(width, origin)
        case Latest(rows=rows, high=high, low=low):
            names = AsOfNames(left, right, str(node.schema.time))
            return AsOfJoin(node.schema, sides, LatestRows(rows, high, low), names, condition)
    on_time = sides[0].on_time, sides[1].on_time
    promised = Promised(left, right, str(node.schema.time), node.is_of_pairs, on_time)
    if node.keeps_left or node.keeps_right:
        made = SmoothedJoin(node.schema, sides, near, promised, node.kind, condition, once=node.once)
        made.burst = node.max_burst
        return made
    return OAJoin(node.schema, sides, near, promised, node.kind, condition, once=node.once)


def _side(node: Join, port: int) -> Side:
    below = node.inputs[port].schema
    keys = tuple(below.index(pair[port]) for pair in node.equal)
    return Side(below, node.on[port], keys, (node.keeps_left, node.keeps_right)[port])
