"""Buckets: as many as cores, remembered, and one to each of Spark's partitions, whatever the session says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from penstock.engines.spark.buckets import MOST, bucket_ids, checked_buckets, cores, default_buckets, spark_hash
from penstock.errors import CheckpointError, StreamError
from tests.spark import scenario
from tests.spark.modes import session_beside

LARGEST = 64
SIZES = (2, 4, 7, 16, 200)


def test_ids_are_few_and_distinct() -> None:
    for buckets in range(1, LARGEST + 1):
        ids = bucket_ids(buckets)
        assert len(set(ids)) == buckets
        assert all(0 <= i < 100 * buckets for i in ids)
    assert bucket_ids(2) != (0, 1), "which Spark puts into one partition"


@pytest.mark.parametrize("asked", [0, -1, 5000, 2.0, True, "4"])
def test_a_number_of_buckets_is_checked(asked: object) -> None:
    with pytest.raises(StreamError, match="Not a number of buckets"):
        checked_buckets(asked)


@pytest.mark.parametrize("buckets", SIZES)
def test_every_partition_has_one_bucket(buckets: int) -> None:
    assert [spark_hash(id_) % buckets for id_ in bucket_ids(buckets)] == list(range(buckets))
    plain = Counter(spark_hash(id_) % buckets for id_ in range(buckets))
    assert len(plain) < buckets, "numbered plainly, some would have none, and others several"


@pytest.mark.spark
@pytest.mark.parametrize("buckets", [2, 7, 200])
def test_spark_fills_its_partitions_evenly(buckets: int, spark: Any) -> None:
    """As rows are shuffled, many of each bucket."""
    ids = [(id_,) for id_ in bucket_ids(buckets) for _ in range(3)]
    placed = spark.createDataFrame(ids, "bucket bigint").repartition(buckets, "bucket")
    found = placed.groupBy(F.spark_partition_id().alias("part")).count().collect()
    assert {row.part: row["count"] for row in found} == dict.fromkeys(range(buckets), 3)


@pytest.mark.spark
def test_spark_puts_one_bucket_into_each_partition(spark: Any) -> None:
    """With Spark's own hash, for 1 to 64 partitions, and for 200."""
    rows = [(n, i, b) for n in (*range(1, LARGEST + 1), *SIZES) for i, b in enumerate(bucket_ids(n))]
    frame = spark.createDataFrame(rows, "n int, i int, id bigint")
    placed = frame.filter(F.pmod(F.hash("id"), F.col("n")) != F.col("i"))
    assert placed.collect() == []


@pytest.mark.spark
def test_the_hash_is_sparks(spark: Any) -> None:
    values = [0, 1, -1, 2**31, -(2**31), 2**63 - 1, -(2**63), *(7**i * (-1) ** i for i in range(22))]
    found = spark.createDataFrame([(v,) for v in values], "v bigint").select("v", F.hash("v").alias("h")).collect()
    assert {row.v: row.h for row in found} == {v: spark_hash(v) for v in values}


@pytest.mark.spark
def test_there_are_as_many_as_cores(spark: Any) -> None:
    parts = spark.range(4096).select(F.spark_partition_id().alias("p")).distinct().count()
    assert cores(spark) == parts
    assert default_buckets(spark) == min(parts, MOST)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_number_is_remembered_and_not_the_sessions(spark: Any, tmp_path: Path) -> None:
    session = session_beside(spark)
    session.conf.set("spark.sql.shuffle.partitions", "200")
    half = scenario.FILES // 2
    scenario.write_files(tmp_path / "in", range(half))
    first = scenario.start(session, tmp_path, buckets=3)
    first.process_available()
    first.stop()
    assert session.conf.get("spark.sql.shuffle.partitions") == "200"
    assert state_partitions(tmp_path) == {3}
    assert first.query.explain().startswith("judged where rows are read, then hosted in one stage of 3 buckets\n")

    session.conf.set("spark.sql.shuffle.partitions", "7")
    with pytest.raises(CheckpointError, match="another number of buckets"):
        scenario.start(session, tmp_path, buckets=4)
    scenario.write_files(tmp_path / "in", range(half, scenario.FILES))
    scenario.start(session, tmp_path).finish()
    assert state_partitions(tmp_path) == {3}
    assert scenario.output(tmp_path) == scenario.expected()


def state_partitions(home: Path) -> set[int]:
    """With how many partitions Spark has run each micro-batch; every one of them has a state of its own."""
    checkpoint = home / "flow" / "talkers" / "checkpoint"
    offsets = [f.read_text().splitlines()[1] for f in (checkpoint / "offsets").glob("[0-9]*")]
    said = {int(json.loads(line)["conf"]["spark.sql.shuffle.partitions"]) for line in offsets}
    kept = {int(folder.name) for folder in (checkpoint / "state" / "0").glob("[0-9]*")}
    assert said == {len(kept)}
    return said
