"""Files read in-process: which there are, their schema, and their rows.

The files of a stream may differ: a column that one lacks is null in its rows, and its type is one that the values of
all files have. Types that do not go together are an error that names the file. A file that ends in the middle or cannot
be decompressed is an error that names the file and how far it was read.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet

from penstock.errors import SourceError, StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter
from penstock.model.formats import TextFormat, check_delimiter, one_kind, text_format
from penstock.model.lines import BOM, conform_lines, header_names, parse_fields, parse_objects
from penstock.model.schema import Schema, timed
from penstock.model.shapes import Shapes, join_shapes, schema_of_shapes, shapes_of_objects, shapes_of_table
from penstock.storage.files import Place, place_of
from penstock.storage.parquet_files import damaged, parquet_names, parquet_schema
from penstock.storage.patterns import files_of, stands_for

BATCH_ROWS = 65_536
BLOCK_BYTES = 1 << 22


def expand(name: str) -> list[Place]:
    """The files that a path, a URI, a folder or a pattern stands for."""
    place = place_of(name)
    try:
        found = files_of(place)
    except (OSError, ValueError) as error:
        raise SourceError("The path cannot be read.", got=f"{name!r}: {error}") from None
    if not found:
        raise SourceError(
            "There is no such file.", got=name, hint="check the path; patterns such as 'data/*.parquet' are fine"
        )
    return found


def check_not_read(target: str | os.PathLike[str], given: Mapping[str, Sequence[str]], where: str = "") -> None:
    """Refuse to write a file that a stream reads, or would read the next time: by stream, what it was declared over."""
    place = place_of(target)
    for stream, names in given.items():
        read = next((n for n in names if stands_for(place_of(n), place)), None)
        if read is not None:
            raise SourceError(
                "Results cannot be written to what the query reads.",
                where=where or f"stream {stream}",
                got=f"{os.fspath(target)}, and {stream} reads {read}",
                hint="write to a file outside of it",
            )


# Lines


def line_blocks(place: Place) -> Iterator[list[bytes]]:
    """The lines of a file, some at a time, without their ends."""
    rest: list[bytes] = []  # of a line that has not ended yet
    lines = 0
    try:
        with place.fs.open_input_stream(place.path, compression=None) as raw:
            file = gzip.GzipFile(fileobj=raw) if place.path.lower().endswith(".gz") else raw
            while block := file.read(BLOCK_BYTES):
                # A line may end in this block and its LF begin the next, so a CR at the end waits.
                cut = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
                if rest and rest[-1].endswith(b"\r") and not cut and not block.startswith(b"\n"):
                    found = b"".join(rest).splitlines()
                    rest = [block]
                elif cut:
                    found = b"".join([*rest, block[:cut]]).splitlines()
                    rest = [block[cut:]] if cut < len(block) else []
                else:
                    rest.append(block)
                    continue
                lines += len(found)
                yield found
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        raise damaged(str(place), error, f", after line {lines}") from None
    if rest:
        yield b"".join(rest).splitlines()


def _header(path: Place, form: TextFormat) -> list[str] | None:
    """The names in the first line that is not blank; None if there is none."""
    for block in line_blocks(path):
        for line in block:
            if line.removeprefix(BOM).strip():
                return header_names(line, form.delimiter, str(path))
    return None


def _records(path: Place, form: TextFormat) -> Iterator[list[bytes]]:
    """The lines of a file without its header."""
    headless = form.kind == "csv"
    for block in line_blocks(path):
        for start in range(0, len(block), BATCH_ROWS):
            lines = block[start : start + BATCH_ROWS]
            while headless and lines:
                headless = not lines.pop(0).removeprefix(BOM).strip()
            if lines:
                yield lines


def text_schema(paths: list[Place], form: TextFormat, time: str | None, time_format: str | None) -> Schema:
    """The columns of text files: what all of their values look like."""
    shapes: Shapes = {}
    for path in paths:
        header = _header(path, form) if form.kind == "csv" else []
        for name in header or ():
            shapes.setdefault(name, 0)
        for lines in _records(path, form):
            if form.kind == "csv":
                join_shapes(shapes, shapes_of_table(parse_fields(lines, header or (), form.delimiter)[0]))
            else:
                join_shapes(shapes, shapes_of_objects(parse_objects(lines)[0]))
    if not shapes:
        raise no_columns(paths, form)
    return schema_of_shapes(shapes, time, time_format)


def no_columns(paths: list[Place], form: TextFormat) -> SourceError:
    """Nothing tells which columns there are."""
    if form.kind == "csv":
        return SourceError(
            "The file is empty.", got=", ".join(map(str, paths[:3])), hint="give schema='ts timestamp, …'"
        )
    return SourceError(
        "No line holds a JSON object.",
        got=", ".join(map(str, paths[:3])),
        hint="one object per line is read; write an array's objects one a line",
    )


def read_text_files(paths: list[Place], form: TextFormat, schema: Schema) -> Iterator[Batch | DeadLetter]:
    """The rows of text files."""
    for path in paths:
        header = _header(path, form) if form.kind == "csv" else []
        for lines in _records(path, form):
            good, dead = conform_lines(schema, form, header or (), lines)
            yield from dead
            if len(good):
                yield good


def require_columns(schema: Schema, paths: list[Place], kind: str, form: TextFormat | None) -> None:
    """Refuse a declared schema with a column that no file has; JSON objects need not have any."""
    if kind == "jsonl":
        return
    known: dict[str, None] = {}
    for path in paths:
        if kind == "parquet":
            known |= dict.fromkeys(parquet_names(path))
        else:
            assert form is not None
            header = _header(path, form)
            known |= dict.fromkeys(header if header is not None else schema.names)
    missing = [n for n in schema.names if n not in known]
    if missing:
        raise StreamError(
            "The input lacks columns of the schema.", got=", ".join(missing), hint=f"it has {', '.join(known)}"
        )


def file_source_schema(
    paths: list[Place], time: str | None, declared: Schema | None, delimiter: str | None, time_format: str | None
) -> tuple[str, TextFormat | None, Schema]:
    """The kind of some files, how their lines are read, and the schema of the stream."""
    kind = one_kind([p.path for p in paths])
    if delimiter is not None:
        check_delimiter(delimiter, kind)
    form = None if kind == "parquet" else text_format(kind, paths[0].path, delimiter)
    if declared is not None:
        require_columns(declared, paths, kind, form)
        return kind, form, declared
    found = parquet_schema(paths) if form is None else text_schema(paths, form, time, time_format)
    return kind, form, timed(found, time, time_format)
