"""What a run of very many micro-batches leaves, without Spark: files, time per micro-batch and the cost of a look.

`PENSTOCK_BATCHES` says how many; every micro-batch has results and a late row.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import pytest

from penstock.storage.files import place_of
from penstock.storage.folders import OutputFolder, Owner
from penstock.storage.home import open_home
from penstock.storage.log import RecordLog
from penstock.storage.run_log import RunLog
from tests.storage.test_folders import STREAM, seen, table

BATCHES = int(os.environ.get("PENSTOCK_BATCHES", "1000"))
KEPT, WARM, SPAN = 20, 100, 300


def files_in(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_grows(tmp_path: Path) -> None:
    now = 0.0
    home = open_home(place_of(tmp_path / "home"), keep=KEPT)
    owner = [Owner(home.run, "home", "q", name) for name in ("results", "late")]
    results = OutputFolder(place_of(tmp_path / "out"), owner[0], STREAM, compact=True, clock=lambda: now)
    late = OutputFolder(place_of(tmp_path / "late"), owner[1], STREAM, keep=50.0, clock=lambda: now)
    folders = {"results": results, "late": late}
    for folder in folders.values():
        folder.claim()
    log = RunLog(home, folders, clock=lambda: now)
    taken, looks, most = [], [], {"out": 0, "late": 0, "home": 0}
    for batch in range(BATCHES):
        begin = time.process_time()
        staged = {name: [f.staging.write([table([batch, batch])])] for name, f in folders.items()}
        log.commit(batch, staged, frontier=batch, counts={"read": 4}, positions=batch)
        taken.append(time.process_time() - begin)
        begin = time.perf_counter()
        last = RecordLog(home.place / "log").last()
        looks.append(time.perf_counter() - begin)
        assert last is not None
        now += 1
        if batch % 50 == 0:
            most = {name: max(n, files_in(tmp_path / name)) for name, n in most.items()}
    # A fold now and then takes longer, so spans are compared, in time of the processor, and medians of looks.
    early, at_end = sum(taken[WARM : WARM + SPAN]), sum(taken[-SPAN:])
    look, look_again = median(looks[WARM : WARM + SPAN]), median(looks[-SPAN:])
    print(
        f"{BATCHES} micro-batches: {SPAN} took {early:.2f} s at first, {at_end:.2f} s at last ({at_end / early:.2f}x); "
        f"a look {look * 1000:.2f} ms, then {look_again * 1000:.2f} ms; at most {most} files"
    )
    assert at_end <= 2 * early  # on a machine that does other things as well
    assert last.totals["read"] == 4 * BATCHES
    assert seen(results.place) == sorted([*range(BATCHES)] * 2)
    assert most["home"] <= KEPT + 5
    assert most["out"] <= 150
    assert most["late"] <= 2 * 50 + 100
    assert look_again <= 2 * look + 0.002
