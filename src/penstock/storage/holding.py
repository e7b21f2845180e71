"""An output file has one writer at a time.

A file that is being written is called `….partial` until it is whole. Whoever writes it holds it: in this process by its
real name, and on a disk also against other processes, by a lock of the file system on the part, which ends with its
process. So two runs cannot overwrite one another, and a killed one leaves nothing that would have to be cleared. Two
processes that write to one object of an object store, or to a disk without locks, are not kept apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading

from penstock.errors import StorageError
from penstock.storage.files import Place
from penstock.storage.patterns import real

_held: set[str] = set()
_guard = threading.Lock()


class Hold:
    """A file that nobody else may write, until `release`."""

    def __init__(self, target: Place, partial: Place) -> None:
        """Hold a file by its name and by its part, or raise."""
        self.target, self.partial = target, partial
        self._name = real(target)
        self._lock: int | None = None
        with _guard:
            if self._name in _held:
                raise _refused(target, "another run of this process")
            _held.add(self._name)
        try:
            if partial.is_local:
                self._lock = _locked(target, partial)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others write it; a part without content goes."""
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._lock), found := os.stat(self.partial.path)) and not found.st_size:
                    os.unlink(self.partial.path)
            os.close(self._lock)
            self._lock = None
        with _guard:
            _held.discard(self._name)


def _locked(target: Place, partial: Place) -> int | None:
    """A lock on the part, made if it is not there; None where the disk has no locks."""
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
            raise _refused(target, "another process") from None
        except FileNotFoundError:
            pass  # it got its name between the two steps, and was another's
        except OSError:
            os.close(lock)
            return None
        os.close(lock)


def _refused(target: Place, who: str) -> StorageError:
    return StorageError(
        "A file is being written by another run.",
        where=str(target),
        got=who,
        hint="give each run a file of its own, or wait for the other one",
    )
