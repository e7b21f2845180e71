"""A folder with the last two snapshots of a run, each whole or not there.

A snapshot is written aside, brought to the disk, and given its name; then the folder is brought to the disk too, and
what is older than the one before is deleted. On an object store it appears when it is complete. So a process may be
killed at any point: the newest snapshot that can be opened is the last one that was kept. If the newest is damaged
all the same, the one before it is taken, and that is warned of. A folder on a disk has one run at a time.
"""

from __future__ import annotations

import os
import re
import warnings

from penstock.errors import CheckpointError, StorageError, StorageWarning
from penstock.operators.state import open_snapshot
from penstock.storage.files import Place
from penstock.storage.holding import SNAPSHOTS, Hold

_NAME = re.compile(r"snapshot-(\d{12})")
KEPT = 2


class KeptSnapshots:
    """The snapshots of one run; nobody else may use the folder until `release`."""

    def __init__(self, place: Place) -> None:
        """The folder is made if it is not there."""
        self.place = place
        place.make_folder()
        self._hold = Hold(place, place / ".lock", SNAPSHOTS)
        self._numbers = self._listed()
        self._last = max(self._numbers, default=0)

    def _listed(self) -> list[int]:
        return sorted(int(found[1]) for name in self.place.files() if (found := _NAME.fullmatch(name)))

    def newest(self) -> bytes | None:
        """The last snapshot that is whole; None if none was ever kept."""
        errors: list[CheckpointError] = []
        for number in reversed(self._numbers):
            data = self._file(number).read()
            try:
                open_snapshot(data)
            except CheckpointError as error:
                errors.append(error)
                continue
            if errors:
                warnings.warn(
                    f"{self._file(self._numbers[-1])} is damaged, and the one before it is taken: {errors[0].what}",
                    StorageWarning,
                    stacklevel=2,
                )
            return data
        if errors:
            raise CheckpointError(
                "No snapshot in the folder can be opened.",
                where=str(self.place),
                got=errors[0].what,
                hint="restore the folder from a copy, or start over with another folder and new outputs",
            )
        return None

    def keep(self, snapshot: bytes) -> None:
        """Keep one more; it is on the disk when this comes back."""
        self._hold.check()
        number = self._last + 1
        file = self._file(number)
        if self.place.is_local:
            self._to_disk(file, snapshot)
        else:
            file.write(snapshot)
        self._last = number
        self._numbers.append(number)
        while len(self._numbers) > KEPT:
            self._file(self._numbers.pop(0)).delete()

    def _to_disk(self, file: Place, data: bytes) -> None:
        aside = f"{self.place.path}/.snapshot.tmp"
        try:
            with open(aside, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.rename(aside, file.path)
            folder = os.open(self.place.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise StorageError(
                "A snapshot cannot be kept.",
                where=str(file),
                got=str(error),
                hint="look at the rights of the folder and the space left; the snapshots before it are still there",
            ) from error

    def _file(self, number: int) -> Place:
        return self.place / f"snapshot-{number:012d}"

    def release(self) -> None:
        """Let others use the folder."""
        self._hold.release()
