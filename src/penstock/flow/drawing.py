"""Tables for people: a grid in a terminal, HTML in a notebook."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Iterable, Sequence

import pyarrow as pa

WIDTH = 40
"""Longer values are cut."""


def grid(table: pa.Table, limit: int, width: int | None = WIDTH) -> str:
    """The first rows, in the form that PySpark's `show` has."""
    numbers = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in table.schema]
    names = list(table.schema.names)
    rows = [[cell(v, width) for v in row] for row in _rows(table, limit)]
    sizes = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    rule = "+" + "+".join("-" * size for size in sizes) + "+"

    def line(cells: Sequence[str], to_right: Sequence[bool]) -> str:
        padded = [c.rjust(s) if right else c.ljust(s) for c, s, right in zip(cells, sizes, to_right, strict=True)]
        return "|" + "|".join(padded) + "|"

    lines = [rule, line(names, numbers), rule, *(line(row, numbers) for row in rows), rule]
    if table.num_rows > limit:
        lines.append(f"only the first {limit} of {table.num_rows} rows")
    return "\n".join(lines)


def _rows(table: pa.Table, limit: int) -> list[tuple[object, ...]]:
    first = table.slice(0, min(limit, table.num_rows))
    columns = [_values(first.column(i)) for i in range(first.num_columns)]
    return list(zip(*columns, strict=True)) if columns else []


def _values(column: pa.ChunkedArray) -> list[object]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # times for which Python has no datetime
        return list(column.cast("int64").to_pylist())


def cell(value: object, width: int | None = WIDTH) -> str:
    """A value in a table."""
    if value is None:
        text = "NULL"
    elif isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    else:
        text = " ".join(str(value).split("\n"))
    return text if width is None or len(text) <= width else text[: width - 1] + "…"


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Two columns under a title."""
    lines = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"


def html_text(title: str, text: str) -> str:
    """A text as it stands, under a title."""
    return f"<strong>{html.escape(title)}</strong><pre>{html.escape(text)}</pre>"
