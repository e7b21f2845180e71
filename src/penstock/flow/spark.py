"""A query that runs on Spark, in batch or as a stream."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from copy import copy
from dataclasses import asdict
from functools import reduce
from typing import Any

import pyarrow as pa

from penstock.engines.base import check
from penstock.engines.spark.batch import BatchLowering
from penstock.engines.spark.buckets import UNREMEMBERED, checked_buckets
from penstock.engines.spark.entrance import BatchEntrance
from penstock.engines.spark.explain import spread_in_words
from penstock.engines.spark.files import files_named
from penstock.engines.spark.manifest import buckets_at, is_staged_at, kept_at
from penstock.engines.spark.native_columns import computes_natively
from penstock.engines.spark.run import start
from penstock.engines.spark.serving import check_can_host
from penstock.engines.spark.session import other_meaning
from penstock.engines.spark.sources import SparkSource
from penstock.engines.spark.streaming import Hosted
from penstock.engines.spark.support import STREAMING, batch_support
from penstock.engines.spark.tables import SparkTable
from penstock.engines.spark.types import spark_ddl
from penstock.engines.spark.watched import reached
from penstock.errors import StreamError, UnsupportedError
from penstock.flow.query import Query, StartOptions
from penstock.flow.results import Results
from penstock.flow.spark_run import SparkRun
from penstock.model.accounts import Counts, DeadLimit
from penstock.model.elements import Element
from penstock.model.letters import DEAD_SCHEMA, late_schema
from penstock.model.timer import Timer
from penstock.plan.catalog import Catalog
from penstock.plan.explain import explain
from penstock.plan.identity import Known
from penstock.plan.kept import Kept
from penstock.plan.native import with_native
from penstock.plan.nodes import Conflate, Node, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import NOTHING, spark_batch, spark_streaming
from penstock.plan.rules.settle import settled_for
from penstock.plan.rules.stamps import stamped_at_entry
from penstock.plan.stages import why_uncut
from penstock.storage.files import Place, place_of
from penstock.storage.home import checked_name


class SparkQuery(Query):
    """A checked query over DataFrames."""

    def __init__(
        self,
        name: str,
        sql: str,
        plan: Node,
        catalog: Catalog,
        sources: Mapping[str, SparkSource],
        tables: Mapping[str, SparkTable],
        spark: Any,
        path: str | None,
    ) -> None:
        """Made by `Flow.query`."""
        super().__init__(name, sql, plan, catalog)
        self.spark, self.path = spark, path
        self._nodes = list({n.name: n for n in plan.walk() if isinstance(n, Source)}.values())
        self._sources = {n.name.lower(): sources[n.name.lower()] for n in self._nodes}
        self._tables = tables
        streaming = {s.is_streaming for s in self._sources.values()}
        if len(streaming) > 1:
            raise StreamError(
                "A query mixes streaming and bounded DataFrames.",
                where=name,
                hint="read all of its inputs the same way",
            )
        self._streaming = streaming.pop()
        if not self._streaming:  # a batch is given what revisions come to
            plan = self.plan = settled_for(plan, "a batch")
        else:
            plan = self.plan = stamped_at_entry(plan)
            self._nodes = list({n.name: n for n in plan.walk() if isinstance(n, Source)}.values())
        self.engine = "Spark streaming" if self._streaming else "Spark batch"
        arrivals = {name for name, source in self._sources.items() if source.arrival is not None}
        supported = STREAMING if self.is_streaming else batch_support(plan, arrivals)
        check(plan, self.engine, supported)
        self._planned()

    @property
    def is_streaming(self) -> bool:
        """Whether the query reads streaming DataFrames, so that it can only be started."""
        return self._streaming

    def _planned(self, kept: Kept = NOTHING, *, staged: bool = False) -> Physical:
        """How the query runs: hosted in Spark's workers, or in batch by Spark's own operators where these can.

        It can be `staged` where it is started: rows are judged by what its records say.

        That depends on the session as it is now. A hosted batch takes each stream at once, so that an order of arrival
        would go unseen: that is refused.
        """
        if self.is_streaming:
            planned = spark_streaming(self.plan, self.catalog, kept=kept, staged=staged)
            return with_native(planned, computes_natively(self.spark, self.catalog))
        setting = other_meaning(self.spark)
        planned = spark_batch(self.plan, self.catalog, setting)
        if not planned.is_hosted:
            return planned
        ordered = [n.name for n in self._nodes if self._sources[n.name.lower()].arrival is not None]
        if ordered:
            raise UnsupportedError(
                "A batch that is hosted cannot follow the order of an arrival column.",
                where=f"stream {ordered[0]}",
                got=setting
                or "an aggregate in Python, a stream with lives or several attributes that progress, or a merge that "
                "needs its operator",
                hint="leave arrival out, or run as a stream or in-process"
                + ("" if setting is None else f"; or set {setting.partition('=')[0]} to true"),
            )
        return planned

    def explain(self) -> str:
        """The plan as a tree, with how Spark runs each operator and why.

        Of a query that was started before, as `start` goes on with it.
        """
        kept, home = self._kept(), self._home()
        planned = self._at_work(kept)
        if not planned.is_hosted:
            return explain(planned)
        buckets = None if home is None else buckets_at(home)
        how = spread_in_words(planned, self.hosted(home, buckets, kept).buckets)
        if home is not None and not planned.stages:
            how += f"; not cut into stages: {why_uncut(self.plan) or 'the checkpoint is of a plan that was not'}"
        setting = None if self.is_streaming else other_meaning(self.spark)
        if setting is not None:
            how += f"; Spark's own operators would answer differently under {setting}"
        return f"{how}\n{explain(planned)}"

    def _home(self) -> Place | None:
        """Where the query lives once it is started, if it can be."""
        if not self.is_streaming or self.path is None:
            return None
        try:
            return place_of(self.path) / checked_name(self.name)
        except StreamError:  # a name that `start` refuses
            return None

    def _kept(self) -> Kept:
        """What the checkpoint has that `start` would go on from."""
        home = self._home()
        return NOTHING if home is None else kept_at(home)

    def nodes_at_work(self) -> list[Known]:
        """The nodes of the plan in the order, and under the identities, in which its checkpoint has them."""
        kept = self._kept()
        return kept.identities(self._at_work(kept).node)

    def at_work(self) -> Physical:
        """How the query runs once it is started, or would if it were."""
        return self._at_work(self._kept())

    def _at_work(self, kept: Kept) -> Physical:
        """How the query runs once it is started, or would if it were."""
        home = self._home()
        return self._planned(kept, staged=home is not None and is_staged_at(home))

    def _with_plan(self, plan: Node) -> SparkQuery:
        """A query of the same streams with another plan, which reads what this one gives."""
        return SparkQuery(self.name, self.sql, plan, self.catalog, self._sources, self._tables, self.spark, self.path)

    @property
    def stream_names(self) -> list[str]:
        """The streams that the query reads."""
        return [n.name for n in self._nodes]

    def hosted(
        self,
        home: Place | None = None,
        buckets: int | None = None,
        kept: Kept = NOTHING,
        *,
        clock: bool | None = None,
    ) -> Hosted:
        """The plan in stateful operators, planned by what a checkpoint has; for a query that lives in a home."""
        planned = self._planned(kept, staged=home is not None and is_staged_at(home))
        return Hosted(self.spark, planned, self.catalog, self._sources, home, buckets, self._tables, clock=clock)

    def _check_without_clock(self) -> None:
        """Stamps that never go back need the records of a run, and timers need its clock."""
        stamped = [f"{node.name} with timestamps=pk.internal()" for node in self._nodes if node.stamped]
        stamped += [f"{n.name} with progress=pk.{n.progress}" for n in self._nodes if isinstance(n.progress, Timer)]
        if stamped:
            raise UnsupportedError(
                "Streams that go by the clock need a query that lives in a home.",
                where=self.name,
                got=", ".join(stamped),
                hint="q.start(sink), of pk.Flow(spark, path=…)",
            )

    def _output(self, kind: str) -> Any:
        if self.is_streaming:
            check_can_host(self.spark, self.name)
            self._check_not_conflated()
            self._check_without_clock()
        hosted = self.hosted(buckets=UNREMEMBERED if self.is_streaming else None)
        return hosted.output(hosted.tagged() if self.is_streaming else hosted.tagged_batch(), kind)

    def _check_not_conflated(self) -> None:
        """What waits in a queue goes on by what a run measures, and only a run has records of that."""
        queue = next((n for n in self.plan.walk() if isinstance(n, Conflate)), None)
        if queue is not None:
            raise UnsupportedError(
                "A conflated stream is run by Penstock, which knows how fast its consumer is.",
                where=queue.label,
                got="a streaming DataFrame, which others write",
                hint="q.start(folder), or q.start(function) with a function of a DataFrame and a number",
            )

    @property
    def df(self) -> Any:
        """The result as a DataFrame; a streaming one is for `writeStream` in append mode."""
        planned = self._planned()
        if planned.is_hosted:
            return self._output("result")
        names = [f.name for f in self.schema.visible]
        return BatchLowering(self.catalog, self._sources, self._tables).lower(planned).select(*names)

    @property
    def late(self) -> Any:
        """The late rows as a DataFrame: stream, bound, row as JSON."""
        if self._planned().is_hosted:
            return self._output("late")
        entrance = BatchEntrance(self.catalog, self._sources)
        judged = [entrance.late(n) for n in self._nodes if self._is_judged(n)]
        if judged:
            return reduce(lambda a, b: a.union(b), judged)
        return self.spark.createDataFrame([], spark_ddl(late_schema(*(n.schema for n in self._nodes))))

    def _is_judged(self, node: Source) -> bool:
        """Whether rows of a bounded source can be late: they have an order of arrival, and are not only numbered."""
        return self._sources[node.name.lower()].arrival is not None and not node.by_arrival

    @property
    def dead_letters(self) -> Any:
        """The unusable rows as a DataFrame: stream, the operator that failed on it, reason, row as text."""
        if self.is_streaming:
            return self._output("dead")
        planned = self._planned()
        if planned.is_hosted:
            unread = [
                (n.name, None, u.reason, u.row) for n in self._nodes for u in self._sources[n.name.lower()].unread
            ]
            hosted = self._output("dead")
            return hosted.union(self.spark.createDataFrame(unread, spark_ddl(DEAD_SCHEMA))) if unread else hosted
        frames = [self._sources[n.name.lower()].dead_letters(n.name) for n in self._nodes]
        frames += BatchLowering(self.catalog, self._sources, self._tables).failures(planned)
        return reduce(lambda a, b: a.union(b), frames)

    def collect(self, *, max_dead: float | None = None) -> pa.Table:
        """The whole result over bounded inputs.

        With `max_dead`, a number of rows or a fraction of them, the dead letters are counted first, and more of them
        are an error.
        """
        if self.is_streaming:
            raise StreamError(
                "A streaming query has no end to collect.", where=self.name, hint="use q.start(…), or q.df.writeStream"
            )
        limit = DeadLimit(max_dead)
        with reached(self.name), files_named():
            if max_dead is not None:
                read = sum(s.frame.count() + len(s.unread) for s in self._sources.values())
                limit.check(Counts(read=read, dead=self.dead_letters.count()), self.name, at_end=True)
            return self.df.toArrow().cast(self.form.arrow)

    def elements(self, *, max_dead: float | None = None) -> Results[Element]:
        """On Spark elements stay where they are made."""
        raise UnsupportedError(
            "Elements do not leave Spark one by one.",
            where=self.name,
            hint="q.start(sink) writes results as they come; q.batches() and q.df have those of bounded inputs; "
            "elements() is in-process, pk.Flow()",
        )

    def batches(self, *, max_dead: float | None = None) -> Results[pa.Table]:
        """The result over bounded inputs; Spark gives it at once, so it is one table."""

        def portions() -> Generator[tuple[pa.Table], None, None]:
            yield (self.collect(max_dead=max_dead),)

        return Results(portions())

    @property
    def counts(self) -> dict[str, int]:
        """Where the rows of bounded inputs go; Spark runs over the input to count them."""
        if self.is_streaming:
            raise StreamError("A streaming query is counted while it runs.", where=self.name, hint="run.progress")
        if self._planned().is_hosted:
            counts = self.hosted().batch_counts()
        else:
            entrance = BatchEntrance(self.catalog, self._sources)
            counts = Counts(
                late=self.late.count(),
                on_time=sum(entrance.on_time(n).count() for n in self._nodes),
                punctuation=sum(entrance.punctuation(n) for n in self._nodes),
            )
            letters = dict(self.dead_letters.groupBy("operator").count().collect())
            counts.dead = letters.pop(None, 0)
            counts.failed = sum(letters.values())
            counts.read = sum(s.frame.count() + len(s.unread) for s in self._sources.values())
        counts.check(self.name)
        return asdict(counts)

    def _start(self, sink: Any, options: StartOptions) -> SparkRun:
        """As a streaming query."""
        if not self.is_streaming:
            raise StreamError(
                "Only a query over streaming DataFrames can be started.",
                where=self.name,
                hint="use q.df or q.collect() in batch",
            )
        if self.path is None:
            raise StreamError(
                "A running query needs a place for its checkpoint.",
                where=self.name,
                hint="pk.Flow(spark, path='flows/x')",
            )
        asked = None if options.buckets is None else checked_buckets(options.buckets)
        named = self if options.name is None else self._named(options.name)
        late, dead, limit = options.late, options.dead_letters, DeadLimit(options.max_dead)
        begun = start(
            named, sink, options.trigger, late, dead, asked, options.retention, limit, options.superseded
        )  # fmt: skip
        return SparkRun(named, begun)

    def _named(self, name: str) -> SparkQuery:
        """The same query under another name, and so with a home of its own."""
        other = copy(self)
        other.name = checked_name(name)
        return other
