"""What a total that slides over panes keeps from window to window."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.operators.aggregates.measures import Array


@dataclass
class Totals:
    """What is kept from window to window."""

    first: int | None = None
    """The first pane in the total; None if there is none."""
    last: int = 0
    """The last one."""
    groups: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The codes of the groups in the total, by their places."""
    added: dict[int, Array] = field(default_factory=dict)
    """Per measure that can be taken out: the total."""
    entered: dict[int, Array] = field(default_factory=dict)
    """Per other measure: the total of the panes since `turned`."""
    leaving: dict[int, Array] = field(default_factory=dict)
    """Per other measure: the total of the panes before `turned`."""
    held: dict[int, Array] = field(default_factory=dict)
    """Per measure that counts distinct values: of each pair of a group and a value, how many panes have it."""
    turned: int | None = None
    """Of panes before this one there are notes; None if everything is to be made anew."""
    stack: list[int] = field(default_factory=list)
    """The numbers of the pages that hold the notes, ascending."""
