"""A drawing of a query graph: boxes and lines, from which every format is written.

Boxes are streams, operators and queries, lines are arcs. Titles and details are texts as they stand; each writer
escapes what its format gives a meaning. In a notebook a drawing shows itself.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

BoxKind = Literal["stream", "operator", "query"]
LineKind = Literal["arc", "break", "queue", "result"]


@dataclass(frozen=True)
class Box:
    """A stream, an operator or a query."""

    name: str
    """By which lines know it: of an operator its name in the state table."""
    kind: BoxKind
    title: str
    details: tuple[str, ...] = ()
    is_shared: bool = False
    """Whether several queries take part in it."""


@dataclass(frozen=True)
class Line:
    """An arc from a box to another."""

    source: str
    target: str
    kind: LineKind = "arc"
    label: str = ""


@dataclass(frozen=True, repr=False)
class Picture:
    """Boxes and lines; a line leads from a box to one that comes later."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]

    @cached_property
    def svg(self) -> str:
        """As a drawing."""
        from penstock.monitor.svg import svg

        return svg(self)

    @cached_property
    def mermaid(self) -> str:
        """For Markdown and what else draws Mermaid."""
        from penstock.monitor.mermaid import mermaid

        return mermaid(self)

    @cached_property
    def dot(self) -> str:
        """For Graphviz."""
        from penstock.monitor.dot import dot

        return dot(self)

    @cached_property
    def text(self) -> str:
        """For a terminal: a tree for every query; what was drawn before is named by its name."""
        from penstock.monitor.tree import tree

        return tree(self)

    @cached_property
    def json(self) -> str:
        """Boxes and lines as one JSON object."""
        return json.dumps(
            {"boxes": [asdict(box) for box in self.boxes], "lines": [asdict(line) for line in self.lines]},
            ensure_ascii=False,
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        """In a notebook."""
        return self.svg

    def _repr_html_(self) -> str:
        """In a notebook that shows no drawings by themselves."""
        return f'<div style="overflow:auto">{self.svg}</div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Whichever form is wanted."""
        forms = {"image/svg+xml": self.svg, "text/html": self._repr_html_(), "text/plain": self.text}
        return {
            kind: form
            for kind, form in forms.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }
