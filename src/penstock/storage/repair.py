"""Before a run goes on: what its last record promises is finished, in the folders in which it was promised.

The last record may have been put and not published. It says where its outputs went, which need not be where they go
from now on: an output may have been sent to another folder, back to a folder of earlier, or to a function. So each
output is settled by the place that the record names:

- It goes there still, or its folder was moved or copied with all that is in it: the folder is finished and goes on.
- It goes elsewhere: the folder that it leaves is finished first. If that folder is gone and rows of the last record
  were to go there, nobody can tell whether they were seen, and that is an error.
- A folder that is new, or to which an output comes back, has nothing pending. One that comes back is as it was left.

Files that no record names are of tasks that failed, and removed. A folder that another home writes to, of which this
one is a copy, is let alone. Only the folder of results is held to what the log says that it was told: late rows and
dead letters may be cleared away. So are the files of results that were published long ago: that some are gone or cut
short stops no run, which never reads them, but whoever reads the folder, so it is told (`whole`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import StorageError
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, owner_of
from penstock.storage.home import Home
from penstock.storage.log import DataFile, Record
from penstock.storage.reader import FolderReader
from penstock.storage.whole import tell_lacking

RESULTS = "results"
REMEMBERED = 100
"""Of so many folders that outputs went to before it is known what they were told."""


@dataclass(frozen=True)
class Told:
    """What a record says of the folders of its run."""

    places: Mapping[str, str] = field(default_factory=dict)
    """Where outputs went, by their names; functions have no place."""
    shown: Mapping[str, int | None] = field(default_factory=dict)
    """The last number that the folder of an output was told, with that record."""
    before: Mapping[str, int | None] = field(default_factory=dict)
    """The same without it."""
    left: Mapping[str, int | None] = field(default_factory=dict)
    """What folders were told that outputs went to earlier."""
    keep: Mapping[str, float] = field(default_factory=dict)
    """For how many seconds an output kept its rows, if not for good."""

    @classmethod
    def of(cls, record: Record | None) -> Told:
        """What is said; a record of an earlier release says less."""
        said = record.state if record is not None and isinstance(record.state, dict) else {}
        parts: list[dict[str, Any]] = [
            found if isinstance(found := said.get(key), dict) else {}
            for key in ("places", "shown", "shown before", "left", "keep")
        ]
        return cls(*parts)

    def shown_in(self, name: str, folder: OutputFolder) -> int | None:
        """What a folder was told last; of one to which the output has just come, its own log knows."""
        if self.places.get(name) == folder.place.uri:
            return self.shown.get(name)
        written = folder.log.written
        return None if written < 0 else written

    def left_by(self, folders: Mapping[str, OutputFolder]) -> dict[str, int | None]:
        """The folders to which no output goes any more, the latest last."""
        now = {folder.place.uri for folder in folders.values()}
        known = {**self.left, **{place: self.shown.get(name) for name, place in self.places.items()}}
        return dict([item for item in known.items() if item[0] not in now][-REMEMBERED:])


def publish(record: Record, name: str, folder: OutputFolder) -> None:
    """Publish what a record has for a folder, if it has something."""
    if Told.of(record).shown.get(name) == record.number and not folder.is_forgotten(record.at):
        frontier = record.frontier if name == RESULTS else None
        folder.publish(record.number, record.files.get(name, ()), frontier, record.at)


class Repair:
    """Puts the folders of a run in order."""

    def __init__(self, home: Home, last: Record | None) -> None:
        """`last` is the last record of the run that this process now holds."""
        self.home, self.last, self.told = home, last, Told.of(last)
        self._known = [home.place]

    def run(self, folders: Mapping[str, OutputFolder]) -> None:
        """`folders` are those to which outputs go from now on."""
        self._known = [self.home.place, *(folder.place for folder in folders.values())]
        for name in dict.fromkeys([*self.told.places, *folders]):
            self._settle(name, folders.get(name))

    def _settle(self, name: str, folder: OutputFolder | None) -> None:
        place = self.told.places.get(name)
        if folder is not None and (place == folder.place.uri or self._has_come_along(name, folder)):
            self._finish(name, folder)
            return
        if place is not None:
            self._leave(name, place)
        if folder is not None:
            if name == RESULTS or self.last is None:
                folder.check(self.told.left.get(folder.place.uri))
            self._told_whole(name, folder, folder.tidy())

    def _has_come_along(self, name: str, folder: OutputFolder) -> bool:
        """Whether a folder that is elsewhere now is the one in which the last record was promised, or a copy of it."""
        place, last = self.told.places.get(name), folder.log.last
        if place is None or last is None or folder.place.uri in self.told.left:
            return False
        if last == self.told.shown.get(name):
            return True
        return last == self.told.before.get(name) and self._former(name, place) is None

    def _leave(self, name: str, place: str) -> None:
        """Finish what is promised in a folder to which an output no longer goes."""
        former = self._former(name, place)
        if former is not None:
            self._finish(name, former)
        elif self.last is not None and self.last.files.get(name) and owner_of(self._place(place)) is None:
            raise StorageError(
                "The folder is gone in which the last micro-batch was to be seen.",
                where=str(self._place(place)),
                got=f"{sum(f.rows for f in self.last.files[name])} rows of {name} in micro-batch {self.last.number}",
                hint="put it back until the query has started, or start over, with a new path and folder",
            )

    def _former(self, name: str, place: str) -> OutputFolder | None:
        """The folder that an output has left, if it is there and this home's."""
        former = self._place(place)
        owner, stream = owner_of(former), FolderReader(former).stream()
        if owner is None or stream is None or (owner.run, owner.output) != (self.home.run, name):
            return None
        if owner.home != str(self.home.place) and (self._place(owner.home) / "run.json").exists():
            return None  # this home is a copy, and the folder is the other's
        return OutputFolder(former, owner, stream, keep=self.told.keep.get(name))

    def _place(self, uri: str) -> Place:
        """A place that a record names, opened as those were that are in use."""
        return next((found for known in self._known if (found := known.shares(uri)) is not None), None) or place_of(uri)

    def _finish(self, name: str, folder: OutputFolder) -> None:
        """Publish the last record in a folder that has seen everything before it."""
        assert self.last is not None
        if name == RESULTS:
            folder.check(self.told.shown.get(name), self.told.before.get(name))
        files = folder.tidy(self.last.number, self.last.files.get(name, ()))
        self._told_whole(name, folder, files)
        kept = self.told.keep.get(name)
        if kept is None or self.last.at >= folder.clock() - kept:
            publish(self.last, name, folder)

    def _told_whole(self, name: str, folder: OutputFolder, files: Sequence[DataFile]) -> None:
        if name == RESULTS:
            tell_lacking(folder.place, files)
