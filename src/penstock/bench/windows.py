"""`penstock bench windows`: sliding windows by everyone, over RANGE/SLIDE of 1, 10, 60 and 600, in one run.

Each contestant is warmed up and then runs over the same rows, the best of a few times; slow ones get fewer rows and are
compared by their rate. Every result is compared with that of the in-process engine over the same rows. The floor is our
own query with tumbling windows of one slide.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from penstock.bench import contestants as by
from penstock.bench.claims import Claim, Report
from penstock.bench.contestants import Timing
from penstock.bench.data import SLIDE, Rows, make_rows
from penstock.bench.peers import PEERS, python_of, run_peer

RATIOS = (1, 10, 60, 600)
SKEW = 1.1
Say = Callable[[str], None]
Run = Callable[[Rows, int], Timing]


@dataclass(frozen=True)
class Contestant:
    """Who takes part: at each ratio with what share of the rows (1 in so many), best of how many runs."""

    name: str
    run: Run
    shares: dict[int, int]
    repeat: int = 3
    warm_up: bool = True


def everyone(spark: Any) -> list[Contestant]:
    """All that run in this process or in Spark; slow ones get fewer rows at the ratios where they are slow."""
    whole = dict.fromkeys(RATIOS, 1)
    found = [Contestant("in-process", by.in_process, whole, repeat=5)]
    if find_spec("duckdb") is not None:
        found.append(Contestant("DuckDB batch", by.duckdb_batch, whole))
    return [
        *found,
        Contestant("Spark batch", partial(by.spark_batch, spark), whole),
        Contestant("Spark window()", partial(by.spark_window, spark), {1: 1, 10: 1, 60: 4, 600: 40}, repeat=2),
        Contestant("Spark streaming", partial(by.spark_streaming, spark), dict.fromkeys(RATIOS, 2), repeat=2),
        Contestant(
            "window() streaming", partial(by.spark_window_stream, spark), {1: 2, 10: 2, 60: 2, 600: 80}, repeat=1
        ),
    ]


PEER_SHARES = {
    "flink": {1: 1, 10: 1, 60: 1, 600: 4},
    "bytewax": {1: 40, 10: 40, 60: 80, 600: 800},
    "pathway": {1: 40, 10: 40, 60: 80, 600: 800},
}


@dataclass
class WindowBench:
    """One run of the benchmark."""

    home: str
    spark: Any
    rows: int
    say: Say = print
    timings: dict[tuple[str, int], Timing] = field(default_factory=dict)
    skewed: dict[tuple[str, int], Timing] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    _expected: dict[tuple[int, float, int], by.Fingerprint] = field(default_factory=dict)
    _sets: dict[tuple[int, float], Rows] = field(default_factory=dict)

    def data(self, rows: int, skew: float = 0.0) -> Rows:
        """The data set of a size, made once."""
        if (rows, skew) not in self._sets:
            self._sets[rows, skew] = make_rows(self.home, rows, skew=skew)
        return self._sets[rows, skew]

    def run(self) -> Report:
        """All contestants at all ratios, then some of them again over keys of which a few are very frequent."""
        contestants = everyone(self.spark)
        for contestant in contestants:
            if contestant.warm_up:
                contestant.run(self.data(max(self.rows // 40, 1000)), 10)
            for ratio, timing in self._best(contestant, RATIOS).items():
                self.timings[contestant.name, ratio] = timing
        if "DuckDB batch" not in {c.name for c in contestants}:
            self.absent.append("DuckDB")
        for peer in PEERS:
            self._peer(peer)
        for contestant in contestants:
            if contestant.name in ("in-process", "Spark batch", "Spark streaming"):
                self.skewed[contestant.name, 60] = self._best(contestant, (60,), SKEW)[60]
        return Report("windows", list(self._table()), list(self._claims()), self.absent)

    def _best(self, contestant: Contestant, ratios: Sequence[int], skew: float = 0.0) -> dict[int, Timing]:
        """The best of a few rounds, each over all ratios, so that a busy moment does not fall on one of them."""
        best: dict[int, Timing] = {}
        for _ in range(contestant.repeat):
            for ratio in ratios:
                data = self.data(max(self.rows // contestant.shares[ratio], 1), skew)
                timing = contestant.run(data, ratio)
                self._check(contestant.name, ratio, timing, skew)
                if ratio not in best or timing.seconds < best[ratio].seconds:
                    best[ratio] = timing
        for ratio, timing in best.items():
            self._tell(contestant.name, ratio, timing)
        return best

    def _check(self, name: str, ratio: int, timing: Timing, skew: float = 0.0) -> None:
        key = (timing.rows, skew, ratio)
        if key not in self._expected:
            self._expected[key] = by.in_process(self.data(timing.rows, skew), ratio).fingerprint
        if timing.fingerprint != self._expected[key]:
            raise AssertionError(
                f"{name} at {ratio} gives {timing.fingerprint}, in-process gives {self._expected[key]}"
            )

    def _tell(self, name: str, ratio: int, timing: Timing) -> None:
        self.say(f"{name:20} {ratio:4}  {timing.rate / 1e6:8.3f} M rows/s  ({timing.rows} rows)")

    def _peer(self, peer: str) -> None:
        if python_of(peer) is None:
            self.absent.append(peer)
            return
        for ratio, share in PEER_SHARES[peer].items():
            rows = max(self.rows // share, 1)
            timing = run_peer(peer, self.data(rows), ratio * SLIDE, SLIDE, rows)
            self._check(peer, ratio, timing)
            self._tell(peer, ratio, timing)
            self.timings[peer, ratio] = timing

    # What it comes to

    def _table(self) -> Iterable[dict[str, Any]]:
        for keys, timings in (("uniform", self.timings), ("skewed", self.skewed)):
            for (name, ratio), timing in timings.items():
                row = {"contestant": name, "keys": keys, "ratio": ratio, "rows": timing.rows}
                row["rows_per_second"] = round(timing.rate)
                if timing.state_rows is not None:
                    row["state_rows"] = timing.state_rows
                yield row

    def _claims(self) -> Iterable[Claim]:
        yield from self._batch_claims()
        yield from self._streaming_claims()
        yield from self._local_claims()

    def _slower(self, name: str, ratio: int, floor: tuple[str, int]) -> float:
        return self.timings[floor].rate / self.timings[name, ratio].rate

    def _batch_claims(self) -> Iterable[Claim]:
        floor = ("Spark batch", 1)
        for ratio, bar in ((60, 1.5), (600, 2.5)):
            slower = self._slower("Spark batch", ratio, floor)
            yield Claim(f"Spark batch: {ratio} against tumbling, times slower", slower, bar, "lower")
        for ratio, bar in ((60, 8.0), (600, 40.0)):
            faster = self._slower("Spark window()", ratio, ("Spark batch", ratio))
            yield Claim(f"Spark batch: {ratio} against window(), times faster", faster, bar, "higher")

    def _streaming_claims(self) -> Iterable[Claim]:
        floor = ("Spark streaming", 1)
        worst = max(self._slower("Spark streaming", r, floor) for r in RATIOS[1:])
        yield Claim("Spark streaming: worst against tumbling, times slower", worst, 2.0, "lower")
        rates = [self.timings["Spark streaming", r].rate for r in RATIOS[1:]]
        yield Claim("Spark streaming: spread from 10 to 600", max(rates) / min(rates), 1.3, "lower")
        faster = self._slower("window() streaming", 60, ("Spark streaming", 60))
        yield Claim("Spark streaming: 60 against window(), times faster", faster, 3.0, "higher")
        theirs = self.timings["window() streaming", 60].state_rows or 0
        ours = self.timings["Spark streaming", 60].state_rows or 1
        yield Claim("Spark streaming: state rows of window() per one of ours at 60", theirs / ours, 10.0, "higher")

    def _local_claims(self) -> Iterable[Claim]:
        rates = [self.timings["in-process", r].rate for r in RATIOS]
        yield Claim("in-process: spread from 1 to 600", max(rates) / min(rates), 1.5, "lower")
        for ratio in (10, 60):
            for peer, bar in (("flink", 10.0), ("bytewax", 100.0), ("pathway", 100.0)):
                if (peer, ratio) in self.timings:
                    faster = self._slower(peer, ratio, ("in-process", ratio))
                    yield Claim(f"in-process: {ratio} against {peer}, times faster", faster, bar, "higher")
            if ("DuckDB batch", ratio) in self.timings:
                slower = self._slower("in-process", ratio, ("DuckDB batch", ratio))
                yield Claim(f"in-process: {ratio} against DuckDB batch, times slower", slower, 3.0, "lower")


def bench_windows(spark: Any, rows: int, say: Say) -> Report:
    """Run the benchmark over so many rows."""
    home = tempfile.mkdtemp(prefix="penstock-bench-")
    try:
        return WindowBench(home, spark, rows, say=say).run()
    finally:
        shutil.rmtree(home, ignore_errors=True)
