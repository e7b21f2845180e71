"""What has gone through each operator of a hosted graph, by the identity of the operator.

Every bucket has operators of its own, which count as those in-process do. With a micro-batch each bucket tells what was
added in it, of the operators of which something was, by the names of `Statistics`: a few numbers. The record of the
micro-batch has the sums over all buckets and all micro-batches so far, so looking at them costs the reading of one
record, they go on after a restart, and a micro-batch that is replayed counts once.

Rows are spread over the buckets, so their sums are those of one graph. Promises go to every bucket, and each counts
them: a punctuation is counted as often as there are buckets that were given it. A source is given what the mapper has
left of its rows: punctuation, and rows that do not fit their columns, were taken out before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.runtime.graph import GraphNode
from penstock.storage.log import Record

Numbers = dict[str, dict[str, int]]
"""By identity, the numbers of an operator by name."""
OPERATORS = "operators"
"""The tag under which buckets tell, and the name under which a record's state has the sums."""


def counted(nodes: Iterable[GraphNode]) -> Numbers:
    """What operators have counted since they were made."""
    return {node.identity: dict(vars(node.statistics)) for node in nodes}


def added(before: Numbers, now: Numbers) -> Numbers:
    """What came to it in the meantime; what did not change is left out."""
    found = {}
    for identity, numbers in now.items():
        had = before.get(identity, {})
        more = {name: n - had.get(name, 0) for name, n in numbers.items() if n != had.get(name, 0)}
        if more:
            found[identity] = more
    return found


def summed(last: Record | None, told: Iterable[Mapping[str, Mapping[str, int]]]) -> Numbers:
    """The sums of a record and of what buckets tell of the micro-batch after it."""
    sums = {identity: Counter(numbers) for identity, numbers in sums_of(last).items()}
    for bucket in told:
        for identity, numbers in bucket.items():
            sums.setdefault(identity, Counter()).update(numbers)
    return {identity: dict(numbers) for identity, numbers in sums.items()}


def sums_of(record: Record | None) -> Numbers:
    """The sums that a record has; one of a release before they were kept has none."""
    state: Any = None if record is None else record.state
    return dict(state.get(OPERATORS) or {}) if isinstance(state, dict) else {}
