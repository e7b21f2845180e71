"""Where sources and sinks are, as a snapshot has it; older snapshots, and runs without any, have nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import CheckpointError
from penstock.operators.state import open_snapshot


def kept_positions(positions: Mapping[str, Any] | None, sinks: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a snapshot holds of them."""
    kept: dict[str, Any] = {}
    if positions:
        kept["positions"] = dict(positions)
    if sinks:
        kept["sinks"] = dict(sinks)
    return kept


def positions_in(snapshot: bytes) -> dict[str, Any]:
    """Where the sources were, by stream in lower case."""
    return _read(snapshot, "positions")


def sinks_in(snapshot: bytes) -> dict[str, Any]:
    """Where the sinks were."""
    return _read(snapshot, "sinks")


def _read(snapshot: bytes, part: str) -> dict[str, Any]:
    found = open_snapshot(snapshot).get(part, {})
    if not isinstance(found, dict):
        raise CheckpointError("The snapshot holds positions that are none.", got=repr(found)[:200])
    return found
