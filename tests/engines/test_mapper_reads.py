"""What the map side of a stream on Spark reads: times in another form, records that Spark could not parse."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as pk
from penstock.engines.spark.mapper import Mapper
from penstock.engines.spark.parts import PartReader
from penstock.engines.spark.sources import refuse_alike
from penstock.engines.spark.wire import load_note, unnumbered, unpack
from penstock.errors import StreamError
from penstock.model.batch import rows_of
from penstock.plan.nodes import Source
from tests.engines.hosted import packets_of


def test_times_in_another_form_and_records_that_were_not_parsed() -> None:
    flow = pk.Flow().stream("s", [], time="at", schema="at timestamp, k string", time_format="epoch_ms")
    plan = flow.query("SELECT at, k FROM s").plan
    (source,) = [n for n in plan.walk() if isinstance(n, Source)]
    arrived = pa.record_batch(
        {
            "at": pa.array([1, -1, None, 2**62, None], pa.int64()),
            "k": ["a", "b", "c", "d", None],
            "why": [None, None, None, None, "torn"],
            "text": [None, None, None, None, "{x"],
        }
    )
    reader = PartReader(source.schema, has_corrupt=True)
    rows, told = packets_of(Mapper(source, flow.catalog, (), 1, reader)(iter([arrived])))
    note = load_note(told.body)
    assert rows_of(unpack(unnumbered(rows.body))) == [(1000, "a"), (-1000, "b")]
    assert note.read == 5
    assert [tuple(letter)[-2:] for letter in note.dead] == [
        ("torn", "{x"),
        ("at is null", '{"at": null, "k": "c"}'),
        (f"at is not epoch_ms: {2**62}", f'{{"at": {2**62}, "k": "d"}}'),
    ]


def test_names_that_spark_takes_for_one_are_refused() -> None:
    refuse_alike(["a", "b"])
    with pytest.raises(StreamError, match=r"Two columns have the same name(.|\n)*a, A"):
        refuse_alike(["a", "b", "A"])
