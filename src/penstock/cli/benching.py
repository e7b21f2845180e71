"""`penstock bench`: the benchmarks with their tables and claims."""

from __future__ import annotations

from penstock.bench.claims import Report
from penstock.cli.show import err, out, print_json
from penstock.errors import StreamError


def run_bench(name: str, rows: int, master: str, *, as_json: bool) -> None:
    """Run one benchmark and show what it came to."""
    if name != "windows":
        raise StreamError("There is no such benchmark.", got=name, hint="penstock bench windows")
    from penstock.bench.windows import bench_windows
    from penstock.engines.spark.session import local_session

    def say(line: str) -> None:
        if err.is_terminal and not as_json:
            err.print(line, highlight=False)

    report = bench_windows(local_session(master), rows, say)
    if as_json:
        print_json(report.as_json())
    else:
        show(report)


def show(report: Report) -> None:
    """The claims, and who was absent."""
    for row in report.rows:
        out.print("  ".join(f"{k}={v}" for k, v in row.items()), highlight=False)
    for claim in report.claims:
        mark = "[green]holds[/green]" if claim.holds else "[red]missed[/red]"
        sign = ">=" if claim.better == "higher" else "<="
        out.print(f"{mark}  {claim.name}: {claim.value:.2f} ({sign} {claim.bar:g})", highlight=False)
    if report.absent:
        out.print(f"absent, and not claimed about: {', '.join(report.absent)}")
