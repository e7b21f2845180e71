"""Late rows and dead letters of a run, in memory while they are few and in a temporary file from then on.

They are readable as a whole at any time, also after the run has failed, and can be handed on as they come.
"""

from __future__ import annotations

import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO

import pyarrow as pa

from penstock.model.batch import Row, rows_of, table_of
from penstock.model.conform import DeadLetter
from penstock.model.elements import Punctuation, linear
from penstock.model.letters import DEAD_SCHEMA, plain_text, promise_text, texts_of
from penstock.model.schema import STRING, Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Rejected

SPILL_ROWS = 20_000
SPILL_BYTES = 8 << 20
"""So many rows, or so much text, are held in memory."""


class KeptRows:
    """Rows of one schema that are only ever added to; the last column is text."""

    def __init__(self, schema: Schema) -> None:
        """Empty."""
        self.schema = schema
        self.last: Row | None = None
        self._rows: list[Row] = []
        self._size = 0
        self._count = 0
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many rows there are."""
        return self._count

    def __iter__(self) -> Iterator[Row]:
        """The rows, times as ticks."""
        for table in self.tables():
            yield from rows_of(table)

    def add(self, row: Row, text: str) -> None:
        """Keep a row, of which `text` is the large part."""
        self.last = row
        with self._lock:
            self._rows.append(row)
            self._count += 1
            self._size += len(text)
            if len(self._rows) >= SPILL_ROWS or self._size >= SPILL_BYTES:
                self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="penstock-")  # noqa: SIM115 - as long as the rows are wanted
        table = table_of(self.schema, self._rows)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue()
        offset = self._places[-1][0] + self._places[-1][1] if self._places else 0
        self._file.write(data)
        self._file.flush()
        self._places.append((offset, len(data)))
        self._rows, self._size = [], 0

    def tables(self, after: int = 0) -> Iterator[pa.Table]:
        """The rows in portions, without the first `after`."""
        with self._lock:
            places, rows = list(self._places), list(self._rows)
        for offset, size in places:
            assert self._file is not None
            data = os.pread(self._file.fileno(), size, offset)
            table = pa.ipc.open_stream(data).read_all()
            if after < table.num_rows:
                yield table.slice(after)
            after = max(after - table.num_rows, 0)
        if rows[after:]:
            yield table_of(self.schema, rows[after:])

    def table(self) -> pa.Table:
        """All rows."""
        found = list(self.tables())
        return pa.concat_tables(found) if found else self.schema.arrow.empty_table()


class Sides(ABC):
    """Where rows go that take no further part: dead letters, and late rows, counted."""

    def __init__(self) -> None:
        """Nothing has left yet."""
        self.letters = KeptRows(DEAD_SCHEMA)
        self.dead = self.failed = 0

    @property
    @abstractmethod
    def lates(self) -> int:
        """How many rows were late."""

    @abstractmethod
    def _late_of(self, stream: str) -> KeptRows:
        """Where the late rows of a stream are kept."""

    def take(self, stream: str, operator: str | None, rejected: Rejected) -> None:
        """Keep rejected rows."""
        texts = texts_of(rejected.batch)
        if rejected.kind == "late":
            kept = self._late_of(stream)
            for text, bound in zip(texts, rejected.bounds, strict=True):
                kept.add((stream, self._shown(bound, rejected.batch.schema, kept.schema), text), text)
            return
        for text, reason in zip(texts, rejected.reasons, strict=True):
            self._keep(stream, operator, reason, text)
        if rejected.kind == "dead":
            self._count(stream, len(rejected.batch))
        else:
            self.failed += len(rejected.batch)

    @staticmethod
    def _shown(bound: int | Punctuation, schema: Schema, kept: Schema) -> object:
        """A bound as the late output has it: a tick, or the text of a promise."""
        if isinstance(bound, int):
            if kept["bound"].type != STRING:
                return None if bound == END_OF_TIME else bound
            bound = linear(str(schema.time), bound)
        return promise_text(bound, schema)

    def bury(self, stream: str, letter: DeadLetter) -> None:
        """Keep a row that could not be read."""
        self._keep(stream, None, letter.reason, plain_text(letter.row))
        self._count(stream, 1)

    def _count(self, stream: str, dead: int) -> None:
        self.dead += dead

    def _keep(self, stream: str, operator: str | None, reason: str, text: str) -> None:
        self.letters.add((stream, operator, plain_text(reason), text), text)

    @property
    def last(self) -> str:
        """The last dead letter, for messages."""
        letter = self.letters.last
        return "" if letter is None else f"the last in {letter[1] or letter[0]}: {letter[2]}"


class SideOutputs(Sides):
    """Late rows and dead letters of one query."""

    def __init__(self, late_schema: Schema) -> None:
        """`late_schema` has the type of the bounds."""
        super().__init__()
        self.late = KeptRows(late_schema)

    @property
    def lates(self) -> int:
        """How many rows were late."""
        return len(self.late)

    def _late_of(self, stream: str) -> KeptRows:
        return self.late


class SidesByStream(Sides):
    """The same of several queries: late rows by stream, since streams may have different kinds of time."""

    def __init__(self, operator: Callable[[], str | None]) -> None:
        """No streams yet; `operator` says which one rejects rows."""
        super().__init__()
        self._operator = operator
        self.whose: list[str | None] = []
        """Of each dead letter the identity of the operator that failed on the row; None for entrances."""
        self.by_stream: dict[str, KeptRows] = {}
        self.dead_of: Counter[str] = Counter()
        """Per stream, how many rows its entrance refused."""

    def _count(self, stream: str, dead: int) -> None:
        super()._count(stream, dead)
        self.dead_of[stream.lower()] += dead

    def _keep(self, stream: str, operator: str | None, reason: str, text: str) -> None:
        super()._keep(stream, operator, reason, text)
        self.whose.append(None if operator is None else self._operator())

    def open(self, stream: str, late_schema: Schema) -> None:
        """Keep the late rows of a stream, whose bounds have the type that the schema says."""
        self.by_stream.setdefault(stream.lower(), KeptRows(late_schema))

    def _late_of(self, stream: str) -> KeptRows:
        return self.by_stream[stream.lower()]

    @property
    def lates(self) -> int:
        """How many rows of any stream were late."""
        return sum(map(len, self.by_stream.values()))
