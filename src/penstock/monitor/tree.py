"""A drawing for a terminal: a tree for every query, the result on top; what was drawn before is named by its name."""

from __future__ import annotations

from collections import defaultdict

from penstock.monitor.picture import Box, Line, Picture
from penstock.monitor.wording import on_one_line


def tree(picture: Picture) -> str:
    """All trees, those of what leads nowhere last."""
    boxes = {box.name: box for box in picture.boxes}
    into: dict[str, list[Line]] = defaultdict(list)
    for line in picture.lines:
        into[line.target].append(line)
    sources = {line.source for line in picture.lines}
    drawn: set[str] = set()
    lines: list[str] = []

    def visit(box: Box, lead: str, stem: str) -> None:
        known = box.name in drawn
        drawn.add(box.name)
        head = on_one_line(box.title)
        lines.append(f"{lead}{head}, as above" if known else lead + head)
        if known:
            return
        below = into[box.name]
        bar = "|  " if below else "   "
        lines.extend(f"{stem}{bar}   {on_one_line(detail)}" for detail in box.details)
        for at, line in enumerate(below, 1):
            if line.label:
                lines.append(f"{stem}|  ({on_one_line(line.label)})")
            visit(boxes[line.source], stem + "+- ", stem + ("   " if at == len(below) else "|  "))

    for box in sorted(picture.boxes, key=lambda each: each.kind != "query"):
        if box.name not in sources:
            visit(box, "", "")
    return "\n".join(lines)
