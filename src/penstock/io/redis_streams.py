"""A Redis stream as a source and as a sink, by `redis` (the extra `redis`).

An entry has an id, which says where it stands, and fields. It is a row by its fields, whose texts are read into the
types of the schema as in a CSV file, or by one field that holds a JSON object. The position of a source is the id of
the last entry that was handed over.

A sink adds an entry for each row, of a field for each column; a null is a field that is not there. A run that goes on
from a snapshot takes out of the stream what it had added after it, and adds it anew: whoever reads the stream then
finds each result once. Whoever has read those entries meanwhile sees them again under other ids; where rows come again
in the same order, the field `penstock_row` has the same number. Entries without that field are somebody else's and
stay.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa

from penstock.errors import CheckpointError, SourceError, StreamError
from penstock.io.messages import Messages, check_told, settings_of, told_columns
from penstock.model.conform import as_json
from penstock.model.schema import Schema
from penstock.runtime.polled import END, IDLE

COLUMNS: Mapping[str, tuple[str, ...]] = {"redis_id": ("string",), "redis_timestamp": ("timestamp",)}
"""What a schema may ask for beside the fields, with the type that it has there."""
ROW_FIELD = "penstock_row"
TOGETHER = 1000
"""At most so many entries are handed over, or added, at once."""
BEGINNING = "0-0"
LOGGER = logging.getLogger("penstock.sources")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RedisStream:
    """What is read of a stream."""

    url: str = field(repr=False)
    """Which may hold a password."""
    stream: str
    json: str | None = None
    start: str = "earliest"
    until: Literal["end"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """What can be wrong is said when it is written."""
        where = _checked(self.url, self.stream)
        if self.json is not None and not (isinstance(self.json, str) and self.json):
            raise StreamError("json= names a field.", where=where, got=repr(self.json)[:200], hint="json='value'")
        if self.start not in ("earliest", "latest") and _number(self.start) is None:
            raise StreamError(
                "A stream is read from its earliest or latest entry, or from behind an id.",
                where=where,
                got=f"start={self.start!r}"[:200],
                hint="'earliest', 'latest' or '1700000000000-0'",
            )
        if self.until not in (None, "end"):
            raise StreamError(
                "A stream is read for good or until its end.",
                where=where,
                got=f"until={self.until!r}"[:200],
                hint="until='end' reads what is there when the run starts",
            )

    def check_columns(self, schema: Schema) -> None:
        """Refuse columns for what the server tells that are of another type."""
        check_told(schema, COLUMNS, f"stream {self.stream}")

    def open_source(self, schema: Schema) -> RedisReader:
        """A reader of the stream for one run."""
        return RedisReader(self, schema)


def redis(
    url: str,
    stream: str,
    *,
    json: str | None = None,
    start: str = "earliest",
    until: Literal["end"] | None = None,
    options: Mapping[str, Any] | None = None,
) -> RedisStream:
    """A Redis stream as the source of a stream.

    Args:
        url: of the server, `"redis://host:6379/0"`.
        stream: its key.
        json: the field that holds a row as a JSON object; without it each field is a column.
        start: where a run begins that does not go on from a snapshot: `earliest`, `latest`, or behind an id.
        until: `"end"` ends the stream with what is there when the run starts; else it has no end.
        options: further settings of the client, as of `redis.Redis.from_url`.
    """
    package()
    return RedisStream(url, stream, json, start, until, settings_of(options, f"stream {stream}"[:200]))


class RedisReader:
    """One run's reading of a stream."""

    def __init__(self, stream: RedisStream, schema: Schema) -> None:
        """Connect, and find where to begin."""
        self.stream, self.where = stream, f"stream {stream.stream}"
        self._told = told_columns(schema, COLUMNS)
        self._names = {f.name: str(f.type) for f in schema.fields}
        self._guard = threading.Lock()
        self._is_closed = False
        with told(self.where):
            self._client: Any = package().Redis.from_url(stream.url, **stream.options)
            newest = _newest(self._client, stream.stream)
        self._end = newest if stream.until is not None else None
        starts = {"earliest": BEGINNING, "latest": newest}
        self._at = starts.get(stream.start, stream.start)

    def position(self) -> Any:
        """The id of the last entry that was handed over."""
        return {"stream": self.stream.stream, "id": self._at}

    def seek(self, position: Any) -> None:
        """Go on behind the id of a snapshot."""
        if not isinstance(position, dict) or position.get("stream") != self.stream.stream or "id" not in position:
            raise SourceError(
                "The snapshot was taken of another source.",
                where=self.where,
                got=repr(position)[:200],
                hint="go on with the stream that it was taken of, or start anew with another folder",
            )
        with told(self.where):
            newest = _newest(self._client, self.stream.stream)
            at = position["id"]
            is_there = at == BEGINNING or self._client.xrange(self.stream.stream, at, at)
        if _order(at) > _order(newest):
            raise SourceError(
                "Entries up to the snapshot are not there any more.",
                where=self.where,
                got=f"id {at}, while the stream has come to {newest}",
                hint="Redis has lost them, or the stream was made anew: start over with another folder of snapshots",
            )
        self._at = at
        if not is_there:  # Redis trims from the front, so that while it is there nothing behind it was trimmed
            LOGGER.warning("%s: entry %s was trimmed, and others behind it may have been, unread", self.where, at)

    def poll(self) -> Any:
        """The next entries; never waits."""
        with self._guard:
            if self._is_closed or (self._end is not None and _order(self._at) >= _order(self._end)):
                return END
            last = "+" if self._end is None else self._end
            with told(self.where):
                entries = self._client.xrange(self.stream.stream, f"({self._at}", last, count=TOGETHER)
            if not entries:
                return IDLE if self._end is None else END
            found = Messages(as_text=self.stream.json is None)
            for key, fields in entries:
                self._add(found, key.decode(), fields)
            self._at = entries[-1][0].decode()
            return found

    def _add(self, found: Messages, key: str, fields: Mapping[bytes, bytes]) -> None:
        place = f"stream {self.stream.stream}, entry {key}"
        known: dict[str, object] = {name: self._tell(what, key) for name, (what, _) in self._told.items()}
        if self.stream.json is not None:
            value = fields.get(self.stream.json.encode())
            if value is None:
                found.bury(f"there is no field {self.stream.json}", None, place)
            else:
                found.add(value, known, place)
            return
        row: dict[str, object] = {}
        for name, value in fields.items():
            column = name.decode("utf-8", "replace")
            try:
                row[column] = value if self._names.get(column) == "binary" else value.decode()
            except UnicodeDecodeError:
                found.bury(f"{column} is not UTF-8", value, place)
                return
        found.add_row(row | known, place)

    def _tell(self, name: str, key: str) -> object:
        return key if name == "redis_id" else _EPOCH + timedelta(milliseconds=_order(key)[0])

    def close(self) -> None:
        """Let the server go."""
        with self._guard:
            if not self._is_closed:
                self._is_closed = True
                self._client.close()


@dataclass(frozen=True)
class RedisTarget:
    """A stream that results go to."""

    url: str = field(repr=False)
    stream: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """What can be wrong is said when it is written."""
        _checked(self.url, self.stream)

    def open_sink(self, schema: pa.Schema | None) -> RedisSink:
        """A client for one run."""
        return RedisSink(self)


def redis_sink(url: str, stream: str, *, options: Mapping[str, Any] | None = None) -> RedisTarget:
    """A Redis stream for results, late rows or dead letters; a row is an entry.

    Args:
        url: of the server, `"redis://host:6379/0"`.
        stream: its key.
        options: further settings of the client, as of `redis.Redis.from_url`.
    """
    package()
    return RedisTarget(url, stream, settings_of(options, f"stream {stream}"[:200]))


class RedisSink:
    """Adds rows to a stream."""

    def __init__(self, target: RedisTarget) -> None:
        """Connections are made when they are wanted."""
        self.target, self.where = target, f"stream {target.stream}"
        self._client: Any = package().Redis.from_url(target.url, **target.options)
        self._rows = 0
        self._last: str | None = None

    def write(self, table: pa.Table) -> None:
        """Add each row; all of them are in the stream when this comes back."""
        with told(self.where):
            for part in table.to_batches(TOGETHER):
                adding = self._client.pipeline(transaction=False)
                for number, row in enumerate(part.to_pylist(), start=self._rows):
                    adding.xadd(self.target.stream, _fields(row) | {ROW_FIELD: str(number)})
                added = adding.execute()
                if added:
                    self._rows, self._last = self._rows + len(added), added[-1].decode()

    def position(self) -> Any:
        """How many rows were added, and the newest id of the stream."""
        if self._last is None:
            with told(self.where):
                self._last = _newest(self._client, self.target.stream)
        return {"rows": self._rows, "id": self._last}

    def resume(self, position: Any) -> None:
        """Take out what was added after a position; from None begin."""
        if position is None:
            return
        with told(self.where):
            newest = _newest(self._client, self.target.stream)
            if _order(position["id"]) > _order(newest):
                raise CheckpointError(
                    "A stream of results has not come as far as it had when the snapshot was taken.",
                    where=self.where,
                    got=f"it has come to {newest}, the snapshot to {position['id']}",
                    hint="Redis has lost entries: start over with another folder of snapshots and another stream",
                )
            self._rows, self._last = position["rows"], position["id"]
            self._take_out(position["id"])

    def _take_out(self, at: str) -> None:
        while entries := self._client.xrange(self.target.stream, f"({at}", "+", count=TOGETHER):
            ours = [key for key, fields in entries if int(fields.get(ROW_FIELD.encode(), -1)) >= self._rows]
            if ours:
                self._client.xdel(self.target.stream, *ours)
            at = entries[-1][0].decode()

    def close(self) -> None:
        """Everything was added."""
        self._client.close()

    def abandon(self) -> bool:
        """What was added stays."""
        self._client.close()
        return self._rows > 0


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """A field for each value: text and bytes as they are, others as JSON writes them, without quotes."""
    return {name: _written(value) for name, value in row.items() if value is not None}


def _written(value: Any) -> str | bytes:
    if isinstance(value, str | bytes):
        return value
    text = as_json({"v": value})[len('{"v": ') : -1]
    return text[1:-1] if text.startswith('"') else text


def _newest(client: Any, stream: str) -> str:
    """The id up to which a stream has come, whatever was deleted since."""
    try:
        found: bytes = client.xinfo_stream(stream)["last-generated-id"]
    except package().ResponseError as error:
        if "no such key" in str(error):
            return BEGINNING
        raise
    return found.decode()


def _number(key: object) -> tuple[int, int] | None:
    """An id as two numbers."""
    parts = key.split("-") if isinstance(key, str) else []
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def _order(key: str) -> tuple[int, int]:
    found = _number(key)
    if found is None:
        raise SourceError("Not an id of a Redis stream.", got=repr(key)[:200])
    return found


def _checked(url: object, stream: object) -> str:
    if not isinstance(url, str) or not url or not isinstance(stream, str) or not stream:
        raise StreamError(
            "A Redis stream is named by its server and its key.",
            got=f"stream={stream!r}"[:200],
            hint="pk.redis('redis://host:6379/0', 'packets')",
        )
    return f"stream {stream}"


@contextmanager
def told(where: str) -> Iterator[None]:
    """What the server refuses is told as an error of ours."""
    try:
        yield
    except (package().RedisError, ValueError) as error:
        raise SourceError(
            "Redis did not answer as it should.",
            where=where,
            got=f"{type(error).__name__}: {error}"[:300],
            hint="is the URL right, does the server run, and is there a stream, or nothing, under the key?",
        ) from error


def package() -> ModuleType:
    """The client, or an error that says how it is installed."""
    try:
        import redis as client
    except ImportError as error:
        raise StreamError(
            "Redis streams need the package redis.", got=str(error)[:200], hint="pip install 'penstock[redis]'"
        ) from None
    return client
