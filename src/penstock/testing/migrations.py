"""Plays migrations: steps go to an operator that is migrated on the way, and the oracle is told what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.operators.migration.migrating import Migrating
from penstock.operators.migration.ways import SPLIT, Way
from penstock.operators.operator import Output
from penstock.reference.migration import Arrival, Migration
from penstock.reference.snapshot_plans import SnapshotPlan
from penstock.testing.boxes import Builder, batch_of, bound
from penstock.testing.snapshot_plans import Said, Step


def reaches(plan: SnapshotPlan, ports: int) -> list[int | None]:
    """How long an event matters after its end, by input."""
    return [plan.reach(port) for port in range(ports)]


@dataclass
class Play:
    """A plan that runs, and is replaced now and then."""

    schemas: Sequence[Schema]
    plan: SnapshotPlan
    revises: bool = False
    ordered: bool = False
    outputs: list[Output] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    migrations: list[tuple[SnapshotPlan, int, int]] = field(default_factory=list)
    """The plan that was put in place, T, and how much had arrived."""

    def __post_init__(self) -> None:
        """The first plan runs."""
        box = Builder(self.schemas).box(self.plan)
        self.running = Migrating(box, self.schemas, revises=self.revises, ordered=self.ordered)

    def feed(self, steps: Sequence[Step]) -> Play:
        """Events come, and promises."""
        for step in steps:
            if isinstance(step, Said):
                self.outputs += self.running.punctuate(step.port, bound(step.bound))
            else:
                port, event = step
                self.arrivals.append(step)
                self.outputs += self.running.process(port, batch_of(self.schemas[port], [event]))
        return self

    def replace(self, plan: SnapshotPlan, *, way: Way = SPLIT, split: int | None = None) -> int:
        """Put another plan in place; T."""
        reach = reaches(plan, len(self.schemas))
        at = self.running.split_time(reach, way=way) if split is None else split
        self.outputs += self.running.replace(Builder(self.schemas).box(plan), reach, way=way, split=split)
        self.migrations.append((plan, at, len(self.arrivals)))
        return at

    def oracle(self, number: int = 0) -> Migration:
        """What the oracle is told of a migration."""
        old = self.migrations[number - 1][0] if number else self.plan
        new, split, activation = self.migrations[number]
        return Migration(old, new, split, activation, self.arrivals, len(self.schemas))

    @property
    def has_ended(self) -> bool:
        """Whether the last thing that was said is that all is over."""
        last = self.outputs[-1] if self.outputs else None
        return isinstance(last, Punctuation) and last.is_end
