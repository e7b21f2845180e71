"""A drawing as Mermaid: every sign that might mean something there is written by its number."""

from __future__ import annotations

from penstock.monitor.picture import Box, Picture
from penstock.monitor.wording import on_one_line

SHAPES = {"stream": ("([", "])"), "operator": ("[", "]"), "query": ("[[", "]]")}
ARROWS = {"arc": "-->", "break": "-.->", "queue": "==>", "result": "-->"}


def mermaid(picture: Picture) -> str:
    """A flowchart from top to bottom."""
    ids = {box.name: f"n{at}" for at, box in enumerate(picture.boxes)}
    lines = ["flowchart TD", *(f"    {ids[box.name]}{_shape(box)}" for box in picture.boxes)]
    for line in picture.lines:
        label = f'|"{escaped(line.label)}"|' if line.label else ""
        lines.append(f"    {ids[line.source]} {ARROWS[line.kind]}{label} {ids[line.target]}")
    shared = [ids[box.name] for box in picture.boxes if box.is_shared]
    if shared:
        lines += ["    classDef shared stroke-width:3px", f"    class {','.join(shared)} shared"]
    return "\n".join(lines)


def _shape(box: Box) -> str:
    begin, end = SHAPES[box.kind]
    return f'{begin}"{"<br/>".join(map(escaped, (box.title, *box.details)))}"{end}'


def escaped(text: str) -> str:
    """Letters, digits, spaces and what is harmless as they are, other signs of ASCII by their numbers."""
    return "".join(
        sign if sign.isalnum() or sign in " ,." or ord(sign) > 127 else f"#{ord(sign)};" for sign in on_one_line(text)
    )
