"""What people feed Spark is read as it is in-process: odd text, times in other forms, files that differ, tables."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.errors import PenstockError
from tests.spark.test_reading import SEEDS, odd_texts

pytestmark = pytest.mark.spark

DDL = "ts timestamp, i int, d double, b boolean, c decimal(10,2), e date, k string"
NAMES = [part.split()[0] for part in DDL.split(", ")]
ALL = "SELECT ts, i, d, b, c, e, k FROM s"


def both(spark: SparkSession, source: Any, sql: str, time: str = "ts", **options: Any) -> list[Any]:
    """Rows and dead letters, in-process and on Spark."""
    found = []
    for flow in (pk.Flow(), pk.Flow(spark)):
        query: Any = flow.stream("s", source, time=time, progress=pk.bounded(rows=10**6), **options).query(sql)
        result = query.collect()
        dead = query.dead_letters if flow.spark is None else query.dead_letters.toArrow()
        found.append((Counter(map(repr, result.to_pylist())), Counter(map(repr, dead.to_pylist())), query.schema.ddl))
    return found


def random_csv(rng: random.Random, delimiter: str, texts: list[str]) -> bytes:
    lines = [delimiter.join(NAMES)]
    for _ in range(400):
        fields = []
        for i in range(len(NAMES)):
            text = "2026-01-01 10:11:12" if i == 0 and rng.random() < 0.7 else rng.choice(["", "7", rng.choice(texts)])
            text = text.replace("\n", "").replace("\r", "")
            quoted = '"' + text.replace('"', '""') + '"'
            fields.append(rng.choice([quoted, quoted, text.replace(delimiter, "") if '"' not in text else quoted]))
        if rng.random() < 0.03:
            fields.append(rng.choice(['"', "x", '"a"b', ""]))
        lines.append(delimiter.join(fields))
    return "\n".join(lines).encode()


@pytest.mark.parametrize(("name", "delimiter"), [("s.csv", ","), ("s.tsv", "\t"), ("s.csv", ";")])
def test_odd_text_in_csv_is_read_alike(spark: SparkSession, tmp_path: Path, name: str, delimiter: str) -> None:
    rng = random.Random(delimiter)
    (tmp_path / name).write_bytes(random_csv(rng, delimiter, [*odd_texts(5, 300), 'say "x"', "a,b;c\td"]))
    option = {"delimiter": ";"} if delimiter == ";" else {}
    local, remote = both(spark, str(tmp_path / name), ALL, schema=DDL, **option)
    assert local == remote
    assert local[0], "some rows are good"
    assert local[1], "and some are not"


def test_csv_means_what_it_means_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Well-formed lines give the fields that Spark's own reader gives; its casts are the judge of their values."""
    rng = random.Random(3)
    plain = [t for t in SEEDS if "\n" not in t and "\x00" not in t] + ['say "x"', "a,b", " x ", "NA", "NULL", '"']
    lines = ["ts,a,b"]
    for i in range(500):
        fields = [rng.choice(plain) for _ in range(2)]
        shown = [f if "," not in f and not f.startswith('"') and rng.random() < 0.5 else
                 '"' + f.replace('"', '""') + '"' for f in fields]  # fmt: skip
        lines.append(f"{i},{shown[0]},{shown[1]}")
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines), newline="")
    judge = (
        spark.read.schema("ts bigint, a string, b string").option("header", "true").option("escape", '"').csv(str(path))
    )
    want = Counter(tuple(r) for r in judge.collect())
    query: Any = pk.Flow().stream("s", path, time="ts", schema="ts bigint, a string, b string").query("SELECT * FROM s")
    assert Counter(tuple(r.values()) for r in query.collect().to_pylist()) == want


def test_json_lines_are_read_alike(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(11)
    values: list[Any] = [None, True, 7, -1.5, 1e300, 2**70, "7", " 7 ", "NA", [1, {"x": "é"}], {}, "\ud800", *SEEDS]
    lines = []
    for _ in range(400):
        row = {n: rng.choice(values) for n in NAMES if rng.random() < 0.8}
        row["ts"] = rng.choice(["2026-01-01", "2026-01-01T10:11:12Z", *values]) if rng.random() < 0.9 else 5
        lines.append(json.dumps(row, ensure_ascii=rng.random() < 0.5 or True))
    lines += ["", "{torn", "[1]", '{"ts": NaN}', '"x"', "{'ts': 1}", '{"ts":"2026-01-01"} x']
    data = "\n".join(lines).encode() + b'\n{"k": "\xff"}\r\n{"ts": "2026-01-02", "k": "z"}'
    with gzip.open(tmp_path / "s.jsonl.gz", "wb") as file:
        file.write(data)
    local, remote = both(spark, str(tmp_path / "s.jsonl.gz"), ALL, schema=DDL)
    assert local == remote
    assert local[0]
    reasons = " ".join(local[1])
    assert "not UTF-8" in reasons
    assert "not a JSON object" in reasons


def test_types_that_nobody_declared_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        "ts,whole,big,real,flag,day,moment,odd,codes,empty",
        "2026-01-01 10:00:00,7,99999999999999999999,1.5,true,2026-1-1,2026-01-01T10:00:00Z,NA,1d,",
        "2026-01-01 10:00:01,-8,1,NaN,FALSE,2026-01-02,2026-01-02,1,2f,",
        "2026-01-01 10:00:02,,,1e3,,,,,,",
    ]
    (tmp_path / "a.csv").write_text("\ufeff" + "\r\n".join(rows))
    local, remote = both(spark, str(tmp_path / "a.csv"), "SELECT * FROM s")
    assert local == remote
    assert local[2] == (
        "`ts` timestamp, `whole` bigint, `big` decimal(38,0), `real` double, `flag` boolean, `day` date, "
        "`moment` timestamp, `odd` string, `codes` string, `empty` string"
    )
    (tmp_path / "b.jsonl").write_text('{"ts": "2026-01-01", "n": 1, "t": "1", "o": {"a": 1}}\n{"ts": null, "n": 1.5}\n')
    local, remote = both(spark, str(tmp_path / "b.jsonl"), "SELECT ts, n, t FROM s")
    assert local == remote
    assert local[2] == "`ts` timestamp, `n` double, `t` string"


def test_folders_of_files_that_differ(spark: SparkSession, tmp_path: Path) -> None:
    csv = tmp_path / "csv"
    csv.mkdir()
    (csv / "1.csv").write_text("ts,k\n1,a\n")
    (csv / "2.csv").write_text("k,v,ts\nb,5,2\n")
    (csv / "3.csv").write_text("")
    local, remote = both(spark, str(csv), "SELECT ts, k, v FROM s")
    assert local == remote
    assert sorted(local[0]) == ["{'ts': 1, 'k': 'a', 'v': None}", "{'ts': 2, 'k': 'b', 'v': 5}"]
    parquet = tmp_path / "parquet"
    parquet.mkdir()
    pq.write_table(pa.table({"ts": pa.array([1], pa.int32()), "v": pa.array([1], pa.int32())}), parquet / "1.parquet")
    pq.write_table(
        pa.table({"ts": pa.array([2], pa.int64()), "v": pa.array([2**40]), "w": ["x"]}), parquet / "2.parquet"
    )
    local, remote = both(spark, f"{parquet}/*.parquet", "SELECT ts, v, w FROM s")
    assert local == remote
    assert len(local[0]) == 2
    assert not local[1]
    pq.write_table(pa.table({"ts": [3], "v": ["text"]}), parquet / "3.parquet")
    for flow in (pk.Flow(), pk.Flow(spark)):
        with pytest.raises(PenstockError, match=r"do not agree on the type(.|\n)*3\.parquet"):
            flow.stream("s", str(parquet), time="ts")


def test_nanoseconds_and_times_of_day_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({
        "ts": pa.array([-1, 1_500], pa.timestamp("ns")), "at": pa.array([1, 2], pa.time64("us")), "k": ["a", "b"],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet")
    local, remote = both(spark, f"file://{tmp_path}/x.parquet", "SELECT ts, k FROM s")
    assert local == remote
    assert len(local[0]) == 2


TEXTS = {
    "epoch_s": ["0", "1.5", " 7 ", "-1.0000001", "x", "1e3", "99999999999999999999"],
    "epoch_ns": ["-1", "1999", "1.5", "x"],
    "dd/MM/yyyy HH:mm:ss": ["01/02/2026 03:04:05", "1/2/2026 03:04:05", "31/02/2026 00:00:00", " 01/02/2026 03:04:05 "],
    "%m/%d/%y %I:%M %p": ["2/1/26 12:05 am", "02/01/26 12:05 PM", "13/01/26 01:00 AM", "02/01/26 13:00 PM"],
    "yyyy-MM-dd'T'HH:mm:ss[.SSS]XXX": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.12+01:00", "2026-01-01T00:00:00"],
    "%Y%m%d%H%M%S%z": ["20260101000000+0100", "20260101000000Z", "20260101000000-01:30", "2026010100000"],
    "d MMM yyyy": ["1 feb 2026", "01 Feb 2026", "1 February 2026", "30 Feb 2026"],
}


@pytest.mark.parametrize("form", TEXTS)
def test_time_formats_are_read_alike(spark: SparkSession, tmp_path: Path, form: str) -> None:
    texts = TEXTS[form] + [t for t in odd_texts(1, 60) if "\x00" not in t and "\n" not in t]
    (tmp_path / "x.jsonl").write_text("\n".join(json.dumps({"ts": t, "i": i}) for i, t in enumerate(texts)))
    frame = spark.createDataFrame(list(enumerate(texts)), "i int, ts string")
    answers = []
    for flow, source in (
        (pk.Flow(), tmp_path / "x.jsonl"),
        (pk.Flow(spark), str(tmp_path / "x.jsonl")),
        (pk.Flow(spark), frame),
    ):
        query: Any = flow.stream(
            "s", source, time="ts", time_format=form, schema="ts timestamp, i int", progress=pk.bounded(rows=10**6)
        ).query("SELECT i, ts FROM s")
        answers.append(sorted((r["i"], r["ts"]) for r in query.collect().to_pylist()))
    assert answers[0] == answers[1]
    assert answers[0] == answers[2]
    assert answers[0]


def test_frames_whose_times_are_numbers_dates_or_without_a_zone(spark: SparkSession) -> None:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    ticks = int(noon.timestamp())
    cases: list[tuple[str, Any, str | None]] = [
        ("bigint", ticks, "epoch_s"), ("int", ticks, "epoch_s"), ("double", ticks + 0.0, "epoch_s"),
        ("decimal(20,3)", Decimal(ticks), "epoch_s"), ("bigint", ticks * 1000, "epoch_ms"),
        ("bigint", ticks * 10**9, "epoch_ns"), ("string", "2026-01-01 12:00:00", None),
        ("timestamp_ntz", noon.replace(tzinfo=None), None),
    ]  # fmt: skip
    for type_, value, form in cases:
        frame = spark.createDataFrame([(value, [1])], f"ts {type_}, x array<int>")
        query: Any = pk.Flow(spark).stream("s", frame, time="ts", time_format=form).query("SELECT ts FROM s")
        assert query.collect()["ts"].to_pylist() == [noon], type_
    frame = spark.sql("SELECT DATE'2026-01-01' AS ts, map(1, 2) AS m, CAST(NULL AS VOID) AS v")
    query = pk.Flow(spark).stream("s", frame, time="ts").query("SELECT ts, v FROM s")
    assert query.collect().to_pylist() == [{"ts": noon.replace(hour=0), "v": None}]


def test_a_table_is_read_by_its_name(spark: SparkSession) -> None:
    spark.createDataFrame([(1, "a")], "ts bigint, k string").createOrReplaceTempView("feed_table")
    query: Any = pk.Flow(spark).stream("s", "feed_table", time="ts").query("SELECT k FROM s")
    assert query.collect()["k"].to_pylist() == ["a"]
    spark.catalog.dropTempView("feed_table")


def test_files_that_cannot_be_read_are_named(spark: SparkSession, tmp_path: Path) -> None:
    whole = gzip.compress(b'{"ts": 1, "k": "a"}\n' * 20_000)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "no.parquet").write_bytes(b"PAR1 nonsense")
    (tmp_path / "twice.csv").write_text("ts,k,k\n1,a,b\n")
    for name, options in (("cut.jsonl.gz", {}), ("no.parquet", {}), ("twice.csv", {}), ("none.csv", {})):
        for flow in (pk.Flow(), pk.Flow(spark)):
            with pytest.raises(PenstockError) as caught:
                flow.stream("s", str(tmp_path / name), time="ts", **options).query("SELECT * FROM s").collect()
            assert name in caught.value.message
