"""Bounds from outside, without Spark: notes for every bucket, and what is no bound as a dead letter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.mapper import ControlMapper
from penstock.engines.spark.wire import Note, load_note

pytestmark = pytest.mark.spark


def notes(stream: str | None, bound: int | None, corrupt: str | None = None) -> list[tuple[int, str, Note]]:
    columns = {"stream": [stream], "bound": [bound], "_corrupt_record": [corrupt]}
    schema = pa.schema([("stream", pa.string()), ("bound", pa.int64()), ("_corrupt_record", pa.string())])
    (packed,) = ControlMapper(3, ("main", "other"))(iter([pa.RecordBatch.from_pydict(columns, schema)]))
    return [(r["bucket"], r["stream"], load_note(r["note"])) for r in packed.to_pylist()]


def test_a_bound_reaches_every_bucket() -> None:
    assert notes("other", 7) == [(b, "other", Note(bound=7)) for b in bucket_ids(3)]


@pytest.mark.parametrize(
    ("stream", "bound", "corrupt", "text"),
    [
        (None, None, "garbage {", "garbage {"),
        ("nobody", 3, None, "stream nobody, bound 3"),
        ("main", None, None, "stream main, bound None"),
        (None, None, None, "stream None, bound None"),
    ],
)
def test_what_is_none_is_a_dead_letter(stream: str | None, bound: int | None, corrupt: str | None, text: str) -> None:
    (_, named, first), *others = notes(stream, bound, corrupt)
    assert (named, first.read, first.bound) == ("main", 1, None)
    assert first.dead == (("not a bound of a stream, in the control folder", text),)
    assert all(note == Note() for _, _, note in others)
