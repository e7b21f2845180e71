"""The commands and their options."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.inputs import StreamOption, check_given, read_query, streams
from penstock.cli.scripts import Result, as_one_object, show_plans, show_written, write_outputs
from penstock.cli.show import out, print_json, working
from penstock.errors import StreamError
from penstock.flow.flow import Flow
from penstock.io.files import check_not_read
from penstock.io.sinks import open_sink

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Exact continuous SQL over late, revised, replicated and bursty streams, on Spark and in-process.",
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"penstock {version('penstock')}", highlight=False)
        raise typer.Exit


@app.callback()
def penstock(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact continuous SQL over late, revised, replicated and bursty streams, on Spark and in-process."""


Query = Annotated[str, typer.Argument(help="A file with SQL, or the SQL itself.")]
Streams = Annotated[list[str], typer.Option("-s", "--stream", help="A stream as name=path; repeat for more.")]
Times = Annotated[list[str], typer.Option("--time", help="The time column, for all streams or as name=column.")]
Progresses = Annotated[
    list[str],
    typer.Option(
        "--progress",
        help="ordered(), bounded('5 seconds'), punctuated(…), per_source(…) or estimated(…), for all or as name=….",
    ),
]
Schemas = Annotated[
    list[str], typer.Option("--schema", help="A DDL string where the files do not tell, for all streams or as name=….")
]
Formats = Annotated[
    list[str],
    typer.Option(
        "--time-format",
        help="How the time is written: epoch_s, epoch_ms, epoch_us, epoch_ns or a pattern, for all or as name=….",
    ),
]
Delimiters = Annotated[
    list[str], typer.Option("--delimiter", help="What separates the fields of CSV files, for all streams or as name=….")
]
EngineOption = Annotated[str, typer.Option("--engine", help="spark or local.")]
Master = Annotated[str, typer.Option("--master", help="Spark's master.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def _flow(engine: str, master: str, given: list[StreamOption]) -> Flow:
    if engine not in ("spark", "local"):
        raise StreamError("There is no such engine.", got=engine, hint="--engine spark or --engine local")
    spark: Any = None
    if engine == "spark":
        from penstock.engines.spark.session import local_session

        spark = local_session(master)
    flow = Flow(spark)
    for option in given:
        flow.stream(
            option.name,
            option.path,
            time=option.time,
            progress=option.progress,
            schema=option.schema,
            time_format=option.time_format,
            delimiter=option.delimiter,
        )
    return flow


@app.command()
def run(
    query: Query,
    stream: Streams = [],  # noqa: B006 - typer reads the default
    time: Times = [],  # noqa: B006
    progress: Progresses = [],  # noqa: B006
    schema: Schemas = [],  # noqa: B006
    time_format: Formats = [],  # noqa: B006
    delimiter: Delimiters = [],  # noqa: B006
    engine: EngineOption = "spark",
    master: Master = "local[2]",
    into: Annotated[
        str | None, typer.Option("--into", "-o", help="Write the result to a .parquet, .csv or .jsonl file.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many rows to show.")] = 20,
    max_dead: Annotated[
        float | None,
        typer.Option("--max-dead", help="Fail when more rows are dead letters: a number, or a fraction below 1."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a query or a script over files, and show or write its result."""
    sql = read_query(query)
    given = streams(stream, time, progress, schema, time_format, delimiter)
    check_given(given, sql)
    if into is not None:
        check_not_read(into, {option.name: [option.path] for option in given})
    with working("running", quiet=as_json), ExitStack() as held:
        sink = None if into is None else open_sink(into)
        if sink is not None:
            held.callback(sink.abandon)  # whatever goes wrong, the file is let go
        script = _flow(engine, master, given).sql(sql)
        written = write_outputs(script)
        borne = int(max_dead) if max_dead is not None and max_dead >= 1 else max_dead
        asked = script.queries if sink is None else [script.query]
        results = [Result(q, q.collect(max_dead=borne)) for q in asked]
        if sink is not None:
            sink.write(results[0].table)
            held.pop_all()
            sink.close()
    if as_json:
        print_json(as_one_object(results, written))
        return
    show_written(written)
    for result in results:
        result.show(limit, into)


@app.command()
def serve(
    script: Annotated[str, typer.Argument(help="A file with a script, or the script itself.")],
    stream: Streams = [],  # noqa: B006
    time: Times = [],  # noqa: B006
    progress: Progresses = [],  # noqa: B006
    schema: Schemas = [],  # noqa: B006
    time_format: Formats = [],  # noqa: B006
    delimiter: Delimiters = [],  # noqa: B006
    at_signal: Annotated[
        str, typer.Option("--at-signal", help="finish puts out the windows that are open; stop leaves them.")
    ] = "finish",
    as_json: Json = False,
) -> None:
    """Run a script in-process as a service, until its sources end or SIGTERM or SIGINT comes.

    Its INSERTs are written; rows of its SELECTs are printed as JSON lines, as they come. With --json how it ended is
    the last line, as one object; without it, a line of text on the standard error. The exit code is 0, 1 if a query
    has failed, or 128 and the number of a second signal that cut it short.
    """
    from penstock.cli.serving import run_serve

    sql = read_query(script)
    given = streams(stream, time, progress, schema, time_format, delimiter)
    check_given(given, sql)
    served = run_serve(_flow("local", "", given).sql(sql), at_signal, as_json=as_json)
    if served.exit_code:
        raise typer.Exit(served.exit_code)


@app.command()
def explain(
    query: Query,
    stream: Streams = [],  # noqa: B006
    time: Times = [],  # noqa: B006
    progress: Progresses = [],  # noqa: B006
    schema: Schemas = [],  # noqa: B006
    time_format: Formats = [],  # noqa: B006
    delimiter: Delimiters = [],  # noqa: B006
    engine: EngineOption = "spark",
    master: Master = "local[2]",
    as_json: Json = False,
) -> None:
    """Show the plan of a query: each operator, how the engine runs it and why, what is known of its output."""
    sql, given = read_query(query), streams(stream, time, progress, schema, time_format, delimiter)
    check_given(given, sql)
    script = _flow(engine, master, given).sql(sql)
    if script.outputs:
        show_plans(script, as_json=as_json)
        return
    q = script.query
    if as_json:
        print_json({"plan": q.explain(), "schema": q.schema.ddl, "properties": q.properties.describe()})
    else:
        out.print(q.explain(), markup=False, highlight=False, soft_wrap=True)


@app.command()
def check(
    query: Query,
    stream: Streams = [],  # noqa: B006
    time: Times = [],  # noqa: B006
    progress: Progresses = [],  # noqa: B006
    schema: Schemas = [],  # noqa: B006
    time_format: Formats = [],  # noqa: B006
    delimiter: Delimiters = [],  # noqa: B006
    batches: Annotated[int, typer.Option("--batches", min=1, help="Into how many batches to cut each stream.")] = 4,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="Take only so many rows of each stream: the oracle is slow.")
    ] = 2000,
    evaluator: Annotated[
        list[str],
        typer.Option("--evaluator", help="reference, local, 'spark batch' or 'spark streaming'; all if none is given."),
    ] = [],  # noqa: B006
    expect_error: Annotated[
        bool, typer.Option("--expect-error", help="The query is to fail on every evaluator; that it does is success.")
    ] = False,
    master: Master = "local[2]",
    as_json: Json = False,
) -> None:
    """Run a query on every evaluator and say whether they agree, or how they differ."""
    from penstock.cli.checking import check_query

    given = streams(stream, time, progress, schema, time_format, delimiter)
    sql = read_query(query)
    check_given(given, sql)
    report = check_query(sql, given, batches, rows, evaluator, master, quiet=as_json, expects_error=expect_error)
    if as_json:
        print_json(report.as_json())
    else:
        report.show()
    if not report.passes:
        raise typer.Exit(1)


@app.command()
def demo(
    minutes: Annotated[int, typer.Option(min=1, help="How many minutes of traffic to make.")] = 20,
    rate: Annotated[float, typer.Option(help="Packets a second on each main link.")] = 25.0,
    seed: Annotated[int, typer.Option(help="Makes the traffic.")] = 7,
    master: Master = "local[2]",
    as_json: Json = False,
) -> None:
    """Three links, one idle, one skewed, all disordered.

    Q1-1 and Q1-2 as streaming queries on Spark, checked against the oracle.
    """
    from penstock.cli.demo import run_demo

    run_demo(minutes, rate, seed, master, as_json=as_json)


@app.command()
def merge(
    folders: Annotated[list[str], typer.Argument(help="Output folders of replicas of one query.")],
    into: Annotated[str, typer.Option(help="The folder for the merged rows.")],
    path: Annotated[str | None, typer.Option(help="Where the merge keeps its checkpoint.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="A column of the key, where the folders do not say.")] = None,
    driver: Annotated[str, typer.Option(help="leading, majority or a folder.")] = "leading",
    once: Annotated[bool, typer.Option("--once", help="Merge what is there and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Merge the outputs of running replicas into one folder, each row once, as long as any of them goes on.

    Replicas may come later, be killed, wiped and started anew; one that cannot be read is told, and the others go on.
    The exit code is 3 if one could not be read at the end.
    """
    from penstock.cli.merging import run_merge

    run_merge(folders, into, path, key, driver, once=once, as_json=as_json)


@app.command()
def papers(
    name: Annotated[str, typer.Argument(help="lmerge, window-queries, upstream, stream-mill or genmig.")],
    events: Annotated[
        int | None, typer.Option(min=1, help="How many events each stream has, or how many tuples all have.")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            help="Of window-queries: 7-6, 7-7, 9 or many; of upstream: 5 to 17, sharing, access, wider or switching; "
            "of stream-mill: 14a, 14b, 15, 16 or batches; of genmig: 2, 4, 5 or 6; all by default."
        ),
    ] = None,
    clock: Annotated[
        str | None, typer.Option(help="Of upstream: simulated, or wall for runs in real time; simulated by default.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="A folder for the results as JSON and the plots.")] = None,
    as_json: Json = False,
) -> None:
    """Run the experiments of a paper; what is claimed is a ratio with a bar."""
    from penstock.cli.benching import run_papers

    run_papers(name, events, figure, clock, as_json=as_json, save=save)


@app.command()
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help="windows, latency, memory, queries, shapes, stages, joins, nexmark, scale, queues, conflation or all."
        ),
    ] = "all",
    rows: Annotated[int, typer.Option(min=1, help="Rows of the window benchmark; others have a part.")] = 4_000_000,
    save: Annotated[Path | None, typer.Option(help="A folder for the results as JSON and the plot.")] = None,
    master: Master = "local[2]",
    as_json: Json = False,
) -> None:
    """Measure Penstock beside its peers in one run; what is claimed is a ratio with a bar."""
    from penstock.cli.benching import run_bench

    run_bench(name, rows, master, as_json=as_json, save=save)
