"""An evaluation that may fail on single rows: the others go on, and those rows are given back with the reason.

A batch is first tried as a whole, at full speed. Where that fails it is tried in pieces, and the pieces that fail row
by row, so that a few bad rows in a large batch cost little. A function of the user's may thus be called again for a
row that was fine. Order is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from penstock.errors import reason_of
from penstock.model.batch import Batch, Row, concat
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.operators.operator import Outputs, Rejected

PIECE = 1024
Whole = Callable[[Batch], Batch]
Single = Callable[[Row], Row | None]
"""The row that comes of a row, or None if none does."""


def attempt(schema: Schema, batch: Batch, whole: Whole, single: Single, *, chooses: bool = False) -> Outputs:
    """What comes of a batch, as rows of `schema`, and what fails; `chooses`: some of the very rows come of it."""
    try:
        made = whole(batch)
    except Exception as error:  # whatever a row's values or a user's code did: the rows are looked at one by one
        let_through(error)
        yield from _in_pieces(schema, batch, whole, single, chooses=chooses)
    else:
        if len(made):
            yield made


def _in_pieces(schema: Schema, batch: Batch, whole: Whole, single: Single, *, chooses: bool) -> Outputs:
    made: list[Batch] = []
    failures: list[Batch] = []
    reasons: list[str] = []
    for piece in _pieces(batch):
        try:
            made.append(whole(piece))
        except Exception as error:  # as above
            let_through(error)
            good, failed = by_row(piece.rows, single)
            places = [place for place, _ in good]
            lives = None if piece.lives is None or schema.lives is None else piece.lives.take(places)
            again = chooses and piece.origin is not None
            origin = piece.select(_mask(piece, places)).complete if again else None
            made.append(Batch(schema, [row for _, row in good], lives=lives, origin=origin))
            failures.append(piece.select(_mask(piece, [place for place, _ in failed])).complete())
            reasons += [reason for _, reason in failed]
    together = concat(schema, made)
    if len(together):
        yield together
    if reasons:
        yield Rejected("failed", concat(batch.schema, failures), (), reasons)


def _mask(piece: Batch, places: Sequence[int]) -> np.ndarray:
    mask = np.zeros(len(piece), np.bool_)
    mask[list(places)] = True
    return mask


def _pieces(batch: Batch) -> Iterator[Batch]:
    for start in range(0, len(batch), PIECE):
        yield batch.part(start, min(start + PIECE, len(batch)))


def by_row(rows: Sequence[Row], single: Single) -> tuple[list[tuple[int, Row]], list[tuple[int, str]]]:
    """The places of rows of which something comes, with what that is; and of those that fail, with the reason."""
    good: list[tuple[int, Row]] = []
    failed: list[tuple[int, str]] = []
    for place, row in enumerate(rows):
        try:
            made = single(row)
        except Exception as error:
            let_through(error)
            failed.append((place, reason_of(error)))
        else:
            if made is not None:
                good.append((place, made))
    return good, failed
