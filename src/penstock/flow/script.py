"""Scripts as they are run: what their statements declare in a flow, the queries that they ask for, where results go.

A script is checked as a whole before anything of it is declared: one with an error leaves the flow as it was. Options
of streams and sinks have the names that they have in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import PenstockError, QueryError, StreamError, UnsupportedError
from penstock.flow import live_options
from penstock.flow.query import Query
from penstock.flow.run import Run
from penstock.flow.user_code import NAME
from penstock.io.broker_uris import by_uri
from penstock.io.files import check_not_read, expand
from penstock.io.sinks import open_sink
from penstock.model.formats import one_kind
from penstock.model.progress import Progress, parse_progress
from penstock.plan.catalog import closest
from penstock.sql.binder import bind_view
from penstock.sql.script import (
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    InsertInto,
    Option,
    QueryStatement,
    Statement,
    read_script,
)

if TYPE_CHECKING:
    from penstock.flow.flow import Flow
    from penstock.flow.serving import Served

STREAM_OPTIONS = (
    "source", "time", "progress", "format", "streaming", "time_format", "delimiter", "arrival", "max_ahead", "lives",
    "unique", "update_key", *live_options.SOURCE_OPTIONS,
)  # fmt: skip
TABLE_OPTIONS = ("source", "format", "key", "valid_from", "valid_to", "time_format", "delimiter")
SINK_OPTIONS = ("path", "late", "dead_letters", "max_dead", "trigger", "buckets", *live_options.SINK_OPTIONS)
OF_A_FLOW = ("late", "dead_letters", "max_dead")
"""Options of sinks that are one for all, where queries run as one."""
OF_SPARK = "spark."
"""Options that begin so are for Spark's reader."""
AVAILABLE = {"availableNow": True}
_WORDED = re.compile(r"\s*(ordered|bounded)(?:\s+([\w. ]+?))?\s*$", re.IGNORECASE)
_ROWS = re.compile(r"(\d+)\s+rows?", re.IGNORECASE)


@dataclass(frozen=True)
class Output:
    """A query of a script whose results go somewhere."""

    query: Query
    target: str
    """The sink's name, or a path."""
    sink: Any = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    """How the query is started, as for `Query.start`."""

    def start(self, **options: Any) -> Run:
        """Run in the background; options are added to those of the sink."""
        return self.query.start(self.sink, **{**self.options, **options})

    def write(self) -> int:
        """Run bounded inputs to their end, and write the whole result; how many rows it has.

        Streaming inputs on Spark are read as far as they are there, and the number is not known: it is -1.
        """
        if self.query.is_streaming:
            self.start(trigger=self.options.get("trigger") or AVAILABLE).wait()
            return -1
        result = self.query.collect(max_dead=self.options.get("max_dead"))
        written = [(self.sink, result)]
        for name, table in (("late", self.query.late), ("dead_letters", self.query.dead_letters)):
            if self.options.get(name) is not None:
                written.append((self.options[name], table if isinstance(table, pa.Table) else table.toArrow()))
        for target, table in written:
            sink = open_sink(by_uri(target))
            try:
                sink.write(table)
            except BaseException:
                sink.abandon()
                raise
            sink.close()
        return int(result.num_rows)


@dataclass(frozen=True)
class Script:
    """A script that has been read: its streams and views are in the flow, and nothing runs yet."""

    queries: tuple[Query, ...]
    """What its SELECTs ask for, in their order."""
    outputs: tuple[Output, ...]
    """What its INSERTs write, in their order."""
    flow: Flow = field(repr=False)

    @property
    def query(self) -> Query:
        """The SELECT of a script that has one."""
        if len(self.queries) != 1:
            raise StreamError(
                "The script has no one result.", got=f"{len(self.queries)} SELECTs", hint="take one of script.queries"
            )
        return self.queries[0]

    def collect(self, *, max_dead: float | None = None) -> pa.Table:
        """Write every output over bounded inputs, then give the result of the SELECT."""
        query = self.query
        for output in self.outputs:
            output.write()
        return query.collect(max_dead=max_dead)

    def run(self) -> list[pa.Table]:
        """Write every output over bounded inputs, then give the results of the SELECTs."""
        for output in self.outputs:
            output.write()
        return [query.collect() for query in self.queries]

    def start(self) -> list[Run]:
        """Run every INSERT in the background."""
        if not self.outputs:
            raise StreamError("Nothing is to be written.", got="a script without INSERT", hint="INSERT INTO … SELECT …")
        return [output.start() for output in self.outputs]

    def serve(self, shown: Callable[[Query], Any] | None = None, **options: Any) -> Served:
        """Run every INSERT, and every SELECT if there is somewhere to show it, as a service, see `Flow.serve`.

        Args:
            shown: gives the sink of a SELECT.
            options: as for `Flow.serve`.
        """
        queries: dict[Query, Any] = {output.query: output.sink for output in self.outputs}
        if shown is not None:
            queries |= {query: shown(query) for query in self.queries}
        if not queries:
            raise StreamError("Nothing is to be served.", got="a script without INSERT", hint="INSERT INTO … SELECT …")
        of_sinks: dict[str, Any] = {}
        for output in self.outputs:
            for name, value in output.options.items():
                if of_sinks.setdefault(name, value) != value or name not in OF_A_FLOW:
                    raise StreamError(
                        "The queries of a service share their late rows and dead letters, and run in-process.",
                        where=f"sink {output.target}",
                        got=f"{name} = {value}"[:200],
                        hint=f"{', '.join(OF_A_FLOW)} once, or the same for all sinks",
                    )
        return self.flow.serve(queries, **{**of_sinks, **options})


def make_script(flow: Flow, text: str, sources: Mapping[str, Any], sinks: Mapping[str, Any]) -> Script:
    """Declare what a script declares, and make its queries; in case of an error nothing has changed."""
    if not isinstance(text, str):
        raise QueryError("A script is a text.", got=repr(text)[:200], hint="flow.sql('SELECT … FROM …')")
    for given in (sources, sinks):
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise StreamError("Sources and sinks are given by name.", got=repr(given)[:200], hint="{'main': rows}")
    with flow._as_a_whole():
        return _Making(flow, sources, sinks).script(read_script(text))


class _Making:
    """The statements of one script, one after the other."""

    def __init__(self, flow: Flow, sources: Mapping[str, Any], sinks: Mapping[str, Any]) -> None:
        self.flow = flow
        self.sources = {name.lower(): source for name, source in sources.items()}
        self.sinks: dict[str, tuple[Any, dict[str, Any]]] = {name.lower(): (to, {}) for name, to in sinks.items()}
        self.read: dict[str, list[str]] = {}
        """The paths that streams of the script read."""
        self.queries: list[Query] = []
        self.outputs: list[Output] = []

    def script(self, statements: list[Statement]) -> Script:
        for statement in statements:
            with _told_at(statement):
                self.make(statement)
        return Script(tuple(self.queries), tuple(self.outputs), self.flow)

    def make(self, statement: Statement) -> None:
        match statement:
            case CreateStream():
                self.stream(statement)
            case CreateTable():
                self.table(statement)
            case CreateSink():
                self.sink(statement)
            case CreateView():
                self.view(statement)
            case InsertInto():
                self.insert(statement)
            case QueryStatement():
                self.queries.append(self.flow._query_in(statement.in_place, statement.query))

    # Streams

    def stream(self, statement: CreateStream) -> None:
        _check_known(statement, statement.options, STREAM_OPTIONS, OF_SPARK)
        options = {name: option.value for name, option in statement.options.items()}
        if "time" not in options:
            raise statement.error("The time column is not given.", got=statement.name, hint="add time = 'ts'")
        given: dict[str, Any] = {
            name: options[name] for name in ("time_format", "delimiter", "arrival", "max_ahead") if name in options
        }
        if "source" in options and live_options.is_live(options):
            given.pop("delimiter", None)
        if str(given.get("max_ahead", "")).isdecimal():
            given["max_ahead"] = int(given["max_ahead"])
        for name in ("lives", "unique", "update_key"):
            if name in options:
                given[name] = tuple(part.strip() for part in options[name].split(",") if part.strip())
        if statement.update_key is not None:
            if "update_key" in given:
                raise _at(statement, "update_key", "The update key is given twice.", "leave one of them out")
            given["update_key"] = statement.update_key
        if "progress" in options:
            given["progress"] = _progress(statement, statement.options["progress"])
        source = self.source(statement, options)
        if "source" in options and not live_options.is_address(options["source"]):
            self.read[statement.name] = [options["source"]]
        columns = self.columns(statement, options)
        with _told_at_key(statement):
            self.flow.stream(statement.name, source, time=options["time"], schema=columns, **given)

    def columns(self, statement: CreateStream, options: Mapping[str, str]) -> str | None:
        return None if _is_true(options.get("streaming")) else statement.columns

    def table(self, statement: CreateTable) -> None:
        _check_known(statement, statement.options, TABLE_OPTIONS)
        options = {name: option.value for name, option in statement.options.items()}
        source = self.source(statement, options)
        if "source" in options:
            self.read[statement.name] = [options["source"]]
        given: dict[str, Any] = {name: options[name] for name in TABLE_OPTIONS[3:] if name in options}
        if "key" in options:
            given["key"] = tuple(part.strip() for part in options["key"].split(","))
        self.flow.table(statement.name, source, schema=statement.columns, **given)

    def source(self, statement: CreateStream | CreateTable, options: Mapping[str, str]) -> Any:
        """What a stream or table reads: an object given in Python, a path, or what Spark has: a table, a reader."""
        if "source" not in options and statement.name.lower() in self.sources:
            return self.sources[statement.name.lower()]
        if _is_true(options.get("streaming")):
            return self.reader(statement, options)
        of_spark = next((name for name in options if name.startswith(OF_SPARK)), None)
        if of_spark is not None:
            raise _at(statement, of_spark, "Only a streaming source is read by Spark's own reader.", "streaming = true")
        if "source" not in options:
            known = closest(statement.name, self.sources) if self.sources else "add source = 'folder/*.parquet'"
            raise statement.error("The source is not given.", got=statement.name, hint=known)
        if live_options.is_live(options):
            return live_options.live_source(options)
        if "format" in options:
            kind = one_kind([place.path for place in expand(options["source"])])
            if kind != options["format"].lower():
                raise _at(statement, "format", "The files are of another format.", f"they are {kind}")
        return options["source"]

    def reader(self, statement: CreateStream | CreateTable, options: Mapping[str, str]) -> Any:
        """Spark's reader of a stream, which the flow loads under the stream's name."""
        if self.flow.spark is None:
            raise _at(statement, "streaming", "In-process a source is read as it comes.", "leave it out")
        if "format" not in options:
            raise statement.error("Spark needs the format of a stream.", got=statement.name, hint="format = 'parquet'")
        reader = self.flow.spark.readStream.format(options["format"])
        if statement.columns is not None:
            reader = reader.schema(statement.columns)
        for name, value in options.items():
            if name.startswith(OF_SPARK):
                reader = reader.option(name.removeprefix(OF_SPARK), value)
        return reader.option("path", options["source"]) if "source" in options else reader

    # Views, sinks and queries

    def view(self, statement: CreateView) -> None:
        catalog = self.flow.catalog
        if not NAME.fullmatch(statement.name):
            raise statement.error("A view's name must be an identifier.", got=statement.name)
        catalog.check_free(statement.name)
        catalog.views[statement.name.lower()] = bind_view(statement.in_place, catalog)

    def sink(self, statement: CreateSink) -> None:
        _check_known(statement, statement.options, SINK_OPTIONS)
        name = statement.name.lower()
        if name in self.sinks and "path" in statement.options:
            raise statement.error("There is a sink of that name already.", got=statement.name)
        options: dict[str, Any] = {key: option.value for key, option in statement.options.items()}
        target = options.pop("path", None) or self.sinks.get(name, (None,))[0]
        if target is None:
            raise statement.error("The path is not given.", got=statement.name, hint="add path = 'out.parquet'")
        if "max_dead" in options:
            options["max_dead"] = _number(statement, "max_dead")
        if "buckets" in options:
            options["buckets"] = int(_number(statement, "buckets"))
        if "trigger" in options:
            now = options["trigger"].lower() == "available now"
            options["trigger"] = AVAILABLE if now else {"processingTime": options["trigger"]}
        if isinstance(target, str) and live_options.is_address(target):
            target = live_options.live_sink(target, options)
        elif "max_held" in options:
            raise _at(statement, "max_held", "Only readers of a port hold something back.", "leave it out")
        options.pop("max_held", None)
        self.sinks[name] = (target, options)

    def insert(self, statement: InsertInto) -> None:
        name = statement.target
        if any(output.target.lower() == name.lower() for output in self.outputs):
            raise statement.error("Two queries write to one sink.", got=name, hint="UNION them, or give each its own")
        if not statement.is_path and name.lower() not in self.sinks:
            hint = closest(name, self.sinks) if self.sinks else f"CREATE SINK {name} WITH (path = 'out.parquet')"
            raise statement.error("Unknown sink.", got=name, hint=hint)
        sink, options = (name, {}) if statement.is_path else self.sinks[name.lower()]
        if statement.is_path and live_options.is_address(name):
            sink = live_options.live_sink(name, {})
        sink, options = by_uri(sink), {option: by_uri(value) for option, value in options.items()}
        for path in (p for p in (sink, options.get("late"), options.get("dead_letters")) if isinstance(p, str)):
            check_not_read(path, self.read)
        called = None if statement.is_path else name
        query = self.flow._query_in(statement.in_place, statement.query, called)
        self.outputs.append(Output(query, name, sink, options))


@contextmanager
def _told_at(statement: Statement) -> Iterator[None]:
    """What goes wrong is told with the place in the script, as the user has written it."""
    try:
        yield
    except QueryError as error:
        raise QueryError(
            error.what, sql=statement.script, line=error.line, column=error.column, got=error.got, hint=error.hint
        ) from None
    except UnsupportedError:
        raise
    except PenstockError as error:
        raise statement.error(error.what, got=error.got, hint=error.hint) from error


@contextmanager
def _told_at_key(statement: CreateStream) -> Iterator[None]:
    """What is wrong with a column of the update key is told where that is named."""
    try:
        yield
    except StreamError as error:
        places = dict(zip(map(str.lower, statement.update_key or ()), statement.key_places, strict=True))
        at = places.get(error.got.lower()) if "update" in error.what else None
        if at is None:
            raise
        raise statement.error(error.what, got=error.got, hint=error.hint, at=at) from error


def _at(statement: CreateStream | CreateTable | CreateSink, option: str, what: str, hint: str) -> QueryError:
    found = statement.options[option]
    return statement.error(what, got=f"{option} = {found.value[:60]}", hint=hint, at=found.offset)


def _check_known(
    statement: Statement, options: Mapping[str, Option], known: tuple[str, ...], prefix: str | None = None
) -> None:
    for name, option in options.items():
        if name not in known and not (prefix is not None and name.startswith(prefix)):
            raise statement.error("Unknown option.", got=name, hint=closest(name, known), at=option.named_at)


def _progress(statement: CreateStream, option: Option) -> Progress:
    """As in Python, or in words: `ordered`, `bounded 5 seconds`, `bounded 100 rows`."""
    text = option.value
    worded = _WORDED.match(text)
    if worded is not None:
        how, length = worded[1].lower(), worded[2]
        rows = _ROWS.fullmatch(length or "")
        number = (length or "").isdecimal()
        said = f"rows={rows[1]}" if rows else (length if number else repr(length)) if length else ""
        text = f"{how}({said})"
    try:
        return parse_progress(text)
    except StreamError as error:
        raise statement.error(
            error.what, got=option.value[:200], hint=error.hint or "write 'bounded 5 seconds'", at=option.offset
        ) from None


def _number(statement: CreateSink, option: str) -> float:
    try:
        number = float(statement.options[option].value)
    except ValueError:
        raise _at(statement, option, "A number is expected here.", "write 10, or a fraction such as 0.01") from None
    return int(number) if number >= 1 and number == int(number) else number


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"
