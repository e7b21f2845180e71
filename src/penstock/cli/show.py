"""What the command line prints.

Tables on a terminal, one JSON object with `--json`, progress only where a person watches.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.errors import PenstockError

out = Console()
err = Console(stderr=True)


def complain(error: PenstockError) -> None:
    """An error as its text."""
    err.print(f"[red]error:[/red] {escape(error.message)}", highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON object."""
    sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False) + "\n")


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, dt.datetime | dt.date) else str(value)


def print_table(table: pa.Table, limit: int, title: str | None = None) -> None:
    """The first rows of a result."""
    shown = Table(title=title, title_justify="left", header_style="bold")
    for field in table.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        shown.add_column(field.name, justify="right" if number else "left", overflow="fold")
    for row in table.slice(0, limit).to_pylist():
        shown.add_row(*[_cell(v) for v in row.values()])
    out.print(shown)
    if table.num_rows > limit:
        out.print(f"… and {table.num_rows - limit} more rows")


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))


@contextlib.contextmanager
def working(text: str, quiet: bool = False) -> Iterator[Progress]:
    """A line that moves while something runs; silent in a pipe."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
        progress.add_task(text, total=None, note="")
        yield progress


def note(progress: Progress, text: str, completed: float | None = None, total: float | None = None) -> None:
    """Say how far the work has come."""
    progress.update(progress.task_ids[0], note=text, completed=completed, total=total)
