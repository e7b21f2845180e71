"""The public surface: a flow has streams and queries, in-process or on Spark.

```python
import penstock as pk

flow = pk.Flow()
flow.stream("main", "packets.parquet", time="ts", progress=pk.bounded("5 seconds"))
q = flow.query("SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM main GROUP BY srcIP")
print(q.collect())
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from penstock.errors import QueryError, StreamError, UnsupportedError
from penstock.flow.altering import FlowAltered
from penstock.flow.bursts import with_burst
from penstock.flow.conflating import FlowUpdates
from penstock.flow.declaring import (
    check_name,
    check_progress,
    check_texts,
    declared_properties,
    declared_unique,
    declared_update_key,
    of_columns,
    told_of,
)
from penstock.flow.drawing import html_text
from penstock.flow.flow_run import FlowRun, start_together
from penstock.flow.graphs import graph_of_flow
from penstock.flow.local import LocalQuery
from penstock.flow.pyspark_names import PySparkNames
from penstock.flow.query import Query
from penstock.flow.replicas import merge_node
from penstock.flow.script import Script, make_script
from penstock.flow.serving import Served, check_serving, serve
from penstock.flow.stamped import open_stamped
from penstock.flow.tables import FlowTables
from penstock.flow.user_code import register_aggregate, register_function
from penstock.io.infer import parse_schema
from penstock.io.kafka import KafkaTopic
from penstock.io.redis_streams import RedisStream
from penstock.io.sources import open_source
from penstock.model.batch import Batch, concat
from penstock.model.conform import DeadLetter
from penstock.model.lived_rows import LivedRows
from penstock.model.progress import (
    Ordered,
    Progress,
    Several,
    Single,
    declared,
    span_ticks,
)
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.model.timestamps import (
    Latent,
    Timestamps,
    check_stamped,
    declared_silence,
)
from penstock.monitor.picture import Picture
from penstock.plan.catalog import Catalog, StreamInfo, closest
from penstock.runtime.strategies import Strategy
from penstock.sql.binder import bind

Attributes = (
    Mapping[str, Single] | Mapping[tuple[str, ...], Single] | Mapping[str | tuple[str, ...], Single]
)  # a mapping is of one kind of key, or of both
"""The progress of each of several attributes, and of some of them together."""


class Flow(PySparkNames, FlowTables, FlowAltered, FlowUpdates):
    """Streams, tables and the queries over them, run by one engine."""

    def __init__(self, spark: Any = None, path: str | None = None) -> None:
        """Without arguments in-process; with a SparkSession on Spark, where `path` holds checkpoints and outputs."""
        self.catalog = Catalog()
        self.path = path
        self._sources: dict[str, Any] = {}
        self._tables: dict[str, Any] = {}
        self._queries = 0
        self._made: WeakValueDictionary[str, Query] = WeakValueDictionary()
        """The queries that somebody still has, by name."""
        self.spark = spark
        if spark is not None:
            from penstock.engines.spark.session import check_session

            check_session(spark)

    @property
    def engine(self) -> str:
        """`local` or `spark`."""
        return "local" if self.spark is None else "spark"

    @property
    def streams(self) -> dict[str, StreamInfo]:
        """The declared streams by name: columns, time, progress."""
        return {info.name: info for info in self._infos()}

    def __repr__(self) -> str:
        return f"<flow, {self._where}>\n" + "\n".join(self._listed())

    def _repr_html_(self) -> str:
        """A flow in a notebook."""
        return html_text(f"flow, {self._where}", "\n".join(self._listed()))

    @property
    def _where(self) -> str:
        return "in-process" if self.spark is None else f"on Spark, {self.path or 'without a path'}"

    def _listed(self) -> list[str]:
        lines = [f"stream {i.name}: {i.schema.ddl}; time {i.schema.time}, {i.progress}" for i in self._infos()]
        lines += [f"stream {name}: {view.label}" for name, view in self.catalog.views.items()]
        lines += [f"table {table.name}: {table.schema.ddl}" for table in self.catalog.tables.values()]
        lines += [f"function {name}" for name in self.catalog.functions]
        return lines + [f"aggregate {name}" for name in self.catalog.aggregates]

    def _infos(self) -> list[StreamInfo]:
        return list(self.catalog.streams.values())

    def stream(
        self,
        name: str,
        source: Any,
        *,
        time: str,
        progress: Progress | Attributes | None = None,
        schema: str | None = None,
        arrival: str | None = None,
        time_format: str | None = None,
        delimiter: str | None = None,
        max_ahead: str | int | None = None,
        timestamps: Timestamps | None = None,
        lull: str | int | None = None,
        lives: Sequence[str] | bool = False,
        unique: Sequence[str] | str | None = None,
        update_key: Sequence[str] | str | None = None,
    ) -> Flow:
        """Declare a stream.

        Args:
            name: what queries call it.
            source: a DataFrame, an Arrow table or reader, a pandas or Polars frame, a list of dicts, a path, or an
                iterable of dicts or elements; on Spark also the name of a table, or a
                `spark.readStream` that is not loaded yet, which gets the stream's name.
            time: the column that progresses: a timestamp, a date, text with timestamps, or an integer.
            progress: how far the stream has come, `pk.ordered()` unless said otherwise. Where several attributes
                progress, a mapping from each to its progress, the time among them; punctuation that speaks for some of
                them together has all of their names as its key: `{("ts", "seq"): pk.punctuated("kind = 'p'")}`.
            schema: a DDL string where the source does not tell; values that do not fit become dead letters.
            arrival: on Spark in batch, the column that gives the order of arrival; without one a batch has none and
                nothing in it is late.
            time_format: how the time is written, where it is no timestamp: `epoch_s`, `epoch_ms`, `epoch_us`,
                `epoch_ns`, or a pattern such as `dd/MM/yyyy HH:mm` or `%d/%m/%Y %H:%M`.
            delimiter: what separates the fields of a CSV file; a comma, or a tab in .tsv, unless said otherwise.
            max_ahead: a row whose time is further than this beyond what the stream has reached is a dead letter and
                moves no bound. Longer than the longest silence.
            timestamps: `pk.external(skew="2 seconds")`: the times are the source's own, and go on while it is silent as
                the clock does, but for the skew. `pk.internal()`: rows are stamped with the clock as they enter; `time`
                names the column that is added. `pk.latent()`: they have no time until an operator needs one, and get it
                there.
            lull: rows are at most so old when they come, by this machine's clock. While nothing comes, the clock less
                this is what the stream has reached.
            lives: how long rows live, where that is not a tick: the columns of start and end, `("vs", "ve")`, of which
                the first is the time; for rows that are revised also the old end, `("vs", "ve", "v_old")`, and where
                the input is a changelog what each row does, `("vs", "ve", "v_old", "op")`. True for an iterable of
                elements that may revise.
            unique: columns that tell any two rows of the stream apart, whenever they come: `unique="id"`. A join by
                them then gives up rows of the other side once they have met one. It is believed and not checked.
            update_key: columns by which each row updates the one before it, so that only the newest of each key
                matters: `update_key="symbol"`; `[]` where each row updates the one before. Queries keep the key.

        Returns:
            The flow, so that declarations can be chained.
        """
        check_texts(name, time, schema=schema, arrival=arrival, time_format=time_format)
        with told_of(name):
            stamped = check_stamped(
                timestamps, progress=progress, lull=lull, max_ahead=max_ahead, lives=lives, time_format=time_format,
                arrival=arrival,
            )  # fmt: skip
            known = declared(progress if progress is not None else Ordered(), time)
            told = lives if isinstance(lives, bool) else LivedRows.declared(lives, time)
            several = known.attributes if isinstance(known, Several) else ()
            loaded = self._loaded(source, name, time, schema, time_format)
            if stamped:
                opened = open_stamped(self.spark, loaded, time, schema, delimiter)
            else:
                opened = self._open(loaded, time, schema, arrival, time_format, delimiter, told, several)
            if isinstance(known, Several):
                known = of_columns(known, opened.schema, max_ahead)
            check_progress(self.catalog, name, opened.schema, known)
        found: Schema = opened.schema
        ahead = None if max_ahead is None else span_ticks(max_ahead, found.domain)
        properties = declared_properties(found, known, insert_only=opened.insert_only)
        if isinstance(timestamps, Latent):  # in what order times will be, whoever gives them knows
            properties = StreamProperties()
        updated_by = declared_update_key(name, found, update_key)
        properties = replace(properties, unique=declared_unique(name, found, unique), update_key=updated_by)
        with told_of(name):
            silence = declared_silence(timestamps, lull, found, known)
        self.catalog.add_stream(
            StreamInfo(name, found, known, properties, ahead, silence, stamped, isinstance(timestamps, Latent))
        )
        self._sources[name.lower()] = self._with_name(opened, source)
        return self

    def _loaded(self, source: Any, name: str, time: str, schema: str | None, time_format: str | None) -> Any:
        """A reader that is not loaded yet is loaded under the stream's name, and so is a topic."""
        if self.spark is None:
            return source
        if isinstance(source, KafkaTopic):
            from penstock.engines.spark.kafka import kafka_frame

            typed = parse_schema(schema, time, time_format) if schema is not None else None
            return kafka_frame(self.spark, source, name, typed)
        if isinstance(source, RedisStream):
            raise StreamError(
                "Spark has no source of Redis streams.",
                got=repr(source)[:200],
                hint="pk.Flow() without Spark reads them in-process",
            )
        from penstock.engines.spark.readers import is_reader, loaded

        return loaded(self.spark, source, name) if is_reader(source) else source

    def _with_name(self, opened: Any, source: Any) -> Any:
        """A source on Spark knows whether Spark has a name for it."""
        if self.spark is None:
            return opened
        from penstock.engines.spark.readers import can_name, is_reader, names_are_on

        named = can_name(self.spark) if is_reader(source) else names_are_on(self.spark)
        return replace(opened, named=named)

    def _open(
        self,
        source: Any,
        time: str,
        schema: str | None,
        arrival: str | None,
        time_format: str | None,
        delimiter: str | None,
        lives: LivedRows | bool,
        several: tuple[str, ...],
    ) -> Any:
        if self.spark is None:
            return open_source(source, time, schema, time_format, delimiter, lives, several)
        from penstock.engines.spark.sources import is_spark_readable, open_spark_frame, open_spark_source

        if is_spark_readable(source):
            typed = parse_schema(schema, time, time_format) if schema is not None else None
            found = open_spark_source(self.spark, source, time, typed, arrival, time_format, delimiter)
            found = found.with_attributes(several)
            return found.with_lives(lives) if isinstance(lives, LivedRows) else found
        opened = open_source(source, time, schema, time_format, delimiter, lives, several)
        if opened.is_polled:
            raise StreamError(
                "Spark cannot poll a source.", got=type(source).__name__, hint="spark.readStream, or pk.Flow()"
            )
        items = list(opened.open())
        rows = concat(opened.schema, [i for i in items if isinstance(i, Batch)])
        dead = [i for i in items if isinstance(i, DeadLetter)]
        frame = open_spark_frame(self.spark, rows, dead, arrival, insert_only=opened.insert_only)
        return frame.with_attributes(several)

    def merge(
        self,
        name: str,
        streams: Sequence[str],
        *,
        key: Sequence[str] | None = None,
        properties: StreamProperties | None = None,
        algorithm: str | None = None,
        policy: str = "half frozen",
        lag: int = 0,
        driver: str = "leading",
        elements: bool = False,
        on_divergence: str = "report",
    ) -> Flow:
        """Declare that some streams are replicas of one, which queries read under a new name.

        Args:
            name: what queries call the merged stream.
            streams: the replicas, declared before, with the same columns.
            key: columns that, with the time, tell any two rows of a replica apart; without a key, R4 merges them.
            properties: more that is known of every replica.
            algorithm: a stronger one than is needed.
            policy: when a row comes out; for plain rows one that never takes a row back.
            lag: ticks that the bound of the merged stream stays behind.
            driver: whose bounds it follows: `leading`, `majority` or the name of a replica.
            elements: whether rows are inserts and adjusts, see `pk.merge`.
            on_divergence: when a replica differs: `report` (a dead letter that says where), `stop` or `ignore`.
        """
        node = merge_node(
            self.catalog, name, streams, key, properties, algorithm, policy, lag, driver, elements, on_divergence
        )
        self.catalog.views[name.lower()] = node
        return self

    def function(self, name: str, function: Callable[..., object], returns: str, *, version: str | None = None) -> Flow:
        """Register a Python function of single values for use in SQL; nulls reach it as None.

        A checkpoint is refused if the function's code has changed since. With a `version`, only the version counts.
        A name that SQL or another registration has is refused.
        """
        register_function(self.catalog, name, function, returns, version)
        return self

    def aggregate(self, name: str, aggregate: Any, returns: str, *, version: str | None = None) -> Flow:
        """Register an aggregate: a class or object with `lift`, `combine`, `lower` and, where it is exact, `invert`.

        Its partials are kept in snapshots and checkpoints, so they must be plain data (numbers, text, bytes, dates,
        decimals, tuples, lists, sets, dictionaries, arrays), or it must have `to_state(partial)`, which gives plain
        data, and `from_state(data)`, which gives the partial back. `version` is as for functions.
        """
        register_aggregate(self.catalog, name, aggregate, returns, version)
        return self

    def watermarked(self, stream: str) -> Any:
        """A punctuated stream as a DataFrame for Spark's own operators.

        It has the column `event_time`, whose watermark follows the stream's punctuation and nothing else: use it in
        `window()`, joins and `dropDuplicates`. It counts in milliseconds. Spark drops late rows silently.
        """
        found = self.catalog.stream(stream) if isinstance(stream, str) else None
        if found is None:
            known = [s.name for s in self.catalog.streams.values()]
            raise StreamError("There is no such stream.", got=str(stream)[:200], hint=closest(str(stream), known))
        if self.spark is None:
            raise StreamError("Only Spark has a watermark.", where=f"stream {stream}", hint="pk.Flow(spark)")
        from penstock.engines.spark.watermark import watermarked

        return watermarked(found.name, self._sources[found.name.lower()], found.progress, self.catalog)

    def query(self, sql: str, name: str | None = None, *, max_burst: int | None = None) -> Query:
        """A query over the declared streams; nothing runs yet, but everything is checked.

        Args:
            sql: what is asked.
            name: of the query; by default it has a number.
            max_burst: of an outer or anti join, how many rows without a partner come out with one batch or punctuation
                at most when punctuation settles them; the others follow, and what is promised waits for them.
        """
        if not isinstance(sql, str):
            raise QueryError("A query is a text.", got=repr(sql)[:200], hint="flow.query('SELECT … FROM …')")
        if name is not None and name != "":
            check_name(name, "query", QueryError)
        return self._query_in(sql, sql, name, max_burst)

    def _query_in(self, text: str, sql: str, name: str | None = None, max_burst: int | None = None) -> Query:
        """A query, bound where it stands in a longer text that is blank but for it."""
        plan = with_burst(bind(text, self.catalog), max_burst)
        self._queries += 1
        name = name or f"query_{self._queries}"
        if self.spark is None:
            made = self._made[name] = LocalQuery(name, sql, plan, self.catalog, dict(self._sources))
            return made
        from penstock.flow.spark import SparkQuery

        return SparkQuery(name, sql, plan, self.catalog, self._sources, self._tables, self.spark, self.path)

    def sql(
        self, text: str, *, sources: Mapping[str, Any] | None = None, sinks: Mapping[str, Any] | None = None
    ) -> Script:
        """A script: statements with semicolons between them, CREATE STREAM, VIEW and SINK, INSERT INTO and SELECT.

        Nothing runs yet, but everything is checked, and its streams and views are declared.

        Args:
            text: the script.
            sources: what streams read that are created without a source, by name.
            sinks: where results go, by name, for INSERT INTO.

        Returns:
            The script: `collect()` gives its result, `start()` runs what it inserts, in the background.
        """
        return make_script(self, text, {} if sources is None else sources, {} if sinks is None else sinks)

    def graph(self, queries: Query | Iterable[Query] | None = None) -> Picture:
        """The graph that queries would be together, as `start` runs them: one, several, or all that somebody has.

        A notebook shows it as a drawing, `print` as trees; it has `svg`, `mermaid`, `dot`, `json` and `text`.
        `run.graph()` draws what runs, with what is known of it.
        """
        return graph_of_flow(self, list(self._made.values()) if queries is None else queries)

    @contextmanager
    def _as_a_whole(self) -> Iterator[None]:
        """What is declared inside is declared if all of it can be, and not at all if not."""
        catalog = self.catalog
        kept = dict(catalog.streams), dict(catalog.views), dict(catalog.tables)
        own = dict(self._sources), dict(self._tables), self._queries
        try:
            yield
        except BaseException:
            catalog.streams, catalog.views, catalog.tables = kept
            self._sources, self._tables, self._queries = own
            raise

    def start(
        self,
        queries: Mapping[Query, Any],
        *,
        name: str = "flow",
        late: Any = None,
        dead_letters: Any = None,
        max_dead: float | None = None,
        snapshot: bytes | None = None,
        strategy: str | Strategy = "dfs",
        weights: Mapping[Any, float] | None = None,
        max_held: int | None = None,
        snapshots: str | os.PathLike[str] | None = None,
        every: Any = "1 second",
    ) -> FlowRun:
        """Run several queries as one, in-process: streams are read once, and what plans have in common runs once.

        Args:
            queries: each query with its sink, as for `Query.start`; others may join later with `add`.
            name: of the run.
            late: a sink for the late rows of all streams.
            dead_letters: a sink for dead letters.
            max_dead: so many dead letters, or such a fraction of the rows, are borne; with more the run fails.
            snapshot: the state of a run of the same queries, to go on from.
            strategy: which operator runs next: `dfs`, `bfs`, `round_robin` or `pk.dfs(batch=k)`, see `FlowRun.use`.
            weights: of queries, which share the time of the run by them, see `FlowRun.share`.
            max_held: sinks are written to beside the run, and so many results may wait for each; see `FlowRun.cut_off`.
            snapshots: a folder where the last snapshots of the run are kept while it goes on, with the positions of its
                sources and sinks. A run that is started with a folder that has one goes on from there.
            every: how often, such as `"1 second"`; 0 is after every item.
        """
        self._check_together(name)
        needs_loop = any(source.is_async for source in self._sources.values())
        return start_together(
            name, queries, self.catalog, dict(self._sources), late, dead_letters, max_dead, snapshot, strategy,
            weights, max_held, snapshots, every, needs_loop=needs_loop,
        )  # fmt: skip

    def serve(
        self,
        queries: Mapping[Query, Any],
        *,
        name: str = "flow",
        at_signal: str = "finish",
        on_start: Callable[[FlowRun], object] | None = None,
        watch: Callable[[FlowRun], object] | None = None,
        **options: Any,
    ) -> Served:
        """Run queries as a service, until their sources end or the process is told to stop by SIGTERM or SIGINT.

        Args:
            queries: each query with its sink.
            name: of the run.
            at_signal: `finish` takes what has come, closes every stream and puts out the windows that were open;
                `stop` leaves them open, for the snapshot. A second signal cuts that short.
            on_start: called with the run when it is going; `run.finish()`, by another thread, ends it.
            watch: called with the run twice a second.
            options: as for `start`.

        Returns:
            How it came to its end: `sys.exit(served.exit_code)`.
        """
        check_serving(at_signal, on_start, watch)
        return serve(partial(self.start, queries, name=name, **options), at_signal, on_start, watch)

    def _check_together(self, name: object) -> None:
        if self.spark is not None:
            raise UnsupportedError(
                "On Spark every query is a run of its own.",
                where="flow.start",
                hint="query.start(sink); pk.Flow() without Spark runs several as one",
            )
        check_name(name, "run")
