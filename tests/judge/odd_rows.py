"""Streams and tables of odd values: nulls, NaN, infinities, both zeros, times at the edges of windows and before the
epoch, texts that look like null or numbers, no rows at all, one row, rows that come too late.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

Rows = list[dict[str, object]]
COLUMNS = {
    "k": "string", "w": "string", "i": "int", "j": "int", "n": "bigint", "d": "double", "c": "decimal(8,2)",
    "b": "boolean", "moment": "timestamp", "day": "date",
}  # fmt: skip
KINDS = {name: "decimal" if type_.startswith("decimal") else type_ for name, type_ in COLUMNS.items()}
TABLE = {"key": "string", "num": "int", "label": "string", "part": "double"}
VERSIONS = {"vk": "string", "rate": "decimal(8,2)", "note": "string"}
ARROW = {
    "string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(),
    "decimal(8,2)": pa.decimal128(8, 2), "timestamp": pa.timestamp("us", tz="UTC"), "date": pa.date32(),
}  # fmt: skip
TEXTS = ["", "a", "ab", "A", "a_b", "null", "NULL", "NaN", "7", " 7", "-12", "1e3", "é", "x y ", "aab", "%", "0", "b.l"]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass
class Stream:
    """Its rows as they come, and which of them are on time under a promise of so many ticks of disorder."""

    rows: Rows
    slack: int
    on_time: Rows = field(default_factory=list)


@dataclass
class Data:
    """What a query is asked over."""

    timed: bool
    """Whether the time is a timestamp; then a tick of these rows is a second."""
    base: int
    """Seconds after the epoch at which times start."""
    streams: dict[str, Stream]
    table: Rows
    versions: Rows

    @property
    def time_type(self) -> str:
        """Of the column `t`."""
        return "timestamp" if self.timed else "bigint"

    @property
    def schema(self) -> dict[str, str]:
        """Of every stream."""
        return {"t": self.time_type, **COLUMNS}


def arrow(rows: Rows, schema: dict[str, str]) -> pa.Table:
    """Rows as columns."""
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, ARROW[type_]) for name, type_ in schema.items()]))


def make_data(chance: random.Random) -> Data:
    """Everything at random."""
    timed = chance.random() < 0.4
    base = chance.choice([0, 1_767_225_600]) if timed else 0
    lates = chance.random() < 0.25
    streams = {name: _stream(chance, timed=timed, base=base, lates=lates) for name in ("x", "y", "z")}
    table = [
        {
            "key": chance.choice([*TEXTS[:6], None]),
            "num": chance.choice([*range(-3, 4), None]),
            "label": chance.choice(TEXTS),
            "part": chance.choice([0.5, -0.0, 0.0, float("nan"), None]),
        }
        for _ in range(chance.choice([0, 1, 9, 9, 9]))
    ]
    starts = [(key, at) for key in TEXTS[:6] for at in chance.sample(range(-12, 31), chance.randint(0, 3))]
    versions: Rows = [
        {
            "vk": key,
            "since": _time(at, timed, base),
            "rate": Decimal(chance.randint(-99, 99)) / 100,
            "note": f"{key}{at}",
        }
        for key, at in starts
    ]
    return Data(timed, base, streams, table, versions)


def _stream(chance: random.Random, *, timed: bool, base: int, lates: bool) -> Stream:
    count = chance.choice([0, 1, *[12] * 8, *[24] * 12])
    ticks = [chance.randint(-10, 30) for _ in range(count)]
    slack = chance.choice([0, 3, 8]) if lates else 1000
    if lates and chance.random() < 0.1:
        ticks = [40, *(tick for tick in ticks)]  # all but the first are late
    stream = Stream([{"t": _time(tick, timed, base), **_values(chance)} for tick in ticks], slack)
    greatest = -(10**9)
    for tick, row in zip(ticks, stream.rows, strict=True):
        if tick >= greatest - slack:
            stream.on_time.append(row)
        greatest = max(greatest, tick)
    return stream


def _time(tick: int, timed: bool, base: int) -> object:
    return EPOCH + dt.timedelta(seconds=base + tick) if timed else tick


def _values(chance: random.Random) -> dict[str, object]:
    small = chance.randint(-6, 9)
    real = [small / 4, small / 4, small * 1.0, float("nan"), float("inf"), float("-inf"), -0.0, 0.0]
    moment = EPOCH + dt.timedelta(
        seconds=chance.randint(-(10**8), 2 * 10**9), microseconds=chance.choice([0, 5, 500_000])
    )
    values: dict[str, object] = {
        "k": chance.choice(TEXTS[:6]),
        "w": chance.choice(TEXTS),
        "i": small,
        "j": chance.randint(-3, 3),
        "n": chance.choice([small, small, 10**12, -(10**12) + 1]),
        "d": chance.choice(real),
        "c": Decimal(chance.randint(-999, 999)) / 100,
        "b": chance.choice([True, False]),
        "moment": moment,
        "day": chance.choice([moment.date(), dt.date(2024, 2, 29), dt.date(2026, 1, 31)]),
    }
    return {name: None if chance.random() < 0.15 else value for name, value in values.items()}
