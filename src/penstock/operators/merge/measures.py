"""What a logical merge is like at work: the quantities by which its cost is told (LMerge, section IV-E, Table IV).

Of the events that are alive, not fully frozen: w, how many starts and payloads there are; d, how many events have the
same start and payload, at most; g, how many have the same start, at most; h, how many starts and payloads are half
frozen; c, how many become fully frozen with a bound, on average. R0 and R1 keep no events; R2 keeps those of the
greatest start, so its w is its g. Looking takes time by the number of events that are alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.base import Input, LogicalMerge
from penstock.operators.merge.ordered import R2
from penstock.operators.merge.r4 import Bag
from penstock.operators.merge.revisable import RevisableMerge

if TYPE_CHECKING:
    from penstock.operators.merge.operator import MergeOperator


@dataclass(frozen=True)
class MergeInputStatistics:
    """How far an input has come."""

    name: str
    stable: int | None
    """The bound that it gave last."""
    lag: int | None
    """How many ticks it is behind the input that is furthest ahead; None if one of the two has no bound, or only that
    one has ended."""
    joined: bool
    """Whether it has brought all that matters by now."""


@dataclass(frozen=True)
class MergeStatistics:
    """Of a logical merge."""

    algorithm: str
    w: int
    d: int
    g: int
    h: int
    c: float | None
    """None while no bound has frozen anything."""
    inputs: tuple[MergeInputStatistics, ...]
    held_back: int
    """Events that have come and wait for a bound to come out."""
    inserts_out: int
    adjusts_out: int
    """The chattiness; removals are among them."""
    removals_out: int


def measures_of(operator: MergeOperator) -> MergeStatistics:
    """Of a merge in a graph: over all slices of time."""
    head, tally = operator.head(), operator.tally
    parts: list[LogicalMerge] = [head]
    if isinstance(head, RevisableMerge):
        parts = [operator.pages.get(f"m{number}") for number in operator.pages.get("slices") or ()]
    waiting = sum(part.held_back() for part in parts)
    return _measures(head, parts, tally.c, waiting, (tally.inserts, tally.adjusts, tally.removals))


def measures_alone(merge: LogicalMerge) -> MergeStatistics:
    """Of a merge by itself."""
    counts = merge.counts
    c = merge.tally.c if isinstance(merge, RevisableMerge) else None
    out = counts.inserts_out, counts.adjusts_out, counts.removals_out
    return _measures(merge, [merge], c, merge.held_back(), out)


def _measures(
    merge: LogicalMerge, parts: Sequence[LogicalMerge], c: float | None, held_back: int, out: tuple[int, int, int]
) -> MergeStatistics:
    if isinstance(merge, RevisableMerge):
        nodes = [node for part in parts for node in part.index.nodes.values()]  # type: ignore[attr-defined]
        starts = Counter[int]()
        for node in nodes:
            starts[node.vs] += _most(node)
        w, d, g = len(nodes), max(map(_most, nodes), default=0), max(starts.values(), default=0)
        h = sum(node.vs < merge.frozen for node in nodes)
    else:
        w = g = merge.known if isinstance(merge, R2) else 0
        d, h = min(w, 1), 0
    return MergeStatistics(merge.name, w, d, g, h, c, tuple(_inputs(merge.inputs.values())), held_back, *out)


def _most(node: Any) -> int:
    """How many events of its start and payload there are, at most in one input or the output."""
    return max([node.out.size, *(ends.size for ends in node.inputs.values())]) if isinstance(node, Bag) else 1


def _inputs(inputs: Iterable[Input]) -> Iterable[MergeInputStatistics]:
    known = list(inputs)
    ahead = max((each.stable for each in known), default=MIN_TICK)
    for each in known:
        is_known = each.stable > MIN_TICK
        lag = ahead - each.stable if is_known and (ahead < END_OF_TIME or each.stable == END_OF_TIME) else None
        yield MergeInputStatistics(each.name, each.stable if is_known else None, lag, each.joined)
