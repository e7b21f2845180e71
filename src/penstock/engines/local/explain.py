"""How the in-process engine runs each node, in words for `explain`."""

from __future__ import annotations

from penstock.plan.cost import choose_aggregate
from penstock.plan.nodes import Distinct, Merge, Node, NumberRows, Project, Select, Source, Union, WindowAggregate
from penstock.plan.windows import SlidingWindow


def how(node: Node) -> str:
    """One line."""
    match node:
        case Source():
            return "in-process: late rows judged one by one as they arrive"
        case WindowAggregate(window=SlidingWindow()):
            return f"in-process: {choose_aggregate(node)}"
        case Distinct():
            return "in-process: hash table per instant, purged by punctuation"
        case Merge(why=why):
            return f"in-process: {why}; events by slices of time, given up when they are final"
        case Union():
            return "in-process: Meld, rows pass at once"
        case Select() | Project() | NumberRows():
            return "in-process: pipelined, rows or Arrow"
        case _:
            return ""
