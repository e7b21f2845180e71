"""A merge of output folders that is killed between any two operations on files, over replicas that are wiped.

Random batching, disorder, drivers, compaction and retention of the log; what comes out is compared with the rows that
went in.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.outputs import FolderMerge, merge_outputs
from penstock.storage import folder_log
from penstock.storage.files import Place, place_of
from penstock.storage.lease import Lease
from tests.flow.played_replicas import Pipeline, expected, found
from tests.profiles import examples
from tests.storage.killing import FOREVER, Killed, Life, mortal


class Merger:
    """A merge that is killed and started again."""

    def __init__(self, base: Place, replicas: list[Pipeline], driver: str, life: Life) -> None:
        self.base, self.driver, self.life = base, driver, life
        self.folders = [r.place.path for r in replicas]
        self.merge: FolderMerge | None = None

    def step(self, steps: int = FOREVER) -> None:
        """One round, or its beginning."""
        self.life.left = steps
        try:
            if self.merge is None:
                self.merge = merge_outputs(
                    self.folders, f"{self.base.path}/out", f"{self.base.path}/m", driver=self.driver
                )
            self.merge.step()
        except Killed:
            self.kill()
        self.life.left = FOREVER

    def kill(self) -> None:
        """Nothing of it is left but its files."""
        self.life.left = FOREVER
        (self.base / "m" / "lease.json").delete()
        self.merge = None


def play(seed: int, base: Place) -> None:
    rng = random.Random(seed)
    windowed = rng.random() < 0.5
    times = sorted(rng.randrange(200) for _ in range(rng.choice([5, 30, 60])))
    rows = [(t, rng.choice("ab"), rng.randrange(2)) for t in times]
    measured = rng.random() < 0.4
    replicas = [
        Pipeline(base / name, rows, rng, windowed, rng.choice([0, 5, 40]), measured=measured)
        for name in "abc"[: rng.choice([2, 2, 3])]
    ]
    driver = rng.choice(["leading", "leading", "majority", replicas[0].place.path])
    wanted = expected(rows, windowed)
    with mortal() as life, pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_log, "LOOSE", rng.choice([2, 4, 32]))
        patch.setattr(folder_log, "FAN", 2)
        patch.setattr(folder_log, "HISTORY", rng.choice([0, 3, 1000]))
        patch.setattr(Lease, "keep", lambda *_: None)  # the dead give no signs of life
        merger = Merger(base, replicas, driver, life)
        live(merger, replicas, rng, wanted)
        for _ in range(40):
            merger.step()
        assert merger.merge is not None
        assert merger.merge.ended
        assert merger.merge.progress["aside"] == 0, "there is nothing to contradict"
        merger.kill()
    assert found(base / "out") == wanted


def live(merger: Merger, replicas: list[Pipeline], rng: random.Random, wanted: Counter[tuple[int, str, float]]) -> None:
    """Until all replicas have ended: they write and are wiped, the merge goes on and is killed."""
    wipes = 2
    for _ in range(1000):
        if all(r.ended for r in replicas):
            break
        action = rng.random()
        replica = rng.choice(replicas)
        if action < 0.6:
            if not replica.ended:
                replica.write(rng.choice([0, 1, 3, 10]))
        elif action < 0.65 and wipes:
            wipes -= 1
            replica.wipe()
        elif action < 0.7:
            merger.kill()
        else:
            merger.step(rng.choice([1, 2, 3, 5, 8, 12, FOREVER, FOREVER]))
            out = merger.base / "out"
            extra = found(out) - wanted if out.exists() else Counter()
            assert not extra, f"{extra} is too much"


@examples(20)
@given(st.integers(0, 10**9))
def test_every_row_once_whatever_happens(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    base = tmp_path_factory.mktemp("x")
    play(seed, place_of(base))
    shutil.rmtree(base)
