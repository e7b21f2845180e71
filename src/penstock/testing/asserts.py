"""What tests assert of a query's output: its TDB, and that its punctuation keeps its word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.tdb import TDB, tdb
from penstock.model.time import MIN_TICK


def tdb_of(outputs: Iterable[Batch | Punctuation]) -> TDB:
    """The TDB of what came out of a query."""
    return tdb(event for item in outputs if isinstance(item, Batch) for event in item.elements())


def assert_same(expected: TDB, got: TDB) -> None:
    """The TDBs are equal; if not, the message shows where they differ."""
    difference = expected.difference(got)
    assert not difference, f"\n{difference.render()}"


def assert_sound(outputs: Sequence[Batch | Punctuation]) -> None:
    """No row contradicts a punctuation before it; bounds only go up and none is repeated."""
    bound = MIN_TICK
    for item in outputs:
        if isinstance(item, Batch):
            below = [row for row, time in zip(item.rows, item.judged_by().tolist(), strict=True) if time < bound]
            assert not below, f"below the punctuation {bound}: {below[0]!r}"
        else:
            assert item.is_linear, f"not a linear punctuation: {item}"
            assert item.value > bound, f"punctuation {item.value} follows {bound}"
            bound = item.value
