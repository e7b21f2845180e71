"""One driver per place: a second one is refused, a dead one's place is taken, one that lost it stops."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from threading import Barrier

import pytest

from penstock.errors import LeaseError, StorageError
from penstock.storage import lease as leases
from penstock.storage.files import Place, place_of
from penstock.storage.lease import Lease, acquire, is_dead, me
from tests.storage.conftest import Places


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "SETTLE", 0.0)


def elsewhere(lease: Lease, **changes: object) -> None:
    """The lease as if a process of another machine held it."""
    lease.file.write_json(asdict(replace(lease.holder, machine="another", host="far", token="t", **changes)))  # type: ignore[arg-type]


def test_a_second_driver_is_refused_and_told_who_is_first(places: Places) -> None:
    first = acquire(places("home"), "run1")
    with pytest.raises(LeaseError, match="Another driver is running here") as error:
        acquire(places("home"), "run1")
    assert error.value.where == str(places("home"))
    assert f"process {os.getpid()} on " in error.value.got
    assert "this process" in error.value.got
    first.release()
    acquire(places("home"), "run1").check()


def test_a_run_that_has_ended_without_a_word_no_longer_holds_its_place(places: Places) -> None:
    first = acquire(places("home"), "run1")
    first.keep(in_use=lambda: False, every=1000)
    acquire(places("home"), "run1").check()
    with pytest.raises(LeaseError, match="has taken over this place"):
        first.check()


HOLD = "import sys; from penstock.storage.files import place_of; from penstock.storage.lease import acquire; " + (
    "acquire(place_of(sys.argv[1]), 'run1'); print('held', flush=True); sys.stdin.read()"
)


def test_another_process_holds_it_until_it_is_killed(tmp_path: object) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(LeaseError, match=r"Another driver is running here") as error:
        acquire(place_of(str(tmp_path)), "run1")
    assert f"process {child.pid} on " in error.value.got
    child.kill()
    child.wait()
    child.communicate()
    acquire(place_of(str(tmp_path)), "run1").check()


def test_a_number_that_another_process_has_now_deceives_nobody() -> None:
    mine = me("run1")
    assert not is_dead(replace(mine, pid=os.getppid(), began=leases.began(os.getppid())))
    assert is_dead(replace(mine, pid=os.getppid(), began="1"))


def test_a_driver_elsewhere_is_dead_when_it_has_been_silent_for_long(places: Places) -> None:
    now = 1000.0
    clock: Callable[[], float] = lambda: now  # noqa: E731
    first = acquire(places("home"), "run1", expires=60, clock=clock)
    elsewhere(first)
    now = 1059
    with pytest.raises(LeaseError, match="Another driver is running here") as error:
        acquire(places("home"), "run1", clock=clock)
    assert "on far" in error.value.got
    assert "60 seconds without a sign of life" in error.value.hint
    now = 1061
    second = acquire(places("home"), "run1", clock=clock)
    second.check()
    with pytest.raises(LeaseError, match="has taken over this place"):
        first.renew()
    first.release()
    second.check()


def test_a_sign_of_life_is_written(places: Places) -> None:
    now = 1000.0
    lease = acquire(places("home"), "run1", clock=lambda: now)
    now = 1010
    lease.renew()
    assert lease.file.read_json()["beat"] == 1010


def test_a_lease_that_is_deleted_is_lost(places: Places) -> None:
    lease = acquire(places("home"), "run1")
    lease.file.delete()
    with pytest.raises(LeaseError, match="has taken over") as error:
        lease.check()
    assert error.value.got == "nobody holds it"


def test_a_damaged_lease_is_told(places: Places) -> None:
    (places("home") / "lease.json").write(b'{"host": "x"}')
    with pytest.raises(StorageError, match="lease is damaged") as error:
        acquire(places("home"), "run1")
    assert "delete that file" in error.value.hint


def test_of_many_that_find_a_dead_holder_one_gets_its_place(tmp_path: Path) -> None:
    for round_ in range(20):
        folder = place_of(str(tmp_path / str(round_)))
        dead = replace(me("run1"), pid=os.getppid(), began="1")
        (folder / "lease.json").write_json(asdict(dead))
        together = Barrier(8)

        def try_it(number: int, folder: Place = folder, together: Barrier = together) -> Lease | None:
            together.wait()
            try:
                return acquire(folder, f"run{number}")
            except LeaseError:
                return None

        with ThreadPoolExecutor(8) as pool:
            held = [lease for lease in pool.map(try_it, range(8)) if lease is not None]
        assert len(held) == 1
        held[0].check()


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".lease.lock").mkdir()  # rights do not stop root, a folder in its place does
    with pytest.raises(StorageError, match="cannot be held") as error:
        acquire(place_of(str(tmp_path / "home")), "run1")
    assert error.value.where == str(tmp_path / "home")


def test_after_it_was_released_nothing_is_written_any_more(tmp_path: Path) -> None:
    folder = place_of(str(tmp_path / "home"))
    lease = acquire(folder, "run1")
    before = set(threading.enumerate())
    lease.keep(every=1000)
    (beating,) = set(threading.enumerate()) - before
    lease.release()
    shutil.rmtree(tmp_path / "home")
    (tmp_path / "home").mkdir()
    beating.join(10)
    assert not list((tmp_path / "home").iterdir())
