"""What the difference of two times may be: it can hold, and it is no longer than a window may be.

A bound that is moved by such a length is a time again (`model/time.py`), so joins need not look out for the ends of 64
bits or of the calendar.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.model.time import Domain, longest, show_span
from penstock.plan.differences import Difference
from penstock.sql.reading import Reading


def check_band(reading: Reading, tree: exp.Expr, known: Difference, domain: Domain | None, hint: str = "") -> None:
    """Refuse bounds on a difference that cannot both hold, or are too far off; `hint` says what makes them hold."""
    low, high = known.low, known.high
    if low is not None and high is not None and low > high:
        raise reading.error(
            "The conditions on the times cannot hold together, so no rows meet.", tree,
            got=f"a difference of at least {low} and at most {high}",
            hint=hint or "the lesser bound comes first: BETWEEN a AND b",
        )  # fmt: skip
    domain = domain or Domain.INTEGER
    most = longest(domain)
    for bound in (low, high):
        if bound is not None and abs(bound) > most:
            raise reading.error(
                "The times of two rows that meet may be too far apart.", tree,
                got=f"a difference of {'-' * (bound < 0)}{show_span(abs(bound), domain)}",
                hint=f"bound it by {show_span(most, domain)} at most, on either side",
            )  # fmt: skip
