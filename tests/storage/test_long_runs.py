"""What a run of very many micro-batches leaves, without Spark: files, time per micro-batch and the cost of a look.

`PENSTOCK_BATCHES` says how many; every micro-batch has results and a late row.

An old run is judged by a young one beside it: the two take micro-batches in turn, so that whatever else the machine
does strikes both. They are compared by stretches of as many micro-batches as are folded together, so that each stretch
has one fold, in time of the processor; and by how often they touch a file, which no noise can change. The time of the
old run's last micro-batches against its own first ones is printed, not judged.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from penstock.storage.files import Place, place_of
from penstock.storage.folder_log import FAN, LOOSE
from penstock.storage.folders import OutputFolder, Owner
from penstock.storage.home import open_home
from penstock.storage.log import RecordLog
from penstock.storage.run_log import RunLog
from tests.storage.test_folders import STREAM, seen, table

BATCHES = int(os.environ.get("PENSTOCK_BATCHES", "1000"))
KEPT, WARM = 20, 4 * LOOSE
SPAN = FAN * LOOSE
"""Both runs fold as often within so many, wherever they are."""
TOUCHES = ("read", "write", "put", "move", "delete", "exists", "_list")


class LongRun:
    """A run with results and late rows, its clock a second per micro-batch."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 0.0
        self.home = open_home(place_of(root / "home"), keep=KEPT)
        owner = [Owner(self.home.run, "home", "q", name) for name in ("results", "late")]
        clock = lambda: self.now  # noqa: E731
        self.results = OutputFolder(place_of(root / "out"), owner[0], STREAM, compact=True, clock=clock)
        late = OutputFolder(place_of(root / "late"), owner[1], STREAM, keep=50.0, clock=clock)
        self.folders = {"results": self.results, "late": late}
        for folder in self.folders.values():
            folder.claim()
        self.log = RunLog(self.home, self.folders, clock=clock)
        self.taken: list[float] = []
        self.looks: list[float] = []

    @property
    def batches(self) -> int:
        return len(self.taken)

    def step(self) -> None:
        """One micro-batch, and one look at the run."""
        number = self.batches
        begin = time.process_time()
        staged = {name: [f.staging.write([table([number, number])])] for name, f in self.folders.items()}
        self.log.commit(number, staged, frontier=number, counts={"read": 4}, positions=number)
        self.taken.append(time.process_time() - begin)
        begin = time.process_time()
        last = RecordLog(self.home.place / "log").last()
        self.looks.append(time.process_time() - begin)
        assert last is not None
        assert last.totals["read"] == 4 * self.batches
        self.now += 1

    def files(self) -> dict[str, int]:
        return {name: files_in(self.root / name) for name in ("out", "late", "home")}


def files_in(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


@pytest.fixture
def touches(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often files were touched, and how much of them was read, since it was cleared."""
    counted: Counter[str] = Counter()

    def counting(name: str) -> Any:
        ask = getattr(Place, name)

        def counted_ask(self: Place, *given: Any) -> Any:
            counted[name] += 1
            answer = ask(self, *given)
            if isinstance(answer, bytes):
                counted["bytes read"] += len(answer)
            return answer

        return counted_ask

    for name in TOUCHES:
        monkeypatch.setattr(Place, name, counting(name))
    return counted


def stretches(times: list[float]) -> list[float]:
    return [sum(times[i : i + LOOSE]) for i in range(0, len(times), LOOSE)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_grows(tmp_path: Path, touches: Counter[str]) -> None:
    old, young = LongRun(tmp_path / "old"), LongRun(tmp_path / "young")
    most: Counter[str] = Counter()
    for _ in range(BATCHES - BATCHES % LOOSE):
        old.step()
        if old.batches % 50 == 0:
            most |= Counter(old.files())
    for _ in range(WARM):
        young.step()
    counted: dict[str, Counter[str]] = {"old": Counter(), "young": Counter()}
    for _ in range(SPAN):
        for name, run in (("old", old), ("young", young)):
            touches.clear()
            run.step()
            counted[name] += touches
    most |= Counter(old.files())
    pairs = zip(stretches(old.taken[-SPAN:]), stretches(young.taken[-SPAN:]), strict=True)
    ratio = median(a / b for a, b in pairs)
    look, look_again = median(young.looks[-SPAN:]), median(old.looks[-SPAN:])
    early, at_end = sum(old.taken[WARM : WARM + SPAN]), sum(old.taken[-SPAN:])
    print(
        f"{old.batches} micro-batches: {ratio:.2f}x the time of a young run beside it; {SPAN} took {early:.2f} s at "
        f"first, {at_end:.2f} s at last ({at_end / early:.2f}x); a look {look * 1000:.2f} ms young, "
        f"{look_again * 1000:.2f} ms old; touches young {dict(counted['young'])}, old {dict(counted['old'])}; "
        f"at most {dict(most)} files"
    )
    assert ratio <= 1.2
    assert look_again <= 1.2 * look
    for name, often in counted["young"].items():
        assert counted["old"][name] <= 1.2 * often, name
    assert seen(old.results.place) == sorted([*range(old.batches)] * 2)
    assert most["home"] <= KEPT + 5
    assert most["out"] <= 150
    assert most["late"] <= 2 * 50 + 100
