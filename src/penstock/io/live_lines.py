"""Lines that come bit by bit: from a connection, or from a file that grows.

A line ends with LF or CR LF; what has not ended yet waits. A line of more than so many bytes is a dead letter, told
when it ends, and never held as a whole. Otherwise lines are read as those of files are (`model.lines`): what is not
UTF-8, no JSON object, or has too many fields is a dead letter, and blank lines are no records.

Plain text gives a row for each line: `at`, the time at which it was read, and `line`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import SourceError, StreamError
from penstock.model.batch import Batch
from penstock.model.conform import DeadLetter, conform_rows
from penstock.model.elements import is_whole
from penstock.model.formats import TextFormat, check_delimiter
from penstock.model.lines import conform_lines, shown
from penstock.model.schema import Schema

MAX_LINE = 1 << 20
"""So many bytes a line may have, unless it is said otherwise."""
SHOWN = 200
"""So many bytes are kept of a line that is too long."""
TEXT = "at timestamp, line string"
"""The columns of plain text."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Lines:
    """Lines that came together, and what cannot be a line of a stream."""

    form: TextFormat
    header: Sequence[str] | None
    """The names of fields; without them they stand in the order of the stream's columns."""
    lines: Sequence[bytes]
    dead: Sequence[DeadLetter]
    at: int = 0
    """When they were read, in microseconds since 1970."""
    where: str = ""
    """From where they came."""

    def items(self, schema: Schema) -> Iterator[Batch | DeadLetter]:
        """As items of a stream: dead letters, then rows."""
        yield from self.dead
        if not self.lines:
            return
        if self.form.kind == "text":
            good, dead = self._text(schema)
        else:
            good, dead = conform_lines(schema, self.form, self._names(schema), self.lines)
        yield from dead
        if len(good):
            yield good

    def _names(self, schema: Schema) -> Sequence[str]:
        if self.header is None or self.form.kind != "csv":
            return schema.names
        missing = [name for name in schema.names if name not in self.header]
        if missing:
            raise SourceError(
                "The input lacks columns of the schema.",
                where=self.where,
                got=", ".join(missing),
                hint=f"it has {', '.join(self.header)}",
            )
        return self.header

    def _text(self, schema: Schema) -> tuple[Batch, list[DeadLetter]]:
        rows, dead, at = [], [], _EPOCH + dt.timedelta(microseconds=self.at)
        for line in self.lines:
            try:
                text = line.decode()
            except UnicodeDecodeError:
                dead.append(DeadLetter("not UTF-8", shown(line)))
                continue
            if text.strip():
                rows.append({"at": at, "line": text})
        good, misfits = conform_rows(schema, rows)
        return good, dead + misfits


class LineCutter:
    """Cuts what comes into lines."""

    def __init__(self, max_line: int) -> None:
        """Nothing has come."""
        self._max = max_line
        self._parts: list[bytes] = []
        self._kept = 0
        self.pending = 0
        """So many bytes have come since the last line ended."""

    def cut(self, data: bytes) -> tuple[list[bytes], list[DeadLetter]]:
        """The lines that have ended with what has come, and those that were too long."""
        *ended, rest = data.split(b"\n")
        lines: list[bytes] = []
        dead: list[DeadLetter] = []
        for part in ended:
            self._add(part)
            line, size = b"".join(self._parts), self.pending
            self._forget()
            if size > self._max:
                dead.append(DeadLetter(f"a line of {size} bytes, where {self._max} are allowed", shown(line[:SHOWN])))
            else:
                lines.append(line.removesuffix(b"\r"))
        if rest:
            self._add(rest)
        return lines, dead

    def drop(self, why: str) -> list[DeadLetter]:
        """What has not ended, and never will."""
        line, begun = b"".join(self._parts), self.pending
        self._forget()
        return [DeadLetter(why, shown(line[:SHOWN]))] if begun and line.strip() else []

    def _add(self, part: bytes) -> None:
        self.pending += len(part)
        if self.pending <= self._max:
            self._parts.append(part)
            self._kept += len(part)
        elif self._kept > SHOWN or not self._parts:  # of a line that is too long the beginning is enough
            self._parts = [(b"".join(self._parts) + part)[:SHOWN]]
            self._kept = len(self._parts[0])

    def _forget(self) -> None:
        self._parts, self._kept, self.pending = [], 0, 0


def line_form(kind: str, delimiter: str | None, known: Sequence[str], where: str) -> TextFormat:
    """How lines are read: `jsonl`, `csv` or `text`."""
    if not isinstance(kind, str) or kind not in known:
        raise StreamError("There is no such format.", where=where, got=repr(kind)[:200], hint=" or ".join(known))
    if delimiter is None:
        return TextFormat(kind)
    return TextFormat(kind, check_delimiter(delimiter, kind))


def check_text(name: str, value: object, where: str) -> None:
    """Refuse what is no text, or none that the system could be told."""
    fits = isinstance(value, str) and value != "" and "\0" not in value
    try:
        fits = fits and bool(str(value).encode())
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise StreamError(f"The {name} is a text.", where=where, got=repr(value)[:200])


def check_truths(where: str, **options: object) -> None:
    """Refuse what is neither true nor false."""
    for name, value in options.items():
        if not isinstance(value, bool):
            raise StreamError("This is true or false.", where=where, got=f"{name}={value!r}"[:200])


def check_function(name: str, value: object, where: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise StreamError(f"The {name} is a function.", where=where, got=repr(value)[:200])


def checked_limit(max_line: object, where: str) -> int:
    """How long a line may be."""
    if not is_whole(max_line) or max_line < 1:  # type: ignore[operator]
        raise StreamError("A line may have so many bytes, at least one.", where=where, got=f"max_line={max_line!r}")
    return int(max_line)  # type: ignore[call-overload, no-any-return]
