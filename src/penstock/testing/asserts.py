"""What tests assert of a query's output: its TDB, and that its punctuation keeps its word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.tdb import TDB, tdb


def tdb_of(outputs: Iterable[Batch | Punctuation]) -> TDB:
    """The TDB of what came out of a query."""
    return tdb(event for item in outputs if isinstance(item, Batch) for event in item.elements())


def assert_same(expected: TDB, got: TDB) -> None:
    """The TDBs are equal; if not, the message shows where they differ."""
    difference = expected.difference(got)
    assert not difference, f"\n{difference.render()}"


def assert_sound(outputs: Sequence[Batch | Punctuation]) -> None:
    """No row contradicts a punctuation before it, and every punctuation says something new."""
    promised = Frontier()
    for item in outputs:
        if isinstance(item, Batch):
            for row, time in zip(item.rows, item.judged_by().tolist(), strict=True):
                values = {**dict(zip(item.schema.names, row, strict=True)), str(item.schema.time): time}
                condemning = promised.condemning(values)
                assert condemning is None, f"{row!r} comes after {condemning}"
        else:
            assert promised.add(item), f"{item} follows {promised}"
