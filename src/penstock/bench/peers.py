"""Peers in environments of their own: each is a script that is run by its own Python and prints one JSON object.

An environment is a virtual environment under `.bench/`, named after the peer, and the script is in `benchmarks/peers`.
A peer that is not there is said to be absent and no claim is made about it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from penstock.bench.contestants import Timing
from penstock.bench.data import Rows

PEERS = ("flink", "bytewax", "pathway")


def home() -> Path:
    """Where the environments are."""
    return Path(os.environ.get("PENSTOCK_BENCH_HOME", ".bench"))


def python_of(peer: str) -> Path | None:
    """The peer's Python, or None if it is absent."""
    path = home() / peer / "bin" / "python"
    return path.absolute() if path.exists() else None


def run_peer(peer: str, rows: Rows, range_seconds: int, slide_seconds: int, limit: int) -> Timing:
    """Count and max per key by a peer over at most `limit` rows."""
    found = run_script(peer, "windows", rows.file, str(range_seconds), str(slide_seconds), str(limit))
    a, b, c, d = found["fingerprint"]
    return Timing(found["seconds"], found["rows"], (a, b, c, d))


def run_script(peer: str, what: str, *args: str) -> dict[str, Any]:
    """What a peer's script prints last, which is one JSON object."""
    folder = Path(os.environ.get("PENSTOCK_BENCH_SCRIPTS", "benchmarks/peers")).absolute()
    command = [str(python_of(peer)), str(folder / f"{peer}_{what}.py"), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode:
        raise RuntimeError(f"{peer} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
