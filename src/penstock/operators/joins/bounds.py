"""How far the inputs of a join have come, and which runs of rows it keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Bounds:
    """What each input has promised: of its time, and of the attribute that it is joined by."""

    times: list[int]
    attributes: list[int]
    runs: list[list[int]]
    """The numbers of the runs of each side, older ones first."""
    next: int = 0
