"""Progress that is estimated from the disorder that was seen: a bound with a share of late rows that is aimed at.

Nobody has promised anything of such a stream, so its bound is a guess (thesis 8.1 names estimated parameters of
disorder, after Srivastava and Widom). It is a function of the arrival sequence alone, so a replay guesses alike.

- A row is *behind* by what its time is below the greatest time that had come before it, and by nothing if it is not.
- Rows are looked at in *lots*: a lot is complete as soon as it has a tenth of `rows`. Where rows have no order among
  them, as in a micro-batch, all of them fall into the lot at hand.
- With each complete lot the *delay* is estimated anew, from the newest lots that have at least `rows` rows together:
  all of their rows but a share of `lateness` are behind by no more (of more than `rows` rows the share of `rows`).
- The bound is the greatest time less the delay; before the first estimate there is none. It never goes back, also where
  the delay grows: what it condemned by then is what the estimate has cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from penstock.errors import StreamError

LOTS = 10
"""Among so many lots the rows that are looked at are divided."""
HINT = "estimated(lateness='0.1%', rows=10000)"


@dataclass(frozen=True)
class Estimated:
    """A bound is estimated, so that at most a share `lateness` of the rows should come late."""

    lateness: str = "0.1%"
    rows: int = 10_000

    def __post_init__(self) -> None:
        """A share that can be aimed at, of a number of rows."""
        share_of(self.lateness)
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise StreamError("estimated(rows=…) takes a number of rows.", got=repr(self.rows)[:200], hint=HINT)

    @property
    def share(self) -> Decimal:
        """The share of late rows that is aimed at."""
        return share_of(self.lateness)

    @property
    def lot(self) -> int:
        """How many rows make a lot complete."""
        return max(self.rows // LOTS, 1)

    def beyond(self, rows: int) -> int:
        """How many of so many rows may be behind by more than the delay."""
        return int(self.share * min(rows, self.rows))

    def __str__(self) -> str:
        """As written by the user."""
        return f"estimated(lateness={self.lateness!r}, rows={self.rows})"


def share_of(lateness: object) -> Decimal:
    """A share as it is written: `"0.1%"` or 0.001."""
    text = str(lateness).strip() if isinstance(lateness, str | int | float) and not isinstance(lateness, bool) else ""
    try:
        share = Decimal(text[:-1]) / 100 if text.endswith("%") else Decimal(text)
    except InvalidOperation:
        share = Decimal(-1)
    if share.is_nan() or not 0 <= share < 1:
        raise StreamError(
            "estimated(lateness=…) takes the share of rows that may come late.", got=repr(lateness)[:200], hint=HINT
        )
    return share


def estimated(lateness: str | float = "0.1%", *, rows: int = 10_000) -> Estimated:
    """The bound is estimated from how far rows came behind the greatest time.

    Args:
        lateness: The share of rows that may come late: `"0.1%"`, or 0.001.
        rows: How many of the newest rows are looked at, so that the estimate follows the stream. Choose it such that
            the share of them is several rows; on Spark also not below the rows of a micro-batch.
    """
    return Estimated(f"{(share_of(lateness) * 100).normalize():f}%", rows)
