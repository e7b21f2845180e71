"""The home of a query: its run's identity, its lease and its log.

```
home/
  run.json      the identity that it was given when it was first used
  lease.json    the driver that runs here now
  log/          a record per micro-batch
```

A home that is deleted and made anew has another identity, so what the old one wrote elsewhere is not taken for its own.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable

from penstock.errors import StorageError, StreamError
from penstock.storage.files import Place
from penstock.storage.lease import EXPIRES, Lease, acquire
from penstock.storage.log import KEEP, Record, RecordLog

RUN = "run.json"
LOG = "log"
"""The folder of records in a home."""
_NAME = re.compile(r"[^\W_][\w .@=+-]{0,199}")


def checked_name(name: str) -> str:
    """A name that can be a folder's, and nothing else."""
    if not _NAME.fullmatch(name) or name.endswith((" ", ".")) or ".." in name:
        raise StreamError(
            "A query's name must be usable as a folder's.",
            got=repr(name),
            hint="begin with a letter or digit; then letters, digits, spaces and _ - . @ = +, up to 200",
        )
    return name


class Home:
    """A query's home, held by this process."""

    def __init__(self, place: Place, run: str, lease: Lease, keep: int) -> None:
        """Made by `open_home`."""
        self.place, self.run, self.lease = place, run, lease
        self.log = RecordLog(place / LOG, keep)

    def put(self, record: Record) -> None:
        """Append a record, if this process still holds the home."""
        self.lease.check()
        self.log.put(record)


def open_home(
    place: Place, *, keep: int = KEEP, expires: float = EXPIRES, clock: Callable[[], float] = time.time
) -> Home:
    """Hold a home, which is made if it is not there."""
    place.make_folder()
    file = place / RUN
    _check_not_lost(place, file)
    file.put_json({"run": uuid.uuid4().hex, "made": clock()})
    value = file.read_json()
    if not isinstance(value, dict) or not isinstance(value.get("run"), str):
        raise StorageError("A file is damaged.", where=str(file), got=repr(value), hint="restore it from a copy")
    run: str = value["run"]
    return Home(place, run, acquire(place, run, expires=expires, clock=clock), keep)


def _check_not_lost(place: Place, file: Place) -> None:
    """Refuse a home that was in use and has no identity any more: with another one it would be another run."""
    if file.exists():
        return
    log = RecordLog(place / LOG)
    last = log.last()
    used = [name for name in (LOG, "checkpoint") if (place / name).files() or (place / name).folders()]
    if not used or file.exists():  # another driver may have begun in the meantime
        return
    hint = "restore it from a copy, or start over with another flow path and another folder"
    if last is not None:
        hint = f'write {{"run": "{last.run}"}} into it, which is what the log beside it is of; or {hint}'
    raise StorageError(
        "The home of a query has lost its identity.",
        where=str(file),
        got=f"no {RUN}, beside {' and '.join(used)} of a run",
        hint=hint,
    )
