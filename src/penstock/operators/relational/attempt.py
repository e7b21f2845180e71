"""An evaluation that may fail on single rows: the others go on, and those rows are given back with the reason.

A batch is first tried as a whole, at full speed. Where that fails it is tried in pieces, and the pieces that fail row
by row, so that a few bad rows in a large batch cost little. A function of the user's may thus be called again for a
row that was fine. Order is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.errors import reason_of
from penstock.model.batch import Batch, Row, concat
from penstock.model.schema import Schema
from penstock.operators.operator import Outputs, Rejected

PIECE = 1024
Whole = Callable[[Batch], Batch]
Single = Callable[[Row], Row | None]
"""The row that comes of a row, or None if none does."""


def attempt(schema: Schema, batch: Batch, whole: Whole, single: Single) -> Outputs:
    """What comes of a batch, as rows of `schema`, and what fails."""
    try:
        made = whole(batch)
    except Exception:  # whatever a row's values or a user's code did: the rows are looked at one by one
        yield from _in_pieces(schema, batch, whole, single)
    else:
        if len(made):
            yield made


def _in_pieces(schema: Schema, batch: Batch, whole: Whole, single: Single) -> Outputs:
    made: list[Batch] = []
    failures: list[tuple[Row, str]] = []
    for piece in _pieces(batch):
        try:
            made.append(whole(piece))
        except Exception:  # as above
            good, failed = by_row(piece.rows, single)
            made.append(Batch(schema, good))
            failures += failed
    together = concat(schema, made)
    if len(together):
        yield together
    if failures:
        reasons = [reason for _, reason in failures]
        yield Rejected("failed", Batch(batch.schema, [row for row, _ in failures]), (), reasons)


def _pieces(batch: Batch) -> Iterator[Batch]:
    if batch.columnar:
        for start in range(0, len(batch), PIECE):
            yield Batch(batch.schema, table=batch.table.slice(start, PIECE))
    else:
        for start in range(0, len(batch), PIECE):
            yield Batch(batch.schema, batch.rows[start : start + PIECE])


def by_row(rows: Sequence[Row], single: Single) -> tuple[list[Row], list[tuple[Row, str]]]:
    """The rows that come of rows one by one, and those that fail, each with its reason."""
    good: list[Row] = []
    failed: list[tuple[Row, str]] = []
    for row in rows:
        try:
            made = single(row)
        except Exception as error:
            failed.append((row, reason_of(error)))
        else:
            if made is not None:
                good.append(made)
    return good, failed
