"""The demonstration: traffic on three links, two queries as streaming queries on Spark, and the proof of their answers.

The Control link is silent nine tenths of the time, Main2 arrives four minutes after Main1, and each link is disordered
in itself. Q1-1 reads all links as one stream in which each link progresses by itself. Q1-2 reads them as three streams;
Control carries heartbeats, so that its silence holds nobody back. Beside them runs what people write today: Spark's own
windows under a watermark of thirty seconds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from penstock.cli.show import note, out, print_json, print_table, working
from penstock.engines.spark.baseline import counted_under_watermark
from penstock.engines.spark.session import local_session
from penstock.flow.flow import Flow
from penstock.model.batch import Batch, Row
from penstock.model.progress import bounded, per_source, punctuated
from penstock.model.tdb import TDB
from penstock.model.time import SECOND
from penstock.reference import evaluate
from penstock.testing.generators import Link, packets
from penstock.verify.evaluators import tdb_of_table

Q1_1 = "SELECT srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM M GROUP BY srcIP"
Q1_2 = "SELECT count (*) [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM Control union Main1 union Main2"
SKEW, DISORDER = 240, 5
FILES = 12
LINKS = ("Control", "Main1", "Main2")
HEARTBEAT_EVERY = 200
NEXT = """
[bold]Try next[/bold]
  penstock demo --rate 100 --seed 8                            other traffic
  penstock explain query.sql -s main=yours.parquet --time ts   what runs, and why
  penstock check query.sql -s main=yours.parquet --time ts     every evaluator on your data
  docs/tutorial.md                                             your first query in Python"""


@dataclass(frozen=True)
class DemoOutcome:
    """How a query of the demonstration went."""

    name: str
    sql: str
    result: pa.Table
    progress: Mapping[str, Any]
    expected: TDB
    got: TDB
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether Spark's answer is the oracle's."""
        return self.got == self.expected

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        windows = len(set(self.result["wid"].to_pylist()))
        return {
            "query": self.name,
            "agrees": self.agrees,
            "windows": windows,
            "rows": self.result.num_rows,
            **self.progress,
        }


def run_demo(minutes: int, rate: float, seed: int, master: str, *, as_json: bool) -> None:
    """Make traffic, run the queries, compare, tell."""
    links = {
        "Control": Link(rate=2.0, idle=0.9, disorder=DISORDER),
        "Main1": Link(rate=rate, disorder=DISORDER),
        "Main2": Link(rate=rate, skew=SKEW, disorder=DISORDER),
    }
    traffic = packets(links, seconds=minutes * 60, seed=seed, hosts=50)
    if not as_json:
        _introduce(traffic, links, minutes)
    home = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    try:
        _write(traffic, home / "all")
        _write(with_heartbeats(traffic), home / "links")
        with working("starting Spark", quiet=as_json):
            spark = local_session(master)
        demonstration = Demonstration(spark, home, traffic, quiet=as_json)
        outcomes = [demonstration.one_stream(), demonstration.three_streams()]
        with working("Spark's own window() under a watermark of 30 seconds", quiet=as_json):
            counted = counted_under_watermark(
                spark, str(home / "all"), "ts", "30 seconds", "1 minute", str(home / "baseline")
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if as_json:
        _print_claims(outcomes, traffic.num_rows, counted)
    else:
        _tell(outcomes, traffic.num_rows, counted)


class Demonstration:
    """The two queries over the traffic in `home`."""

    def __init__(self, spark: Any, home: Path, traffic: pa.Table, *, quiet: bool) -> None:
        """`quiet` leaves the progress bar out."""
        self.spark, self.home, self.traffic, self.quiet = spark, home, traffic, quiet

    def one_stream(self) -> DemoOutcome:
        """Q1-1: each link of one stream progresses by itself; one that is six minutes behind counts as idle."""
        flow = Flow(self.spark, path=str(self.home / "flow"))
        progress = per_source("link", idle="6 minutes", disorder=f"{DISORDER} seconds", sources=LINKS)
        flow.stream("M", self._read("all"), time="ts", progress=progress)
        return self._run(flow, "Q1-1", Q1_1, {"M": self.traffic})

    def three_streams(self) -> DemoOutcome:
        """Q1-2: three streams with a progress of their own; Control is driven by its heartbeats."""
        flow = Flow(self.spark, path=str(self.home / "flow"))
        frame = self._read("links")
        flow.stream(
            "Control",
            frame.filter("link = 'Control'"),
            time="ts",
            progress=punctuated("kind = 'heartbeat'", whole_stream=True),
        )
        for name in ("Main1", "Main2"):
            flow.stream(name, frame.filter(f"link = '{name}'"), time="ts", progress=bounded(f"{DISORDER} seconds"))
        marked = _marked(self.traffic, "packet")
        return self._run(flow, "Q1-2", Q1_2, {n: marked.filter(pc.equal(marked["link"], n)) for n in LINKS})

    def _read(self, folder: str) -> Any:
        path = str(self.home / folder)
        reader = self.spark.readStream.schema(self.spark.read.parquet(path).schema)
        return reader.option("maxFilesPerTrigger", 1).parquet(path)

    def _run(self, flow: Flow, name: str, sql: str, inputs: dict[str, pa.Table]) -> DemoOutcome:
        query = flow.query(sql, name=name.replace("-", "_"))
        target = str(self.home / f"{name}-out")
        total = sum(t.num_rows for t in inputs.values())
        started = time.monotonic()
        with working(f"{name} on Spark", quiet=self.quiet) as progress:
            run = query.start(target)
            while run.is_active and run.progress.batches < FILES:
                time.sleep(0.2)
                seen = run.progress
                note(progress, f"{seen['read']} of {total} packets, {seen['late']} late", seen["read"], total)
            run.finish()
            seconds = time.monotonic() - started
            note(progress, "comparing with the oracle", total, total)
            result = self.spark.read.parquet(target).toArrow()
            expected = evaluate(query.plan, [arrival for n, t in inputs.items() for arrival in _arrivals(flow, n, t)])
        return DemoOutcome(name, sql, result, run.progress, expected, tdb_of_table(result, query.form), seconds)


def _arrivals(flow: Flow, name: str, table: pa.Table) -> list[tuple[str, Row]]:
    info = flow.catalog.stream(name)
    assert info is not None
    batch = Batch(info.schema, table=table.select(info.schema.names).cast(info.schema.arrow))
    return [(info.name, row) for row in batch.rows]


def _write(table: pa.Table, folder: Path) -> None:
    """The table as files in order of arrival, one micro-batch each."""
    folder.mkdir(parents=True)
    size = -(-table.num_rows // FILES)
    for i in range(FILES):
        path = folder / f"{i:03d}.parquet"
        pa.parquet.write_table(table.slice(i * size, size), path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))


def with_heartbeats(traffic: pa.Table) -> pa.Table:
    """The traffic with a column `kind`, and heartbeats of the Control link among it.

    Main1 is in step with Control, so what Main1 has reached less the disorder, Control has surely reached too.
    """
    parts: list[pa.Table] = []
    reached = 0
    for start in range(0, traffic.num_rows, HEARTBEAT_EVERY):
        part = traffic.slice(start, HEARTBEAT_EVERY)
        parts.append(_marked(part, "packet"))
        main1 = pc.max(pc.cast(part.filter(pc.equal(part["link"], "Main1"))["ts"], pa.int64())).as_py()
        reached = max(reached, (main1 or 0) - DISORDER * SECOND)
        if reached > 0:
            values = {
                "ts": pa.array([reached], pa.int64()).cast(part.schema.field("ts").type),
                "link": pa.array(["Control"]),
            }
            beat = [values.get(f.name, pa.nulls(1, f.type)) for f in part.schema]
            parts.append(_marked(pa.Table.from_arrays(beat, schema=part.schema), "heartbeat"))
    return pa.concat_tables(parts)


def _marked(table: pa.Table, kind: str) -> pa.Table:
    return table.append_column("kind", pa.repeat(pa.scalar(kind), table.num_rows))


# What is printed


def _introduce(traffic: pa.Table, links: dict[str, Link], minutes: int) -> None:
    out.print(f"[bold]{traffic.num_rows} packets on three links, {minutes} minutes, in order of arrival[/bold]")
    for name, link in links.items():
        count = pc.sum(pc.equal(traffic["link"], name)).as_py()
        habits = f"silent {link.idle:.0%} of the time, {link.skew:g} s behind, disorder up to {link.disorder:g} s"
        out.print(f"  {name:8} {count:6} packets, {habits}", soft_wrap=True)


def _tell(outcomes: Sequence[DemoOutcome], packets_sent: int, counted: int) -> None:
    for outcome in outcomes:
        out.print(f"\n[bold]{outcome.name}[/bold]  {outcome.sql}", highlight=False, soft_wrap=True)
        print_table(_from_the_middle(outcome.result), 8)
        seen = outcome.progress
        verdict = "[green]equals the oracle[/green]"
        if not outcome.agrees:
            verdict = f"[red]differs from the oracle[/red]\n{outcome.expected.difference(outcome.got).render('oracle')}"
        rows = f"{outcome.result.num_rows} rows from {seen['read']} packets and heartbeats"
        counts = f"{rows}, {seen['late']} late, {seen['dead']} dead letters, {outcome.seconds:.0f} s"
        out.print(f"{counts}: {verdict}", soft_wrap=True)
    lost = packets_sent - counted
    ours = sum(o.progress["late"] or 0 for o in outcomes)
    out.print(
        "\n[bold]Spark's own window() under withWatermark('ts', '30 seconds')[/bold], same input, 1-minute windows: "
        f"{counted} of {packets_sent} packets counted, [red]{lost} lost[/red] without a word. "
        f"Penstock lost {ours or 'none'}.",
        soft_wrap=True,
    )
    out.print(NEXT, highlight=False, soft_wrap=True)


def _from_the_middle(result: pa.Table) -> pa.Table:
    """The windows from the middle one on, the busiest groups first."""
    order = [("wid", "ascending")] + ([("count", "descending")] if "srcIP" in result.column_names else [])
    ordered = result.sort_by(order)
    wids = ordered["wid"].to_pylist()
    return ordered.filter(pc.greater_equal(ordered["wid"], wids[len(wids) // 2]))


def _print_claims(outcomes: Sequence[DemoOutcome], packets_sent: int, counted: int) -> None:
    claims = [
        {"name": f"{o.name} equals the oracle", "value": int(o.agrees), "bar": 1, "better": "higher", "holds": o.agrees}
        for o in outcomes
    ]
    late = sum(o.progress["late"] or 0 for o in outcomes)
    claims.append({"name": "packets lost by Penstock", "value": late, "bar": 0, "better": "lower", "holds": late == 0})
    print_json(
        {
            "rows": [o.as_json() for o in outcomes],
            "packets": packets_sent,
            "lost_under_watermark": packets_sent - counted,
            "claims": claims,
        }
    )
