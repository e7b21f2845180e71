"""Where boxes and lines go: in layers, so that no text lies on another and no line crosses a box.

Boxes are on even layers, each as far from the top as the longest way to it, and a line goes one layer at a time:
through a slot of its own on every layer that it passes, the first of which has room for its label. Between layers there
is a gap without any text, in which lines bend and cross (Sugiyama, Tagawa and Toda, 1981). Within a layer the order
follows the means of the neighbours, in sweeps down and up; then every slot is moved as near to its neighbours as the
order and the distances allow, which is a regression under constraints, solved by pooling neighbours that are too near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 12
APART = 24.0
"""Between two slots of a layer."""
GAP = 26.0
"""Between two layers."""


@dataclass(eq=False)
class Slot:
    """A box, or the place at which a line passes a layer."""

    width: float
    height: float
    layer: int
    above: list[Slot] = field(default_factory=list)
    below: list[Slot] = field(default_factory=list)
    order: float = 0.0
    x: float = 0.0
    """Of the middle."""
    y: float = 0.0
    """Of the top."""
    top: float = 0.0
    bottom: float = 0.0
    """Of its layer: in between a line goes straight down."""

    @property
    def left(self) -> float:
        """Its left end."""
        return self.x - self.width / 2


@dataclass(frozen=True)
class Layout:
    """All slots in their places."""

    boxes: Mapping[str, Slot]
    ways: Sequence[list[Slot]]
    """For each line the slots that it goes through, with its ends."""
    width: float
    height: float


def layout(sizes: Mapping[str, tuple[float, float]], lines: Sequence[tuple[str, str, tuple[float, float]]]) -> Layout:
    """From the sizes of boxes, and of the labels of the lines between them."""
    levels = _levels(list(sizes), [(source, target) for source, target, _ in lines])
    boxes = {name: Slot(width, height, 2 * levels[name]) for name, (width, height) in sizes.items()}
    slots = list(boxes.values())
    ways = []
    for source, target, (width, height) in lines:
        way = [boxes[source]]
        for layer in range(boxes[source].layer + 1, boxes[target].layer):
            is_first = len(way) == 1
            way.append(Slot(width if is_first else 2.0, height if is_first else 0.0, layer))
        slots += way[1:]
        way.append(boxes[target])
        for upper, lower in pairwise(way):
            upper.below.append(lower)
            lower.above.append(upper)
        ways.append(way)
    layers = [[s for s in slots if s.layer == at] for at in range(max((s.layer for s in slots), default=-1) + 1)]
    _put_in_order(layers)
    _put_in_places(layers)
    return Layout(boxes, ways, *_size(layers))


def _levels(names: Sequence[str], lines: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The longest way from the top to each box."""
    into: dict[str, list[str]] = {name: [] for name in names}
    for source, target in lines:
        into[target].append(source)
    found: dict[str, int] = {}
    pending = list(names)
    while pending:
        name = pending[-1]
        open_ = [each for each in into[name] if each not in found]
        if open_ and name not in found:
            pending += open_
        else:
            found.setdefault(name, max((found[each] + 1 for each in into[name]), default=0))
            pending.pop()
    return found


def _put_in_order(layers: list[list[Slot]]) -> None:
    for layer in layers:
        for at, slot in enumerate(layer):
            slot.order = float(at)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            keys = {
                slot: _mean(slot.above if down else slot.below, lambda each: each.order, slot.order) for slot in layer
            }
            layer.sort(key=keys.__getitem__)
            for at, slot in enumerate(layer):
                slot.order = float(at)


def _put_in_places(layers: list[list[Slot]]) -> None:
    for layer in layers:
        _place(layer, [0.0] * len(layer))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            _place(layer, [_mean(s.above if down else s.below, lambda each: each.x, s.x) for s in layer])
    for layer in layers:
        _place(layer, [_mean([*s.above, *s.below], lambda each: each.x, s.x) for s in layer])


def _mean(near: Sequence[Slot], of: Callable[[Slot], float], otherwise: float) -> float:
    return sum(map(of, near)) / len(near) if near else otherwise


def _place(layer: Sequence[Slot], wanted: Sequence[float]) -> None:
    """As near as can be to where each is wanted, in order and apart: neighbours that are too near become one block."""
    offset, offsets = 0.0, []
    for at, slot in enumerate(layer):
        offset += 0.0 if not at else (layer[at - 1].width + slot.width) / 2 + APART
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []
    for want, off in zip(wanted, offsets, strict=True):
        total, count = want - off, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, more = blocks.pop()
            total, count = total + before, count + more
        blocks.append((total, count))
    places = [total / count for total, count in blocks for _ in range(count)]
    for slot, place, off in zip(layer, places, offsets, strict=True):
        slot.x = place + off


def _size(layers: list[list[Slot]]) -> tuple[float, float]:
    """From the top left corner; how large all of it is."""
    slots = [slot for layer in layers for slot in layer]
    left = min((slot.left for slot in slots), default=0.0)
    y = 0.0
    for layer in layers:
        height = max((slot.height for slot in layer), default=0.0)
        for slot in layer:
            slot.x -= left
            slot.top, slot.bottom = y, y + height
            slot.y = y + (height - slot.height) / 2
        y += height + GAP
    return max((slot.x + slot.width / 2 for slot in slots), default=0.0), max(y - GAP, 0.0)
