"""A drawing as SVG, by a layout of its own (`monitor.layered`).

Texts are in a font of one width, and each says how wide it is to be shown, so that nothing overlaps whatever font there
is. Lines run in the gaps between layers and through slots of their own.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape
from itertools import pairwise

from penstock.monitor.layered import Layout, Slot, layout
from penstock.monitor.picture import Box, Line, Picture
from penstock.monitor.wording import broken, columns, cut

COLUMN, LEADING, PADDING, MARGIN = 7.25, 16.0, 10.0, 16.0
TITLE, DETAIL, LABEL = 44, 52, 40
"""So many columns a line of each has at most."""
FILLS = {"stream": "#e3f2e6", "operator": "#ffffff", "query": "#e6eefb"}
STROKES = {"arc": "#555555", "break": "#b3541e", "queue": "#7b3fa0", "result": "#2b5ea7"}
FONT = 'font-family="\'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="12"'


def svg(picture: Picture) -> str:
    """The whole drawing."""
    texts = {box.name: _texts(box) for box in picture.boxes}
    sizes = {name: (_width([text for text, _ in own]), len(own) * LEADING + PADDING) for name, own in texts.items()}
    labels = [cut(line.label, LABEL) for line in picture.lines]
    lines = [
        (line.source, line.target, (columns(label) * COLUMN + 8 if label else 2.0, LEADING if label else 0.0))
        for line, label in zip(picture.lines, labels, strict=True)
    ]
    found = layout(sizes, lines)
    width, height = found.width + 2 * MARGIN, found.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.1f} {height:.1f}" {FONT}>',
        f'<rect width="{width:.1f}" height="{height:.1f}" fill="#fafafa"/>',
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
        *_drawn_lines(picture.lines, labels, found),
        *(part for box in picture.boxes for part in _drawn_box(box, texts[box.name], found.boxes[box.name])),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts)


def _texts(box: Box) -> list[tuple[str, bool]]:
    """The lines of a box, and which of them are its title."""
    titles = [(line, True) for line in broken(box.title, TITLE)]
    return titles + [(line, False) for detail in box.details for line in broken(detail, DETAIL)]


def _width(texts: list[str]) -> float:
    return max((columns(text) for text in texts), default=1) * COLUMN + 2 * PADDING


def _drawn_box(box: Box, texts: list[tuple[str, bool]], slot: Slot) -> list[str]:
    round_ = {"stream": 16, "operator": 4, "query": 0}[box.kind]
    stroke = 2.2 if box.is_shared else 1.0
    parts = [
        f'<rect x="{slot.left:.1f}" y="{slot.y:.1f}" width="{slot.width:.1f}" height="{slot.height:.1f}"'
        f' rx="{round_}" fill="{FILLS[box.kind]}" stroke="#333333" stroke-width="{stroke}"/>'
    ]
    for at, (text, is_title) in enumerate(texts):
        parts += _text(text, slot.x, slot.y + PADDING / 2 + at * LEADING + 12, "#111111" if is_title else "#666666")
    return parts


def _text(text: str, x: float, y: float, fill: str) -> list[str]:
    if not text:
        return []
    length = columns(text) * COLUMN
    return [
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" textLength="{length:.2f}"'
        f' lengthAdjust="spacingAndGlyphs" fill="{fill}" xml:space="preserve">{escape(text)}</text>'
    ]


def _drawn_lines(lines: tuple[Line, ...], labels: list[str], found: Layout) -> list[str]:
    starts, ends = _ports(found, above=True), _ports(found, above=False)
    parts = []
    for at, (line, label, way) in enumerate(zip(lines, labels, found.ways, strict=True)):
        colour = STROKES[line.kind]
        dashes = ' stroke-dasharray="5 4"' if line.kind == "break" else ""
        path = []
        for upper, lower in pairwise(way):
            x1, x2 = starts.get((at, upper), upper.x), ends.get((at, lower), lower.x)
            # on from where the last stretch ended, through the gap, and as far as the next text
            begin = upper.y + upper.height if upper is way[0] or upper.height else upper.top
            end = lower.y - 5 if lower is way[-1] else lower.y if lower.height else lower.top
            middle = (upper.bottom + lower.top) / 2
            bend = f"V{upper.bottom:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {lower.top:.1f}"
            path.append(f"M{x1:.1f} {begin:.1f}{bend}V{end:.1f}")
        parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.3"{dashes}/>')
        x, y = ends[at, way[-1]], way[-1].y
        parts.append(f'<path d="M{x:.1f} {y:.1f}l-4 -7h8z" fill="{colour}"/>')
        if label:
            parts += _text(label, way[1].x, way[1].y + 12, colour)
    return parts


def _ports(found: Layout, *, above: bool) -> dict[tuple[int, Slot], float]:
    """Where on its edge a box is left, or entered, by each of its lines: from left to right as these go on."""
    at_box: dict[Slot, list[tuple[float, int]]] = defaultdict(list)
    for at, way in enumerate(found.ways):
        box, beside = (way[0], way[1]) if above else (way[-1], way[-2])
        at_box[box].append((beside.x, at))
    return {
        (at, box): box.left + box.width * (place + 1) / (len(own) + 1)
        for box, own in at_box.items()
        for place, (_, at) in enumerate(sorted(own))
    }
