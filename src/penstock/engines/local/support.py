"""What the in-process engine supports."""

from __future__ import annotations

from penstock.engines.base import Support, no

SUPPORT: dict[str, Support] = {
    "select": Support("rows or Arrow, by the batch"),
    "project": Support("rows or Arrow, by the batch"),
    "user function": Support("called per row"),
    "explode": Support("rows repeated, rows or Arrow"),
    "union": Support("Meld"),
    "join": Support("OA-Join: sorted runs on both sides, a batch at a time; of several streams also MJoin"),
    "pattern": Support("sequences of each key in order of time, given up when the bound on the time has passed"),
    "as-of join": Support("As-of join: the latest rows of each key, in sorted runs or by key"),
    "lookup": Support("an index of the table, a batch looked up at once as arrays; no state"),
    "versioned lookup": Support("the same, with versions by start"),
    "merge": Support("R0 to R4; `pk.merge` also by hand, with inputs that attach and detach"),
    "lives": Support("beside the rows: ends and old ends as columns of int64"),
    "settle": Support("events held by slices of time until they are final"),
    "altered lifetimes": Support("stateless, rows or Arrow"),
    "newest": Support("the newest row of each key is kept"),
    "conflate": Support("an arc with an update queue: FIFO, IN-PLACE or LINECUTTING, drained by what rows cost"),
    "paced conflation": Support("keys that were served sleep until their next value is wanted"),
    "queue of all rows": Support(
        "all rows on pages, some dropped by lot; or the newest alone while the consumer is late"
    ),
    "conflated windows": Support("LAZY and EAGER, with marks for all aggregates above the queue; a query by itself"),
    "distinct": Support("DupElim, purged by punctuation"),
    "top-n": Support("rows held in pieces, windows sorted as columns when they close"),
    "row numbers": Support("numbered as rows are read"),
    "sliding window": Support("WID or panes, chosen by cost"),
    "landmark window": no("not yet: use the oracle (`penstock check`), or a sliding window"),
    "partitioned window": no("not yet: use the oracle (`penstock check`), or GROUP BY with a row window"),
    "slide-by-tuple window": no("not yet: use the oracle (`penstock check`), or a sliding window"),
    "whole groups": Support("held until a promise completes them"),
    "user aggregate": Support("panes, by lift and combine"),
    "nested aggregate": Support("one operator after the other"),
    "progress: ordered": Support("judged row by row"),
    "progress: bounded": Support("judged row by row"),
    "progress: bounded rows": Support("judged row by row"),
    "progress: punctuated": Support("judged row by row"),
    "progress: per source": Support("judged row by row"),
    "progress: estimated": Support("estimated and judged row by row"),
    "progress: timer": Support("fires before items of a source are taken, and while it has none"),
    "internal timestamps": Support("stamped as items of a source are taken, or as they are fed"),
    "latent timestamps": Support("rows pass selections, projections and unions at once"),
    "stamps": Support("rows are stamped as they come to the operator; it waits for no input"),
    "several attributes": Support("each with a tracker of its own; a row is late by any of them"),
    "late output": Support("`q.late`, each row with its bound"),
    "dead letters": Support("`q.dead_letters`, each row with its reason"),
    "snapshot and restore": Support("`run.snapshot()`, pages per operator"),
    "replace": Support("both run until the old one has said all that it had to say"),
}
