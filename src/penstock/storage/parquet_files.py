"""Parquet files as the rows of a stream; only columns of the schema are read.

The files may differ: a column that one lacks is null in its rows, and a number takes the widest type that it has in any
of them. A file that cannot be read is an error that names it and how far it was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet

from penstock.errors import SourceError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_table
from penstock.model.merging_schemas import merge_columns
from penstock.model.schema import Schema, columns_of
from penstock.storage.files import Place

BATCH_ROWS = 65_536


def parquet_names(file: Place) -> list[str]:
    """The names of a file's columns."""
    return list(_arrow_schema(file).names)


def parquet_schema(files: Sequence[Place]) -> Schema:
    """The columns of files, as wide as the widest."""
    return merge_columns([(str(file), columns_of(_arrow_schema(file))) for file in files])


def _arrow_schema(file: Place) -> pa.Schema:
    try:
        with file.fs.open_input_file(file.path) as opened:
            return pa.parquet.read_schema(opened)
    except (pa.ArrowException, OSError) as error:
        raise damaged(str(file), error) from None


def read_parquet(files: Sequence[Place], schema: Schema) -> Iterator[tuple[Batch, list[DeadLetter]]]:
    """The rows of files, some at a time, with those that do not fit the schema."""
    for file in files:
        rows = 0
        try:
            with file.fs.open_input_file(file.path) as opened, pa.parquet.ParquetFile(opened) as parquet:
                wanted = [n for n in parquet.schema_arrow.names if n in schema.names]
                for batch in parquet.iter_batches(BATCH_ROWS, columns=wanted):
                    yield conform_table(schema, pa.Table.from_batches([batch]))
                    rows += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise damaged(str(file), error, f", after row {rows}") from None


def damaged(path: str, error: Exception, after: str = "") -> SourceError:
    """A file is not what it should be."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SourceError(
        "The file cannot be read.",
        where=f"{path}{after}",
        got=text[:300],
        hint="it is damaged, still being written, or not what its ending says",
    )
