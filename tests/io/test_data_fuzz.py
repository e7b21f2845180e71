"""Random tables of every type and damaged files: every row that is read is counted once, and only our errors come.

The counts of an ordinary run are small; `make fuzz` tries thousands.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError

SEEDS = st.integers(0, 2**48)
EDGES = [0, 1, -1, 2**31 - 1, -(2**31), 2**53 + 1, 2**62, 2**62 + 1, -(2**62), 2**63 - 1, -(2**63), 2**40]
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e300, 5e-324]
TEXTS = [
    "",
    " ",
    "a",
    "NA",
    "null",
    "é",
    "\x00",
    "2026-01-01",
    "2026-13-01",
    " 7 ",
    "1_000",
    "nan",
    "\u2028",
    "x" * 300,
]
SIMPLE = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
    pa.large_binary(), pa.binary_view(), pa.binary(3), pa.date32(), pa.date64(), pa.null(), pa.time32("s"),
    pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.month_day_nano_interval(), pa.decimal128(10, 2),
    pa.decimal128(38, 38), pa.decimal128(5, -2), pa.decimal256(60, 5), pa.decimal256(20, 2),
    *[pa.timestamp(u, z) for u in ("s", "ms", "us", "ns") for z in (None, "UTC", "Europe/Berlin")],
    *[pa.duration(u) for u in ("s", "ms", "us", "ns")],
]  # fmt: skip


def random_array(rng: random.Random, type_: pa.DataType, rows: int) -> pa.Array:
    """Values of a type, edges and nulls among them."""
    mask = np.array([rng.random() < 0.2 for _ in range(rows)], bool)
    t = pa.types
    if t.is_null(type_):
        return pa.nulls(rows)
    if t.is_floating(type_):
        width = {2: np.float16, 4: np.float32, 8: np.float64}[type_.bit_width // 8]
        with np.errstate(over="ignore"):
            return pa.array(np.array([rng.choice(FLOATS) for _ in range(rows)]).astype(width), type_, mask=mask)
    if t.is_boolean(type_):
        return pa.array([rng.random() < 0.5 for _ in range(rows)], mask=mask)
    if t.is_decimal(type_) or t.is_interval(type_):
        width = type_.bit_width // 8
        top = 10 ** min(type_.precision, 9) if t.is_decimal(type_) else 1000
        data = b"".join(rng.randint(-top + 1, top - 1).to_bytes(width, "little", signed=True) for _ in range(rows))
        return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(data)])
    if t.is_integer(type_) or t.is_temporal(type_):
        bits = type_.bit_width
        signed = not t.is_unsigned_integer(type_)
        picked = [
            rng.choice([rng.choice(EDGES), rng.randint(-100, 100), rng.randint(-(2**62), 2**62)]) for _ in range(rows)
        ]
        if t.is_time(type_):
            picked = [p % 86_400 for p in picked]
        data = b"".join((p % 2**bits).to_bytes(bits // 8, "little") for p in picked)
        wide = {8: (pa.uint8(), pa.int8()), 16: (pa.uint16(), pa.int16()), 32: (pa.uint32(), pa.int32())}
        plain_type = wide.get(bits, (pa.uint64(), pa.int64()))[signed]
        plain = pa.Array.from_buffers(plain_type, rows, [None, pa.py_buffer(data)])
        kept = pa.array(np.asarray(plain), plain.type, mask=mask)
        return kept if kept.type == type_ else kept.view(type_)
    if t.is_fixed_size_binary(type_):
        return pa.array([None if m else rng.randbytes(type_.byte_width) for m in mask], type_)
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_):
        return pa.array([None if m else rng.randbytes(rng.randint(0, 5)) for m in mask], type_)
    texts = [None if m else rng.choice(TEXTS) for m in mask]
    if rows and t.is_string(type_) and rng.random() < 0.1:  # bytes that are no text
        raw = pa.array([None if v is None else v.encode() + b"\xff" for v in texts], pa.binary())
        return raw.view(pa.string())
    return pa.array(texts, type_)


def random_column(rng: random.Random, rows: int) -> pa.Array:
    column = random_array(rng, rng.choice(SIMPLE), rows)
    way = rng.random()
    if way < 0.05:
        return pa.StructArray.from_arrays([column], ["inner"])
    if way < 0.1:
        return pa.array([[1]] * rows)
    if way < 0.2 and not pa.types.is_null(column.type) and not pa.types.is_interval(column.type):
        try:
            return column.dictionary_encode()
        except pa.ArrowException:  # not every type has a dictionary
            return column
    return column


def random_table(rng: random.Random) -> pa.Table:
    rows = rng.choice([0, 1, 3, 20])
    columns = {f"c{i}": random_column(rng, rows) for i in range(rng.randint(0, 4))}
    times = [pa.int64(), pa.int32(), pa.uint64(), pa.string(), pa.date32(), pa.float64(), pa.timestamp("ns")]
    columns["t"] = random_array(rng, rng.choice([*times, rng.choice(SIMPLE)]), rows)
    return pa.table(columns)


def holds(query: Any) -> None:
    """Every row that was read went to one place, and what was put aside can be shown."""
    counts = query.counts
    assert counts["read"] == sum(n for kind, n in counts.items() if kind != "read"), counts
    assert query.late.num_rows == counts["late"]
    assert len(query.late.to_pylist()) == counts["late"]
    assert len(query.dead_letters.to_pylist()) == counts["dead"]


def query_of(rng: random.Random, flow: pk.Flow, usable: list[str]) -> Any:
    columns = ", ".join(usable)
    key = rng.choice(usable)
    return flow.query(
        rng.choice(
            [
                f"SELECT {columns} FROM s",
                "SELECT t FROM s",
                f"SELECT {key} AS k, count(*) AS n [RANGE 20, SLIDE 10, WA t] FROM s GROUP BY {key}",
                f"SELECT count({key}) AS n, min({key}) AS m [RANGE 2 days, SLIDE 1 day, WA t] FROM s",
            ]
        )
    )


def progress_of(rng: random.Random) -> Any:
    return rng.choice([pk.ordered(), pk.bounded(10), pk.bounded("1 hour"), pk.bounded(rows=3), pk.per_source("t")])


@pytest.mark.parametrize("part", range(3))
@given(seed=SEEDS)
def test_random_tables(part: int, seed: int) -> None:
    rng = random.Random(f"{part} {seed}")
    table = random_table(rng)
    form = rng.choice([None, None, None, "epoch_s", "epoch_ns", "yyyy-MM-dd"])
    source = rng.choice([table, table, table.to_reader()])
    try:
        flow = pk.Flow().stream("s", source, time="t", progress=progress_of(rng), time_format=form)
        query = query_of(rng, flow, list(flow.catalog.streams["s"].schema.names))
    except PenstockError:
        return
    result = query.collect()
    assert len(result.to_pylist()) == result.num_rows
    assert query.counts["read"] == table.num_rows
    holds(query)


def random_rows(rng: random.Random) -> list[dict[str, Any]]:
    values: list[Any] = [None, True, 1, -5, 2**70, 1.5, "a", "2026-01-01", "é", [1], {"a": "\ud800"}, "\ud800"]
    return [
        {"t": rng.choice([1, 2, 3, 10, rng.choice(values)]), "v": rng.choice(values)} for _ in range(rng.randint(0, 30))
    ]


def file_bytes(rng: random.Random, kind: str) -> bytes:
    rows = random_rows(rng)
    if kind == "jsonl":
        return "\n".join(json.dumps(r) for r in rows).encode()
    if kind == "csv":
        lines = [rng.choice(["t,v", "t,v", "t", "v,t", "t,t", "", "t,", '"t","v"'])]
        lines += [f"{r['t']},{json.dumps(r['v'])}" for r in rows]
        return rng.choice(["\n", "\r\n", "\r"]).join(lines).encode("utf-8", "surrogatepass")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"t": [i for i, _ in enumerate(rows)], "v": [ascii(r["t"]) for r in rows]}), sink)
    return sink.getvalue().to_pybytes()


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Cut, garbage, another encoding, bits turned, or left alone."""
    way = rng.randint(0, 6)
    at = rng.randint(0, len(data))
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + rng.randbytes(rng.randint(1, 40)) + data[at:]
    if way == 2:
        return data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32", "latin-1"]), "replace")
    if way == 3 and data:
        turned = bytearray(data)
        for _ in range(rng.randint(1, 5)):
            turned[rng.randrange(len(turned))] ^= 1 << rng.randrange(8)
        return bytes(turned)
    if way == 4:
        return struct.pack("<I", at) + data[::-1]
    return data


@given(seed=SEEDS)
def test_damaged_files(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        for i in range(rng.choice([1, 1, 2])):
            kind = rng.choice(["csv", "jsonl", "parquet"])
            data = damaged(rng, file_bytes(rng, kind))
            if kind != "parquet" and rng.random() < 0.3:
                packed = gzip.compress(data)
                (Path(home) / f"{i}.{kind}.gz").write_bytes(damaged(rng, packed) if rng.random() < 0.5 else packed)
            else:
                (Path(home) / f"{i}.{kind}").write_bytes(data)
        schema = rng.choice([None, "t bigint", "t bigint, v string", "t timestamp, v double"])
        query: Any = None
        try:
            flow = pk.Flow().stream("s", home, time="t", schema=schema, progress=pk.bounded(rows=10))
            query = flow.query("SELECT t FROM s")
            query.collect()
        except PenstockError:
            pass
        if query is not None:
            holds(query)
