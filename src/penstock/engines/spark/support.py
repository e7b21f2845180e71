"""What the Spark engine supports, in batch and in streaming."""

from __future__ import annotations

from collections.abc import Collection

from penstock.engines.base import Support, no
from penstock.plan.nodes import Node, NumberRows, Source

_LATER = "not yet on Spark: use the oracle (`penstock check`), or a sliding window"
_UPDATES = "not yet on Spark: pk.Flow() without Spark, or declare the stream without update_key"
_WINDOWS = "not over bounded DataFrames, which give all windows: aggregate the stream, and conflate the result"
_PACED = "not yet on Spark: leave every and access out, or conflate in-process, pk.Flow() without Spark"
_ALL_ROWS = "not on Spark, where the source keeps the rows that wait: leave the queue out, or conflate in-process"

BATCH: dict[str, Support] = {
    "select": Support("native filter"),
    "project": Support("native expressions"),
    "user function": Support("Python UDF"),
    "explode": Support("native explode"),
    "union": Support("native union"),
    "join": Support("native; hosted where a condition may have no value"),
    "pattern": Support("hosted, spread by the keys; without keys in one place"),
    "as-of join": Support("hosted, spread by what is to be equal"),
    "lookup": Support("native join; hosted where a condition may have no value"),
    "versioned lookup": Support("native: a join by key and by start and end of each version"),
    "merge": Support(
        "native over plain rows; hosted where there are adjusts, a driver, an alarm that stops, or floats without a key"
    ),
    "lives": Support("hosted: ends travel beside the rows"),
    "settle": Support("hosted: events held by slices of time until they are final"),
    "altered lifetimes": Support("hosted, stateless"),
    "newest": no(_UPDATES),
    "conflate": Support("hosted, spread by the update key: the last row of each"),
    "paced conflation": no(_PACED),
    "queue of all rows": no(_ALL_ROWS),
    "conflated windows": no(_WINDOWS),
    "distinct": Support("native dropDuplicates per instant"),
    "top-n": Support("hosted, spread by what is partitioned by"),
    "row numbers": no(
        "a DataFrame has no order of arrival: in batch name a column that gives it with arrival=…, or declare one as "
        "time=… and use it as WA"
    ),
    "sliding window": Support("native panes, then windows"),
    "landmark window": no(_LATER),
    "partitioned window": no(_LATER),
    "slide-by-tuple window": no(_LATER),
    "whole groups": Support("native aggregation: over bounded input every group is complete"),
    "user aggregate": Support("hosted: the query graph per bucket of groups"),
    "nested aggregate": Support("one native aggregation after the other"),
    "progress: ordered": Support("one batch: nothing is late, unless arrival=… gives an order"),
    "progress: bounded": Support("one batch: nothing is late, unless arrival=… gives an order"),
    "progress: bounded rows": Support("one batch: nothing is late, unless arrival=… gives an order"),
    "progress: punctuated": Support("punctuation rows are left out; late only with arrival=…"),
    "progress: per source": Support("one batch: nothing is late"),
    "progress: estimated": Support("one batch: nothing is late, unless arrival=… gives an order"),
    "progress: timer": Support("one batch: nothing is late; with arrival=… refused"),
    "internal timestamps": no("rows of a bounded DataFrame do not enter at any time: spark.readStream"),
    "latent timestamps": no("rows of a bounded DataFrame do not enter at any time: spark.readStream"),
    "stamps": no("rows of a bounded DataFrame do not enter at any time: spark.readStream"),
    "several attributes": Support("hosted; one batch: nothing is late"),
    "late output": Support("`q.late`, a DataFrame"),
    "dead letters": Support("`q.dead_letters`, a DataFrame"),
    "snapshot and restore": no("a batch has no state to keep"),
    "replace": no("a batch has an end: run the other query"),
}


def batch_support(plan: Node, arrivals: Collection[str]) -> dict[str, Support]:
    """What is supported in batch where some streams, by lower-case name, have an order of arrival."""
    numbered = [n.input for n in plan.walk() if isinstance(n, NumberRows)]
    if not all(isinstance(n, Source) and n.name.lower() in arrivals for n in numbered):
        return BATCH
    return {**BATCH, "row numbers": Support("numbered in the order that arrival=… gives")}


STREAMING: dict[str, Support] = {
    **BATCH,
    "select": Support("hosted, columnar"),
    "project": Support("hosted, columnar"),
    "user function": Support("hosted, called per row"),
    "explode": Support("hosted, columnar, no state"),
    "union": Support("hosted: Meld, each stream with its own progress"),
    "join": Support("hosted: OA-Join or MJoin, spread by what is equal; rows given up as the streams' promises allow"),
    "pattern": Support("hosted, spread by the keys; without keys in one place"),
    "as-of join": Support("hosted, spread by what is to be equal; a row comes out once the other stream is past it"),
    "lookup": Support("hosted, no state: the table is collected when the query starts, and travels with the plan"),
    "versioned lookup": Support("hosted, no state, as other lookups"),
    "merge": Support("hosted: R0 to R4, each replica with its own progress"),
    "conflate": Support(
        "hosted, spread by the update key: as many rows with a micro-batch as the consumer takes, the rest in state"
    ),
    "conflated windows": Support("hosted, spread by the update key: LAZY and EAGER, windows go on over micro-batches"),
    "distinct": Support("hosted: DupElim, purged by punctuation"),
    "top-n": Support("hosted: pieces of rows in pages, windows sorted when they close"),
    "sliding window": Support("hosted: WID or panes in Spark's state store"),
    "whole groups": Support("hosted: held in Spark's state store until a promise completes them"),
    "user aggregate": Support("hosted"),
    "nested aggregate": Support("hosted, in the same stage or the next"),
    "progress: ordered": Support("exact, judged by micro-batch"),
    "progress: bounded": Support("exact, judged by micro-batch"),
    "progress: bounded rows": Support("judged by micro-batch: the newest batches with n rows are left out"),
    "progress: punctuated": Support("exact, judged by micro-batch"),
    "progress: per source": Support("exact, judged by micro-batch"),
    "progress: estimated": Support("estimated and judged by micro-batch: a row is behind what came in those before"),
    "progress: timer": Support("fires with a micro-batch, after its rows; the clock makes one where something waits"),
    "internal timestamps": Support("all rows of a micro-batch have the time that Spark's log has of it"),
    "latent timestamps": Support("as internal ones, where an operator needs a time"),
    "stamps": Support("where rows enter: a micro-batch goes from end to end at one time"),
    "several attributes": Support("exact, judged by micro-batch; bounds from outside are on the time"),
    "late output": Support("`q.late`, or late=… of `q.start`"),
    "dead letters": Support("`q.dead_letters`, or dead_letters=… of `q.start`"),
    "snapshot and restore": Support("Spark's checkpoint; kill and restart at any point"),
    "replace": no("not yet: stop it, and start the new query in a home of its own; or run it in-process"),
}
