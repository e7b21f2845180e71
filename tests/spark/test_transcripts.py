"""The printed queries of the window-query thesis, and Stream Mill's patterns, on Spark in batch and as streams.

A stream takes seconds per micro-batch, so those queries that differ little from another are marked slow.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing.transcripts import Transcript
from tests.transcripts.replay import TRANSCRIPTS, replay

pytestmark = pytest.mark.spark

ALIKE = {
    "q1-1", "q2-1", "q5-1", "q5-3", "q5-7", "q6-1", "q6-2", "q6-3", "q6-5", "q6-6", "q6-7", "q6-8",
    "auctions-whole", "q7-1", "q8-1", "q8-2", "q8-3", "q8-4", "q8-5", "rfid-chronicle", "rfid-continuous",
    "rfid-cumulative",
}  # fmt: skip
IN_BATCH = [t for t in TRANSCRIPTS if "spark batch" in t.evaluators]
STREAMING = [
    pytest.param(t, marks=[pytest.mark.slow] if t.name in ALIKE else [])
    for t in TRANSCRIPTS
    if "spark streaming" in t.evaluators
]


@pytest.mark.parametrize("transcript", IN_BATCH, ids=str)
def test_in_batch(transcript: Transcript, spark: Any) -> None:
    replay(transcript, ["spark batch"], spark)


@pytest.mark.parametrize("transcript", STREAMING, ids=str)
def test_as_a_stream(transcript: Transcript, spark: Any) -> None:
    replay(transcript, ["spark streaming"], spark)
