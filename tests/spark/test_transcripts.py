"""The printed queries of the window-query thesis, replayed on Spark in batch and as streams."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing.transcripts import Transcript
from tests.transcripts.replay import TRANSCRIPTS, replay

ON_SPARK = [t for t in TRANSCRIPTS if "spark batch" in t.evaluators or "spark streaming" in t.evaluators]


@pytest.mark.spark
@pytest.mark.parametrize("transcript", ON_SPARK, ids=str)
def test_transcript(transcript: Transcript, spark: Any) -> None:
    replay(transcript, ["spark batch", "spark streaming"], spark)
