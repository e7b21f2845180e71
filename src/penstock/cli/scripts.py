"""Queries and scripts on the command line: outputs are written, results are shown, as tables or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.cli.show import out, print_json, print_table
from penstock.flow.query import Query
from penstock.flow.script import Script

Written = list[tuple[str, int]]
"""The outputs of a script, each with the number of its rows; -1 where that is not known."""


class Result:
    """What a query came to, with its late rows and dead letters."""

    def __init__(self, query: Query, table: pa.Table) -> None:
        """The query has run."""
        self.query, self.table = query, table
        self.late, self.dead = _table(query.late), _table(query.dead_letters)

    def as_json(self) -> dict[str, object]:
        """As `--json` prints it."""
        found = {"rows": self.table, "late": self.late, "dead_letters": self.dead}
        return {**{name: table.to_pylist() for name, table in found.items()}, "schema": self.query.schema.ddl}

    def show(self, limit: int, into: str | None) -> None:
        """The first rows, unless they were written, and how many there are."""
        if into is None:
            print_table(self.table, limit)
        where = f" -> {into}" if into is not None else ""
        counts = f"{self.late.num_rows} late, {self.dead.num_rows} dead letters"
        out.print(f"{self.table.num_rows} rows{where}, {counts}")
        for table, title in ((self.late, "late"), (self.dead, "dead letters")):
            if table.num_rows:
                print_table(table, 5, title)


def _table(value: Any) -> pa.Table:
    return value if isinstance(value, pa.Table) else value.toArrow()


def write_outputs(script: Script) -> Written:
    """Write what a script inserts."""
    return [(output.target, output.write()) for output in script.outputs]


def as_one_object(results: Sequence[Result], written: Written) -> dict[str, object]:
    """All as one JSON object: one result is its own, several are a list."""
    shown: dict[str, object] = results[0].as_json() if len(results) == 1 else {}
    if len(results) > 1:
        shown["results"] = [result.as_json() for result in results]
    if written:
        shown["written"] = [{"into": target, "rows": None if rows < 0 else rows} for target, rows in written]
    return shown


def show_written(written: Written) -> None:
    """Say what was written."""
    for target, rows in written:
        out.print(f"{'rows' if rows < 0 else f'{rows} rows'} -> {target}", highlight=False)


def show_plans(script: Script, *, as_json: bool) -> None:
    """The plan of every query of a script."""
    plans = [(f"INSERT INTO {o.target}", o.query) for o in script.outputs] + [("SELECT", q) for q in script.queries]
    if as_json:
        print_json({"plans": [{"of": of, "plan": q.explain(), "schema": q.schema.ddl} for of, q in plans]})
        return
    for of, q in plans:
        out.print(f"{of}\n{q.explain()}\n", markup=False, highlight=False, soft_wrap=True)
