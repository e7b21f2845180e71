"""How many buckets the state of a hosted plan has, and which ids they go by.

A bucket is one key of Spark's stateful operator. The number is Penstock's own: as many as there are cores when a query
first starts, whatever `spark.sql.shuffle.partitions` says, and remembered beside the checkpoint, since state lives
where it was put. The stateful operator runs with as many shuffle partitions as there are buckets.

Spark puts a key into partition `pmod(murmur3(key), partitions)`, and small numbers collide: the keys 0 and 1 both fall
into the second of two partitions, and the other core has nothing to do. So the id of bucket i is the least number that
Spark's hash puts into partition i: each partition gets exactly one bucket. Ids depend on the number of buckets alone.
Finding them takes about n ln n hashes, once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkAttributeError
from pyspark.sql import functions as F

from penstock.errors import StreamError

MOST = 64
"""As many as are chosen by default; every part of a micro-batch sends a note to every bucket."""
UNREMEMBERED = 8
"""For a streaming DataFrame that its user writes: nothing of ours remembers a number, so it is always the same."""
_MASK = 0xFFFFFFFF
_CORES: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


@lru_cache(maxsize=128)
def bucket_ids(buckets: int) -> tuple[int, ...]:
    """The id of each bucket, such that Spark's hash puts bucket i into partition i of as many."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < buckets:
        found.setdefault(spark_hash(candidate) % buckets, candidate)
        candidate += 1
    return tuple(found[i] for i in range(buckets))


def spark_hash(value: int, seed: int = 42) -> int:
    """Spark's hash of a bigint: Murmur3 of its two halves, as a signed number of 32 bits."""
    mixed = seed
    for word in (value & _MASK, (value >> 32) & _MASK):
        scrambled = _rotated(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
        mixed = (_rotated(mixed ^ scrambled, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 8  # the length in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK


def checked_buckets(buckets: object) -> int:
    """A number of buckets that somebody asked for."""
    if not isinstance(buckets, int) or isinstance(buckets, bool) or not 1 <= buckets <= 4096:
        raise StreamError(
            "Not a number of buckets.", got=repr(buckets), hint="a whole number from 1 to 4096, as many as cores"
        )
    return buckets


def default_buckets(spark: Any) -> int:
    """One bucket per core that Spark has now."""
    return max(1, min(cores(spark), MOST))


def cores(spark: Any) -> int:
    """How many tasks run at a time; through Spark Connect, into how many parts Spark cuts a range by default."""
    known = _CORES.get(spark)
    if known is None:
        try:
            known = int(spark.sparkContext.defaultParallelism)
        except PySparkAttributeError:
            known = _parts_of_a_range(spark)
        _CORES[spark] = known
    return known


def _parts_of_a_range(spark: Any) -> int:
    return int(spark.range(4096).select(F.spark_partition_id().alias("part")).distinct().count())
