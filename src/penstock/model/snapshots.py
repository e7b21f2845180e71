"""Snapshots: the multiset of payloads that are valid at an instant.

A stream's snapshots change only where some event starts or ends, so a run of them is a list of steps. Two plans are
snapshot-equivalent when every snapshot is equal, even where one cut an event in two that the other kept whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from penstock.errors import ElementError
from penstock.model.elements import Element, Payload, is_whole
from penstock.model.tdb import TDB, tdb

Step = tuple[int, int, Counter[Payload]]


def snapshot_at(events: TDB, instant: int) -> Counter[Payload]:
    """The payloads valid at `instant`."""
    if not is_whole(instant):
        raise ElementError("An instant is an integer.", got=repr(instant)[:200], hint="ticks")
    valid: Counter[Payload] = Counter()
    for (payload, vs, ve), count in _checked(events).items():
        if vs <= instant < ve:
            valid[payload] += count
    return valid


def snapshots(events: TDB) -> list[Step]:
    """The steps `(start, end, payloads)` in order; empty stretches are left out, equal neighbours joined."""
    changes: dict[int, Counter[Payload]] = {}
    for (payload, vs, ve), count in _checked(events).items():
        changes.setdefault(vs, Counter())[payload] += count
        changes.setdefault(ve, Counter())[payload] -= count
    steps: list[Step] = []
    current: Counter[Payload] = Counter()
    instants = sorted(changes)
    for instant, following in pairwise(instants):
        current = Counter({p: n for p in {*current, *changes[instant]} if (n := current[p] + changes[instant][p])})
        if not current:
            continue
        if steps and steps[-1][1] == instant and steps[-1][2] == current:
            steps[-1] = (steps[-1][0], following, current)
        else:
            steps.append((instant, following, current))
    return steps


def _checked(events: TDB) -> TDB:
    if not isinstance(events, TDB):
        raise ElementError("Snapshots are of a TDB.", got=repr(events)[:200], hint="pk.tdb(elements)")
    return events


def snapshot_equivalent(left: Iterable[Element] | TDB, right: Iterable[Element] | TDB) -> bool:
    """Whether two streams have the same snapshot at every instant."""
    a = left if isinstance(left, TDB) else tdb(left)
    b = right if isinstance(right, TDB) else tdb(right)
    return snapshots(a) == snapshots(b)
