"""`penstock merge`: one clean folder out of the output folders of running replicas."""

from __future__ import annotations

import time

import typer

from penstock.cli.show import err, out, print_json

POLL = 0.2
CANNOT_READ = 3
"""The exit code when all that could be read was merged, and a replica could not be read."""


def run_merge(
    folders: list[str],
    into: str,
    path: str | None,
    key: list[str] | None,
    driver: str,
    *,
    once: bool,
    as_json: bool,
) -> None:
    """Merge until the replicas have ended, or until interrupted; with `once`, what is there."""
    from penstock.flow.outputs import FolderMerge, merge_outputs

    merge: FolderMerge = merge_outputs(
        folders, into, path or f"{into.rstrip('/')}_merge", key=key or None, driver=driver
    )
    told: list[str] = []

    def tell() -> None:
        """Say what has changed with the replicas."""
        nonlocal told
        now = merge.status()
        for line, before in zip(now, told or [""] * len(now), strict=True):
            if line != before:
                err.print(line, highlight=False, markup=False, soft_wrap=True)
        told = now

    def pause() -> bool:
        tell()
        time.sleep(POLL)
        return True

    try:
        if once:
            merge.take_all()
        else:
            merge.run(pause)
    except KeyboardInterrupt:
        err.print("stopping; the same command goes on from here")
    finally:
        tell()
        merge.close()
    progress = merge.progress
    if as_json:
        print_json({"into": into, **{k: v for k, v in progress.items() if k != "frontier"}})
    else:
        out.print(
            f"{progress['read']} rows of {len(folders)} replicas merged into {progress['written']} in {into}"
            + (", to their end" if progress["ended"] else f", up to {progress['bound']}")
            + (f"; {progress['aside']} put aside" if progress["aside"] else ""),
            soft_wrap=True,
        )
    if merge.unreadable:
        raise typer.Exit(CANNOT_READ)
