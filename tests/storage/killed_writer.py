"""A writer in a process of its own, without Spark: `python -m tests.storage.killed_writer HOME NAME SIZE`.

Writes the rows 0, 1, 2, … into `HOME/NAME`, SIZE to a micro-batch, of which the last ones lie above the bound, as a
query does that passes rows through; and forgets late rows soon. Once there is a file `HOME/finish` it writes until it
has as many rows as that says, and ends its stream. It may be killed at any moment and goes on when started again.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from penstock.model.time import END_OF_TIME
from penstock.storage.files import place_of
from penstock.storage.folders import OutputFolder, Owner
from penstock.storage.home import open_home
from penstock.storage.run_log import RunLog
from tests.storage.test_folders import STREAM, table

ABOVE = 2


def open_log(home: Path, name: str) -> RunLog:
    held = open_home(place_of(home / f"home_{name}"), keep=10)
    owners = {output: Owner(held.run, "home", name, output) for output in ("results", "late")}
    results = OutputFolder(place_of(home / name), owners["results"], STREAM, compact=True)
    late = OutputFolder(held.place / "late", owners["late"], STREAM, keep=1.0)
    for folder in (results, late):
        folder.claim()
    log = RunLog(held, {"results": results, "late": late})
    log.repair()
    return log


def main(home: Path, name: str, size: int) -> None:
    log = open_log(home, name)
    finish = home / "finish"
    while True:
        last = log.last()
        begin = 0 if last is None else last.totals["read"]
        most = int(finish.read_text() or 0) if finish.exists() else None
        end = begin + size if most is None else min(begin + size, most)
        staged = {output: [folder.staging.write([table(range(begin, end))])] for output, folder in log.folders.items()}
        ended = most is not None and end == most
        log.commit(
            log.next_number, staged, frontier=END_OF_TIME if ended else end - ABOVE, counts={"read": end - begin}
        )
        if ended:
            return
        time.sleep(0.005)  # lest the test has to read millions of rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
