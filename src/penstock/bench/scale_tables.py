"""The tables of `docs/scale.md`, computed by the model from the constants of a saved report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from penstock.bench.scale_model import Cluster, Constants, Load, estimate, sent_by, shortest

EXECUTORS = (10, 100, 1000)
RATES = (1e5, 1e6, 1e7)
KEYS = (1e3, 1e6, 1e7, 1e8, 1e9)
WORDS = {
    "task": "a task that reads nothing",
    "read_row": "a row scanned by Spark and handed to Python",
    "reduce_row": "a row judged and brought down to panes",
    "send_row": "a row judged and sent as it is",
    "make_packet": "a packet with a note, made by a task",
    "entry_bytes": "an entry, a group of a pane, as it travels",
    "row_bytes": "a row as it travels",
    "packet_bytes": "a packet with a note, besides what is in it",
    "carry_packet": "a packet with a note through the shuffle",
    "carry_byte": "a byte through the shuffle",
    "bucket": "a bucket of a stage to which hardly anything comes",
    "take_packet": "a packet with a note, taken by a bucket",
    "take_entry": "an entry put into its pane",
    "take_row": "a row put into its pane",
    "promise": "a promise of a bucket to a bucket of the next stage",
    "result_row": "a row of a result, made and written",
    "result_bytes": "a row of a result in its file",
    "state_byte": "a byte of state read or written",
    "pane_bytes": "state of a group in a pane",
    "group_bytes": "state of a group in an open window",
    "fixed": "a micro-batch in which nothing happens",
    "driver_task": "what the driver does for a task",
    "driver_bucket": "what the driver does with what a bucket tells it",
    "record_bytes": "a bucket in a record",
}
"""What each constant is of."""


def constants_in(report: Mapping[str, Any]) -> Constants:
    """The constants of a saved report."""
    return Constants(**{row["constant"]: row["value"] for row in report["rows"] if "constant" in row})


def constants_table(reports: Mapping[str, Any]) -> str:
    """Every constant in words."""
    constants = constants_in(reports["scale"])
    named = [(f.name, getattr(constants, f.name)) for f in fields(Constants)]
    shown = [(WORDS[name], _size(v) if name.endswith("_bytes") else _time(v)) for name, v in named]
    return _table(["what", "measured"], shown)


def checked_table(reports: Mapping[str, Any]) -> str:
    """The model beside what happened."""
    rows = [r for r in reports["scale"]["rows"] if "load" in r]
    return _table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])


def limits_table(reports: Mapping[str, Any]) -> str:
    """A micro-batch of ten seconds under every load on every cluster: what it takes, and what takes most of it."""
    constants = constants_in(reports["scale"])
    rows = []
    for rate in RATES:
        for keys in KEYS:
            load = Load(keys, rate)
            rows.append([_many(rate), _many(keys), *[_limit(constants, Cluster(n), load) for n in EXECUTORS]])
    return _table(["rows a second", "keys", *[f"{n} executors" for n in EXECUTORS]], rows)


def _limit(constants: Constants, cluster: Cluster, load: Load) -> str:
    found = estimate(constants, cluster, load)
    text = f"{_time(found.seconds)}, {found.limit}"
    return text if found.seconds <= load.length else f"**{text}**"


def lengths_table(reports: Mapping[str, Any]) -> str:
    """The shortest micro-batch that keeps up."""
    constants = constants_in(reports["scale"])
    rows = []
    for rate in RATES:
        for keys in KEYS:
            found = [shortest(constants, Cluster(n), Load(keys, rate)) for n in EXECUTORS]
            rows.append([_many(rate), _many(keys), *["none" if each is None else f"{each:g} s" for each in found]])
    return _table(["rows a second", "keys", *[f"{n} executors" for n in EXECUTORS]], rows)


def moved_table(reports: Mapping[str, Any]) -> str:
    """What travels and what is kept, on a hundred executors: bytes of a second, and of state."""
    constants, cluster = constants_in(reports["scale"]), Cluster(100)
    rows = []
    for rate in RATES:
        for keys in KEYS:
            load = Load(keys, rate)
            found, sent = estimate(constants, cluster, load), sent_by(load, cluster)
            moved = [found.shuffled / load.length, found.written / load.length, found.results / load.length]
            how = "entries" if sent.reduced else "rows"
            shown = [how, _size(moved[0]), _many(moved[2]), _size(found.state), _size(found.state / cluster.executors)]
            rows.append([_many(rate), _many(keys), *shown, _size(moved[1])])
    head = ["rows a second", "keys", "travel as", "shuffled", "result rows", "state", "an executor's", "checkpointed"]
    return _table(head, rows)


def pairs_table(reports: Mapping[str, Any]) -> str:
    """What tasks times buckets comes to: micro-batches of a second in which few rows come."""
    constants, load = constants_in(reports["scale"]), Load(1e6, 1e5, 1.0)
    rows = []
    for executors in EXECUTORS:
        for cluster in (Cluster(executors), Cluster(executors, buckets=64), Cluster(executors, tasks=64)):
            found = estimate(constants, cluster, load)
            two = estimate(constants, cluster, replace(load, further=1))
            per_bucket = cluster.reading * (constants.carry_packet + constants.take_packet)
            shown = [f"{cluster.reading}", f"{cluster.spread}", _many(cluster.reading * cluster.spread)]
            shown += [
                _time(per_bucket),
                _time(cluster.spread * constants.make_packet),
                _time(found.seconds),
                _time(two.seconds),
            ]
            rows.append([str(executors), *shown])
    head = ["executors", "tasks", "buckets", "pairs", "a bucket takes its own in", "a task makes its own in"]
    head += ["one stage", "two stages"]
    return _table(head, rows)


def buckets_table(reports: Mapping[str, Any]) -> str:
    """What the number of buckets does: ten million keys, a million rows a second, a hundred executors."""
    constants, load = constants_in(reports["scale"]), Load(1e7, 1e6)
    rows = []
    for buckets in (64, 200, 400, 800, 1600, 4000):
        found = estimate(constants, replace(Cluster(100), buckets=buckets), load)
        rows.append([str(buckets), _time(found.seconds), found.limit])
    return _table(["buckets", "micro-batch", "most of it"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *["| " + " | ".join(row) + " |" for row in rows]])


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Two digits, in the largest unit that it has one of."""
    value = float(f"{value:.2g}")
    size, unit = next((each for each in units if value >= each[0]), units[-1])
    return f"{float(f'{value / size:.2g}'):g} {unit}"


def _time(seconds: float) -> str:
    return _scaled(seconds, [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])


def _size(size: float) -> str:
    return _scaled(size, [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")])


def _many(count: float) -> str:
    return _scaled(count, [(1e9, "G"), (1e6, "M"), (1e3, "K"), (1, "")]).strip()
