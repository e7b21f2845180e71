"""What evaluators came to, and how that differs from what the oracle says: a verdict on each, to read and to render.

An evaluator that raises where the oracle raises too does not agree with it: two failures say nothing of each other, and
a query that nobody can run would pass every check. It is told as what it is, with both reasons; that it was to be
expected is for the caller to say. Nor does the oracle agree with itself: where no evaluator beside it supports a query,
nothing was compared.
"""

from __future__ import annotations

import json
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


def by_known_columns(expected: Counter[Failed], got: Counter[Failed]) -> tuple[Counter[Failed], Counter[Failed]]:
    """Both, with no more columns of rows than those that died have in what was got.

    To an operator in a later stage on Spark only columns travel that are read there; its dead letters have no others.
    """
    known: dict[tuple[str, str], set[str]] = {}
    for operator, reason, row in got:
        known.setdefault((operator, reason), set()).update(json.loads(row))

    def narrowed(letters: Counter[Failed]) -> Counter[Failed]:
        found: Counter[Failed] = Counter()
        for (operator, reason, row), times in letters.items():
            columns = known.get((operator, reason))
            if columns is not None:
                kept = {name: value for name, value in json.loads(row).items() if name in columns}
                row = json.dumps(kept, sort_keys=True)  # noqa: PLW2901
            found[operator, reason, row] += times
        return found

    return narrowed(expected), narrowed(got)


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
    oracle_error: str = ""
    """What the oracle raised."""

    @property
    def agrees(self) -> bool:
        """Whether the evaluator did what the oracle says; one that does not support the query does nothing wrong."""
        if not self.is_supported:
            return True
        return self.got is not None and self.expected is not None and self.got == self.expected

    @property
    def is_compared(self) -> bool:
        """Whether there are findings of an evaluator to hold against the oracle's; it is no judge of its own."""
        return self.evaluator != "reference" and self.is_supported and not self.both_raised

    @property
    def both_raised(self) -> bool:
        """Whether there is nothing to compare, since neither the evaluator nor the oracle came to an end."""
        return self.is_supported and self.got is None and self.expected is None

    def render(self) -> str:
        """A line if it agrees, else what differs."""
        if not self.is_supported:
            return f"{self.evaluator}: not supported\n{_indented(self.error)}"
        if self.both_raised:
            reasons = f"{_indented(self.error)}\n  the oracle\n{_indented(self.oracle_error, 4)}"
            return f"{self.evaluator}: both raised, so nothing is compared\n{reasons}"
        if self.got is None:
            return f"{self.evaluator}: raised, and the oracle did not\n{_indented(self.error)}"
        if self.expected is None:
            return f"{self.evaluator}: did not raise, and the oracle did\n{_indented(self.oracle_error)}"
        dead = self.got.dead + self.got.failed.total()
        counts = f"{self.got.result.size} rows, {self.got.late.size} late, {dead} dead"
        if self.agrees:
            return f"{self.evaluator}: {'agrees' if self.is_compared else 'the oracle'} ({counts})"
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
        """Whether evaluators were compared with the oracle, and none of them differs."""
        return self.is_compared and all(v.agrees for v in self.verdicts)

    @property
    def is_compared(self) -> bool:
        """Whether any evaluator beside the oracle came to something that could be compared."""
        return any(v.is_compared for v in self.verdicts)

    @property
    def all_raised(self) -> bool:
        """Whether every evaluator that supports the query raised, and the oracle too."""
        asked = [v for v in self.verdicts if v.is_supported]
        return bool(asked) and all(v.both_raised for v in asked)

    def __getitem__(self, evaluator: Evaluator) -> Verdict:
        """The verdict on one evaluator."""
        return next(v for v in self.verdicts if v.evaluator == evaluator)

    def render(self) -> str:
        """All verdicts, for a person."""
        return "\n".join(v.render() for v in self.verdicts)


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
