"""Whether the evaluators of a query agree with the oracle on given input: what `penstock check` shows.

Every evaluator is compared with the oracle over the rows that are on time *for it*, since what is late depends on the
order that an evaluator sees:

- in-process, a row is judged by the rows before it;
- in Spark streaming, by the micro-batches before its own, one batch of the input being one micro-batch;
- in Spark batch, nothing is late: a DataFrame has no order of arrival.

Late rows are compared too, with the bound that condemned them, and the number of dead letters. One exception:
`bounded(rows=n)` by micro-batch leaves out whole batches, which the oracle's own judgement does not; there the result
is compared with the oracle over the rows that the engine found on time.

A row for which an operator finds no value (overflow, division by zero, a user function that raises) is a dead letter of
that operator, and all evaluators must agree on these as well: on the operator, the kind of reason and the row.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.local.execution import LocalExecution
from penstock.errors import StreamError, UnsupportedError
from penstock.flow.flow import Flow
from penstock.flow.spark import SparkQuery
from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.conform import DeadLetter, row_json
from penstock.model.elements import Insert
from penstock.model.progress import Bounded
from penstock.model.schema import Schema
from penstock.model.tdb import TDB, Event, tdb
from penstock.query.binder import bind
from penstock.query.catalog import Catalog
from penstock.query.nodes import Node, Source
from penstock.reference.arrivals import Arrivals, in_step
from penstock.reference.evaluation import Outcome, outcome

Evaluator = Literal["reference", "local", "spark batch", "spark streaming"]
EVALUATORS: tuple[Evaluator, ...] = ("reference", "local", "spark batch", "spark streaming")


Failed = tuple[str, str, str]
"""The operator, the kind of reason, and the row."""


def failed(operator: str, reason: str, row: str) -> Failed:
    """Of the reason only what comes before the values, which engines may write differently."""
    return operator, reason.split(":", maxsplit=1)[0], row


@dataclass(frozen=True)
class Findings:
    """What an evaluator came to."""

    result: TDB
    late: TDB
    """The late rows: payload (stream, row as JSON), valid for one tick from the bound that condemned them."""
    dead: int
    """How many rows could not be used: those without a time, and punctuation that went backwards or is ambiguous."""
    failed: Counter[Failed] = field(default_factory=Counter)
    """What operators found no value for."""


@dataclass(frozen=True)
class Verdict:
    """One evaluator beside the oracle."""

    evaluator: Evaluator
    got: Findings | None
    """None where it raised."""
    expected: Findings | None
    """What the oracle says of the same rows on time; None where it raises, or where there is nothing to compare."""
    error: str = ""
    """What the evaluator raised."""
    is_supported: bool = True

    @property
    def agrees(self) -> bool:
        """Whether the evaluator did what the oracle says; one that does not support the query does nothing wrong."""
        if not self.is_supported or (self.got is None and self.expected is None):
            return True
        return self.got is not None and self.expected is not None and self.got == self.expected

    def render(self) -> str:
        """A line if it agrees, else what differs."""
        if not self.is_supported:
            return f"{self.evaluator}: not supported\n{_indented(self.error)}"
        if self.got is None:
            says = "raised, as the oracle did" if self.expected is None else "raised, and the oracle did not"
            return f"{self.evaluator}: {says}\n{_indented(self.error)}"
        if self.expected is None:
            return f"{self.evaluator}: did not raise, and the oracle did"
        dead = self.got.dead + self.got.failed.total()
        counts = f"{self.got.result.size} rows, {self.got.late.size} late, {dead} dead"
        if self.agrees:
            return f"{self.evaluator}: agrees ({counts})"
        lines = [f"{self.evaluator}: differs ({counts})"]
        for title, expected, got in (
            ("result", self.expected.result, self.got.result),
            ("late rows", self.expected.late, self.got.late),
        ):
            difference = expected.difference(got)
            if difference:
                lines += [f"  {title}", _indented(difference.render("the oracle", self.evaluator), 4)]
        if self.got.dead != self.expected.dead:
            lines.append(f"  dead letters: {self.expected.dead} by the oracle, {self.got.dead} by {self.evaluator}")
        for who, more, less in (
            ("the oracle", self.expected.failed, self.got.failed),
            (self.evaluator, self.got.failed, self.expected.failed),
        ):
            lines += [
                f"  dead by {who} only: {row} ({reason}, {where})" for where, reason, row in (more - less).elements()
            ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Agreement:
    """The verdicts of all evaluators that were asked."""

    sql: str
    plan: Node
    verdicts: tuple[Verdict, ...] = field(default=())

    @property
    def agrees(self) -> bool:
        """Whether every evaluator agrees with the oracle."""
        return all(v.agrees for v in self.verdicts)

    def __getitem__(self, evaluator: Evaluator) -> Verdict:
        """The verdict on one evaluator."""
        return next(v for v in self.verdicts if v.evaluator == evaluator)

    def render(self) -> str:
        """All verdicts, for a person."""
        return "\n".join(v.render() for v in self.verdicts)


def agreement(
    sql: str,
    streams: Sequence[Arrivals],
    catalog: Catalog | None = None,
    evaluators: Collection[Evaluator] = EVALUATORS,
    spark: Any = None,
) -> Agreement:
    """Run a query with several evaluators over the same arrivals.

    Args:
        sql: The query.
        streams: The streams as they arrive; those that the query does not read are left alone.
        catalog: Where user functions and user aggregates are taken from.
        evaluators: Whom to ask.
        spark: A session, if Spark is asked; a local one is started if there is none.

    Returns:
        What each came to, and how that differs from the oracle.
    """
    unknown = set(evaluators) - set(EVALUATORS)
    if unknown:
        raise StreamError("Not an evaluator.", got=", ".join(sorted(unknown)), hint=f"use {', '.join(EVALUATORS)}")
    if spark is None and any(e.startswith("spark") for e in evaluators):
        from penstock.engines.spark.session import local_session

        spark = local_session()
    trial = _Trial.of(sql, streams, catalog or Catalog())
    with tempfile.TemporaryDirectory(prefix="penstock-check-") as folder:
        if spark is not None:
            _write_batches(folder, trial.streams)
        verdicts = [_verdict(trial, e, _runner(trial, e, spark, folder)) for e in EVALUATORS if e in evaluators]
    return Agreement(sql, trial.plan, tuple(verdicts))


def observable(result: TDB, schema: Schema) -> TDB:
    """What can be told of a result from its visible columns alone.

    Where the time column is hidden a table does not say when a row is valid, only which rows there are: every event
    is then moved to [0, 1).
    """
    if not schema[schema.time].hidden:
        return result
    rows: Counter[Event] = Counter()
    for (payload, _, _), count in result.items():
        rows[payload, 0, 1] += count
    return TDB(rows)


def tdb_of_table(table: pa.Table, schema: Schema) -> TDB:
    """The TDB of a result table of visible columns, as far as it is `observable`."""
    rows = rows_of(table.select([f.name for f in schema.visible]).cast(schema.visible_arrow))
    if schema[schema.time].hidden:
        return TDB((row, 0, 1) for row in rows)
    time = [f.name for f in schema.visible].index(schema[schema.time].name)
    return tdb(Insert(row, _tick(row[time]), _tick(row[time]) + schema.lifetime) for row in rows)


@dataclass(frozen=True)
class _Trial:
    """A query, bound, with the arrivals of the streams that it reads."""

    sql: str
    plan: Node
    streams: tuple[Arrivals, ...]
    catalog: Catalog

    @staticmethod
    def of(sql: str, streams: Sequence[Arrivals], catalog: Catalog) -> _Trial:
        flow = _flow(Flow(), catalog, {s.name: (s, []) for s in streams})
        plan = bind(sql, flow.catalog)
        names = {n.name for n in plan.walk() if isinstance(n, Source)}
        read = tuple(_in_its_types(s) for s in streams if s.name in names)
        return _Trial(sql, plan, read, flow.catalog)

    def oracle(self, data: Mapping[str, Sequence[tuple[Row, bool]]]) -> Outcome:
        """What comes of the data, of which each row is late or not."""
        order, late = in_step(self.streams, data)
        return outcome(
            self.plan,
            order,
            late=late,
            functions={name: f.function for name, f in self.catalog.functions.items()},
            aggregates={name: a for name, (a, _) in self.catalog.aggregates.items()},
        )


def _in_its_types(stream: Arrivals) -> Arrivals:
    """Values as the columns hold them, so that no evaluator sees 1.5 where a decimal(8,2) holds 1.50."""
    batches = tuple(tuple(rows_of(table_of(stream.schema, batch))) for batch in stream.batches)
    return replace(stream, batches=batches)


def _flow(flow: Flow, catalog: Catalog, sources: Mapping[str, tuple[Arrivals, Any]]) -> Flow:
    flow.catalog.functions.update(catalog.functions)
    flow.catalog.aggregates.update(catalog.aggregates)
    for name, (stream, source) in sources.items():
        ddl = stream.schema.ddl if isinstance(source, list) else None
        flow.stream(name, source, time=str(stream.schema.time), progress=stream.progress, schema=ddl)
    return flow


# What the oracle says


def _verdict(trial: _Trial, evaluator: Evaluator, run: Callable[[], Findings]) -> Verdict:
    got, error = None, ""
    try:
        got = run()
    except UnsupportedError as refusal:
        return Verdict(evaluator, None, None, str(refusal), is_supported=False)
    except Exception as raised:  # whatever a user function or Spark raises is a finding
        error = _summary(raised)
    try:
        expected = _expected(trial, evaluator, got)
    except Exception as raised:  # no value under ANSI rules, or a user function that raises
        return Verdict(evaluator, got, None, error or _summary(raised))
    return Verdict(evaluator, got, expected, error)


def _expected(trial: _Trial, evaluator: Evaluator, got: Findings | None) -> Findings:
    data: dict[str, Sequence[tuple[Row, bool]]] = {}
    late: Counter[Event] = Counter()
    dead = 0
    judged_by_time = {n.name for n in trial.plan.walk() if isinstance(n, Source) and not n.by_arrival}
    for stream in trial.streams:
        dead += stream.untimed
        if evaluator == "spark batch":
            data[stream.name] = [(row, False) for row in stream.data(trial.catalog)]
            dead += stream.unjudged(trial.catalog)
            continue
        by_batch = evaluator == "spark streaming"
        judged = stream.judge("batch" if by_batch else "row", trial.catalog)
        dead += len(judged.backwards) + len(judged.ambiguous) + len(judged.ahead) + len(judged.unjudged)
        if by_batch and isinstance(stream.progress, Bounded) and stream.progress.rows is not None:
            found = _late_of(stream.name, got.late if got is not None else TDB())
            data[stream.name] = [(row, False) for row in _without(stream, stream.data(trial.catalog), found)]
            late += found
        else:
            data[stream.name] = judged.data
            if stream.name not in judged_by_time:
                continue
            late += Counter(_late_event(stream, row, bound) for row, bound in judged.late)
    came = trial.oracle(data)
    on_spark = evaluator in ("spark batch", "spark streaming")
    result = observable(came.result, trial.plan.schema) if on_spark else came.result
    buried: Counter[Failed] = Counter()
    for letter, times in came.dead.items():
        buried[failed(letter.operator, letter.reason, letter.row)] += times
    return Findings(result, TDB(late), dead, buried)


def _letters(table: pa.Table | None) -> tuple[int, Counter[Failed]]:
    """How many rows died at the entrance, and what died in operators."""
    rows = [] if table is None else table.to_pylist()
    buried = Counter(failed(r["operator"], r["reason"], r["row"]) for r in rows if r["operator"] is not None)
    return len(rows) - buried.total(), buried


def _late_event(stream: Arrivals, row: Row, bound: int) -> Event:
    return (stream.name, row_json(stream.schema, row)), bound, bound + 1


def _late_of(name: str, late: TDB) -> Counter[Event]:
    return Counter({event: count for event, count in late.items() if event[0][0] == name})


def _without(stream: Arrivals, rows: Sequence[Row], late: Counter[Event]) -> list[Row]:
    """The rows that are left when late ones, which are known by their text, are taken out."""
    texts: Counter[object] = Counter()
    for (payload, _, _), count in late.items():
        texts[payload[1]] += count
    kept = []
    for row in reversed(rows):  # of equal rows the last ones are the late ones
        text = row_json(stream.schema, row)
        if texts[text]:
            texts[text] -= 1
        else:
            kept.append(row)
    return kept[::-1]


# What the evaluators say


def _runner(trial: _Trial, evaluator: Evaluator, spark: Any, folder: str) -> Callable[[], Findings]:
    match evaluator:
        case "reference":
            return lambda: _expected(trial, "reference", None)
        case "local":
            return lambda: _local(trial)
        case "spark batch":
            return lambda: _spark_batch(trial, spark, folder)
        case "spark streaming":
            return lambda: _spark_streaming(trial, spark, folder)


def _local(trial: _Trial) -> Findings:
    """Batches come in step, as rows and as Arrow tables in turn, so that both forms take part."""
    execution = LocalExecution(trial.plan, trial.catalog)
    events: list[Insert] = []

    def take(items: Sequence[object]) -> None:
        for item in items:
            if isinstance(item, Batch):
                events.extend(item.inserts())

    for step in range(max((len(s.batches) for s in trial.streams), default=0)):
        for stream in trial.streams:
            if step >= len(stream.batches):
                continue
            rows = stream.timed[step]
            for row in stream.batches[step]:
                if row[stream.schema.time_index] is None:
                    letter = DeadLetter(f"{stream.schema.time} is null", row_json(stream.schema, row))
                    take(execution.feed(stream.name, letter))
            as_rows = step % 2 == 0
            batch = Batch(stream.schema, rows) if as_rows else Batch(stream.schema, table=table_of(stream.schema, rows))
            take(execution.feed(stream.name, batch))
    take(execution.close())
    return Findings(tdb(events), _late_table(execution.late()), *_letters(execution.dead_letters()))


def _late_table(table: pa.Table) -> TDB:
    """Late rows as the engines put them out: stream, bound, row as JSON."""
    return TDB(((stream, row), _tick(bound), _tick(bound) + 1) for stream, bound, row in rows_of(table))


def _write_batches(folder: str, streams: Sequence[Arrivals]) -> None:
    """One parquet file per batch; a file source takes the oldest first, so each is a second younger than the last."""
    for stream in streams:
        home = Path(folder, "in", stream.name)
        home.mkdir(parents=True)
        for step, batch in enumerate(stream.batches):
            file = home / f"{step:06d}.parquet"
            pq.write_table(table_of(stream.schema, batch), file)
            os.utime(file, (1_000_000_000 + step, 1_000_000_000 + step))


def _spark_batch(trial: _Trial, spark: Any, folder: str) -> Findings:
    frames = {s.name: (s, spark.read.schema(s.schema.ddl).parquet(f"{folder}/in/{s.name}")) for s in trial.streams}
    query = _flow(Flow(spark), trial.catalog, frames).query(trial.sql)
    assert isinstance(query, SparkQuery)
    result = tdb_of_table(query.collect(), trial.plan.schema)
    return Findings(result, _late_table(query.late.toArrow()), *_letters(query.dead_letters.toArrow()))


def _spark_streaming(trial: _Trial, spark: Any, folder: str) -> Findings:
    def read(stream: Arrivals) -> Any:
        reader = spark.readStream.schema(stream.schema.ddl).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{folder}/in/{stream.name}")

    flow = _flow(Flow(spark, path=f"{folder}/flow"), trial.catalog, {s.name: (s, read(s)) for s in trial.streams})
    query = flow.query(trial.sql, name=Path(folder).name.replace("-", "_"))
    assert isinstance(query, SparkQuery)
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
        TDB() if result is None else tdb_of_table(result, trial.plan.schema),
        TDB() if late_rows is None else _late_table(late_rows),
        *_letters(dead_rows),
    )


def _tick(value: object) -> int:
    assert isinstance(value, int), f"expected ticks, got {value!r}"
    return value


def _summary(raised: Exception, lines: int = 4) -> str:
    """What was raised, without the pages of stack that Spark adds."""
    return "\n".join(f"{type(raised).__name__}: {raised}".splitlines()[:lines])


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
