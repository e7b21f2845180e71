"""The map side without Spark: every row goes to one bucket, equal keys meet, all buckets hear the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.mapper import Mapper
from penstock.engines.spark.parts import PartReader
from penstock.engines.spark.routing import Router, hash_values
from penstock.engines.spark.wire import NOTE, ROWS, Packet, load_note, unnumbered, unpack_batch
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.distribution import by_keys, routes
from penstock.plan.expressions import Column
from penstock.plan.nodes import Source
from penstock.sql.binder import bind
from tests.engines.hosted import packets_of

pytestmark = pytest.mark.spark  # the engine is pyspark's; no session is started
SCHEMA = schema_of([("t", "bigint"), ("k", "string"), ("d", "double")], "t")
ARROW = pa.schema([("t", pa.int64()), ("k", pa.string()), ("d", pa.float64())])
SQL = "SELECT {}, count(*) AS n [RANGE 4, SLIDE 2, WA t] FROM s GROUP BY {}"
given_rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 50)),
        st.sampled_from(["a", "b", "", None]),
        st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]),
    ),
    min_size=1,
    max_size=20,
)


def sent_by(key: str, buckets: int, *parts: list[Any]) -> list[list[Packet]]:
    catalog = Catalog()
    catalog.add_stream(StreamInfo("s", SCHEMA, bounded(3), StreamProperties()))
    plan = bind(SQL.format(key, key), catalog)
    (source,) = [n for n in plan.walk() if isinstance(n, Source)]
    mapper = Mapper(source, catalog, (routes(plan) or {})["s"], buckets, PartReader(source.schema))
    found = []
    for part in parts:
        table = pa.Table.from_pylist([dict(zip("tkd", row, strict=True)) for row in part], ARROW)
        found += [packets_of([batch]) for batch in mapper(iter(table.to_batches()))]
    return found


@pytest.mark.parametrize("key", ["k", "d"])
@given(rows=given_rows, buckets=st.integers(1, 4))
def test_every_row_goes_to_one_bucket_and_equal_keys_meet(key: str, rows: list[Any], buckets: int) -> None:
    (sent,) = sent_by(key, buckets, rows)
    told = [each for each in sent if each.kind == NOTE]
    assert [each.bucket for each in told] == list(bucket_ids(buckets))
    at: dict[str, set[int]] = {}
    arrived: Counter[str] = Counter()
    for each in [each for each in sent if each.kind == ROWS]:
        for row in unpack_batch(SCHEMA, unnumbered(each.body)).rows:
            value = row[SCHEMA.index(key)]
            at.setdefault(repr(value + 0.0 if isinstance(value, float) else value), set()).add(each.bucket)
            arrived[repr(tuple(v + 0.0 if isinstance(v, float) else v for v in row))] += 1
    timed = [tuple(v + 0.0 if isinstance(v, float) else v for v in row) for row in rows if row[0] is not None]
    assert arrived == Counter(map(repr, timed))
    assert all(len(places) == 1 for places in at.values())
    notes = [load_note(each.body) for each in told]
    assert len({repr(note.summary) for note in notes}) == 1, "every bucket is told the progress of the whole part"
    assert sum(note.read for note in notes) == len(rows)
    assert sum(len(note.dead) for note in notes) == len(rows) - len(timed)


def test_hashes_do_not_tell_equal_values_apart() -> None:
    zero, minus, nan, other, null, again = hash_values([0.0, -0.0, float("nan"), float("nan"), None, None]).tolist()
    assert (zero, nan, null) == (minus, other, again)
    assert len({zero, nan, null}) == 3


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)), min_size=1))
def test_columns_of_texts_go_where_their_values_go(texts: list[str | None]) -> None:
    schema = schema_of([("t", "bigint"), ("k", "string")], "t")
    columns = pa.table([pa.array(range(len(texts)), pa.int64()), pa.array(texts, pa.string())], ["t", "k"])
    router = Router(by_keys((Column("k", schema["k"].type),)), schema, {}, 1 << 31)
    assert router(Batch(schema, table=columns)).tolist() == (hash_values(texts) % (1 << 31)).tolist()


def test_where_texts_go_is_never_changed() -> None:
    texts = ["a", "", "key-1", "exactly8", "naïve 日本 text that is longer than a block"]
    assert hash_values(texts).tolist() == [spread_out(sip_hash(text.encode())) for text in texts]
    assert hash_values([None]).tolist() == [spread_out(sip_hash(b"\0"))]


def spread_out(value: int) -> int:
    """The finalizer of SplitMix64, by which pandas spreads hashes."""
    for by, times in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ value >> by) * times & (1 << 64) - 1
    return value ^ value >> 31


def sip_hash(data: bytes, key: bytes = b"0123456789123456") -> int:
    """SipHash-2-4 by its definition, under the key that pandas has."""
    first, second = (int.from_bytes(part, "little") for part in (key[:8], key[8:]))
    v = [
        first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261, second ^ 0x7465646279746573,
    ]  # fmt: skip

    def turned(value: int, by: int) -> int:
        return (value << by | value >> (64 - by)) & (1 << 64) - 1

    def rounds(count: int) -> None:
        for _ in range(count):
            for a, b, by, by_half in ((0, 1, 13, True), (2, 3, 16, False), (0, 3, 21, False), (2, 1, 17, True)):
                v[a] = v[a] + v[b] & (1 << 64) - 1
                v[b] = turned(v[b], by) ^ v[a]
                if by_half:
                    v[a] = turned(v[a], 32)

    whole = len(data) - len(data) % 8
    words = [data[at : at + 8] for at in range(0, whole, 8)]
    words.append(data[whole:].ljust(7, b"\0") + bytes([len(data) % 256]))
    for word in words:
        v[3] ^= int.from_bytes(word, "little")
        rounds(2)
        v[0] ^= int.from_bytes(word, "little")
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
