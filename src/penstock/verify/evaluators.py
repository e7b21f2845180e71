"""A query and its arrivals given to each evaluator, and what it came to in the form in which they are compared.

In-process, batches come as rows and as Arrow tables in turn, so that both forms take part; in Spark streaming one batch
of the input is one micro-batch, and a file of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.local.execution import LocalExecution
from penstock.flow.flow import Flow
from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.causal_order import in_order_of_causes
from penstock.model.changelog import ResultForm
from penstock.model.conform import DeadLetter, row_json
from penstock.model.elements import Adjust, Insert
from penstock.model.lived_rows import LivedRows
from penstock.model.schema import Schema
from penstock.model.tdb import TDB, Event, tdb
from penstock.model.time import END_OF_TIME
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Node, Source
from penstock.reference.arrivals import Arrivals, in_step
from penstock.reference.evaluation import Outcome, outcome
from penstock.sql.binder import bind
from penstock.verify.verdicts import Failed, Findings, failed


@dataclass(frozen=True)
class Trial:
    """A query, bound, with the arrivals of the streams that it reads."""

    sql: str
    plan: Node
    streams: tuple[Arrivals, ...]
    catalog: Catalog
    merges: Mapping[str, Sequence[str]]
    """Streams that are merged of others."""

    @staticmethod
    def of(
        sql: str, streams: Sequence[Arrivals], catalog: Catalog, merges: Mapping[str, Sequence[str]] | None = None
    ) -> Trial:
        """Bind the query; streams that it does not read are left alone."""
        flow = _flow(Flow(), catalog, {s.name: (s, []) for s in streams}, merges or {})
        plan = bind(sql, flow.catalog)
        names = {n.name for n in plan.walk() if isinstance(n, Source)}
        read = tuple(_in_its_types(s) for s in streams if s.name in names)
        return Trial(sql, plan, read, flow.catalog, merges or {})

    def oracle(self, data: Mapping[str, Sequence[tuple[Row, bool]]]) -> Outcome:
        """What comes of the data, of which each row is late or not."""
        order, late = in_step(self.streams, data)
        by_name = {s.name: s for s in self.streams}
        return outcome(
            self.plan,
            [(name, by_name[name].element(row)) for name, row in order],
            late=late,
            functions={name: f.function for name, f in self.catalog.functions.items()},
            aggregates={name: a for name, (a, _) in self.catalog.aggregates.items()},
        )


def _in_its_types(stream: Arrivals) -> Arrivals:
    """Values as the columns hold them, so that no evaluator sees 1.5 where a decimal(8,2) holds 1.50."""
    batches = tuple(tuple(rows_of(table_of(stream.schema, batch))) for batch in stream.batches)
    return replace(stream, batches=batches)


def _flow(
    flow: Flow, catalog: Catalog, sources: Mapping[str, tuple[Arrivals, Any]], merges: Mapping[str, Sequence[str]]
) -> Flow:
    flow.catalog.functions.update(catalog.functions)
    flow.catalog.aggregates.update(catalog.aggregates)
    for table in catalog.tables.values():
        ddl, start, end = table.schema.ddl, table.valid_from, table.valid_to
        flow.table(table.name, table.rows, key=table.key, valid_from=start, valid_to=end, schema=ddl)
    for name, (stream, source) in sources.items():
        declared = stream.schema.ddl if isinstance(source, list) else None
        lives = False if stream.lives is None else stream.lives
        flow.stream(name, source, time=str(stream.schema.time), progress=stream.progress, schema=declared, lives=lives)
    for name, replicas in merges.items():
        if all(replica in sources for replica in replicas):  # streams that the query does not read are left alone
            flow.merge(name, replicas)
    return flow


def run_local(trial: Trial) -> Findings:
    """In-process, batches in step."""
    execution = LocalExecution(trial.plan, trial.catalog)
    events: list[Insert | Adjust] = []

    def take(items: Sequence[object]) -> None:
        for item in items:
            if isinstance(item, Batch):
                events.extend(item.elements())

    for step in range(max((len(s.batches) for s in trial.streams), default=0)):
        for stream in trial.streams:
            if step >= len(stream.batches):
                continue
            rows = stream.timed[step]
            for row in stream.batches[step]:
                if row[stream.schema.time_index] is None and not stream.schema.attributes:
                    letter = DeadLetter(f"{stream.schema.time} is null", row_json(stream.schema, row))
                    take(execution.feed(stream.name, letter))
            take(execution.feed(stream.name, _batch(trial, stream, rows, as_rows=step % 2 == 0)))
    take(execution.close())
    return Findings(tdb(events), _late_table(execution.late()), *_letters(execution.dead_letters()))


def _batch(trial: Trial, stream: Arrivals, rows: Sequence[Row], *, as_rows: bool) -> Batch:
    batch = Batch(stream.schema, rows) if as_rows else Batch(stream.schema, table=table_of(stream.schema, rows))
    if stream.lives is None:
        return batch
    payload = next(n.schema for n in trial.plan.walk() if isinstance(n, Source) and n.name == stream.name)
    made, dead = LivedRows.declared(stream.lives, str(stream.schema.time)).split(batch, payload)
    assert not dead, "the arrivals of a stream with lives are elements"
    return Batch(payload, made.rows, lives=made.lives) if as_rows else made


def _late_table(table: pa.Table) -> TDB:
    """Late rows as the engines put them out: stream, bound, row as JSON."""
    return TDB(
        ((stream, row, bound), 0, 1) if isinstance(bound, str) else ((stream, row), _tick(bound), _tick(bound) + 1)
        for stream, bound, row in rows_of(table)
    )


def write_batches(folder: str, streams: Sequence[Arrivals]) -> None:
    """One parquet file per batch; a file source takes the oldest first, so each is a second younger than the last."""
    for stream in streams:
        home = Path(folder, "in", stream.name)
        home.mkdir(parents=True)
        for step, batch in enumerate(stream.batches):
            file = home / f"{step:06d}.parquet"
            pq.write_table(table_of(stream.schema, batch), file)
            os.utime(file, (1_000_000_000 + step, 1_000_000_000 + step))


def run_spark_batch(trial: Trial, spark: Any, folder: str) -> Findings:
    """In one go, over all files that `write_batches` wrote."""
    frames = {s.name: (s, spark.read.schema(s.schema.ddl).parquet(f"{folder}/in/{s.name}")) for s in trial.streams}
    query = _flow(Flow(spark), trial.catalog, frames, trial.merges).query(trial.sql)
    result = tdb_of_table(query.collect(), query.form)
    return Findings(result, _late_table(query.late.toArrow()), *_letters(query.dead_letters.toArrow()))


def run_spark_streaming(trial: Trial, spark: Any, folder: str) -> Findings:
    """A micro-batch per file, to the end; then what the folders hold."""

    def read(stream: Arrivals) -> Any:
        reader = spark.readStream.schema(stream.schema.ddl).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{folder}/in/{stream.name}")

    frames = {s.name: (s, read(s)) for s in trial.streams}
    flow = _flow(Flow(spark, path=f"{folder}/flow"), trial.catalog, frames, trial.merges)
    query = flow.query(trial.sql, name=Path(folder).name.replace("-", "_"))
    out, late, dead = (f"{folder}/{name}" for name in ("out", "late", "dead"))
    run = query.start(out, late=late, dead_letters=dead)
    try:
        run.finish()
    finally:
        run.stop()

    def written(path: str) -> pa.Table | None:
        return spark.read.parquet(path).toArrow() if Path(path).exists() else None

    result, late_rows, dead_rows = written(out), written(late), written(dead)
    return Findings(
        TDB() if result is None else tdb_of_table(result, query.form),
        TDB() if late_rows is None else _late_table(late_rows),
        *_letters(dead_rows),
    )


def _letters(table: pa.Table | None) -> tuple[int, Counter[Failed]]:
    """How many rows died at the entrance, and what died in operators."""
    rows = [] if table is None else table.to_pylist()
    buried = Counter(failed(r["operator"], r["reason"], r["row"]) for r in rows if r["operator"] is not None)
    return len(rows) - buried.total(), buried


def observable(result: TDB, schema: Schema) -> TDB:
    """What can be told of a result from its visible columns alone.

    Where the time column is hidden a table does not say when a row is valid, only which rows there are: every event
    is then moved to [0, 1).
    """
    if schema.lives is not None or not schema[schema.time].hidden:
        return result
    rows: Counter[Event] = Counter()
    for (payload, _, _), count in result.items():
        rows[payload, 0, 1] += count
    return TDB(rows)


def tdb_of_table(table: pa.Table, form: ResultForm) -> TDB:
    """The TDB of a result table, as far as it is `observable`."""
    schema = form.result
    if schema.lives is not None:
        # A folder has no order: inserts go before what revises them, and chains in theirs.
        return tdb(in_order_of_causes(form.elements(table)))
    rows = rows_of(table.select([f.name for f in schema.visible]).cast(schema.visible_arrow))
    if schema[schema.time].hidden:
        return TDB((row, 0, 1) for row in rows)
    time = [f.name for f in schema.visible].index(schema[schema.time].name)
    return tdb(Insert(row, _tick(row[time]), _tick(row[time]) + schema.lifetime) for row in rows)


def _tick(value: object) -> int:
    if value is None:  # it came after the end
        return END_OF_TIME
    assert isinstance(value, int), f"expected ticks, got {value!r}"
    return value
