"""What a queue between two operators is, and the parts that an update queue is configured with (UpStream, section 4).

A queue is pure: it has no clock, `now` is given in ticks and never goes back. Rows are put in (`enqueue`), taken out in
the order of a schedule (`dequeue`), and looked at without being taken (`read`). Between being taken and being processed
a row is under way: `delivered` says that it has arrived, and only then is the application's view of its key fresher.

An update queue keeps, for every update key, the newest value by event time. Three things are orthogonal, as in the
paper: in which order keys are served (`KeyOrder`), where tuples lie in memory (`MemoryManager`), and what an update is:
a tuple, or a window in the queues that are made for windows. To both parts a key is a small number, given by the queue
in the order in which keys were first seen; a key keeps its number for good.

Ties and edges: of two rows of a key with equal event time the later arrival wins. A row that is older than the newest
that has come of its key overwrites nothing: it is counted as `older`. A stream without an update key has one key, `()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK

Key = tuple[object, ...]
"""The values of the update key, in its order."""


@dataclass
class QueueCounts:
    """What became of the rows: enqueued = dequeued + superseded + shed + older + what waits."""

    enqueued: int = 0
    dequeued: int = 0
    superseded: int = 0
    """Overwritten by a newer value of their key while they waited, or within their batch."""
    older: int = 0
    """Arrived when a newer value of their key had come, and dropped."""
    shed: int = 0
    """Dropped because the queue is one that sheds load."""
    delivered: int = 0
    """Of those dequeued, the ones that were processed."""

    def as_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True)
class Staleness:
    """How far behind what is shown is, now and on average (sections 3.3 and 5.1).

    Of one key, or of all together: then each number is the average over the keys that were ever seen. Averages are time
    integrals from the first arrival to now, divided by that time.
    """

    queue: float = 0.0
    """Ticks since the oldest update came that no dequeue has answered."""
    application: float = 0.0
    """Ticks since the oldest update came that no delivery has answered."""
    unapplied: float = 0.0
    """How many updates no delivery has answered."""
    average_queue: float = 0.0
    average_application: float = 0.0
    average_unapplied: float = 0.0


@dataclass(frozen=True)
class MemoryUsage:
    """What a memory manager holds, now and on average over time (section 7.3)."""

    locations: int = 0
    """Locations that are set aside for keys, whether they hold a tuple that is still wanted or not."""
    used: int = 0
    """Locations that hold a tuple that waits; the others are dirty."""
    pages: int = 0
    bytes: int = 0
    """The size of all pages, full or not: what the allocator gave."""
    used_bytes: int = 0
    """The size of the tuples that wait."""
    average_locations: float = 0.0
    average_used: float = 0.0
    average_bytes: float = 0.0
    average_used_bytes: float = 0.0

    @property
    def effective(self) -> float:
        """Which part of the locations is in use, on average; 1 where there never were any."""
        return self.average_used / self.average_locations if self.average_locations else 1.0


@dataclass(frozen=True)
class Kept:
    """Which keys are kept when others are forgotten: they get the numbers from 0 on, in their order."""

    numbers: np.ndarray
    """The numbers that they had, ascending."""
    new: np.ndarray
    """By the number that a key had, the one that it has now; -1 of those that are forgotten."""

    @staticmethod
    def of(stays: np.ndarray) -> Kept:
        """Of a mask by number."""
        numbers = np.flatnonzero(stays)
        new = np.full(len(stays), -1, np.int64)
        new[numbers] = np.arange(len(numbers))
        return Kept(numbers, new)


class KeyOrder(ABC):
    """Which key is served next. Every key is in it at most once, however many updates came."""

    kind: str
    """Its name in the papers' words, kept with the state."""
    version = 1

    @abstractmethod
    def arrive(self, keys: np.ndarray, now: int) -> None:
        """Updates of these keys arrived, one after the other; a key may be among them several times."""

    def arrive_at_once(self, keys: np.ndarray, now: int) -> None:
        """Updates of these keys arrived together, with no order among them."""
        self.arrive(keys, now)

    @abstractmethod
    def arrive_one(self, key: int, now: int) -> None:
        """One update arrived."""

    @abstractmethod
    def take(self, most: int, now: int) -> np.ndarray:
        """The keys that are served next, in order, at most so many; they no longer wait."""

    @abstractmethod
    def waits(self, key: int) -> bool:
        """Whether a key waits."""

    def waiting(self) -> np.ndarray | None:
        """All keys that wait, at the cost of as many steps; None from an order that cannot tell."""
        return None

    @abstractmethod
    def __len__(self) -> int:
        """How many keys wait."""

    def served(self, keys: int, cost: int) -> None:  # noqa: B027 - most do not want to know
        """So many keys that were taken have been processed, which took so many ticks together."""

    def remembers(self, now: int) -> Sequence[int]:
        """Keys that do not wait, and of which it must know more than that."""
        return ()

    @abstractmethod
    def keep(self, kept: Kept) -> None:
        """Some keys are forgotten, none of which waits."""

    @abstractmethod
    def to_plain(self) -> Any:
        """The state as plain data."""

    @abstractmethod
    def from_plain(self, data: Any, version: int) -> None:
        """Take up the state that this version, or an earlier one, wrote."""


class MemoryManager(ABC):
    """Where tuples lie: in locations on pages, which are buffers of bytes of a fixed size.

    A location is a number. It belongs to an owner, a key or whatever else has a number, and holds as many bytes as were
    asked for; it never spans two pages. Whoever has many at a time uses the plural methods, which do the same.
    """

    kind: str
    version = 1

    @abstractmethod
    def allocate(self, owner: int, size: int) -> int:
        """A location of at least `size` bytes that is used from now on."""

    @abstractmethod
    def free(self, owner: int, location: int) -> None:
        """What lies there is no longer wanted."""

    @abstractmethod
    def overwrite(self, owner: int, location: int, size: int) -> int:
        """Where a tuple of another size may replace the one there: the same location if it fits, else another one."""

    @abstractmethod
    def view(self, location: int) -> memoryview:
        """The bytes of a location that is used, to read and write; at least as many as were asked for."""

    @abstractmethod
    def write(self, location: int, data: bytes) -> None:
        """Put bytes into a location that is used; they fit."""

    @abstractmethod
    def allocate_many(self, owners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """A location for each owner."""

    @abstractmethod
    def free_many(self, owners: np.ndarray, locations: np.ndarray) -> None:
        """What lies in these locations is no longer wanted."""

    @abstractmethod
    def write_many(self, locations: np.ndarray, data: np.ndarray, starts: np.ndarray) -> None:
        """Put bytes into locations that were allocated for them, into the i-th `data[starts[i]:starts[i + 1]]`."""

    @abstractmethod
    def read_many(self, locations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of some locations, one after the other, with their starts as in `write_many`."""

    def keep(self, kept: Kept) -> None:  # noqa: B027 - most have nothing of an owner without tuples
        """Some owners are forgotten, none of whom has a tuple."""

    @abstractmethod
    def account(self, now: int) -> None:
        """Up to `now` usage was what it is; whoever changes it at `now` says so before."""

    @abstractmethod
    def usage(self, now: int) -> MemoryUsage:
        """What is held, and was on average since the first account."""

    @abstractmethod
    def to_plain(self) -> Any:
        """The state as plain data: what is used and what it holds."""

    @abstractmethod
    def from_plain(self, data: Any, version: int) -> None:
        """Take up the state that this version, or an earlier one, wrote; locations are the same as they were."""


class Queue(ABC):
    """Rows that wait for their consumer."""

    kind: str
    """What its state is of, in the papers' words."""
    version = 1
    is_timed = False
    """Whether rows that wait may become ready by the passing of time alone."""
    keeps_order = False
    """Whether rows come out in the order in which they came in, those that do."""
    forgotten = 0
    """How many keys were forgotten."""

    def __init__(self, schema: Schema, key: Sequence[str] = ()) -> None:
        """`key` names the columns of the update key; none where each row updates the one before it."""
        self.schema = schema
        self.key = tuple(schema[name].name for name in key)
        self.counts = QueueCounts()

    @abstractmethod
    def enqueue(self, batch: Batch, now: int) -> None:
        """Rows arrived, in this order."""

    def punctuate(self, punctuation: Punctuation, now: int) -> None:  # noqa: B027 - tuples need no promise
        """A promise arrived after the rows so far; it closes windows where updates are windows."""

    @abstractmethod
    def dequeue(self, now: int, most: int) -> Batch:
        """The rows that are next, in the order of the schedule, at most so many; they are under way from now on."""

    def wake(self, now: int) -> None:  # noqa: B027 - in most queues nobody sleeps
        """The run ends here: whatever waits is wanted now."""

    @abstractmethod
    def delivered(self, now: int, most: int | None = None) -> None:
        """What was dequeued has been processed: all of it, or the first so many that are still under way."""

    @abstractmethod
    def read(self, key: Key) -> Row | None:
        """The newest row of a key that waits, which goes on waiting; None if none does."""

    def knows(self, key: Key) -> bool:
        """Whether a key that has come was not forgotten."""
        return True

    @abstractmethod
    def __len__(self) -> int:
        """How many rows wait."""

    def ready(self, now: int) -> int:
        """How many rows could be dequeued now."""
        return len(self)

    def earliest(self) -> int | None:
        """No row that waits has a time before this; None if none waits. Promises up to here may go on."""
        return MIN_TICK if len(self) else None

    @abstractmethod
    def staleness(self, now: int, key: Key | None = None) -> Staleness:
        """How stale one key is, or all keys on average; a key that was never seen is fresh."""

    @abstractmethod
    def memory(self, now: int) -> MemoryUsage:
        """What its tuples take."""

    @abstractmethod
    def to_plain(self) -> Any:
        """All that it holds as plain data: rows, order, counts, staleness, what is under way."""

    @abstractmethod
    def from_plain(self, data: Any, version: int) -> None:
        """Take up the state that this version, or an earlier one, wrote; configuration is as it was made."""
