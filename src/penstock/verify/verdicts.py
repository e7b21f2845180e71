"""What evaluators came to, and how that differs from what the oracle says: a verdict on each, to read and to render."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from penstock.model.tdb import TDB
from penstock.plan.nodes import Node

Evaluator = Literal["reference", "local", "spark batch", "spark streaming"]
EVALUATORS: tuple[Evaluator, ...] = ("reference", "local", "spark batch", "spark streaming")
Failed = tuple[str, str, str]
"""The operator, the kind of reason, and the row."""


def failed(operator: str, reason: str, row: str) -> Failed:
    """Of the reason only what comes before the values, which engines may write differently."""
    return operator, reason.split(":", maxsplit=1)[0], row


@dataclass(frozen=True)
class Findings:
    """What an evaluator came to."""

    result: TDB
    late: TDB
    """The late rows: payload (stream, row as JSON), valid for one tick from the bound that condemned them."""
    dead: int
    """How many rows could not be used: those without a time, and punctuation that went backwards or is ambiguous."""
    failed: Counter[Failed] = field(default_factory=Counter)
    """What operators found no value for."""


@dataclass(frozen=True)
class Verdict:
    """One evaluator beside the oracle."""

    evaluator: Evaluator
    got: Findings | None
    """None where it raised."""
    expected: Findings | None
    """What the oracle says of the same rows on time; None where it raises, or where there is nothing to compare."""
    error: str = ""
    """What the evaluator raised."""
    is_supported: bool = True

    @property
    def agrees(self) -> bool:
        """Whether the evaluator did what the oracle says; one that does not support the query does nothing wrong."""
        if not self.is_supported or (self.got is None and self.expected is None):
            return True
        return self.got is not None and self.expected is not None and self.got == self.expected

    def render(self) -> str:
        """A line if it agrees, else what differs."""
        if not self.is_supported:
            return f"{self.evaluator}: not supported\n{_indented(self.error)}"
        if self.got is None:
            says = "raised, as the oracle did" if self.expected is None else "raised, and the oracle did not"
            return f"{self.evaluator}: {says}\n{_indented(self.error)}"
        if self.expected is None:
            return f"{self.evaluator}: did not raise, and the oracle did"
        dead = self.got.dead + self.got.failed.total()
        counts = f"{self.got.result.size} rows, {self.got.late.size} late, {dead} dead"
        if self.agrees:
            return f"{self.evaluator}: agrees ({counts})"
        lines = [f"{self.evaluator}: differs ({counts})"]
        for title, expected, got in (
            ("result", self.expected.result, self.got.result),
            ("late rows", self.expected.late, self.got.late),
        ):
            difference = expected.difference(got)
            if difference:
                lines += [f"  {title}", _indented(difference.render("the oracle", self.evaluator), 4)]
        if self.got.dead != self.expected.dead:
            lines.append(f"  dead letters: {self.expected.dead} by the oracle, {self.got.dead} by {self.evaluator}")
        for who, more, less in (
            ("the oracle", self.expected.failed, self.got.failed),
            (self.evaluator, self.got.failed, self.expected.failed),
        ):
            lines += [
                f"  dead by {who} only: {row} ({reason}, {where})" for where, reason, row in (more - less).elements()
            ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Agreement:
    """The verdicts of all evaluators that were asked."""

    sql: str
    plan: Node
    verdicts: tuple[Verdict, ...] = field(default=())

    @property
    def agrees(self) -> bool:
        """Whether every evaluator agrees with the oracle."""
        return all(v.agrees for v in self.verdicts)

    def __getitem__(self, evaluator: Evaluator) -> Verdict:
        """The verdict on one evaluator."""
        return next(v for v in self.verdicts if v.evaluator == evaluator)

    def render(self) -> str:
        """All verdicts, for a person."""
        return "\n".join(v.render() for v in self.verdicts)


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
