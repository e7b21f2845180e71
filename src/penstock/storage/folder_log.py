"""The log of an output folder: which files belong to it, in which order they came, how far each micro-batch came.

An entry says which files the micro-batches `first` to `last` wrote and the frontier after them. It is put in a file of
its own; after `LOOSE` of them they are folded into one file, a segment, and `FAN` segments of a size into a larger one.
So a folder of N micro-batches has O(log N) files of log, an entry is copied O(log N) times in all, and a reader that
knows its place reads only what is newer. A folder that forgets rows after a time folds once only, and has N / `LOOSE`
files of the N that it keeps. What a segment covers is known by its name; where two overlap, because a fold
was interrupted, the wider one counts.

No file system lists a folder in one moment: of entries that are folded meanwhile, a listing may show neither the old
files nor the new one. So an entry says which number is before it, and a reader that finds an entry without the one
before it looks again. What only the oldest entries lack was forgotten.

With compaction, folding also writes the rows of many small files into one larger file. The entry then has *parts*, the
number of rows of each micro-batch in order, so that a reader in the middle knows where to go on; parts that are more
than `HISTORY` micro-batches old are forgotten, and whoever is that far behind goes on by the rows that it has counted,
or starts from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from penstock.errors import StorageError
from penstock.storage.files import Place
from penstock.storage.log import LOOKS, DataFile, number_name, number_of

FORMAT = 1
LOOSE = 32
FAN = 8
HISTORY = 4096

Part = tuple[int, int, int | None]
"""The number of a micro-batch, how many rows it has, and the frontier after it."""


@dataclass(frozen=True)
class Entry:
    """What some micro-batches, usually one, put into a folder."""

    first: int
    last: int
    files: tuple[DataFile, ...]
    frontier: int | None
    at: float
    parts: tuple[Part, ...] = ()
    """Of several micro-batches whose rows were written together, in order."""
    before: int | None = None
    """The number that the folder was told before `first`, -1 if there is none; None if an earlier release wrote it."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(f.rows for f in self.files)

    @property
    def greatest(self) -> int | None:
        """The greatest start of its rows, if all are known."""
        starts = [f.greatest for f in self.files if f.rows]
        return None if not starts or None in starts else max(s for s in starts if s is not None)


class Compaction(Protocol):
    """Writes the rows of many small files into fewer."""

    def rewrite(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Entries with the same rows; their new files are staged."""

    def settle(self) -> None:
        """The new entries are in the log: the old files go, the new ones come."""


@dataclass(frozen=True)
class Segment:
    """The name of a file of folded entries."""

    first: int
    last: int
    level: int

    @property
    def name(self) -> str:
        """Which says what it covers."""
        return f"{self.first:012d}-{self.last:012d}-{self.level}.json"


def segment_of(name: str) -> Segment | None:
    """The segment of a file's name, if it is one."""
    parts = name.removesuffix(".json").split("-")
    if not name.endswith(".json") or len(parts) != 3 or not all(p.isdigit() for p in parts):
        return None
    return Segment(int(parts[0]), int(parts[1]), int(parts[2]))


@dataclass(frozen=True)
class Listing:
    """The files of a log that count, in order."""

    segments: tuple[Segment, ...]
    loose: tuple[int, ...]

    @property
    def last(self) -> int | None:
        """The newest number."""
        if self.loose:
            return self.loose[-1]
        return self.segments[-1].last if self.segments else None


def listing(names: Iterable[str]) -> Listing:
    """Which files count: of two segments that overlap the wider, and numbers that are in none."""
    known = list(names)
    segments: list[Segment] = []
    for each in sorted((s for n in known if (s := segment_of(n))), key=lambda s: (s.first, -s.last)):
        if not segments or each.first > segments[-1].last:
            segments.append(each)
    folded = segments[-1].last if segments else -1
    return Listing(tuple(segments), tuple(n for m in known if (n := number_of(m)) is not None and n > folded))


class FolderLog:
    """The entries of a folder; one writer, any number of readers."""

    def __init__(self, folder: Place, run: str) -> None:
        """`run` is the identity of the run that writes."""
        self.folder, self.run = folder, run
        self._listing: Listing | None = None

    # Reading

    def entries(self, after: int = -1) -> list[Entry]:
        """Every entry that has something newer than a number, in order."""
        forgotten: int | None = None
        for _ in range(LOOKS):
            now = listing(self.folder.files())
            try:
                found = [e for s in now.segments if s.last > after for e in self._segment(s)]
                found += [self._loose(n) for n in now.loose if n > after]
            except FileNotFoundError:
                continue  # folded in the meantime
            found = [e for e in found if e.last > after]
            gap = next((pair for pair in pairwise(found) if pair[1].before not in (None, pair[0].last)), None)
            if gap is None and (not found or _follows(found[0], after) or found[0].first == forgotten):
                return found
            forgotten = found[0].first  # if it is so twice, and not because a fold was seen in the middle
        if gap is not None:
            raise StorageError(
                "An entry is missing in the log of an output folder.",
                where=str(self.folder),
                got=f"an entry follows {gap[1].before}, which is not there; the last one before it is {gap[0].last}",
                hint="restore the folder from a copy, or start its query over, with a new path and folder",
            )
        raise StorageError(
            "The log of an output folder changes too fast to be read.",
            where=str(self.folder),
            hint="try again, or look whether something deletes its files",
        )

    @property
    def last(self) -> int | None:
        """The newest number."""
        return listing(self.folder.files()).last

    def has(self, number: int) -> bool:
        """Whether the log has come as far as a number; a listing that shows less is looked at again."""
        return any((last := self.last) is not None and last >= number for _ in range(LOOKS))

    def _loose(self, number: int) -> Entry:
        file = self.folder / number_name(number)
        return self._checked(file, lambda value: [_entry(value["entry"])])[0]

    def _segment(self, segment: Segment) -> list[Entry]:
        file = self.folder / segment.name
        return self._checked(file, lambda value: [_entry(e) for e in value["entries"]])

    def _checked(self, file: Place, read: Callable[[Any], list[Entry]]) -> list[Entry]:
        value = file.read_json()
        try:
            if value["format"] == FORMAT and value["run"] == self.run:
                return read(value)
            got = f"run {value['run']}, format {value['format']}"
        except (KeyError, TypeError, ValueError) as error:
            got = repr(error)
        raise StorageError(
            "The log of an output folder is damaged, or of another run.",
            where=str(file),
            got=got,
            hint=f"it should be of run {self.run}, format {FORMAT}",
        )

    # Writing

    @property
    def written(self) -> int:
        """The newest number, as the one writer knows it; -1 if there is none."""
        last = self._current().last
        return -1 if last is None else last

    def put(self, entry: Entry) -> bool:
        """Append an entry; whether it was not there yet."""
        now = self._current()
        linked = replace(entry, before=-1 if now.last is None else now.last)
        fresh = (self.folder / number_name(entry.first)).put_json(
            {"format": FORMAT, "run": self.run, "entry": _plain(linked)}
        )
        if fresh:
            self._listing = Listing(now.segments, (*now.loose, entry.first))
        return fresh

    def fold(self, compact: Compaction | None = None, *, widen: bool = True) -> bool:
        """Fold loose entries, and segments if `widen`, where there are many; whether there were."""
        now = self._current()
        if len(now.loose) < LOOSE:
            return False
        made = Segment(now.loose[0], now.loose[-1], 0)
        self._write(made, [self._loose(n) for n in now.loose], compact)
        self._listing = Listing((*now.segments, made), ())
        for number in now.loose:
            (self.folder / number_name(number)).delete()
        while widen and self._widen(compact):
            pass
        return True

    def _widen(self, compact: Compaction | None) -> bool:
        """Fold the newest segments of one level, if there are enough of them."""
        now = self._current()
        level = now.segments[-1].level
        tail = [s for s in now.segments[-FAN:] if s.level == level]
        if len(tail) < FAN:
            return False
        made = Segment(tail[0].first, tail[-1].last, level + 1)
        self._write(made, [e for s in tail for e in self._segment(s)], compact)
        self._listing = Listing((*now.segments[: -len(tail)], made), now.loose)
        for each in tail:
            (self.folder / each.name).delete()
        return True

    def _write(self, made: Segment, entries: Sequence[Entry], compact: Compaction | None) -> None:
        rewritten = compact.rewrite(entries) if compact is not None else entries
        kept = [_plain(_forgetful(e, made.last - HISTORY)) for e in rewritten]
        (self.folder / made.name).write_json({"format": FORMAT, "run": self.run, "entries": kept})
        if compact is not None:
            compact.settle()

    def drop(self, before: float) -> list[Entry]:
        """Forget the oldest entries that are all older than a time, a file of the log at a time; what was forgotten."""
        gone: list[Entry] = []
        now = self._current()
        for segment in now.segments:
            entries = self._segment(segment)
            if any(e.at >= before for e in entries):
                return gone
            (self.folder / segment.name).delete()
            self._listing = now = Listing(now.segments[1:], now.loose)
            gone += entries
        for number in now.loose:
            entry = self._loose(number)
            if entry.at >= before:
                break
            (self.folder / number_name(number)).delete()
            self._listing = now = Listing(now.segments, now.loose[1:])
            gone.append(entry)
        return gone

    def _current(self) -> Listing:
        if self._listing is None:
            names = self.folder.files()
            self._listing = listing(names)
            counted = {s.name for s in self._listing.segments} | {number_name(n) for n in self._listing.loose}
            for name in names:
                if name not in counted and (segment_of(name) or number_of(name) is not None):
                    (self.folder / name).delete()  # what an interrupted fold left
        return self._listing


def _follows(entry: Entry, number: int) -> bool:
    """Whether nothing is between a number and an entry."""
    return entry.before is None or entry.before <= number or entry.first <= number


def _forgetful(entry: Entry, before: int) -> Entry:
    """Parts in the middle of which nobody is expected to be count as one."""
    old = [p for p in entry.parts if p[0] < before]
    if len(old) < 2:
        return entry
    frontier = next((f for _, _, f in reversed(old) if f is not None), None)
    together = (old[-1][0], sum(rows for _, rows, _ in old), frontier)
    return replace(entry, parts=(together, *entry.parts[len(old) :]))


def _plain(entry: Entry) -> dict[str, Any]:
    return asdict(entry)


def _entry(value: Any) -> Entry:
    files = tuple(DataFile(**f) for f in value["files"])
    parts = tuple((int(n), int(rows), frontier) for n, rows, frontier in value["parts"])
    before = value.get("before")
    return Entry(int(value["first"]), int(value["last"]), files, value["frontier"], float(value["at"]), parts, before)
