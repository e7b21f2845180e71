"""A lease: one driver per place, and a dead one's place can be taken.

The lease is a file that says who holds the place: host, process, when the process began, and when it was last heard
of. While it is held a thread renews it. Whoever finds it

- held by a process of the same machine (same boot, same process namespace) looks whether that process is alive, so a
  killed driver's place is free at once, and a number that another process has got since deceives nobody;
- held elsewhere waits until nothing was heard for `expires` seconds; clocks may differ by less than that.

A driver asks `check` before every record it puts. If its lease was taken (it was thought dead: a suspended machine, a
network that was gone) it stops there. On a disk, looking and writing are one step, under a lock of the file system that
ends with its process; on an object store two that take over in the same moment both write, both look again after a
moment, and the one that is not named gives up.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from penstock.errors import LeaseError, StorageError
from penstock.storage.files import Place

EVERY = 10.0
"""Seconds between signs of life."""
EXPIRES = 60.0
SETTLE = 1.0
"""Seconds after which a lease that was taken over on an object store is looked at again."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lease."""

    token: str
    host: str
    machine: str
    """The boot and the process namespace, where the number of a process means something."""
    pid: int
    began: str
    """When the process began, as its machine counts."""
    run: str
    since: float
    beat: float
    expires: float

    def __str__(self) -> str:
        """For messages."""
        since = dt.datetime.fromtimestamp(self.since, dt.UTC).isoformat(" ", "seconds")
        return f"process {self.pid} on {self.host}, since {since}"


def me(run: str, expires: float = EXPIRES, clock: Callable[[], float] = time.time) -> Holder:
    """This process as a holder."""
    now = clock()
    pid = os.getpid()
    return Holder(uuid.uuid4().hex, socket.gethostname(), machine(), pid, began(pid), run, now, now, expires)


@lru_cache(maxsize=1)
def machine() -> str:
    """Where process numbers are comparable; empty where that cannot be told."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot:
            return f"{boot.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def began(pid: int) -> str:
    """When a process began; empty if it is gone, or a corpse, or if that cannot be told."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


_ours: dict[str, Callable[[], bool]] = {}
"""Leases of this process, each with a way to ask whether it is in use."""


def is_dead(holder: Holder, clock: Callable[[], float] = time.time) -> bool:
    """Whether a holder is gone for certain, or was silent for too long."""
    if holder.machine and holder.machine == machine():
        if began(holder.pid) != holder.began:
            return True
        return holder.pid == os.getpid() and not _ours.get(holder.token, lambda: False)()
    return clock() - holder.beat > holder.expires


class Lease:
    """A place that is held by this process."""

    def __init__(self, file: Place, holder: Holder, clock: Callable[[], float] = time.time) -> None:
        """Made by `acquire`."""
        self.file, self.holder, self.clock = file, holder, clock
        self._ended = threading.Event()

    def __getstate__(self) -> dict[str, object]:
        """A copy in another process can check, and is not the one that renews."""
        return {"file": self.file, "holder": self.holder, "clock": self.clock}

    def __setstate__(self, state: dict[str, object]) -> None:
        """See `__getstate__`."""
        vars(self).update(state, _ended=threading.Event())

    def check(self) -> None:
        """Raise if the place is no longer held."""
        found = _read(self.file)
        if found is None or found.token != self.holder.token:
            raise LeaseError(
                "Another driver has taken over this place.",
                where=str(self.file.folder),
                got="nobody holds it" if found is None else str(found),
                hint="this run has stopped before it wrote anything more; let the other one go on",
            )

    def renew(self) -> None:
        """A sign of life."""
        with _alone(self.file):
            self.check()
            self.holder = replace(self.holder, beat=self.clock())
            self.file.write_json(asdict(self.holder))

    def keep(self, in_use: Callable[[], bool] = lambda: True, every: float = EVERY) -> None:
        """Renew in the background until released, lost, or no longer in use."""
        _ours[self.holder.token] = in_use

        def beat() -> None:
            while not self._ended.wait(every) and in_use():
                try:
                    self.renew()
                except LeaseError:
                    break
                except (StorageError, FileNotFoundError):
                    continue  # storage that is away for a moment; the next beat comes in time
            if not self._ended.is_set():
                self.release()  # whoever has released it may have deleted the folder since

        threading.Thread(target=beat, name="penstock-lease", daemon=True).start()

    def release(self) -> None:
        """Give the place back, if it is still held."""
        self._ended.set()
        _ours.pop(self.holder.token, None)
        with contextlib.suppress(StorageError, FileNotFoundError), _alone(self.file):
            self.check()
            self.file.delete()


def acquire(folder: Place, run: str, *, expires: float = EXPIRES, clock: Callable[[], float] = time.time) -> Lease:
    """Hold a place, or raise and say who does."""
    file = folder / "lease.json"
    mine = me(run, expires, clock)
    folder.make_folder()
    with _alone(file):
        found = _read(file)
        if found is not None and not is_dead(found, clock):
            raise LeaseError(
                "Another driver is running here.",
                where=str(folder),
                got=str(found) + (", this process" if found.pid == os.getpid() else ""),
                hint="stop it first; if it is dead on another machine, its place is free after "
                f"{found.expires:.0f} seconds without a sign of life",
            )
        file.write_json(asdict(mine))
        _ours[mine.token] = lambda: True
    if not file.is_local:
        time.sleep(SETTLE)
        named = _read(file)
        if named is None or named.token != mine.token:
            _ours.pop(mine.token)
            raise LeaseError(
                "Several drivers start here at once.", where=str(folder), hint="start one of them, once more"
            )
    return Lease(file, mine, clock)


@contextlib.contextmanager
def _alone(file: Place) -> Iterator[None]:
    """On a disk, keep every other process and thread from looking at the lease or writing it."""
    if not file.is_local:
        yield
        return
    try:
        lock = open(f"{file.folder.path}/.lease.lock", "a")  # noqa: SIM115
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(
            "The place cannot be held.", where=str(file.folder), got=str(error), hint="look at the rights of the folder"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(file: Place) -> Holder | None:
    try:
        return Holder(**file.read_json())
    except FileNotFoundError:
        return None
    except (TypeError, StorageError) as error:
        raise StorageError(
            "The lease is damaged.",
            where=str(file),
            got=str(error).splitlines()[0],
            hint="if no driver runs here, delete that file",
        ) from error
