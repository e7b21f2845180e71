"""Whether the files that the log of an output folder names are all there, and as long as they were written.

Somebody may have deleted files of results, or a copy may have been cut short. A run never reads what it has put out, so
it would go on for ever without a word, while whoever lists the folder misses rows. So it is looked when a run starts:
one listing of the folder, with sizes, beside the log that is read then anyway, and nothing of any file. Files of
releases that did not write down sizes are only looked for. What is changed within a file of the same size is found by
whoever reads it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import StorageWarning
from penstock.storage.files import Place
from penstock.storage.log import DataFile

SHOWN = 3
"""So many files are named in a warning."""


@dataclass(frozen=True)
class Lacking:
    """A file that is not there as it was written."""

    file: DataFile
    found: int | None
    """How many bytes it has now; None if it is gone."""

    def __str__(self) -> str:
        """For a person."""
        now = "is gone" if self.found is None else f"has {self.found} bytes of {self.file.size}"
        return f"{self.file.name} {now} ({self.file.rows} rows)"


def lacking(place: Place, files: Sequence[DataFile]) -> list[Lacking]:
    """The files of a folder that are gone, or of another size than they were written with."""
    sizes = place.sizes()
    looked = [(file, sizes.get(file.name)) for file in files]
    return [Lacking(file, size) for file, size in looked if size is None or file.size not in (None, size)]


def tell_lacking(place: Place, files: Sequence[DataFile]) -> None:
    """Warn if files of a folder are not there as they were written."""
    found = lacking(place, files)
    if not found:
        return
    shown = "; ".join(map(str, found[:SHOWN])) + (f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
    rows = sum(each.file.rows for each in found)
    warnings.warn(
        f"{place}: files that were written are gone or cut short, and with them {rows} rows: {shown}. The run goes on "
        "without them; restore them from a copy, or start the query over with a new path and folder",
        StorageWarning,
        stacklevel=2,
    )
