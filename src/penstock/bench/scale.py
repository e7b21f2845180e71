"""`penstock bench scale`: constants for a model of clusters (`scale_model`), and the model beside what happens.

Pieces that are plain Python are timed alone, in this process; what is Spark's, on one executor. Then the query runs on
1, 2 and 4 executors, each a process of its own, under three loads that none of the constants was taken from: few keys,
so many keys that rows travel as they are, and more buckets than cores. The bars, set before: how long a micro-batch
takes beside the same on one executor is predicted within a factor of 1.5, and how long it takes, within 2.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.bench.scale_model import Cluster, Constants, Load, estimate
from penstock.bench.scale_pieces import RANGE, SLIDE, Pieces
from penstock.bench.scale_spark import Done, Took, Trial, Work, constants_of, constants_work, in_process_of_its_own

EXECUTORS = (1, 2, 4)
RELATIVE, ABSOLUTE = 1.5, 2.0
Say = Callable[[str], None]
Runner = Callable[[Work], Done]


def trials_of(rows: int) -> dict[str, Trial]:
    """The loads under which the model is checked; four tasks read."""
    return {
        "few keys": Trial(rows, 1000, 4, 4),
        "many keys": Trial(rows, 1_000_000, 4, 4),
        "many buckets": Trial(rows // 5, 1000, 4, 16),
    }


def measured_constants(rows: int, runner: Runner, say: Say) -> Constants:
    """Everything that the model needs."""
    pieces = Pieces()
    plain = {**pieces.reading(rows), **pieces.stage(rows // 5, 5 * rows), **pieces.taking(256)}
    plain |= {**pieces.promising(1000), **pieces.driver(1000)}
    work = constants_work(rows)
    sparks = constants_of(work, runner(work), plain["reduce_row"])
    found = {**plain, **sparks, "state_byte": plain["page_byte"] + sparks["store_byte"]}
    names = [f.name for f in fields(Constants)]
    for name in names:
        say(f"{name:14} {found[name]:.3g}")
    return Constants(**{name: float(found[name]) for name in names})


def predicted(constants: Constants, executors: int, trial: Trial) -> float:
    """Seconds of a micro-batch on executors of one core each, that share the cores of this machine."""
    hardware = min(executors, os.cpu_count() or 1)
    cluster = Cluster(executors, 1, trial.buckets, trial.tasks, hardware, network=float("inf"))
    load = Load(trial.keys, trial.rows / SLIDE, SLIDE, RANGE, SLIDE)
    return estimate(constants, cluster, load).seconds


def apart(one: float, other: float) -> float:
    """By which factor two numbers differ."""
    return max(one / other, other / one)


@dataclass
class ScaleBench:
    """One run of the benchmark."""

    rows: int
    """In a micro-batch."""
    say: Say = print
    runner: Runner = in_process_of_its_own
    table: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> Report:
        """Constants, then the model beside what happens."""
        constants = measured_constants(self.rows, self.runner, self.say)
        trials = trials_of(self.rows)
        took = {n: self.runner(Work(n, tuple(trials.values()))).trials for n in EXECUTORS}
        for at, (name, trial) in enumerate(trials.items()):
            for executors in EXECUTORS:
                self._keep(name, executors, took[executors][at], predicted(constants, executors, trial))
        rows = [{"constant": name, "value": float(f"{value:.4g}")} for name, value in asdict(constants).items()]
        return Report("scale", [*rows, *self.table], self._claims())

    def _keep(self, name: str, executors: int, took: Took, expected: float) -> None:
        of_tasks = {"a task ms": round(1000 * took.task), "a bucket ms": round(1000 * took.bucket)}
        whole = {"measured ms": round(1000 * took.whole), "predicted ms": round(1000 * expected)}
        self.table.append({"load": name, "executors": executors, **of_tasks, **whole})
        self.say(f"{name:14} {executors} executors  {took.whole:7.3f} s  predicted {expected:7.3f} s")

    def _claims(self) -> list[Claim]:
        def beside_one(row: dict[str, Any], what: str) -> float:
            (alone,) = [r for r in self.table if r["load"] == row["load"] and r["executors"] == 1]
            return float(row[what] / alone[what])

        relative = [
            apart(beside_one(r, "measured ms"), beside_one(r, "predicted ms")) for r in self.table if r["executors"] > 1
        ]
        absolute = [apart(r["measured ms"], r["predicted ms"]) for r in self.table]
        told = "Spark scale: worst prediction of a micro-batch"
        return [
            Claim(f"{told} beside one executor's, factor", max(relative), RELATIVE, "lower"),
            Claim(f"{told}, factor", max(absolute), ABSOLUTE, "lower"),
        ]
