"""What a micro-batch costs on a cluster of any size, computed from constants that were measured on one core.

The query is the one that benchmarks run: count and maximum per key over sliding windows, one stage. A micro-batch has
three steps, one after another: tasks read rows, judge them and send what they come to; buckets take what tasks sent,
and give the results of windows that have closed; the driver plans, waits, collects, and puts the record. Tasks and
buckets run in waves of as many as there are cores. Keys are uniform and none is late.

What is in it and grows faster than the work: every task sends a packet and a note to every bucket, every bucket its
promises to every bucket of the next stage, and a bucket reads and writes its groups whole, however few of them a
micro-batch touches. What is not: skewed keys, failures, stragglers,
other queries on the cluster, and how far away the checkpoint is. A network is given, not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.engines.spark.parts import PART_ROWS
from penstock.operators.aggregates.partial_forms import FEW, SAMPLE, WORTH

MOST_BUCKETS = 4096
"""As many as `start(buckets=…)` takes."""
LENGTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds of a micro-batch among which the shortest is looked for that keeps up."""


@dataclass(frozen=True)
class Constants:
    """What was measured: seconds of one core, and bytes."""

    task: float
    """A task that reads nothing."""
    read_row: float
    """A row scanned by Spark and handed to Python."""
    reduce_row: float
    """A row judged and brought down to panes."""
    send_row: float
    """A row judged and sent as it is."""
    make_packet: float
    """A packet and a note, where rows are read."""
    entry_bytes: float
    """Of a group in a pane, as it travels."""
    row_bytes: float
    """Of a row, as it travels."""
    packet_bytes: float
    """Of a packet and a note besides what is in them."""
    carry_packet: float
    """Two packets through the shuffle into a worker of the stage, one with rows and one a note."""
    carry_byte: float
    """A byte of theirs."""
    bucket: float
    """A bucket of a stage to which hardly anything comes: its task, its state store opened and committed."""
    take_packet: float
    """A packet and a note, taken by the graph of a bucket."""
    take_entry: float
    """An entry put into its pane."""
    take_row: float
    """A row put into its pane."""
    promise: float
    """What a bucket promises a bucket of the next stage, made and taken."""
    result_row: float
    """A row of a result, made and written."""
    result_bytes: float
    """Of it, in its file."""
    state_byte: float
    """A byte of state that a micro-batch reads and writes, half of it each."""
    pane_bytes: float
    """Of state, for a group in a pane."""
    group_bytes: float
    """Of state, for a group in an open window: its key and its totals."""
    fixed: float
    """A micro-batch in which nothing happens: planning, offsets, commits, the record."""
    driver_task: float
    """What the driver does for a task."""
    driver_bucket: float
    """What the driver does with what a bucket tells it, the record included."""
    record_bytes: float
    """Of a record, for a bucket."""


@dataclass(frozen=True)
class Cluster:
    """Where the query runs."""

    executors: int
    cores: int = 4
    """Of an executor: so many tasks at a time."""
    buckets: int | None = None
    """As many as tasks at a time, if it is not said."""
    tasks: int | None = None
    """That read; as many as run at a time, if it is not said."""
    hardware: int | None = None
    """Cores that there are for all executors together, where there are fewer than they have in name."""
    network: float = 1.25e9
    """Bytes a second in and out of an executor; ten gigabits."""

    @property
    def slots(self) -> int:
        """Tasks at a time."""
        return self.executors * self.cores

    @property
    def reading(self) -> int:
        """Tasks that read."""
        return self.slots if self.tasks is None else self.tasks

    @property
    def spread(self) -> int:
        """Buckets."""
        return min(self.slots, MOST_BUCKETS) if self.buckets is None else self.buckets

    def elapsed(self, tasks: int, each: float) -> float:
        """Seconds for so many tasks of so many seconds."""
        crowd = min(tasks, self.slots) / (self.hardware or self.slots)
        return math.ceil(tasks / self.slots) * each * max(1.0, crowd)


@dataclass(frozen=True)
class Load:
    """What comes, and what is asked of it."""

    keys: float
    rate: float
    """Rows a second."""
    length: float = 10.0
    """Seconds of the stream in a micro-batch."""
    range: float = 60.0
    slide: float = 10.0
    further: int = 0
    """Stages behind the first, to which hardly anything goes but what every bucket promises every bucket."""

    @property
    def rows(self) -> float:
        """In a micro-batch."""
        return self.rate * self.length

    @property
    def panes(self) -> float:
        """That a micro-batch has rows of."""
        return max(1.0, self.length / self.slide)

    @property
    def closed(self) -> float:
        """Windows that a micro-batch closes, on average."""
        return self.length / self.slide

    @property
    def pane_groups(self) -> float:
        """Groups of a pane."""
        return distinct(self.rate * self.slide, self.keys)

    @property
    def window_groups(self) -> float:
        """Groups of a window."""
        return distinct(self.rate * self.range, self.keys)


@dataclass(frozen=True)
class Sent:
    """What a task that reads sends on."""

    entries: float
    """Rows, or groups of panes."""
    reduced: bool
    packets: float
    """To different buckets, each with a note."""


@dataclass(frozen=True)
class Estimate:
    """What a micro-batch comes to."""

    parts: dict[str, float]
    """Seconds, by what they go to."""
    shuffled: float
    """Bytes from tasks to buckets."""
    state: float
    """Bytes of state on all executors."""
    written: float
    """Bytes of state that a micro-batch writes, and the checkpoint is sent."""
    results: float
    """Rows."""

    @property
    def seconds(self) -> float:
        """Of the micro-batch."""
        return sum(self.parts.values())

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max(self.parts, key=lambda part: self.parts[part])


def distinct(rows: float, keys: float) -> float:
    """How many different keys so many rows have, on average, of uniform ones."""
    return -keys * math.expm1(-rows / keys)


def sent_by(load: Load, cluster: Cluster) -> Sent:
    """What each task sends; whether rows are brought down is decided by a sample, as `partial_forms` does."""
    rows = load.rows / cluster.reading
    sample = min(rows, SAMPLE)
    reduced = rows >= FEW and distinct(sample, load.keys) <= WORTH * sample
    parts = max(1.0, rows / PART_ROWS)
    per_pane = rows / parts / load.panes
    entries = parts * load.panes * distinct(per_pane, load.keys) if reduced else rows
    return Sent(entries, reduced, parts * distinct(entries / parts, cluster.spread))


def estimate(constants: Constants, cluster: Cluster, load: Load) -> Estimate:
    """What a micro-batch of a load costs on a cluster."""
    c, sent = constants, sent_by(load, cluster)
    tasks, buckets = cluster.reading, cluster.spread
    row, each, width = (
        (c.reduce_row, c.take_entry, c.entry_bytes) if sent.reduced else (c.send_row, c.take_row, c.row_bytes)
    )
    notes = buckets * max(1.0, load.rows / tasks / PART_ROWS)
    pairs = (sent.packets + notes) / 2  # a packet and a note are measured together
    reading = c.task + load.rows / tasks * (c.read_row + row) + pairs * c.make_packet
    shuffled = tasks * (sent.entries * width + pairs * c.packet_bytes)
    state = load.window_groups * c.group_bytes + load.pane_groups * (load.range / load.slide + 1) * c.pane_bytes
    # Totals and keys are read and written whole, and so is each pane that rows come to; a window that closes reads the
    # pane that enters it and the one that leaves.
    written = load.window_groups * c.group_bytes + load.panes * load.pane_groups * c.pane_bytes
    read = written + 2 * load.closed * load.pane_groups * c.pane_bytes
    results = load.closed * load.window_groups
    taking = (
        c.bucket
        + tasks * pairs / buckets * (c.carry_packet + c.take_packet)
        + shuffled / buckets * c.carry_byte
        + tasks * sent.entries / buckets * each
    )
    on_network = shuffled * (1 - 1 / cluster.executors) / (cluster.executors * cluster.network)
    reads, takes = cluster.elapsed(tasks, reading), cluster.elapsed(buckets, taking)
    parts = {
        "reading and judging": reads,
        "network": on_network,
        "taking in": takes,
        "state": cluster.elapsed(buckets, (read + written) / buckets * c.state_byte),
        "further stages": load.further
        * cluster.elapsed(buckets, c.bucket + buckets * (c.carry_packet / 2 + c.promise)),
        "results": cluster.elapsed(buckets, results / buckets * c.result_row),
        # The driver hands out tasks while others run: only what these do not hide is added.
        "scheduling": max(0.0, tasks * c.driver_task - reads)
        + (1 + load.further) * max(0.0, buckets * c.driver_task - takes),
        "driver": c.fixed + buckets * c.driver_bucket,
    }
    return Estimate(parts, shuffled, state, written, results)


def shortest(constants: Constants, cluster: Cluster, load: Load, lengths: Iterable[float] = LENGTHS) -> float | None:
    """The shortest micro-batch, of these lengths, that takes no longer than it is long."""
    for length in sorted(lengths):
        if estimate(constants, cluster, replace(load, length=length)).seconds <= length:
            return length
    return None
