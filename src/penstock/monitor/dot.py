"""A drawing as DOT, the language of Graphviz: texts are quoted strings."""

from __future__ import annotations

from penstock.monitor.picture import Picture
from penstock.monitor.wording import on_one_line

SHAPES = {"stream": "ellipse", "operator": "box", "query": "note"}
STYLES = {"arc": "solid", "break": "dashed", "queue": "bold", "result": "solid"}


def dot(picture: Picture) -> str:
    """A directed graph from top to bottom."""
    ids = {box.name: f"n{at}" for at, box in enumerate(picture.boxes)}
    lines = ["digraph penstock {", '    node [fontname="monospace"];', '    edge [fontname="monospace"];']
    for box in picture.boxes:
        label = "\\n".join(map(escaped, (box.title, *box.details)))
        bold = ", penwidth=2" if box.is_shared else ""
        lines.append(f'    {ids[box.name]} [shape={SHAPES[box.kind]}, label="{label}"{bold}];')
    for line in picture.lines:
        label = f', label="{escaped(line.label)}"' if line.label else ""
        lines.append(f"    {ids[line.source]} -> {ids[line.target]} [style={STYLES[line.kind]}{label}];")
    return "\n".join([*lines, "}"])


def escaped(text: str) -> str:
    """Within quotes only they and the backslash mean something."""
    return on_one_line(text).replace("\\", "\\\\").replace('"', '\\"')
