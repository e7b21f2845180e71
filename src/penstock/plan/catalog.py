"""What a query may refer to: streams, tables, user functions and user aggregates."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.errors import StreamError
from penstock.model.progress import Progress
from penstock.model.properties import StreamProperties
from penstock.model.schema import DataType, Schema
from penstock.model.timestamps import Silence
from penstock.operators.aggregates.functions import UserAggregate
from penstock.plan.lookup_nodes import TableInfo
from penstock.plan.nodes import Node


@dataclass(frozen=True)
class StreamInfo:
    """A declared stream."""

    name: str
    schema: Schema
    progress: Progress
    properties: StreamProperties
    max_ahead: int | None = None
    """How many ticks a row may be beyond what the stream has reached."""
    silence: Silence | None = None
    """What the clock says of it while nothing comes."""
    stamped: bool = False
    """Whether its rows are stamped as they enter: the source has all columns but the time."""
    latent: bool = False
    """Whether they have a time only from where one is needed."""


@dataclass(frozen=True)
class UserFunction:
    """A Python function of single values, called with None for null."""

    name: str
    function: Callable[..., object]
    returns: DataType
    version: str | None = None
    """Declared by the user: a checkpoint is checked against it instead of the code."""


@dataclass
class Catalog:
    """Streams, tables, functions and aggregates by name; names do not mind case."""

    streams: dict[str, StreamInfo] = field(default_factory=dict)
    functions: dict[str, UserFunction] = field(default_factory=dict)
    aggregates: dict[str, tuple[UserAggregate, DataType]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Of aggregates, where the user declared one."""
    views: dict[str, Node] = field(default_factory=dict)
    """Plans that queries read like streams, by lower-case name."""
    tables: dict[str, TableInfo] = field(default_factory=dict)

    def add_stream(self, stream: StreamInfo) -> None:
        """Declare a stream; a name can be used once."""
        self.check_free(stream.name)
        self.streams[stream.name.lower()] = stream

    def add_table(self, table: TableInfo) -> None:
        """Declare a table; it has no name that a stream has."""
        self.check_free(table.name)
        self.tables[table.name.lower()] = table

    def check_free(self, name: str) -> None:
        """Refuse a name that is taken."""
        taken = "table" if name.lower() in self.tables else "stream"
        if name.lower() in {known.lower() for known in self.names}:
            raise StreamError(f"There is a {taken} of that name already.", got=name, hint="choose another name")

    @property
    def names(self) -> list[str]:
        """What queries may read."""
        return [*[s.name for s in self.streams.values()], *self.views, *[t.name for t in self.tables.values()]]

    def stream(self, name: str) -> StreamInfo | None:
        """The stream of that name."""
        return self.streams.get(name.lower())


def closest(name: str, known: Iterable[str]) -> str:
    """A hint: the nearest known name, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    if near:
        match = next(n for n in names if n.lower() == near[0])
        return f"did you mean {match}?"
    return f"known: {', '.join(names) if names else 'none'}"
