"""`penstock bench`: the benchmarks with their tables, plots and claims."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.table import Table

from penstock.bench.claims import Report
from penstock.cli.show import err, out, print_json
from penstock.errors import StreamError

Say = Callable[[str], None]


@lru_cache(maxsize=1)
def _session(master: str) -> Any:
    """The session of all benchmarks of a command; it keeps a log of its events until the command ends."""
    from penstock.bench.event_log import event_log_settings
    from penstock.engines.spark.session import local_session

    events = Path(tempfile.mkdtemp(prefix="penstock-events-"))
    atexit.register(shutil.rmtree, events, ignore_errors=True)
    return local_session(master, **{k.replace(".", "__"): v for k, v in event_log_settings(events).items()})


def _windows(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.windows import bench_windows

    return bench_windows(_session(master), rows, say)


def _latency(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.latency import LatencyBench

    return LatencyBench(max(rows // 10, 1000), master, say).run()


def _memory(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.memory import bench_memory

    return bench_memory(_session(master), max(rows // 10, 1000), say)


def _queries(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.queries import QueriesBench

    return QueriesBench(max(rows // 2, 1000), say).run()


def _shapes(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.shape_streams import ShapeStreamsBench
    from penstock.bench.shapes import ShapesBench

    in_process = ShapesBench(max(rows // 2, 1000), say).run()
    return in_process.with_more(ShapeStreamsBench(_session(master), max(rows // 16, 1000), say).run())


def _stages(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.stage_tasks import StageTasksBench
    from penstock.bench.stages import StagesBench

    spark, large = _session(master), max(rows // 4, 8000)
    return StagesBench(spark, large, say).run().with_more(StageTasksBench(spark, large, say).run())


def _joins(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.join_streams import JoinStreamsBench
    from penstock.bench.joins import JoinsBench

    in_process = JoinsBench(max(rows // 4, 10_000), say).run()
    return in_process.with_more(JoinStreamsBench(_session(master), max(rows // 80, 1000), say).run())


def _nexmark(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.nexmark_rates import NexmarkBench
    from penstock.bench.nexmark_streams import NexmarkStreamsBench

    in_process = NexmarkBench(max(rows // 4, 10_000), say).run()
    return in_process.with_more(NexmarkStreamsBench(_session(master), max(rows // 4, 10_000), say).run())


def _scale(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.scale import ScaleBench

    return ScaleBench(max(rows // 20, 20_000), say).run()


def _queues(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.queues import QueuesBench

    return QueuesBench(max(rows // 2, 10_000), say).run()


def _conflation(rows: int, master: str, say: Say) -> Report:
    from penstock.bench.conflation import ConflationBench

    return ConflationBench(_session(master), max(rows / 50_000, 12.0), say).run()


BENCHES: dict[str, Callable[[int, str, Say], Report]] = {
    "windows": _windows,
    "latency": _latency,
    "memory": _memory,
    "queries": _queries,
    "shapes": _shapes,
    "stages": _stages,
    "joins": _joins,
    "nexmark": _nexmark,
    "scale": _scale,
    "queues": _queues,
    "conflation": _conflation,
}


def run_bench(name: str, rows: int, master: str, *, as_json: bool, save: Path | None) -> None:
    """Run one benchmark or all of them and show what it came to."""
    if name != "all" and name not in BENCHES:
        raise StreamError("There is no such benchmark.", got=name, hint=f"one of {', '.join(BENCHES)}, all")

    def say(line: str) -> None:
        if not as_json:
            err.print(line, highlight=False)

    reports = [bench(rows, master, say) for key, bench in BENCHES.items() if name in (key, "all")]
    if save is not None:
        keep(reports, save)
    if as_json:
        print_json(reports[0].as_json() if name != "all" else {r.name: r.as_json() for r in reports})
        return
    for report in reports:
        show(report)


def _lmerge(events: int | None, figure: str | None, say: Say) -> list[Report]:
    from penstock.papers.lmerge import Experiments

    if figure is not None:
        raise StreamError("The experiments of this paper run together.", got=figure, hint="leave --figure out")
    return [Experiments(events or 10_000, say).run()]


def _window_queries(events: int | None, figure: str | None, say: Say) -> list[Report]:
    from penstock.papers import adaptive_joins, many_joins
    from penstock.papers.window_joins import FIGURES, TUPLES, JoinExperiment

    runs: dict[str, Callable[[], Report]] = {name: JoinExperiment(name, events or TUPLES, say).run for name in FIGURES}
    runs["9"] = adaptive_joins.AdaptiveExperiment((events or 2 * adaptive_joins.ROWS) // 2, say).run
    runs["many"] = many_joins.ManyExperiment((events or 3 * many_joins.ROWS) // 3, say).run
    if figure is not None and figure not in runs:
        raise StreamError("There is no such figure.", got=figure, hint=f"one of {', '.join(runs)}")
    return [run() for name, run in runs.items() if figure in (name, None)]


def _upstream(events: int | None, figure: str | None, say: Say, clock: str = "simulated") -> list[Report]:
    from penstock.papers import upstream

    return upstream.run(events, figure, say, clock)


def _stream_mill(events: int | None, figure: str | None, say: Say) -> list[Report]:
    from penstock.papers import stream_mill

    return stream_mill.run(events, figure, say)


def _genmig(events: int | None, figure: str | None, say: Say) -> list[Report]:
    from penstock.papers import genmig

    return genmig.run(events, figure, say)


PAPERS = {
    "lmerge": _lmerge,
    "window-queries": _window_queries,
    "upstream": _upstream,
    "stream-mill": _stream_mill,
    "genmig": _genmig,
}


def run_papers(
    name: str, events: int | None, figure: str | None, clock: str | None = None, *, as_json: bool, save: Path | None
) -> None:
    """Run the experiments of one paper and show what they came to."""
    if name not in PAPERS:
        raise StreamError(
            "There are no experiments of that name.", got=name, hint=f"penstock papers {' or '.join(PAPERS)}"
        )

    def say(line: str) -> None:
        if not as_json:
            err.print(line, highlight=False)

    if clock is not None and name != "upstream":
        raise StreamError("Only the experiments of upstream have clocks.", got=f"--clock {clock}", hint="leave it out")
    reports = _upstream(events, figure, say, clock) if clock is not None else PAPERS[name](events, figure, say)
    if save is not None:
        keep(reports, save)
    if as_json:
        print_json(reports[0].as_json() if len(reports) == 1 else {r.name: r.as_json() for r in reports})
        return
    for report in reports:
        show(report)


def keep(reports: list[Report], folder: Path) -> None:
    """Each report as JSON, and the plots of those that have some, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for report in reports:
        (folder / f"{report.name}.json").write_text(json.dumps(report.as_json(), indent=1) + "\n")
        if report.name == "windows":
            from penstock.bench.plot import plot_windows

            plot_windows(report.as_json()["rows"], folder / "windows.svg")
        if report.name == "lmerge":
            from penstock.papers.plots import plot_lmerge

            plot_lmerge(report.rows, folder)
        if report.name.startswith("window-queries-7"):
            from penstock.papers.plots import plot_joins

            plot_joins(report.rows, folder / f"{report.name}.svg")
        if report.name.startswith("upstream-"):
            from penstock.papers import upstream

            upstream.plot(report.name, report.rows, folder)
        if report.name.startswith("stream-mill-"):
            from penstock.papers import stream_mill

            stream_mill.plot(report.name, report.rows, folder)
        if report.name.startswith("genmig-"):
            from penstock.papers import genmig

            genmig.plot(report.name, report.rows, folder)


def show(report: Report) -> None:
    """The rows, the claims, and who was absent."""
    shown = ((key, value) for row in report.rows for key, value in row.items())
    columns = list(dict.fromkeys(key for key, value in shown if not isinstance(value, list)))  # lists are for plots
    table = Table(*columns, title=report.name, box=None, title_justify="left")
    for row in report.rows:
        table.add_row(*[_cell(row.get(c)) for c in columns])
    out.print(table)
    for claim in report.claims:
        mark = "[green]holds[/green] " if claim.holds else "[red]missed[/red]"
        sign = ">=" if claim.better == "higher" else "<="
        out.print(f"{mark}  {claim.name}: {claim.value:.2f} ({sign} {claim.bar:g})", highlight=False)
    if report.absent:
        out.print(f"absent, and not claimed about: {', '.join(report.absent)}")


def _cell(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
