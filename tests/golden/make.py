"""Write the golden files that are not there yet: `python -m tests.golden.make`, with `--spark` also what needs Spark.

A file that is there is never written again: it is what an earlier release wrote, and that is its worth. After a change
of format, give the new files new names beside the old ones.
"""

from __future__ import annotations

import sys

from tests.golden import replaced
from tests.golden.cases import CASES, FOLDER, MERGES, feed
from tests.golden.spark_home import HOMES
from tests.spark.modes import open_session


def main(*options: str) -> None:
    """Write the snapshots of all cases, and with `--spark` queries' homes."""
    FOLDER.mkdir(exist_ok=True)
    for case in CASES:
        if case.path.exists():
            continue
        execution = case.execution()
        before, _ = case.half(execution)
        feed(execution, before)
        case.path.write_bytes(execution.snapshot())
        print(f"{case.path.name}: {case.path.stat().st_size} bytes")
    for merge in MERGES:
        if not merge.path.exists():
            made = merge.merge()
            for name, element in merge.half()[0]:
                made.push(name, element)
            merge.path.write_bytes(made.snapshot())
            print(f"{merge.path.name}: {merge.path.stat().st_size} bytes")
    if not replaced.PATH.exists():
        run = replaced.execution()
        replaced.until_kept(run)
        replaced.PATH.write_bytes(run.snapshot())
        print(f"{replaced.PATH.name}: {replaced.PATH.stat().st_size} bytes")
    missing = [home for home in HOMES if not home.archive.exists()]
    if "--spark" in options and missing:
        with open_session("local") as spark:
            for home in missing:
                home.make(spark)
                print(f"{home.archive.name}: {home.archive.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
