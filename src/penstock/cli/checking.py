"""`penstock check`: a query on every evaluator over the user's own files, and whether they agree.

Each stream is cut into batches in the order of its files, so that the streaming evaluator has micro-batches to run. The
oracle looks at all rows for every window, so only the first rows of each stream are taken unless more are asked for;
how many were left out is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.cli.inputs import StreamOption
from penstock.cli.show import out, working
from penstock.io.sources import open_source
from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter
from penstock.model.progress import Several, declared
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import EVALUATORS, Agreement, Evaluator, agreement


@dataclass(frozen=True)
class CheckReport:
    """The agreement, and what was left out of the comparison."""

    agreement: Agreement
    taken: dict[str, int]
    left_out: dict[str, int]
    unread: dict[str, int]
    """Rows that could not be read at all: dead letters for every evaluator, and no part of the comparison."""
    expects_error: bool = False
    """Whether the query is to fail on every evaluator."""

    @property
    def agrees(self) -> bool:
        """Whether evaluators were compared with the oracle, and none of them differs."""
        return self.agreement.agrees

    @property
    def passes(self) -> bool:
        """Whether all is as it should be: every evaluator agrees or, where that is expected, raises."""
        return self.agreement.all_raised if self.expects_error else self.agrees

    @property
    def conclusion(self) -> str:
        """In a few words."""
        if self.agreement.all_raised:
            return "every evaluator raised" + (", as expected" if self.expects_error else ", so nothing was compared")
        if self.expects_error:
            return "not every evaluator raised, as was expected"
        if not self.agreement.is_compared:
            return "no evaluator beside the oracle has run the query, so nothing was compared"
        return "all evaluators agree" if self.agrees else "the evaluators differ"

    def show(self) -> None:
        """For a person."""
        for name, rows in self.taken.items():
            more = f", {self.left_out[name]} left out (--rows takes more)" if self.left_out[name] else ""
            dead = f", {self.unread[name]} dead letters" if self.unread[name] else ""
            out.print(f"{name}: {rows} rows compared{more}{dead}", highlight=False)
        out.print(self.agreement.render(), markup=False, highlight=False, soft_wrap=True)
        out.print(self.conclusion, style="green" if self.passes else "red")

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        verdicts = [
            {
                "evaluator": v.evaluator,
                "agrees": v.agrees,
                "supported": v.is_supported,
                "both_raised": v.both_raised,
                "report": v.render(),
            }
            for v in self.agreement.verdicts
        ]
        return {
            "agrees": self.agrees,
            "passes": self.passes,
            "compared": self.agreement.is_compared,
            "rows": self.taken,
            "left_out": self.left_out,
            "dead_letters": self.unread,
            "evaluators": verdicts,
        }


def check_query(
    sql: str,
    given: Sequence[StreamOption],
    batches: int,
    rows: int,
    evaluators: Sequence[str],
    master: str,
    *,
    quiet: bool,
    expects_error: bool = False,
) -> CheckReport:
    """Read the streams, cut them, ask every evaluator."""
    chosen: list[Evaluator] = [e for e in EVALUATORS if not evaluators or e in evaluators]
    unknown = set(evaluators) - set(EVALUATORS)
    arrivals, taken, left_out, unread = [], {}, {}, {}
    for option in given:
        progress = declared(option.progress, option.time)
        several = progress.attributes if isinstance(progress, Several) else ()
        source = open_source(
            option.path, option.time, option.schema, option.time_format, option.delimiter, attributes=several
        )
        found: list[Row] = []
        unread[option.name] = 0
        for item in source.open():
            if isinstance(item, Batch):
                found += item.rows
            elif isinstance(item, DeadLetter):
                unread[option.name] += 1
        kept = found[:rows]
        size = max(-(-len(kept) // max(batches, 1)), 1)
        cut = tuple(tuple(kept[i : i + size]) for i in range(0, len(kept), size))
        arrivals.append(Arrivals(option.name, source.schema, progress, cut))
        taken[option.name], left_out[option.name] = len(kept), len(found) - len(kept)
    spark: Any = None
    with working("asking every evaluator", quiet=quiet):
        if any(e.startswith("spark") for e in chosen):
            from penstock.engines.spark.session import local_session

            spark = local_session(master)
        result = agreement(sql, arrivals, evaluators=[*chosen, *unknown], spark=spark)  # type: ignore[list-item]
    return CheckReport(result, taken, left_out, unread, expects_error)
