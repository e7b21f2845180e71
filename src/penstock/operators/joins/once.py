"""Key joins: rows that meet one row at most are given up once they have met it.

Where what is unique on one side is among the columns that must be equal, a row of the other side has one partner, and
is done with when that has come: it is never kept if the partner came first. Rows of runs are marked, and a run is made
smaller when half of it is done with; so a side keeps no more than twice the rows that still wait.

That something is unique is believed. Where it is not, a row is joined with what there was when it first met one, and
what comes after that is not. A row that comes and finds one that is done with, and still there, is told of as failed:
once, whatever else it finds, and nothing else comes of it, neither a pair nor itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.operators.joins.finding import Found
from penstock.operators.joins.nearness import LEFT
from penstock.operators.joins.runs import Run
from penstock.operators.operator import Rejected

if TYPE_CHECKING:
    from penstock.operators.joins.bounds import Bounds
    from penstock.operators.joins.oa_join import OAJoin

AGAIN = "It meets a row that has met one, of which it was declared that it meets no other: a key is not unique."


class Once:
    """What rows of each side do after they have met one."""

    def __init__(self, join: OAJoin, of: tuple[bool, bool]) -> None:
        """`of` says of each side whether its rows meet one at most."""
        self.join, self.of = join, of

    def is_done(self, side: int) -> bool:
        """Whether a row of a side that has met one is done with: also where it comes out just for that."""
        return self.of[side] or (side == LEFT and not self.join.is_of_pairs)

    def sound(self, port: int, run: Run, found: list[Found]) -> tuple[list[Found], np.ndarray, list[Rejected]]:
        """What a batch has found without what rows found of which one is done with, these rows, and word of them."""
        wrong = np.zeros(len(run), np.bool_)
        for _, other, own, places in found:
            wrong[own[other.met[places]]] = True
        if not wrong.any():
            return found, wrong, []
        rows = Batch(self.join.sides[port].schema, table=run.table.filter(pa.array(wrong)))
        kept = [(number, other, own[~wrong[own]], places[~wrong[own]]) for number, other, own, places in found]
        return kept, wrong, [Rejected("failed", rows, (), [AGAIN] * len(rows))]

    def drop(self, side: int, known: Bounds) -> None:
        """Make runs smaller of which half is done with."""
        if not self.of[side]:
            return
        pages, kept = self.join.pages, []
        for number in known.runs[side]:
            run = self.join._run(number)
            done = int(run.met.sum())
            if done < len(run):
                kept.append(number)
                if 2 * done >= len(run):
                    pages.put(f"run{number}", run.kept(~run.met))
            else:
                pages.delete(f"run{number}")
        if len(kept) < len(known.runs[side]):
            known.runs[side] = kept
            pages.put("bounds", known)
