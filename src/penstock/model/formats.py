"""Kinds of files, known by their endings; text may be compressed with gzip.

A text file is read line by line: a record is a line (ended by LF, CR LF or CR) of UTF-8. That is what Spark splits
large files by, so both engines read the same records; a quoted field that runs over several lines is not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import SourceError, StreamError

_ENDINGS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
}  # fmt: skip
KNOWN = "files end in .parquet, .csv, .tsv or .jsonl (text may be .gz)"


def file_kind(path: str) -> str | None:
    """`parquet`, `csv` or `jsonl`; None if the ending is not known."""
    bare = path.lower().removesuffix(".gz")
    return next((kind for ending, kind in _ENDINGS.items() if bare.endswith(ending)), None)


def one_kind(paths: Iterable[str]) -> str:
    """The one kind of some files."""
    kinds: dict[str, str] = {}
    for path in paths:
        kind = file_kind(path)
        if kind is None:
            raise SourceError("The kind of file is not known.", got=path, hint=KNOWN)
        kinds[kind] = path
    if len(kinds) != 1:
        raise SourceError(
            "The files are of different kinds.", got=", ".join(sorted(kinds)), hint="declare one stream per kind"
        )
    return next(iter(kinds))


@dataclass(frozen=True)
class TextFormat:
    """How the lines of text files are read."""

    kind: str
    """`csv` or `jsonl`."""
    delimiter: str = ","


def text_format(kind: str, path: str, delimiter: str | None) -> TextFormat:
    """The format of files of a kind; a delimiter that is not given is a comma, or a tab in .tsv."""
    if delimiter is None:
        return TextFormat(kind, "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ",")
    return TextFormat(kind, check_delimiter(delimiter, kind))


def check_delimiter(delimiter: object, kind: str | None) -> str:
    """Refuse what cannot separate the fields of a line, and a delimiter for what has none."""
    if kind != "csv":
        raise StreamError(
            "Only files of delimited text have a delimiter.", got=f"delimiter={delimiter!r}", hint="leave it out"
        )
    fits = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n\0'
    if not isinstance(delimiter, str) or not fits:
        raise StreamError(
            "A delimiter is a single ASCII character, and no quote.", got=repr(delimiter), hint="';', '|' or '\\t'"
        )
    return delimiter
