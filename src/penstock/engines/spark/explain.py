"""How a hosted plan is spread over Spark's workers, in words for `explain`; its nodes speak for themselves."""

from __future__ import annotations

from penstock.plan.nodes import Source
from penstock.plan.physical import Physical


def spread_in_words(planned: Physical, buckets: int) -> str:
    """Over how many buckets, and by what."""
    if planned.stages:
        stages = "one stage" if planned.stages == 1 else f"{planned.stages} stages"
        return f"judged where rows are read, then hosted in {stages} of {buckets} {_buckets(buckets)}"
    entrances = [p.distribution for p in planned.walk() if isinstance(p.node, Source)]
    by = sorted({str(key) for distribution in entrances for key in distribution.keys})
    if not by:
        return "hosted in one bucket: no key is grouped by everywhere"
    return f"hosted in {buckets} buckets by {', '.join(by)}"


def _buckets(number: int) -> str:
    return "bucket" if number == 1 else "buckets"
