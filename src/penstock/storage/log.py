"""The log of a run: numbered records, each put once and never changed.

A record says everything that was known after a micro-batch (`Record`): its own number, the generation of the query that
made it, the host's number of the micro-batch, the files that belong to it, how far the output has come, what was
promised of some groups, totals so far, state of the trackers, greatest starts, and the positions of the sources. Since
totals and state are in every record, the last one is the whole state of a run: what is older is kept for `keep`
records, for whoever wants to look back, and then deleted. So the latest state costs the listing of a folder of bounded
size and the reading of one file.

A micro-batch that is replayed after a crash finds its record, by the host's number, and writes nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.errors import LeaseError, StorageError
from penstock.storage.files import Place

FORMAT = 2
READS = (1, 2)
"""Formats of earlier releases, which had fewer fields, and this one's."""
KEEP = 100
_DIGITS = 12
LOOKS = 10
"""How often a log is looked at anew that changes while it is read."""


@dataclass(frozen=True)
class DataFile:
    """A file of rows, of which the times are known if they have one."""

    name: str
    rows: int
    least: int | None = None
    greatest: int | None = None
    staged: str = ""
    """Its name in the staging folder, until it has been moved."""
    size: int | None = None
    """How many bytes it has; None if an earlier release wrote it."""


@dataclass(frozen=True)
class Record:
    """What was known after a micro-batch."""

    run: str
    number: int
    batch: int
    generation: int = 1
    files: Mapping[str, tuple[DataFile, ...]] = field(default_factory=dict)
    """Per output: results, late rows, dead letters."""
    frontier: int | None = None
    """No later result is before this."""
    promises: Mapping[str, str] = field(default_factory=dict)
    """What was lately promised of some groups (`RecentPromises`), per stream; of the result under the empty name."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Of this micro-batch."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """So far, this micro-batch included."""
    trackers: Mapping[str, Any] = field(default_factory=dict)
    """Per stream, the state of its progress."""
    greatest: Mapping[str, int] = field(default_factory=dict)
    """Per stream the greatest start seen, and under the empty name the greatest start of a result."""
    positions: Any = None
    """Where the sources stand after this micro-batch."""
    state: Any = None
    """What else the host must know to go on."""
    at: float = 0.0
    """When it was put, in seconds since 1970."""


def number_name(number: int) -> str:
    """The name of a numbered file; names sort as numbers do."""
    return f"{number:0{_DIGITS}d}.json"


def number_of(name: str) -> int | None:
    """The number of a file's name, if it is one."""
    stem = name.removesuffix(".json")
    return int(stem) if name.endswith(".json") and len(stem) == _DIGITS and stem.isdigit() else None


class RecordLog:
    """The records of one run."""

    def __init__(self, folder: Place, keep: int = KEEP) -> None:
        """`keep` records stay; at least the last two do."""
        self.folder, self.keep = folder, max(keep, 2)
        self._known: list[int] | None = None

    def last(self) -> Record | None:
        """The newest record, which is the state of the run."""
        for _ in range(LOOKS):
            numbers = self.numbers()
            if not numbers:
                return None
            try:
                return self.read(numbers[-1])
            except FileNotFoundError:
                continue  # the log was trimmed in the meantime
        raise StorageError(
            "The log of a run changes too fast to be read.",
            where=str(self.folder),
            got=f"record {numbers[-1]} was gone each time that it was to be read",
            hint="try again, or look whether something deletes its files",
        )

    def numbers(self) -> list[int]:
        """The numbers of the records that are kept."""
        return [n for name in self.folder.files() if (n := number_of(name)) is not None]

    def read(self, number: int) -> Record:
        """One record."""
        file = self.folder / number_name(number)
        return record_of(file.read_json(), str(file))

    def put(self, record: Record) -> None:
        """Append a record; another one with its number means that another driver is at work."""
        file = self.folder / number_name(record.number)
        if not file.put_json({"format": FORMAT, **asdict(record)}):
            raise LeaseError(
                "Another driver has put this record.",
                where=str(file),
                got=f"record {record.number} of run {record.run}",
                hint="this run has stopped before it wrote anything more; let the other one go on",
            )
        if self._known is None:
            self._known = self.numbers()
        else:
            self._known.append(record.number)
        self._trim()

    def _trim(self) -> None:
        assert self._known is not None
        while len(self._known) > self.keep:
            (self.folder / number_name(self._known.pop(0))).delete()


def record_of(value: Any, where: str) -> Record:
    """A record from JSON."""
    try:
        known = dict(value)
        version = known.pop("format")
        if version in READS:
            files = {k: tuple(DataFile(**f) for f in found) for k, found in known.pop("files").items()}
            return Record(files=files, **known)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise StorageError(
            "A record of the log is damaged.", where=where, got=repr(error), hint="restore it from a copy"
        ) from error
    raise StorageError(
        "A record of the log has another format.",
        where=where,
        got=f"format {version}",
        hint=f"this release reads up to format {FORMAT}",
    )
