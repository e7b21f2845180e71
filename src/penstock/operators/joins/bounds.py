"""How far the inputs of a join have come, and which runs of rows it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from penstock.model.elements import Punctuation
from penstock.model.time import END_OF_TIME
from penstock.operators.joins.forms import Side


@dataclass
class Bounds:
    """What each input has promised: of its time, and of the attribute that it is joined by."""

    times: list[int]
    attributes: list[int]
    runs: list[list[int]]
    """The numbers of the runs of each side, older ones first."""
    next: int = 0


class Reached(Protocol):
    """How far inputs have come, whatever else is noted beside it."""

    times: list[int]
    attributes: list[int]


class Heard(NamedTuple):
    """What a promise of an input says that was not known."""

    moved: bool
    settles: bool
    """Whether it is about what rows are joined by, so that rows of other inputs may be given up."""


def taken(known: Reached, side: Side, port: int, promise: Punctuation) -> Heard:
    """Note a linear promise of an input; the end of its time is that of every attribute."""
    if not promise.is_linear:
        return Heard(moved=False, settles=False)
    value, is_time = promise.value, promise.attribute == side.schema.time
    is_attribute = promise.attribute == side.attribute or (is_time and value == END_OF_TIME)
    moves_time = is_time and value > known.times[port]
    moves_attribute = is_attribute and value > known.attributes[port]
    if moves_time:
        known.times[port] = value
    if moves_attribute:
        known.attributes[port] = value
    return Heard(moves_time or moves_attribute, moves_attribute)
