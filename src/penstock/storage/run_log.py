"""The records of a run together with the folders in which they are published.

`commit` puts the record, which is the moment at which a micro-batch has happened, and then publishes it: files get
their names, and the folders' readers are told. A driver that dies in between has left a record that names everything,
and `repair` (`storage.repair`), before the next one writes anything, finishes what it had begun.

A folder is told of a micro-batch if it has rows for it; the folder of results also if the frontier has moved. Where
each output goes is in every record (`places`), with the number that its folder was told last (`shown`), and so are the
folders that outputs went to before (`left`): so that what is promised is finished where it was promised, and a folder
is known that is not as its run left it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.storage.folders import OutputFolder
from penstock.storage.home import Home
from penstock.storage.log import DataFile, Record
from penstock.storage.repair import RESULTS, Repair, Told, publish


class RunLog:
    """What a run has written; one writer, who holds the home."""

    def __init__(self, home: Home, folders: Mapping[str, OutputFolder], clock: Callable[[], float] = time.time) -> None:
        """`folders` by what a record calls their rows."""
        self.home, self.folders, self.clock = home, folders, clock
        self._last: Record | None = None
        self._looked = False

    def last(self) -> Record | None:
        """The last record; read once, since nobody else puts others."""
        if not self._looked:
            self._last, self._looked = self.home.log.last(), True
        return self._last

    @property
    def next_number(self) -> int:
        """The number of the record that comes next."""
        last = self.last()
        return 0 if last is None else last.number + 1

    def commit(
        self,
        batch: int,
        staged: Mapping[str, Sequence[DataFile]],
        *,
        frontier: int | None,
        counts: Mapping[str, int],
        promises: Mapping[str, str] | None = None,
        trackers: Mapping[str, Any] | None = None,
        greatest: Mapping[str, int] | None = None,
        positions: Any = None,
        state: Mapping[str, Any] | None = None,
    ) -> Record:
        """Record a micro-batch, of which the files are staged, and publish it."""
        last, number = self.last(), self.next_number
        if last is not None and last.frontier is not None:
            frontier = last.frontier if frontier is None else max(frontier, last.frontier)
        files = {name: self.folders[name].named(number, found) for name, found in staged.items() if found}
        totals = Counter(last.totals if last is not None else {})
        totals.update(counts)
        starts = [{"": g} for f in files.get(RESULTS, ()) if (g := f.greatest) is not None]
        record = Record(
            self.home.run,
            number,
            batch,
            files=files,
            frontier=frontier,
            promises=dict(last.promises if promises is None and last is not None else promises or {}),
            counts=dict(counts),
            totals=dict(totals),
            trackers=dict(trackers or (last.trackers if last is not None else {})),
            greatest=greater(last.greatest if last is not None else {}, greatest or {}, *starts),
            positions=positions,
            state={**(state or {}), **self._told(number, files, frontier)},
            at=self.clock(),
        )
        self.home.put(record)
        self._last = record
        self.publish(record)
        return record

    def _told(self, number: int, files: Mapping[str, Any], frontier: int | None) -> dict[str, Any]:
        """Where this record is published, for whoever repairs."""
        last = self.last()
        told = Told.of(last)
        before = {name: told.shown_in(name, folder) for name, folder in self.folders.items()}
        moved = frontier is not None and (last is None or frontier != last.frontier)
        return {
            "shown": {n: number if n in files or (n == RESULTS and moved) else b for n, b in before.items()},
            "shown before": before,
            "places": {name: folder.place.uri for name, folder in self.folders.items()},
            "left": told.left_by(self.folders),
            "keep": {name: folder.keep for name, folder in self.folders.items() if folder.keep is not None},
        }

    def publish(self, record: Record) -> None:
        """Move the files of a record to their names and tell the folders' readers; again does no harm."""
        for name, folder in self.folders.items():
            publish(record, name, folder)

    def repair(self) -> None:
        """Before anything is written: finish what the last driver had begun, and see that all is as it was left."""
        Repair(self.home, self.last()).run(self.folders)


def greater(*known: Mapping[str, int]) -> dict[str, int]:
    """Per name the greatest."""
    found: dict[str, int] = {}
    for each in known:
        for name, start in each.items():
            found[name] = max(start, found.get(name, start))
    return found
