"""Lines of delimited text and of JSON as columns of text, the same on every engine.

*Delimited*: fields are separated by one character; a field that begins with a quote ends with one, with quotes in it
doubled, and elsewhere a quote is a character like any other. An empty field is null, quoted or not, as in Spark; no
other text is (`NA` is text). A line with more or fewer fields than the header, with a quote that does not end on it, or
with text between a closing quote and the next field, is a dead letter.

*JSON*: an object per line. Numbers and booleans are taken by their text, what is nested as JSON again, which
a column of a nested type is read from.

Blank lines are no records, as in Spark; a null alone on its line is `""`. A line that is not UTF-8 is a dead letter.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from penstock.errors import SourceError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_table
from penstock.model.convert import encodable
from penstock.model.formats import TextFormat
from penstock.model.reading import Number, member_text
from penstock.model.schema import Schema

DEEPEST = 100
BOM = b"\xef\xbb\xbf"


def conform_lines(
    schema: Schema, form: TextFormat, header: Sequence[str], lines: Sequence[bytes]
) -> tuple[Batch, list[DeadLetter]]:
    """The records of some lines in a schema, and those that cannot be."""
    if form.kind == "jsonl":
        objects, kept, dead = parse_objects(lines)
        batch, misfits = conform_table(schema, objects_table(objects, schema.names), kept)
        return batch, dead + misfits
    table, dead = parse_fields(lines, header, form.delimiter)
    batch, misfits = conform_table(schema, table)
    return batch, dead + misfits


def shown(line: bytes) -> str:
    """A line for a person."""
    return line.decode("utf-8", "backslashreplace")


def _not_text(line: bytes) -> DeadLetter:
    return DeadLetter("not UTF-8", shown(line))


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decodable(lines: Sequence[bytes]) -> tuple[list[bytes], list[DeadLetter]]:
    """The lines that are text and not blank, and those that are no text."""
    filled = [line for line in lines if line.strip(b" ")]
    if _is_text(b"\n".join(filled)):
        return filled, []
    good = [line for line in filled if _is_text(line)]
    return good, [_not_text(line) for line in filled if not _is_text(line)]


# Delimited text


def _field(delimiter: str) -> str:
    return rf'(?:"(?:[^"]|"")*+"|(?!")[^{re.escape(delimiter)}]*+)'


def header_names(line: bytes, delimiter: str, path: str) -> list[str]:
    """The names in the first line of a file."""
    where = f"{path}, line 1"
    try:
        text = line.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        raise SourceError(
            "The header is not UTF-8.", where=where, got=shown(line)[:200], hint="convert the file to UTF-8"
        ) from None
    cell = _field(delimiter)
    if not re.fullmatch(f"{cell}(?:{re.escape(delimiter)}{cell})*+", text):
        raise SourceError("The quotes of the header do not match.", where=where, got=text[:200])
    found = re.findall(rf"(?:^|(?<={re.escape(delimiter)})){cell}", text)
    names = [n[1:-1].replace('""', '"').strip() if n.startswith('"') else n.strip() for n in found]
    for i, name in enumerate(names):
        if not name:
            raise SourceError(
                "A column has no name.", where=where, got=f"column {i + 1} of {text[:200]!r}", hint="name it"
            )
        if name in names[:i]:
            raise SourceError("Two columns have the same name.", where=where, got=name, hint="rename one of them")
    return names


def parse_fields(lines: Sequence[bytes], header: Sequence[str], delimiter: str) -> tuple[pa.Table, list[DeadLetter]]:
    """The fields of lines as columns of text."""
    given, dead = _decodable(lines)
    split, count = delimiter.encode(), len(header)
    cell = re.compile(_field(delimiter).encode())
    more = f"(?:{re.escape(delimiter)}{_field(delimiter)})"
    fitting = re.compile(f"{_field(delimiter)}{more}{{{max(count - 1, 0)}}}".encode())
    whole = re.compile(f"{_field(delimiter)}{more}*+".encode())
    good: list[bytes] = []
    for line in given:
        if b'"' not in line:
            fields = line.count(split) + 1
        elif fitting.fullmatch(line):
            fields = max(count, 1)
        elif whole.fullmatch(line):
            fields = _count(cell, line, len(split))
        else:
            dead.append(DeadLetter(_wrong_quotes(line, delimiter), shown(line)))
            continue
        if fields == count:
            good.append(line)
        else:
            dead.append(DeadLetter(f"{fields} fields where {count} were expected", shown(line)))
    return _text_table(good, header, delimiter), dead


def _wrong_quotes(line: bytes, delimiter: str) -> str:
    """What is wrong with the quotes of a line: the first field that is not one tells."""
    field = _field(delimiter)
    before = re.match(f"(?:{field}{re.escape(delimiter)})*+".encode(), line)
    assert before is not None
    rest = line[before.end() :]
    closed = re.match(rb'"(?:[^"]|"")*+"', rest)
    return "a quote does not end on its line" if closed is None else "text follows the closing quote of a field"


def _count(cell: re.Pattern[bytes], line: bytes, step: int) -> int:
    fields, at = 0, 0
    while at <= len(line):
        match = cell.match(line, at)
        assert match is not None
        fields, at = fields + 1, match.end() + step
    return fields


def _text_table(lines: Sequence[bytes], header: Sequence[str], delimiter: str) -> pa.Table:
    arrow = pa.schema([(name, pa.string()) for name in header])
    if not lines:
        return arrow.empty_table()
    data = b"\n".join(lines) + b"\n"
    return pa.csv.read_csv(
        io.BytesIO(data),
        pa.csv.ReadOptions(column_names=list(header), block_size=len(data) + 1, use_threads=False),
        pa.csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
        pa.csv.ConvertOptions(
            column_types=arrow, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=True
        ),
    )


# JSON lines


def parse_objects(lines: Sequence[bytes]) -> tuple[list[Mapping[str, Any]], list[str], list[DeadLetter]]:
    """The objects of lines, the text of each, and what is none."""
    given, dead = _decodable(lines)
    objects: list[Mapping[str, Any]] = []
    kept: list[str] = []
    for line in given:
        text = line.removeprefix(BOM).decode()
        try:
            value = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            dead.append(DeadLetter("not a JSON object", text))
        elif _depth(value) > DEEPEST:
            dead.append(DeadLetter(f"nested more than {DEEPEST} deep", text))
        elif "\\u" in text and not encodable(json.dumps(value, ensure_ascii=False)):
            dead.append(DeadLetter("text that cannot be written as UTF-8", text))
        else:
            objects.append(value)
            kept.append(text)
    return objects, kept, dead


def _depth(value: Any) -> int:
    """How deep lists and objects are nested, no further than one more than is allowed."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        held = [v for v in level if isinstance(v, dict | list)]
        level = [inner for v in held for inner in (v.values() if isinstance(v, dict) else v)]
        depth += bool(held)
    return depth


def objects_table(objects: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    """Some members of objects as columns of text."""
    columns = [pa.array([_member(o.get(name)) for o in objects], pa.string()) for name in names]
    return pa.Table.from_arrays(columns, names=list(names))


def _member(value: Any) -> str | None:
    return None if value is None else member_text(value)
