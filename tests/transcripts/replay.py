"""Replaying a transcript with some evaluators: they agree with the oracle, and with what was worked out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.model.conform import row_json
from penstock.testing.transcripts import JUDGEMENTS, Transcript, read_transcript
from penstock.verify.agreement import EVALUATORS, agreement

TRANSCRIPTS = [read_transcript(path) for path in sorted(Path(__file__).parent.glob("*.yaml"))]


def replay(transcript: Transcript, evaluators: Sequence[str], spark: Any = None) -> None:
    asked = [e for e in EVALUATORS if e in evaluators and e in transcript.evaluators]
    found = agreement(transcript.query, transcript.streams, evaluators=asked, spark=spark)
    assert found.agrees or asked == ["reference"], found.render()
    schemas = {s.name: s.schema for s in transcript.streams}
    names = [f.name for f in found.plan.schema.visible]
    places = [names.index(column) for column in transcript.columns]
    for evaluator in asked:
        got, judgement = found[evaluator].got, JUDGEMENTS[evaluator]
        assert got is not None, found.render()
        rows: Counter[tuple[object, ...]] = Counter()
        for (payload, _, _), count in got.result.items():
            rows[tuple(payload[i] for i in places)] += count
        assert rows == transcript.expected[judgement], evaluator
        late = Counter({payload: count for (payload, _, _), count in got.late.items()})
        assert late == Counter(
            (name, row_json(schemas[name], row)) for name, row in transcript.late[judgement].elements()
        )
        assert got.dead == transcript.dead, evaluator
