"""An output file has one writer at a time.

A file that is being written is called `….partial` until it is whole. Whoever writes it holds it: in this process by its
real name, and on a disk also against other processes, by a lock of the file system on the part, which ends with its
process. So two runs cannot overwrite one another, and a killed one leaves nothing that would have to be cleared. Two
processes that write to one object of an object store, or to a disk without locks, are not kept apart.

A lock does not keep anybody from deleting, renaming or cutting a part: whoever writes it asks `check` whether it is
still there. That is two looks at the disk, some microseconds.

A folder of snapshots is held in the same way, by a file in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from dataclasses import dataclass

from penstock.errors import StorageError
from penstock.storage.files import Place
from penstock.storage.patterns import real

_held: set[str] = set()
_guard = threading.Lock()
_ABSENT = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True)
class Held:
    """What is held, in the words of messages."""

    refused: str
    taken: str
    apart: str
    """How two runs get along."""
    again: str
    """What to do when it was taken away."""


FILE = Held(
    "A file is being written by another run.",
    "A file was taken away from the run that writes it.",
    "give each run a file of its own, or wait for the other one",
    "what was written to it is lost: start the run again, and leave ….partial files alone while a run writes them",
)
SNAPSHOTS = Held(
    "A folder of snapshots is being written by another run.",
    "The lock of a folder of snapshots was taken away from the run that keeps them.",
    "give each run a folder of its own, or stop the other one first: it goes on where that one was",
    "another run may be using the folder by now; start the run again when none does, and leave the folder alone",
)


class Hold:
    """A file, or a folder, that nobody else may write, until `release`."""

    def __init__(self, target: Place, partial: Place, held: Held = FILE) -> None:
        """Hold a file by its name and by its part, a folder by a file in it, or raise."""
        self.target, self.partial, self.held = target, partial, held
        self._name = real(target)
        self._lock: int | None = None
        with _guard:
            if self._name in _held:
                raise self._refused("another run of this process")
            _held.add(self._name)
        try:
            if partial.is_local:
                self._lock = self._locked()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others write it; a part without content goes."""
        if self._lock is not None:
            with contextlib.suppress(*_ABSENT):
                if os.path.samestat(os.fstat(self._lock), found := os.stat(self.partial.path)) and not found.st_size:
                    os.unlink(self.partial.path)
            os.close(self._lock)
            self._lock = None
        with _guard:
            _held.discard(self._name)

    def check(self, length: int = 0) -> None:
        """Raise if what is held has been taken away, or is shorter than what was written to it."""
        if not self.partial.is_local:
            return
        try:
            found = os.stat(self.partial.path)
        except _ABSENT:
            raise self._taken("it was deleted, or has another name") from None
        if self._lock is not None and not os.path.samestat(os.fstat(self._lock), found):
            raise self._taken("another file has its name")
        if found.st_size < length:
            raise self._taken(f"it was cut: {found.st_size} bytes of {length} are left")

    def _taken(self, got: str) -> StorageError:
        return StorageError(self.held.taken, where=str(self.partial), got=got, hint=self.held.again)

    def _locked(self) -> int | None:
        """A lock on the part, made if it is not there; None where the disk has no locks."""
        partial = self.partial
        while True:
            try:
                lock = os.open(partial.path, os.O_RDWR | os.O_CREAT, 0o666)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise StorageError(
                    "It was not possible to write a file.",
                    where=str(partial),
                    got=str(error),
                    hint="look at its rights and the space left, and give another path if it cannot be written",
                ) from error
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), os.stat(partial.path)):
                    return lock
            except BlockingIOError:
                os.close(lock)
                raise self._refused("another process") from None
            except FileNotFoundError:
                pass  # it got its name between the two steps, and was another's
            except OSError:
                os.close(lock)
                return None
            os.close(lock)

    def _refused(self, who: str) -> StorageError:
        return StorageError(self.held.refused, where=str(self.target), got=who, hint=self.held.apart)
