"""`penstock merge`: one clean folder out of the output folders of running replicas."""

from __future__ import annotations

import time

from penstock.cli.show import err, out, print_json

POLL = 0.5


def run_merge(
    folders: list[str],
    into: str,
    path: str | None,
    key: list[str] | None,
    driver: str,
    master: str,
    *,
    once: bool,
    as_json: bool,
) -> None:
    """Merge until the replicas have ended, or until interrupted; with `once`, what is there."""
    from penstock.engines.spark.session import local_session
    from penstock.flow.outputs import merge_outputs

    spark = local_session(master)
    trigger = {"availableNow": True} if once else {"processingTime": "500 milliseconds"}
    home = path or f"{into.rstrip('/')}_merge"
    run = merge_outputs(spark, folders, into, home, key=key, driver=driver, trigger=trigger)
    try:
        shown = -1
        while run.is_active:
            progress = run.progress
            if progress["batches"] != shown and err.is_terminal and not as_json:
                shown = int(progress["batches"] or 0)
                err.print(f"micro-batch {shown}: {progress['read']} rows read, bound {progress['bound']}")
            if progress["ended"]:
                break
            time.sleep(POLL)
    except KeyboardInterrupt:
        err.print("stopping; the same command goes on from here")
    if run.is_active:
        run.stop()
    else:
        run.wait()
    progress = run.progress
    ended = progress["ended"]
    if as_json:
        print_json({"into": into, "read": progress["read"], "late": progress["late"], "ended": ended})
    else:
        out.print(
            f"{progress['read']} rows of {len(folders)} replicas merged into {into}"
            + (", to their end" if ended else "")
        )
