"""What a micro-batch leaves: files of results, late rows and dead letters, and one record that names them all.

One Spark job evaluates the micro-batch. Each task keeps its rows of a kind together: a few rows go back to the driver,
which writes those of all tasks into one file; many rows are written by the task itself, to the staging folder. So the
number of files does not grow with the number of tasks when there is little to write. Then the driver puts the record,
and the micro-batch has happened; then files get their final names.

A micro-batch that Spark replays finds its record. It is evaluated again, since Spark's state needs it, and nothing is
written again. A function as a sink is called before the record is put, with the record's own number: if the driver dies
in between it is called again with the same number.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.engines.spark.streaming import rows_of
from penstock.engines.spark.wire import TAGGED, load, pack, unpack
from penstock.errors import CheckpointError
from penstock.model.schema import Schema
from penstock.storage.folders import OutputFolder, Staging
from penstock.storage.home import Home
from penstock.storage.log import DataFile, Record

KINDS = {"result": "results", "late": "late", "dead": "dead"}
"""The tag of an output, and what a record calls it."""
INLINE = 1 << 18
"""Bytes of Arrow up to which a task gives its rows to the driver."""
FILE = "file of "

FunctionSink = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Output:
    """Where one kind of output goes."""

    kind: str
    schema: Schema
    folder: OutputFolder | None = None
    function: FunctionSink | None = None


@dataclass(frozen=True)
class Stager:
    """In a task: the rows of each kind as one small table, or as a file in the staging folder."""

    folders: Mapping[str, Staging]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over tagged outputs."""
        held: dict[str, list[pa.Table]] = defaultdict(list)
        tagged: list[tuple[str, bytes]] = []
        for batch in batches:
            for kind, body in zip(batch.column("kind").to_pylist(), batch.column("body").to_pylist(), strict=True):
                if kind in self.folders:
                    held[kind].append(unpack(body))
                elif kind not in KINDS:
                    tagged.append((kind, body))
        for kind, tables in held.items():
            if sum(t.nbytes for t in tables) <= INLINE:
                tagged.append((kind, pack(pa.concat_tables(tables))))
            else:
                tagged.append((FILE + kind, json.dumps(asdict(self.folders[kind].write(tables))).encode()))
        kinds, bodies = [k for k, _ in tagged], [b for _, b in tagged]
        yield pa.RecordBatch.from_arrays(
            [pa.array(kinds, pa.string()), pa.array(bodies, pa.binary())], ["kind", "body"]
        )


class Writer:
    """Writes micro-batches; it travels to where Spark calls it."""

    def __init__(self, home: Home, outputs: Sequence[Output]) -> None:
        """The home's lease is held by whoever started the run."""
        self.home, self.outputs = home, outputs
        self._last: Record | None = None
        self._looked = False

    def last(self) -> Record | None:
        """The last record; read once, since only this writer puts others."""
        if not self._looked:
            self._last, self._looked = self.home.log.last(), True
        return self._last

    def __call__(self, tagged: DataFrame, batch: int) -> None:
        """For `foreachBatch`."""
        last = self.last()
        if last is not None and batch == last.batch:
            tagged.write.format("noop").mode("overwrite").save()
            return
        expected = 0 if last is None else last.batch + 1
        if batch != expected:
            raise CheckpointError(
                "The checkpoint and the log of this query are not of the same moment.",
                where=str(self.home.place),
                got=f"Spark begins micro-batch {batch}, the log expects {expected}",
                hint="one of them was deleted or restored from a copy; restore the other as well, or start over with "
                "another flow path and another folder",
            )
        functions = [o for o in self.outputs if o.function is not None]
        if not functions:
            self._write(tagged, batch, [])
            return
        kept = tagged.persist()
        try:
            self._write(kept, batch, functions)
        finally:
            kept.unpersist()

    def _write(self, tagged: DataFrame, batch: int, functions: Sequence[Output]) -> None:
        last = self.last()
        number = 0 if last is None else last.number + 1
        notes, files = self._stage(tagged)
        for output in functions:
            assert output.function is not None
            if not tagged.filter(F.col("kind") == output.kind).isEmpty():
                output.function(rows_of(tagged, output.kind, output.schema), number)
        record = self._record(number, batch, notes, files)
        self.home.put(record)
        self._last = record
        self.publish(record)

    def _stage(self, tagged: DataFrame) -> tuple[list[tuple[str, Any]], dict[str, list[DataFile]]]:
        """Evaluate the micro-batch: notes, and the files that were written."""
        folders = {o.kind: o.folder for o in self.outputs if o.folder is not None}
        stager = Stager({kind: folder.staging for kind, folder in folders.items()})

        def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from stager(batches)

        table = tagged.mapInArrow(apply, TAGGED).toArrow()
        notes: list[tuple[str, Any]] = []
        small: dict[str, list[pa.Table]] = defaultdict(list)
        files: dict[str, list[DataFile]] = defaultdict(list)
        for kind, body in zip(table.column("kind").to_pylist(), table.column("body").to_pylist(), strict=True):
            if kind in folders:
                small[kind].append(unpack(body))
            elif kind.startswith(FILE):
                files[kind.removeprefix(FILE)].append(DataFile(**json.loads(body)))
            else:
                notes.append((kind, load(body)))
        for kind, tables in small.items():
            files[kind].append(folders[kind].staging.write(tables))
        return notes, files

    def _record(
        self, number: int, batch: int, notes: Sequence[tuple[str, Any]], files: Mapping[str, Sequence[DataFile]]
    ) -> Record:
        last = self.last()
        counts: Counter[str] = Counter()
        for kind, value in notes:
            if kind == "counts":
                counts.update(value)
        # Every bucket has seen the same progress; one that had nothing new to say says nothing.
        bounds = [value for kind, value in notes if kind == "punctuation"]
        if last is not None and last.frontier is not None:
            bounds.append(last.frontier)
        totals = Counter(last.totals if last is not None else {})
        totals.update(counts)
        greatest = dict(last.greatest) if last is not None else {}
        starts = [f.greatest for f in files.get("result", ()) if f.greatest is not None]
        if starts:
            greatest[""] = max([*starts, greatest.get("", starts[0])])
        named = {
            KINDS[o.kind]: o.folder.named(number, files[o.kind])
            for o in self.outputs
            if o.folder is not None and files.get(o.kind)
        }
        return Record(
            self.home.run,
            number,
            batch,
            files=named,
            frontier=max(bounds, default=None),
            counts=dict(counts),
            totals=dict(totals),
            greatest=greatest,
            positions=self._positions(batch),
            state={
                "shown": self._shown(number, named, last, max(bounds, default=None)),
                "places": {KINDS[o.kind]: o.folder.place.uri for o in self.outputs if o.folder is not None},
            },
            at=time.time(),
        )

    def _positions(self, batch: int) -> list[str] | None:
        """Where Spark will read on after this micro-batch, as its checkpoint has it."""
        try:
            return (self.home.place / "checkpoint" / "offsets" / str(batch)).read().decode().splitlines()
        except FileNotFoundError:
            return None

    def _shown(
        self, number: int, files: Mapping[str, Any], last: Record | None, frontier: int | None
    ) -> dict[str, int | None]:
        """Per output the last number that its folder is told of: with rows or, for results, a new frontier."""
        before = shown_after(last)
        moved = frontier is not None and (last is None or frontier != last.frontier)
        names = {KINDS[o.kind] for o in self.outputs if o.folder is not None}
        return {n: number if n in files or (n == "results" and moved) else before.get(n) for n in names}

    def publish(self, record: Record) -> None:
        """Move the files of a record to their names and tell the folders' readers; again does no harm."""
        for output in self.outputs:
            name = KINDS[output.kind]
            if output.folder is not None and shown_after(record).get(name) == record.number:
                frontier = record.frontier if name == "results" else None
                output.folder.publish(record.number, record.files.get(name, ()), frontier, record.at)

    def repair(self) -> None:
        """Before anything is written: finish what the last driver had begun, and see that all is as it was left."""
        last = self.last()
        for output in self.outputs:
            if output.folder is not None:
                files = last.files.get(KINDS[output.kind], ()) if last is not None else ()
                output.folder.tidy(-1 if last is None else last.number, files)
        if last is not None:
            self.publish(last)
        for output in self.outputs:
            if output.folder is not None and output.kind == "result" and not _is_new(output.folder, last):
                output.folder.check(shown_after(last).get("results"))


def _is_new(folder: OutputFolder, last: Record | None) -> bool:
    """Whether results go to another folder from now on, which is empty."""
    places = last.state.get("places", {}) if last is not None and isinstance(last.state, dict) else {}
    return places.get("results") != folder.place.uri and folder.log.written < 0


def shown_after(record: Record | None) -> dict[str, int | None]:
    """Per output the last number that was published in its folder."""
    if record is None or not isinstance(record.state, dict):
        return {}
    found: dict[str, int | None] = record.state.get("shown", {})
    return found
