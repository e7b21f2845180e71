"""Bounds from outside, without Spark: notes for every bucket, and what is no bound as a dead letter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.mapper import ControlMapper
from penstock.engines.spark.wire import Note, load_note

pytestmark = pytest.mark.spark


def notes(line: str) -> list[tuple[int, str, Note]]:
    (packed,) = ControlMapper(3, ("main", "other"))(iter([pa.RecordBatch.from_pydict({"value": [line]})]))
    return [(r["bucket"], r["port"], load_note(r["body"])) for r in packed.to_pylist()]


def test_a_bound_reaches_every_bucket() -> None:
    assert notes('{"stream": "other", "bound": 7}') == [(b, "other", Note(bound=7)) for b in bucket_ids(3)]


@pytest.mark.parametrize(
    "line",
    [
        "garbage {",
        '{"stream": "nobody", "bound": 3}',
        '{"stream": "main"}',
        '{"stream": "main", "bound": null}',
        '{"stream": "main", "bound": true}',
        '{"stream": "main", "bound": 9223372036854775808}',
        '{"stream": ["main"], "bound": 3}',
        "[]",
        "",
        "[" * 100_000,
    ],
)
def test_what_is_none_is_a_dead_letter(line: str) -> None:
    (_, named, first), *others = notes(line)
    assert (named, first.read, first.bound) == ("main", 1, None)
    assert first.dead == (("not a bound of a stream, in the control folder", line),)
    assert all(note == Note() for _, _, note in others)
