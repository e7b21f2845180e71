r"""Transcripts: a query, its input batch by batch and its result as worked out by hand, in a YAML file.

```yaml
paper: 'Q6-2: "Find the maximum packet size …"'
query: SELECT max(length) [RANGE 4 minutes, SLIDE 1 minute, WA ts] FROM Main
streams:
  Main: {columns: "ts timestamp, length int, kind string", time: ts, progress: "punctuated(\"kind = 'punct'\")"}
steps:                                      # batches in order of arrival
  - Main: [["00:01:00", 100], ["00:00:10", 700]]
  - Main: [["00:02:00", null, punct]]       # punctuation is a row like any other
  - {}                                      # an empty batch of every stream
expect:                                     # judged row by row
  - {wid: 1..3, max_length: 700}            # the same row of windows 1, 2 and 3
late: {Main: [["00:00:59", 900]]}
dead: 1
by_batch: {late: {}, with: […], without: […]}   # judged by micro-batch, where that differs
no_order: {with: […], without: […]}             # where nothing is late: Spark batch
```

A row is a list in the order of the columns; cells left out at its end are null. A time is ISO text; without a date it
is on the first day of the epoch, where the ids of windows are small. `expect` names the columns that are compared.
In a step, a stream that is not named has an empty batch; after the last step that names it, it has run dry.
`evaluators` says who can run the query, all if it is left out.
"""

from __future__ import annotations

import ast
import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.errors import StreamError
from penstock.io.infer import parse_schema
from penstock.model.batch import Row
from penstock.model.progress import Progress, bounded, ordered, per_source, punctuated
from penstock.model.schema import DataType, Schema
from penstock.model.time import to_ticks
from penstock.reference.arrivals import Arrivals

Judgement = Literal["by row", "by batch", "no order"]
"""How an evaluator tells what is late."""
EVALUATORS = ("reference", "local", "spark batch", "spark streaming")
JUDGEMENTS: Mapping[str, Judgement] = {
    "reference": "by row",
    "local": "by row",
    "spark streaming": "by batch",
    "spark batch": "no order",
}
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(\.\d+)?")
_RUN = re.compile(r"(-?\d+)\.\.(-?\d+)")
_PROGRESS = {"ordered": ordered, "bounded": bounded, "punctuated": punctuated, "per_source": per_source}


@dataclass(frozen=True)
class Transcript:
    """A query with its input and the result that it must have."""

    name: str
    paper: str
    query: str
    streams: tuple[Arrivals, ...]
    evaluators: tuple[str, ...]
    columns: tuple[str, ...]
    """The columns of the result that are compared, in the order in which expected rows have them."""
    expected: Mapping[Judgement, Counter[Row]]
    """Timestamps as ticks."""
    late: Mapping[Judgement, Counter[tuple[str, Row]]]
    """Stream and row."""
    dead: int

    def __str__(self) -> str:
        """The name, which is what a test is called by."""
        return self.name


def read_transcript(path: str | Path) -> Transcript:
    """Read one file; PyYAML comes with `penstock[test]`."""
    try:
        import yaml
    except ImportError:
        raise StreamError(
            "Transcripts are YAML, which needs PyYAML.", where=str(path), hint="pip install 'penstock[test]'"
        ) from None
    given = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    try:
        return _transcript(Path(path).stem, given)
    except (KeyError, TypeError, ValueError) as error:
        raise StreamError("The transcript cannot be read.", where=str(path), got=repr(error)) from error


def _transcript(name: str, given: Mapping[str, Any]) -> Transcript:
    streams = tuple(_stream(n, declared, given["steps"]) for n, declared in given["streams"].items())
    schemas = {s.name: s.schema for s in streams}
    expect = list(given["expect"])
    columns = tuple(expect[0])
    by_row = _results(expect, columns)
    late = _late(given.get("late"), schemas)
    by_batch, no_order = given.get("by_batch") or {}, given.get("no_order") or {}
    return Transcript(
        name,
        given["paper"],
        given["query"],
        streams,
        tuple(given.get("evaluators", EVALUATORS)),
        columns,
        {
            "by row": by_row,
            "by batch": _changed(by_row, by_batch, columns),
            "no order": _changed(by_row, no_order, columns),
        },
        {
            "by row": late,
            "by batch": _late(by_batch["late"], schemas) if "late" in by_batch else late,
            "no order": Counter(),
        },
        int(given.get("dead", 0)),
    )


def parse_progress(text: str) -> Progress:
    """A progress as it is written in Python: `bounded('5 seconds')`."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise ValueError(text)
        make: Any = _PROGRESS[tree.func.id]
        named = {k.arg: ast.literal_eval(k.value) for k in tree.keywords if k.arg is not None}
        progress: Progress = make(*map(ast.literal_eval, tree.args), **named)
    except (SyntaxError, ValueError, KeyError, TypeError):
        raise StreamError(
            "Not a progress.", got=text, hint="ordered(), bounded(…), punctuated(…) or per_source(…)"
        ) from None
    return progress


def _stream(name: str, declared: Mapping[str, str], steps: Sequence[Mapping[str, Any]]) -> Arrivals:
    schema = parse_schema(declared["columns"], declared["time"])
    last = max((i for i, step in enumerate(steps) if name in step), default=-1)
    batches = tuple(tuple(_row(schema, cells) for cells in step.get(name) or ()) for step in steps[: last + 1])
    return Arrivals(name, schema, parse_progress(declared["progress"]), batches)


def _row(schema: Schema, cells: Sequence[object]) -> Row:
    if len(cells) > len(schema):
        raise ValueError(f"{len(cells)} cells for {len(schema)} columns: {cells!r}")
    padded = [*cells, *[None] * (len(schema) - len(cells))]
    return tuple(_cell(value, field.type) for value, field in zip(padded, schema.fields, strict=True))


def _cell(value: object, type_: DataType) -> object:
    if type_.name != "timestamp" or value is None:
        return value
    if isinstance(value, dt.datetime):
        return to_ticks(value)
    if not isinstance(value, str):  # YAML reads 10:00:05 without quotes as a number
        raise ValueError(f"a timestamp must be text in quotes, got {value!r}")
    return _ticks(value)


def _ticks(text: str) -> int:
    return to_ticks(dt.datetime.fromisoformat(text if "-" in text else f"1970-01-01T{text}"))


def _results(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for row in rows:
        if set(row) != set(columns):
            raise ValueError(f"expected rows must all have the columns {list(columns)}, got {row!r}")
        run = _RUN.fullmatch(str(row.get("wid", "")))
        ids: Iterable[object] = range(int(run[1]), int(run[2]) + 1) if run else (row.get("wid"),)
        for wid in ids:
            found[tuple(wid if c == "wid" else _result(row[c]) for c in columns)] += 1
    return found


def _result(value: object) -> object:
    """Text that reads as a time is one: what the columns of a result are is not known here."""
    return _ticks(value) if isinstance(value, str) and _TIME.fullmatch(value) else value


def _changed(base: Counter[Row], change: Mapping[str, Any], columns: Sequence[str]) -> Counter[Row]:
    """The base without some rows and with others; what is taken away must be there."""
    gone = _results(change.get("without") or (), columns)
    if gone - base:
        raise ValueError(f"'without' names rows that are not in 'expect': {dict(gone - base)!r}")
    return base - gone + _results(change.get("with") or (), columns)


def _late(given: Mapping[str, Any] | None, schemas: Mapping[str, Schema]) -> Counter[tuple[str, Row]]:
    return Counter((name, _row(schemas[name], cells)) for name, rows in (given or {}).items() for cells in rows)
