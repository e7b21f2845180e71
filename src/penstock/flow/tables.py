"""Tables of a flow: bounded, known before a query runs, joined with streams row by row.

A table is read when it is declared, in-process as a whole; on Spark it stays a DataFrame, and is collected where a
query is hosted. A row that cannot be read is refused, since nobody would be told of it later, and so is a version that
is there twice, or has no key or no start: which of them is meant could not be said.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from penstock.errors import StreamError
from penstock.flow.declaring import check_texts, told_of
from penstock.io import infer
from penstock.io.sources import open_source
from penstock.model.batch import Batch, concat, present, rows_of
from penstock.model.conform import DeadLetter, conform_rows
from penstock.model.formats import check_delimiter
from penstock.model.schema import Schema
from penstock.operators.joins.table_index import TableIndex, Versions
from penstock.plan.catalog import Catalog, closest
from penstock.plan.lookup_nodes import TableInfo

_SOURCES = "give an Arrow table or reader, a pandas or Polars frame, a list of dicts, or a path"


class FlowTables:
    """Declares tables."""

    catalog: Catalog
    spark: Any
    _tables: dict[str, Any]

    def table(
        self,
        name: str,
        source: Any,
        *,
        key: Sequence[str] | str = (),
        valid_from: str | None = None,
        valid_to: str | None = None,
        schema: str | None = None,
        time_format: str | None = None,
        delimiter: str | None = None,
    ) -> Self:
        """Declare a table that streams are joined with.

        Args:
            name: what queries call it.
            source: an Arrow table, a pandas or Polars frame, a list of dicts, or a path; on Spark also a DataFrame that
                is no stream, or the name of a table. It is read now.
            key: of a table with versions, the columns that tell rows apart at any one time.
            valid_from: the column that says from when on a version is valid, until the next one of its key is. Queries
                then read the table `FOR SYSTEM_TIME AS OF` a column of a stream, of the same type.
            valid_to: the column that says until when, where a version may end before the next one; null if it does not.
            schema: a DDL string where the source does not tell.
            time_format: how `valid_from` is written, as for streams.
            delimiter: what separates the fields of a CSV file.

        Returns:
            The flow, so that declarations can be chained.
        """
        check_texts(
            name, None, valid_from=valid_from, valid_to=valid_to, schema=schema, time_format=time_format, what="table"
        )
        self.catalog.check_free(name)
        with told_of(name, "table"):
            keys = _names(key)
            if self.spark is not None:
                from penstock.engines.spark.tables import open_spark_table

                typed = None if schema is None else infer.parse_schema(schema, valid_from, time_format)
                opened = open_spark_table(self.spark, source, valid_from, typed, time_format, delimiter)
                if opened is not None:
                    info = _declared(name, opened.schema, keys, valid_from, valid_to)
                    opened.check(info)
                    self._tables[name.lower()] = opened
                    self.catalog.add_table(info)
                    return self
            content = read_table(source, valid_from, schema, time_format, delimiter)
            info = _declared(name, content.schema, keys, valid_from, valid_to)
            check_versions(info, content.table)
            if self.spark is None:
                info = TableInfo(name, info.schema, info.key, info.valid_from, info.valid_to, content.table)
            else:
                from penstock.engines.spark.tables import table_in_memory

                self._tables[name.lower()] = table_in_memory(self.spark, content)
        self.catalog.add_table(info)
        return self


def _names(key: object) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise StreamError("A key is a list of names of columns.", got=repr(key)[:200], hint="key=['k']")
    return tuple(names)


def read_table(
    source: object, valid_from: str | None, schema: str | None, time_format: str | None, delimiter: str | None
) -> Batch:
    """All rows of a source."""
    if isinstance(source, list | tuple) and not all(isinstance(each, str | os.PathLike) for each in source or [0]):
        if not all(isinstance(row, Mapping) for row in source):
            raise StreamError("A table is a list of rows.", got=type(source[0]).__name__, hint=_SOURCES)
        if schema is None:
            columns = infer.from_rows(source, valid_from, time_format)
        else:
            columns = infer.parse_schema(schema, valid_from, time_format)
        if delimiter is not None:
            check_delimiter(delimiter, None)
        good, letters = conform_rows(columns, source)
        return _all_read(columns, [*letters, good])
    if not isinstance(source, str | os.PathLike | list | tuple) and not _is_frame(source):
        raise StreamError("This cannot be read as a table.", got=type(source).__name__, hint=_SOURCES)
    opened = open_source(source, valid_from, schema, time_format, delimiter)
    return _all_read(opened.schema, list(opened.open()))


def _is_frame(source: object) -> bool:
    """Whether it holds columns: Arrow's own, or a frame."""
    return hasattr(source, "schema") or hasattr(source, "columns")


def _all_read(schema: Schema, items: Sequence[object]) -> Batch:
    """All rows, if there is nothing else."""
    dead = next((item for item in items if isinstance(item, DeadLetter)), None)
    if dead is not None:
        raise StreamError("A row of the table cannot be read.", got=f"{dead.reason}: {dead.row}"[:300])
    batches = [item for item in items if isinstance(item, Batch)]
    return Batch(schema, table=concat(schema, batches).table.combine_chunks())


def _declared(
    name: str, schema: Schema, key: tuple[str, ...], valid_from: str | None, valid_to: str | None
) -> TableInfo:
    """The table, if its columns are there and say what versions need."""
    for column in (*key, *([] if valid_to is None else [valid_to])):
        if column not in schema:
            raise StreamError(
                "A column of the table does not exist.", got=column[:200], hint=closest(column, schema.names)
            )
    if valid_from is None and (key or valid_to is not None):
        raise StreamError("A key and an end are of a table with versions.", hint="add valid_from='since'")
    if valid_from is not None and not key:
        raise StreamError("Versions are told apart by a key.", got=f"valid_from={valid_from!r}", hint="add key=['k']")
    named = tuple(schema[column].name for column in key)
    start, end = (None if column is None else schema[column] for column in (valid_from, valid_to))
    if start is not None and end is not None and start.type != end.type:
        raise StreamError(
            "The start and the end of a version are of different types.", got=f"{start} and {end}",
            hint="declare them with schema=…",
        )  # fmt: skip
    return TableInfo(name, schema, named, None if start is None else start.name, None if end is None else end.name)


def check_versions(info: TableInfo, content: pa.Table) -> None:
    """Refuse keys that are null, and two versions of one key that start together."""
    if info.valid_from is None:
        return
    for column in info.key:
        if content.column(column).null_count:
            raise StreamError("A key of the table is null.", got=column, hint="leave such rows out")
    keys = [content.column(column) for column in info.key]
    versions = Versions.of(content, info.valid_from, info.valid_to)
    place = TableIndex(keys, content.num_rows, versions).repeated()
    if place is not None:
        row = present(info.schema, rows_of(content.slice(place, 1))[0])
        shown = ", ".join(f"{column} {row[column]}" for column in (*info.key, info.valid_from))
        raise StreamError("Two versions of a key start together.", got=shown, hint="leave one of them out")
